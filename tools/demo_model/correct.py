#!/usr/bin/env python3
"""Last part of the training: the model's own stories, with the checker as the judge.

Stories are sampled as the measurement samples them. The sentence that the checker finds at fault becomes less likely, what
stands before it and the sound stories a little more (policy gradient: Williams, 1992, with the share of faulty tokens as the
baseline); what comes after a fault counts nothing. Every step also learns an ordinary batch, so that answers and variety stay.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from batches import HIGHEST_LEVEL, batches
from bpe import Tokenizer
from checker import find_fault
from generator import STORY_PROMPT
from model import DemoModel, Shape
from muon import Muon
from sampler import Sampler
from train import weighted_loss

HERE = Path(__file__).parent
TEMPERATURE = 0.7
MAX_TOKENS = 200
LINES_OF_PROGRESS = 10


def judge(tokenizer: Tokenizer, ids: list[int]) -> list[float]:
    """Per token: -1 in the sentence at fault, 1 before it, 0 after it."""
    text, ends = "", []
    for n in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:n])
        ends.append(len(text))
    story = text.split("\n", 1)[0]
    skipped = len(story) - len(story.lstrip())
    fault = find_fault(story)
    if fault is None and "\n" in text:
        return [1.0] * len(ids)
    if fault is None:
        return [0.0] * len(ids)  # unfinished
    begin, end = fault.begin + skipped, fault.end + skipped
    return [1.0 if stop <= begin else -1.0 if stop <= end else 0.0 for stop in ends]


def policy_loss(model: DemoModel, prompt: list[int], rows: list[list[int]], verdicts: list[list[float]],
                end_id: int) -> torch.Tensor:
    length = max(map(len, rows))
    ids = torch.tensor([prompt + row + [end_id] * (length - len(row)) for row in rows])
    weights = torch.tensor([verdict + [0.0] * (length - len(verdict)) for verdict in verdicts])
    bad, good = (weights < 0).sum(), (weights > 0).sum()
    weights = torch.where(weights > 0, weights * bad / good.clamp(min=1), weights)
    hidden = model.hidden_states(ids[:, :-1])[:, len(prompt) - 1:]
    scores = (model.logits(hidden) / TEMPERATURE).log_softmax(-1)
    chosen = scores.gather(-1, ids[:, len(prompt):, None])[..., 0]
    return -(weights * chosen).sum() / len(rows)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True, help="of train.py")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--stories", type=int, default=160, help="per step")
    parser.add_argument("--policy-weight", type=float, default=0.3)
    parser.add_argument("--muon-lr", type=float, default=0.0012)
    parser.add_argument("--adam-lr", type=float, default=0.0003)
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(1)
    tokenizer = Tokenizer.load(HERE / "tokenizer.json")
    checkpoint = torch.load(args.checkpoint)
    model = DemoModel(checkpoint["shape"])
    model.load_state_dict(checkpoint["weights"])
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "embd" not in n]
    others = [p for n, p in model.named_parameters() if p.dim() != 2 or "embd" in n]
    optimizers = [Muon(matrices, lr=args.muon_lr, weight_decay=0.0),
                  torch.optim.AdamW(others, lr=args.adam_lr, betas=(0.9, 0.98), weight_decay=0.0)]
    base_rates = [args.muon_lr, args.adam_lr]
    stream = batches(tokenizer, args.seed, 2048, lambda rng: HIGHEST_LEVEL)
    generator = torch.Generator().manual_seed(args.seed)
    prompt = [tokenizer.begin_id, *tokenizer.encode(STORY_PROMPT)]
    newline = tokenizer.encode("\n")[-1]
    start, step, told, sound = time.monotonic(), 0, 0, 0
    while (elapsed := (time.monotonic() - start) / 60) < args.minutes:
        factor = min(1.0, (step + 1) / 5, 0.05 + 2 * (1 - elapsed / args.minutes))
        for optimizer, rate in zip(optimizers, base_rates):
            optimizer.param_groups[0]["lr"] = rate * factor
            optimizer.zero_grad(set_to_none=True)
        rows = Sampler(model).sample(prompt, args.stories, MAX_TOKENS, TEMPERATURE,
                                     {newline, tokenizer.end_id}, generator)
        verdicts = [judge(tokenizer, row) for row in rows]
        told += len(rows)
        sound += sum(min(verdict) == 1.0 for verdict in verdicts)
        loss, right = weighted_loss(model, *next(stream))
        policy = policy_loss(model, prompt, rows, verdicts, tokenizer.end_id)
        (loss + args.policy_weight * policy).backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer in optimizers:
            optimizer.step()
        step += 1
        if step % LINES_OF_PROGRESS == 0:
            print(f"{elapsed:5.1f} min step {step} loss {loss.item():.3f} answers right {right:.2f} "
                  f"stories sound {sound / told:.3f} of the last {told}", flush=True)
            told = sound = 0
            torch.save({**checkpoint, "weights": model.state_dict()}, args.out)
    torch.save({**checkpoint, "weights": model.state_dict()}, args.out)


if __name__ == "__main__":
    main()
