"""Endless training batches of generated texts, of about equal length each."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from bpe import Tokenizer
from exercises import Exercise, links, pairs
from generator import FULL, training_text

# What a token counts in the loss. A story's words can hardly be foreseen and would drown the lookups early on.
ANSWER_WEIGHT = 1.0
STORY_WEIGHT, EARLY_STORY_WEIGHT = 0.9, 0.03
END_WEIGHT = 0.1
FIRST_STORY_LEVEL = 2
HIGHEST_LEVEL = FIRST_STORY_LEVEL + FULL + 1
POOL_BATCHES = 8
_VERB = re.compile(r" (?:is|has|belongs to|came from|went to|was put there by|we find)\b")


def encode_weighted(tokenizer: Tokenizer, text: str, story_weight: float) -> tuple[list[int], list[float]]:
    """Token ids with begin and end, and the loss weight of each as a target."""
    ids, weights = [tokenizer.begin_id], [0.0]
    weight_of = {"Story": story_weight, "Question": 0.0, "Answer": ANSWER_WEIGHT}
    asked = False
    for line in text.splitlines(keepends=True):
        head, colon, tail = line.partition(":")
        given = head + colon
        if head == "Answer" and not asked:
            # Without a question nobody can know what the sentence is about, but the rest follows.
            subject = _VERB.search(tail)
            given, tail = given + tail[:subject.end()], tail[subject.end():]
        given_ids, tail_ids = tokenizer.encode(given), tokenizer.encode(tail)
        ids += given_ids + tail_ids
        weights += [0.0] * len(given_ids) + [weight_of[head]] * len(tail_ids)
        asked = head == "Question"
    return ids + [tokenizer.end_id], weights + [END_WEIGHT]


def encode_exercise(tokenizer: Tokenizer, exercise: Exercise) -> tuple[list[int], list[float]]:
    ids, weights = [tokenizer.begin_id], [0.0]
    for piece, known in exercise:
        piece_ids = tokenizer.encode(piece)
        ids += piece_ids
        weights += [ANSWER_WEIGHT if known else 0.0] * len(piece_ids)
    return ids, weights


def encode_level(tokenizer: Tokenizer, rng: random.Random, level: int) -> tuple[list[int], list[float]]:
    """Levels 0 and 1 are exercises, then the generator's levels; at the highest the stories' own words count too."""
    if level == 0:
        return encode_exercise(tokenizer, pairs(rng))
    if level == 1:
        return encode_exercise(tokenizer, links(rng))
    story_weight = STORY_WEIGHT if level == HIGHEST_LEVEL else EARLY_STORY_WEIGHT
    text = training_text(rng, min(level - FIRST_STORY_LEVEL, FULL))
    return encode_weighted(tokenizer, text, story_weight)


def batches(tokenizer: Tokenizer, seed: int, tokens_per_batch: int,
            level: Callable[[random.Random], int]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields ids (rows, length) and weights alike; rows end in end tokens of weight 0. level draws a text's."""
    rng = random.Random(seed)
    while True:
        pool = []
        while sum(len(ids) for ids, _ in pool) < POOL_BATCHES * tokens_per_batch:
            pool.append(encode_level(tokenizer, rng, level(rng)))
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
