"""Starting weights that resemble what attention learns first, so that looking things up is learnt sooner.

Layer 0 looks one, two, three ... tokens back and notes, turned aside, what stood there; layer 1 looks for tokens
with the present one noted (an induction head) or with like notes; the later layers look for tokens like the present one. All of it is trained on like any other starting point. Source of the idea: Trockman and Kolter,
"Mimetic Initialization of Self-Attention Layers", 2023.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

EMBEDDING_SCALE = 0.08
MATCH_GAIN = 0.9  # of the query and key norms: how sharply like tokens attract
LOCAL_GAIN = 1.3  # the same for looking back
INDUCTION_GAIN = 1.2
NOTE_GAIN = 2.5
LOCAL_PAIRS = 4  # the fastest rotary pairs, which tell near positions apart


def initialise(model: nn.Module) -> None:
    """model: a DemoModel."""
    shape = model.shape
    common = torch.randn(shape.hidden).sign()  # a direction that every token shares, to look by position
    own = torch.eye(shape.hidden) - torch.outer(common, common) / shape.hidden  # what they do not share
    with torch.no_grad():
        embedding = model.token_embd.weight
        embedding.copy_(EMBEDDING_SCALE * (torch.randn_like(embedding) + 0.7 * common))
        for index, block in enumerate(model.blk):
            for linear in (block.ffn_gate, block.ffn_up, block.attn_v):
                nn.init.normal_(linear.weight, std=shape.hidden ** -0.5)
            nn.init.normal_(block.ffn_down.weight, std=0.3 * EMBEDDING_SCALE * shape.ffn ** -0.5)
            block.attn_v.weight.copy_(block.attn_v.weight @ own)
            if index == 0:  # all heads note in nearly the same place
                values = block.attn_v.weight.view(shape.kv_heads, -1)
                values[1:] = 0.8 * values[0] + 0.6 * values[1:]
            _copying(block, shape)
            if index == 0:
                _looking_back(block, shape, common)
            else:
                _matching(block, shape, own)
        aside = torch.linalg.qr(torch.randn(shape.hidden, shape.hidden))[0]
        first, second = model.blk[0], model.blk[1]
        first.attn_output.weight.copy_(NOTE_GAIN * aside @ first.attn_output.weight)
        _induction(first, second, shape, aside, own)


def _per_query_head(weights: Tensor, shape) -> Tensor:
    """(kv_heads * head_size, hidden) -> the same rows repeated for each query head of the group."""
    split = weights.view(shape.kv_heads, 1, shape.head_size, shape.hidden)
    return split.repeat(1, shape.heads // shape.kv_heads, 1, 1).view(-1, shape.hidden)


def _copying(block, shape) -> None:
    """Each head's output is roughly a part of the very vector it read."""
    values = _per_query_head(block.attn_v.weight, shape)
    noise = torch.randn_like(block.attn_output.weight) * shape.hidden ** -0.5
    block.attn_output.weight.copy_(EMBEDDING_SCALE * (values.t() + 0.2 * noise))


def _matching(block, shape, own: Tensor) -> None:
    """Queries and keys are the same projection of what tokens do not share."""
    keys = torch.randn(shape.kv_heads * shape.head_size, shape.hidden) * shape.hidden ** -0.5
    block.attn_k.weight.copy_(keys @ own)
    noise = torch.randn_like(block.attn_q.weight) * shape.hidden ** -0.5
    block.attn_q.weight.copy_(_per_query_head(keys @ own, shape) + 0.7 * noise @ own)
    block.attn_q_norm.weight.fill_(MATCH_GAIN)
    block.attn_k_norm.weight.fill_(MATCH_GAIN)


def _induction(first, second, shape, aside: Tensor, own: Tensor) -> None:
    """Heads of layer 1 match what layer 0 noted with the present token (first group) or with its own notes."""
    size = shape.head_size
    group = shape.heads // shape.kv_heads
    look = first.attn_v.weight[:size] @ own
    notes = first.attn_v.weight[:size] @ aside.t() @ own
    second.attn_k.weight[:size] = notes
    second.attn_q.weight[:group * size] = look.repeat(group, 1)
    second.attn_k.weight[size:2 * size] = notes
    second.attn_q.weight[group * size:2 * group * size] = notes.repeat(group, 1)
    # Norm weights are per layer, so the gain is shared.
    second.attn_q_norm.weight.fill_(INDUCTION_GAIN)
    second.attn_k_norm.weight.fill_(INDUCTION_GAIN)


def _looking_back(block, shape, common: Tensor) -> None:
    """Head h attends to the token h + 1 positions before, by the rotary angles alone."""
    half = shape.head_size // 2
    frequency = shape.rope_base ** (-torch.arange(half, dtype=torch.float32) / half)
    amplitude = (torch.arange(half) < LOCAL_PAIRS).float()
    key = torch.cat((amplitude, torch.zeros(half)))
    queries = []
    for head in range(shape.heads):
        angle = -(head + 1) * frequency
        queries.append(torch.cat((amplitude * angle.cos(), amplitude * angle.sin())))
    for linear, rows in ((block.attn_q, torch.cat(queries)), (block.attn_k, key.repeat(shape.kv_heads))):
        noise = torch.randn_like(linear.weight) * shape.hidden ** -0.5
        linear.weight.copy_(4.0 * torch.outer(rows, common) / shape.hidden + 0.2 * noise)
    block.attn_q_norm.weight.fill_(LOCAL_GAIN)
    block.attn_k_norm.weight.fill_(LOCAL_GAIN)
