"""Endless training batches of generated texts, of about equal length each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from bpe import Tokenizer
from generator import training_text

ANSWER_WEIGHT = 4.0
POOL_BATCHES = 8


def encode_weighted(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[float]]:
    """Token ids with begin and end, and the loss weight of each as a target."""
    ids, weights = [tokenizer.begin_id], [0.0]
    for line in text.splitlines(keepends=True):
        head, colon, tail = line.partition(":")
        head_ids, tail_ids = tokenizer.encode(head + colon), tokenizer.encode(tail)
        ids += head_ids + tail_ids
        weights += [1.0] * len(head_ids)
        weights += [ANSWER_WEIGHT if head == "Answer" else 1.0] * len(tail_ids)
    return ids + [tokenizer.end_id], weights + [1.0]


def batches(tokenizer: Tokenizer, seed: int, tokens_per_batch: int,
            level: Callable[[random.Random], int]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields ids (rows, length) and weights alike; rows end in end tokens of weight 0. level draws a text's."""
    rng = random.Random(seed)
    while True:
        pool = []
        while sum(len(ids) for ids, _ in pool) < POOL_BATCHES * tokens_per_batch:
            pool.append(encode_weighted(tokenizer, training_text(rng, level(rng))))
        pool.sort(key=lambda item: len(item[0]))
        groups = list(_groups(pool, tokens_per_batch))
        rng.shuffle(groups)
        for group in groups:
            yield _padded(group, tokenizer.end_id)


def _groups(pool: list, tokens_per_batch: int) -> Iterator[list]:
    group: list = []
    for item in pool:
        group.append(item)
        if len(group) * len(item[0]) >= tokens_per_batch:
            yield group
            group = []


def _padded(group: list, end_id: int) -> tuple[Tensor, Tensor]:
    length = max(len(ids) for ids, _ in group)
    ids = torch.tensor([row + [end_id] * (length - len(row)) for row, _ in group])
    weights = torch.tensor([row + [0.0] * (length - len(row)) for _, row in group])
    return ids, weights
