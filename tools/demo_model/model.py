"""The demo model in torch: a qwen3 decoder as GGUF describes it.

RMSNorm, grouped-query attention with a per-head RMSNorm on queries and keys, rotary embedding over half-split pairs
(NEOX), SwiGLU, no biases, output head tied to the embedding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from initialise import initialise


@dataclass(frozen=True)
class Shape:
    vocabulary: int
    hidden: int = 128
    layers: int = 4
    heads: int = 8
    kv_heads: int = 4
    head_size: int = 32
    ffn: int = 384
    context: int = 1024
    rope_base: float = 10000.0
    rms_eps: float = 1e-6


class RmsNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self._eps) * self.weight


def rotary_table(shape: Shape) -> tuple[Tensor, Tensor]:
    """cos and sin, each (context, head_size / 2)."""
    half = shape.head_size // 2
    frequency = shape.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(shape.context, dtype=torch.float64)[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x: (batch, heads, positions, head_size)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        q_size, kv_size = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
        self.attn_norm = RmsNorm(shape.hidden, shape.rms_eps)
        self.attn_q = nn.Linear(shape.hidden, q_size, bias=False)
        self.attn_k = nn.Linear(shape.hidden, kv_size, bias=False)
        self.attn_v = nn.Linear(shape.hidden, kv_size, bias=False)
        self.attn_q_norm = RmsNorm(shape.head_size, shape.rms_eps)
        self.attn_k_norm = RmsNorm(shape.head_size, shape.rms_eps)
        self.attn_output = nn.Linear(q_size, shape.hidden, bias=False)
        self.ffn_norm = RmsNorm(shape.hidden, shape.rms_eps)
        self.ffn_gate = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.ffn_up = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.ffn_down = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self._attention(self.attn_norm(x), cos, sin, mask)
        y = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(y)) * self.ffn_up(y))

    def _attention(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape

        def split(y: Tensor) -> Tensor:
            return y.view(batch, length, -1, self.shape.head_size).transpose(1, 2)

        q = rotate(self.attn_q_norm(split(self.attn_q(x))), cos, sin)
        k = rotate(self.attn_k_norm(split(self.attn_k(x))), cos, sin)
        v = split(self.attn_v(x))
        group = self.shape.heads // self.shape.kv_heads
        # Query heads of one group stand behind each other: (batch, kv_heads, group * length, head_size).
        q = q.reshape(batch, self.shape.kv_heads, group * length, self.shape.head_size)
        scores = (q @ k.transpose(-1, -2)) * self.shape.head_size ** -0.5
        scores = scores.view(batch, self.shape.kv_heads, group, length, length) + mask
        weights = scores.softmax(-1).view(batch, self.shape.kv_heads, group * length, length)
        out = (weights @ v).view(batch, self.shape.heads, length, self.shape.head_size)
        return self.attn_output(out.transpose(1, 2).reshape(batch, length, -1))


class DemoModel(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.hidden)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = RmsNorm(shape.hidden, shape.rms_eps)
        cos, sin = rotary_table(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        initialise(self)

    def hidden_states(self, ids: Tensor) -> Tensor:
        """ids: (batch, positions) from position 0; returns (batch, positions, hidden) after the last norm."""
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x, self.cos[:length], self.sin[:length], mask)
        return self.output_norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden @ self.token_embd.weight.t()
