#!/usr/bin/env python3
"""Trains the demo model's byte-level BPE vocabulary on generated texts."""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from pathlib import Path

import bpe
from generator import training_text

VOCABULARY_SIZE = 2048


def count_pieces(num_texts: int, seed: int) -> Counter[str]:
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    for _ in range(num_texts):
        counts.update(bpe.pieces(training_text(rng)))
    return counts


def train_merges(counts: Counter[str], limit: int) -> list[tuple[str, str]]:
    """The most frequent pair first; a tie goes to the pair that sorts last."""
    words = [(list(piece), count) for piece, count in sorted(counts.items())]
    pair_counts: Counter[tuple[str, str]] = Counter()
    where: dict[tuple[str, str], set[int]] = defaultdict(set)
    for index, (symbols, count) in enumerate(words):
        for pair in zip(symbols, symbols[1:]):
            pair_counts[pair] += count
            where[pair].add(index)
    merges: list[tuple[str, str]] = []
    while len(merges) < limit:
        best = max(pair_counts, key=lambda pair: (pair_counts[pair], pair), default=None)
        if best is None or pair_counts[best] < 2:
            break
        merges.append(best)
        for index in where.pop(best):
            symbols, count = words[index]
            for pair in zip(symbols, symbols[1:]):
                pair_counts[pair] -= count
            words[index] = (_joined(symbols, best), count)
            for pair in zip(words[index][0], words[index][0][1:]):
                pair_counts[pair] += count
                where[pair].add(index)
        del pair_counts[best]
    return merges


def _joined(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    for symbol in symbols:
        if out and (out[-1], symbol) == pair:
            out[-1] += symbol
        else:
            out.append(symbol)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tokenizer.json")
    parser.add_argument("--texts", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    base = [bpe.BEGIN, bpe.END, *(bpe.ALPHABET[b] for b in range(256))]
    merges = train_merges(count_pieces(args.texts, args.seed), VOCABULARY_SIZE - len(base))
    tokens = base + [left + right for left, right in merges]
    bpe.Tokenizer(tokens, merges).save(args.out)
    print(f"{len(tokens)} tokens, {len(merges)} merges")


if __name__ == "__main__":
    main()
