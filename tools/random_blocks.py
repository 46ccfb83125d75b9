"""Blocks of random weights of each type: (count, bytes) uint8, of plain types one value each.

`deviation` is the standard deviation of the weights that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def f16_columns(values: np.ndarray) -> np.ndarray:
    return values.astype("<f2").view(np.uint8).reshape(len(values), 2)


def random_bytes(rng: np.random.Generator, count: int, width: int) -> np.ndarray:
    return np.frombuffer(rng.bytes(count * width), dtype=np.uint8).reshape(count, width)


def scales(rng: np.random.Generator, count: int, mean: float) -> np.ndarray:
    """Around mean, of both signs so that lopsided integer ranges cancel out."""
    return mean * rng.uniform(0.5, 1.4, count) * rng.choice((-1.0, 1.0), count)


def q8_0_blocks(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    values_deviation = 73.9  # of uniform signed bytes
    d = scales(rng, count, deviation / values_deviation)
    return np.hstack((f16_columns(d), random_bytes(rng, count, 32)))


def q5_0_blocks(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    values_deviation = 9.25  # of uniform -16..15
    d = scales(rng, count, deviation / values_deviation)
    return np.hstack((f16_columns(d), random_bytes(rng, count, 20)))


def q4_k_blocks(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    # scale * q - 7.5 * minimum, with 6-bit scale and minimum and 4-bit q, all uniform.
    values_deviation = 256.0
    d = scales(rng, count, deviation / values_deviation)
    return np.hstack((f16_columns(d), f16_columns(7.5 * d), random_bytes(rng, count, 140)))


def q6_k_blocks(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    values_deviation = 73.9 * 18.5  # signed byte scale times uniform -32..31
    d = scales(rng, count, deviation / values_deviation)
    return np.hstack((random_bytes(rng, count, 208), f16_columns(d)))


def f16_values(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    return f16_columns(rng.normal(0.0, deviation, count))


def bf16_values(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    values = rng.normal(0.0, deviation, count).astype("<f4")
    return values.view("<u2")[1::2].copy().view(np.uint8).reshape(count, 2)


BLOCKS: dict[str, Callable[[np.random.Generator, int, float], np.ndarray]] = {
    "F16": f16_values, "BF16": bf16_values, "Q8_0": q8_0_blocks, "Q5_0": q5_0_blocks, "Q4_K": q4_k_blocks, "Q6_K": q6_k_blocks,
}
