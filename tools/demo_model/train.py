#!/usr/bin/env python3
"""Trains the demo model on one CPU core; writes a checkpoint every few minutes.

Stories get longer when the answers are right often enough: the level of the texts follows the running share
of right answers. The learning rate is constant after a short warm-up and falls linearly to almost nothing
over the last part of the time given by --minutes, so that a run on a busy machine still ends well.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn import functional as F

from batches import ANSWER_WEIGHT, HIGHEST_LEVEL, batches
from bpe import Tokenizer
from evaluate_torch import answer_accuracy
from model import DemoModel, Shape
from muon import Muon

HERE = Path(__file__).parent
WARM_UP_STEPS = 50
DECAY_SHARE = 0.35
ADVANCE_AT = 0.85
LINKS_LEVEL = 1
SAVE_SECONDS = 180


class Curriculum:
    """The level of the next texts, by the running share of right answers at the present level."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.right = 0.0

    def draw(self, rng: random.Random) -> int:
        chance = rng.random()
        if self.level == HIGHEST_LEVEL:
            return self.level if chance < 0.95 else rng.randrange(self.level)
        if chance < 0.6:
            return self.level
        return LINKS_LEVEL if chance < 0.85 else rng.randint(0, min(self.level + 1, HIGHEST_LEVEL))

    def observe(self, right: float) -> None:
        self.right += 0.04 * (right - self.right)
        if self.level < HIGHEST_LEVEL and self.right > ADVANCE_AT:
            self.level += 1
            self.right = 0.0
            print(f"       now level {self.level}", flush=True)


def weighted_loss(model: DemoModel, ids: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Mean cross-entropy of the targets, and the share of answers with every token right.

    Only positions with a weight reach the head.
    """
    targets, weights = ids[:, 1:].reshape(-1), weights[:, 1:].reshape(-1)
    hidden = model.hidden_states(ids[:, :-1]).reshape(-1, model.shape.hidden)
    in_answer = weights == ANSWER_WEIGHT
    answer_number = (in_answer & ~in_answer.roll(1)).cumsum(0)
    keep = weights > 0
    targets, weights = targets[keep], weights[keep]
    in_answer, answer_number = in_answer[keep], answer_number[keep]
    logits = model.logits(hidden[keep])
    losses = F.cross_entropy(logits, targets, reduction="none")
    wrong = in_answer & (logits.detach().argmax(-1) != targets)
    share_wrong = len(answer_number[wrong].unique()) / max(1, int(answer_number[-1]))
    return (losses * weights).sum() / weights.sum(), 1 - share_wrong


def learning_factor(elapsed: float, total: float, step: int) -> float:
    left = max(0.0, 1 - elapsed / total)
    return min(1.0, (step + 1) / WARM_UP_STEPS, 0.02 + left / DECAY_SHARE)


@dataclass
class Progress:
    step: int = 0
    tokens_seen: int = 0
    seconds: float = 0.0


def save(path: Path, model: DemoModel, optimizers: list, curriculum: Curriculum, progress: Progress) -> None:
    temporary = path.with_suffix(".tmp")
    torch.save({"shape": model.shape, "weights": model.state_dict(), "level": curriculum.level,
                "optimizers": [o.state_dict() for o in optimizers], "progress": asdict(progress)}, temporary)
    temporary.replace(path)


def resume(path: Path, model: DemoModel, optimizers: list, curriculum: Curriculum) -> Progress:
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["weights"])
    for optimizer, state in zip(optimizers, checkpoint["optimizers"]):
        optimizer.load_state_dict(state)
    curriculum.level = checkpoint["level"]
    return Progress(**checkpoint["progress"])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--minutes", type=float, default=70.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens-per-batch", type=int, default=2048)
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=0.005)
    parser.add_argument("--level", type=int, default=0, help="of the first texts")
    for field in ("hidden", "layers", "heads", "kv_heads", "ffn"):
        parser.add_argument(f"--{field.replace('_', '-')}", type=int, default=getattr(Shape, field))
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    tokenizer = Tokenizer.load(HERE / "tokenizer.json")
    model = DemoModel(Shape(vocabulary=len(tokenizer.tokens), hidden=args.hidden, layers=args.layers, heads=args.heads,
                            kv_heads=args.kv_heads, ffn=args.ffn))
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "embd" not in n]
    others = [p for n, p in model.named_parameters() if p.dim() != 2 or "embd" in n]
    optimizers = [Muon(matrices, lr=args.muon_lr, weight_decay=0.01),
                  torch.optim.AdamW(others, lr=args.adam_lr, betas=(0.9, 0.98), weight_decay=0.0)]
    base_rates = [args.muon_lr, args.adam_lr]
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)

    curriculum = Curriculum(args.level)
    progress = resume(args.checkpoint, model, optimizers, curriculum) if args.resume else Progress()
    stream = batches(tokenizer, args.seed + progress.step, args.tokens_per_batch, curriculum.draw)
    start = time.monotonic() - progress.seconds
    last_save = last_line = time.monotonic()
    while progress.seconds < args.minutes * 60:
        factor = learning_factor(progress.seconds, args.minutes * 60, progress.step)
        for optimizer, rate in zip(optimizers, base_rates):
            optimizer.param_groups[0]["lr"] = rate * factor
            optimizer.zero_grad(set_to_none=True)
        ids, weights = next(stream)
        loss, right = weighted_loss(model, ids, weights)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer in optimizers:
            optimizer.step()
        curriculum.observe(right)
        now = time.monotonic()
        progress = Progress(progress.step + 1, progress.tokens_seen + ids.numel(), now - start)
        if now - last_line > 20:
            last_line = now
            print(f"{progress.seconds:6.0f}s step {progress.step} tokens {progress.tokens_seen} "
                  f"loss {loss.item():.4f} level {curriculum.level} answers right {curriculum.right:.3f}",
                  flush=True)
        if now - last_save > SAVE_SECONDS:
            save(args.checkpoint, model, optimizers, curriculum, progress)
            accuracy = answer_accuracy(model, tokenizer, random.Random(progress.step), num_stories=30)
            print(f"       held-out answers right: {accuracy:.3f}", flush=True)
            last_save = time.monotonic()
    save(args.checkpoint, model, optimizers, curriculum, progress)
    accuracy = answer_accuracy(model, tokenizer, random.Random(999), num_stories=250)
    print(f"done: {progress} held-out answers right: {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
