"""Samples many continuations of one prompt at once, with a key-value cache: fast enough for training on them."""

from __future__ import annotations

import torch
from torch import Tensor

from model import DemoModel, rotate


class Sampler:
    """All rows stand at the same position, so the cache is a plain tensor that grows."""

    def __init__(self, model: DemoModel) -> None:
        self._model = model

    @torch.no_grad()
    def sample(self, prompt: list[int], rows: int, tokens: int, temperature: float, stop_ids: set[int],
               generator: torch.Generator) -> list[list[int]]:
        """What follows the prompt in each row, up to and with the first stop id or `tokens` tokens."""
        self._keys: list[Tensor | None] = [None] * len(self._model.blk)
        self._values: list[Tensor | None] = [None] * len(self._model.blk)
        for position, token in enumerate(prompt):
            logits = self._step(torch.full((rows, 1), token), position)
        outputs: list[list[int]] = [[] for _ in range(rows)]
        open_rows = set(range(rows))
        for position in range(len(prompt), len(prompt) + tokens):
            chosen = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
            for row in list(open_rows):
                outputs[row].append(int(chosen[row]))
                if outputs[row][-1] in stop_ids:
                    open_rows.discard(row)
            if not open_rows:
                break
            logits = self._step(chosen, position)
        return outputs

    def _step(self, ids: Tensor, position: int) -> Tensor:
        model = self._model
        x = model.token_embd(ids)
        cos, sin = model.cos[position:position + 1], model.sin[position:position + 1]
        for layer, block in enumerate(model.blk):
            x = x + self._attention(layer, block.attn_norm(x), cos, sin)
            y = block.ffn_norm(x)
            x = x + block.ffn_down(torch.nn.functional.silu(block.ffn_gate(y)) * block.ffn_up(y))
        return model.logits(model.output_norm(x))[:, 0]

    def _attention(self, layer: int, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        block, shape = self._model.blk[layer], self._model.shape
        rows = x.shape[0]

        def split(y: Tensor) -> Tensor:
            return y.view(rows, 1, -1, shape.head_size).transpose(1, 2)

        q = rotate(block.attn_q_norm(split(block.attn_q(x))), cos, sin)
        k = rotate(block.attn_k_norm(split(block.attn_k(x))), cos, sin)
        v = split(block.attn_v(x))
        if self._keys[layer] is not None:
            k = torch.cat((self._keys[layer], k), dim=2)
            v = torch.cat((self._values[layer], v), dim=2)
        self._keys[layer], self._values[layer] = k, v
        group = shape.heads // shape.kv_heads
        q = q.reshape(rows, shape.kv_heads, group, shape.head_size)
        weights = ((q @ k.transpose(-1, -2)) * shape.head_size ** -0.5).softmax(-1)
        return block.attn_output((weights @ v).reshape(rows, 1, -1))
