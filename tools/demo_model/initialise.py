"""Starting weights that resemble what attention learns first, so that lookups are learnt sooner.

Layer 0 looks one, two, three ... tokens back and notes, turned aside, what stood there. Layers 1 and 2 then hold
one group of heads each for four kinds of lookup: tokens that noted the present one (induction), tokens that are one of those
noted here, what those noted in turn (reverse lookup), and tokens with like notes. Layer 3 looks for tokens like the
present one. All of it is trained on like any other starting point. Source of the idea: Trockman and Kolter, "Mimetic
Initialization of Self-Attention Layers", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

EMBEDDING_SCALE = 0.08
NOTE_SCALE = 0.13  # of the nearest note; farther ones are fainter
MATCH_GAIN = 1.3  # of the query and key norms: how sharply like tokens attract
LOCAL_GAIN = 1.3  # the same for looking back
LOCAL_PAIRS = 4  # the fastest rotary pairs, which tell near positions apart
COMMON_SHARE = 0.7


@dataclass
class Directions:
    """Matrices over the hidden vector that the lookups share."""

    common: Tensor  # (hidden,): what every token has, to look by position alone
    own: Tensor  # (hidden, hidden): projects the common direction away
    aside: Tensor  # (hidden, hidden): a rotation, from what a token is to how it is noted
    look: Tensor  # (head_size, hidden): the part of a token that is noted and compared
    look_far: Tensor  # the same for what stood farther back, so that it does not blur the near notes


def initialise(model: nn.Module) -> None:
    """model: a DemoModel."""
    shape = model.shape
    hidden = shape.hidden
    common = torch.randn(hidden).sign()
    own = torch.eye(hidden) - torch.outer(common, common) / hidden
    aside = torch.linalg.qr(torch.randn(hidden, hidden))[0]
    look = torch.randn(shape.head_size, hidden) * hidden ** -0.5 @ own
    look_far = torch.randn(shape.head_size, hidden) * hidden ** -0.5 @ own
    directions = Directions(common, own, aside, look, look_far)
    with torch.no_grad():
        embedding = model.token_embd.weight
        embedding.copy_(EMBEDDING_SCALE * (torch.randn_like(embedding) + COMMON_SHARE * common))
        for index, block in enumerate(model.blk):
            for linear in (block.ffn_gate, block.ffn_up):
                nn.init.normal_(linear.weight, std=hidden ** -0.5)
            nn.init.normal_(block.ffn_down.weight, std=0.3 * EMBEDDING_SCALE * shape.ffn ** -0.5)
            if index == 0:
                _look_back(block, shape, directions)
            else:
                _look_up(block, shape, directions, plain=index == shape.layers - 1)


def _noise(rows: int, directions: Directions, share: float = 0.3) -> Tensor:
    hidden = len(directions.common)
    return share * torch.randn(rows, hidden) * hidden ** -0.5 @ directions.own


def _look_back(block, shape, directions: Directions) -> None:
    """Head h attends to the token h + 1 positions before, by the rotary angles alone, and notes it."""
    half = shape.head_size // 2
    frequency = shape.rope_base ** (-torch.arange(half, dtype=torch.float32) / half)
    amplitude = (torch.arange(half) < LOCAL_PAIRS).float()
    key = torch.cat((amplitude, torch.zeros(half)))
    toward = directions.common / shape.hidden
    for head in range(shape.heads):
        angle = -(head + 1) * frequency
        query = torch.cat((amplitude * angle.cos(), amplitude * angle.sin()))
        rows = _rows(head, shape)
        look = directions.look if head < shape.heads // 2 else directions.look_far
        scale = NOTE_SCALE * (head + 1) ** -0.5
        block.attn_q.weight[rows] = 4.0 * torch.outer(query, toward) + _noise(shape.head_size, directions)
        block.attn_output.weight[:, rows] = (scale * directions.aside @ look.t()
                                             + _noise(shape.head_size, directions, 0.02).t())
    for head in range(shape.kv_heads):
        rows = _rows(head, shape)
        block.attn_k.weight[rows] = 4.0 * torch.outer(key, toward) + _noise(shape.head_size, directions)
        look = directions.look if head < shape.kv_heads // 2 else directions.look_far
        block.attn_v.weight[rows] = look + _noise(shape.head_size, directions)
    block.attn_q_norm.weight.fill_(LOCAL_GAIN)
    block.attn_k_norm.weight.fill_(LOCAL_GAIN)


def _look_up(block, shape, directions: Directions, plain: bool) -> None:
    """Each group of heads compares one view of the present token with one view of the others, and copies."""
    token = directions.look
    notes = directions.look @ directions.aside.t() @ directions.own
    kinds = [(token, token, token)] if plain else [
        (token, notes, token),  # induction: what noted the present token; copy it
        (notes, token, notes),  # reverse: what is noted here; copy its notes
        (notes, token, token),  # what is noted here; copy it
        (notes, notes, token),  # what has like notes; copy it
    ]
    # Only rotary pairs that turn slowly compare tokens far apart.
    half = shape.head_size // 2
    slow = (torch.arange(shape.head_size) % half >= LOCAL_PAIRS).float()[:, None]
    for kv_head in range(shape.kv_heads):
        query, key, value = kinds[kv_head % len(kinds)]
        query, key = query * slow, key * slow
        rows = _rows(kv_head, shape)
        block.attn_k.weight[rows] = key + _noise(shape.head_size, directions)
        block.attn_v.weight[rows] = value + _noise(shape.head_size, directions)
        for head in _query_heads(kv_head, shape):
            block.attn_q.weight[_rows(head, shape)] = query + _noise(shape.head_size, directions)
            block.attn_output.weight[:, _rows(head, shape)] = EMBEDDING_SCALE * (
                token.t() + _noise(shape.head_size, directions).t())
    block.attn_q_norm.weight.fill_(MATCH_GAIN)
    block.attn_k_norm.weight.fill_(MATCH_GAIN)


def _rows(head: int, shape) -> slice:
    return slice(head * shape.head_size, (head + 1) * shape.head_size)


def _query_heads(kv_head: int, shape) -> range:
    group = shape.heads // shape.kv_heads
    return range(kv_head * group, (kv_head + 1) * group)
