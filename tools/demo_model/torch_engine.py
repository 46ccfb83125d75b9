"""Generates text with a training checkpoint in torch: what the server does, without a server."""

from __future__ import annotations

from pathlib import Path

import torch

from bpe import Tokenizer
from export import load_checkpoint
from model import DemoModel
from server_engine import Output, Request


class TorchEngine:
    """Keeps no cache: for texts of a few hundred tokens the whole text is computed for every token."""

    def __init__(self, checkpoint: Path, quantised: bool) -> None:
        self._model: DemoModel = load_checkpoint(checkpoint, quantised)
        self._tokenizer = Tokenizer.load(Path(__file__).parent / "tokenizer.json")

    @torch.no_grad()
    def generate(self, requests: list[Request], rows_at_once: int = 50) -> list[Output]:
        outputs: list[Output] = []
        for start in range(0, len(requests), rows_at_once):
            outputs += self._together(requests[start:start + rows_at_once])
        return outputs

    def _together(self, requests: list[Request]) -> list[Output]:
        begin, end = self._tokenizer.begin_id, self._tokenizer.end_id
        prompts = [[begin, *self._tokenizer.encode(r.prompt)] for r in requests]
        rows = [list(prompt) for prompt in prompts]
        outputs: list[Output | None] = [None] * len(rows)
        randoms = [torch.Generator().manual_seed(r.seed) for r in requests]
        while None in outputs:
            active = [i for i, output in enumerate(outputs) if output is None]
            length = max(len(rows[i]) for i in active)
            ids = torch.tensor([rows[i] + [end] * (length - len(rows[i])) for i in active])
            hidden = self._model.hidden_states(ids)
            last = torch.stack([hidden[k, len(rows[i]) - 1] for k, i in enumerate(active)])
            for i, logits in zip(active, self._model.logits(last)):
                rows[i].append(_choose(logits, requests[i].temperature, randoms[i]))
                outputs[i] = self._finished(requests[i], rows[i][len(prompts[i]):])
        return outputs

    def _finished(self, request: Request, new_ids: list[int]) -> Output | None:
        text = self._tokenizer.decode(new_ids)
        for stop in request.stop:
            if stop in text:
                return Output(text[:text.index(stop)], "stop")
        if new_ids[-1] == self._tokenizer.end_id:
            return Output(text, "stop")
        return Output(text, "length") if len(new_ids) == request.max_tokens else None


def _choose(logits: torch.Tensor, temperature: float, generator: torch.Generator) -> int:
    if temperature == 0:
        return int(logits.argmax())
    return int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator))
