"""Blocks of random weights of each type: (count, bytes) uint8, of plain types one value each.

`deviation` is the standard deviation of the weights that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Blocks = Callable[[np.random.Generator, int, float], np.ndarray]


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


def bits_under_scale(width: int, scale_at: int, values_deviation: float) -> Blocks:
    """Random bytes, with the scale of all values at `scale_at`."""

    def blocks(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
        drawn = random_bytes(rng, count, width).copy()
        drawn[:, scale_at:scale_at + 2] = f16_columns(scales(rng, count, deviation / values_deviation))
        return drawn

    return blocks


def iq1_m_blocks(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    """The scale lies in the top four bits of the last four numbers."""
    values_deviation = 7.2
    drawn = random_bytes(rng, count, 56).copy()
    half = f16_columns(scales(rng, count, deviation / values_deviation)).view("<u2")
    numbers = drawn[:, 48:].view("<u2")
    numbers[:] = numbers & 0xFFF | (half >> (0, 4, 8, 12) & 15) << 12
    return drawn


def e4m3(values: np.ndarray) -> np.ndarray:
    """The nearest of eight bits: four of exponent, three of mantissa."""
    exponent = np.clip(np.floor(np.log2(values)), -6, 8)
    eighths = np.rint(values * 2.0 ** (3 - exponent))
    return np.clip(8 * (exponent + 6) + eighths, 0, 126).astype(np.uint8)


def nvfp4_blocks(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    values_deviation = 2.93  # of random codes
    d = np.abs(scales(rng, 4 * count, deviation / values_deviation)).reshape(count, 4)
    return np.hstack((e4m3(d), random_bytes(rng, count, 32)))


def f16_values(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    return f16_columns(rng.normal(0.0, deviation, count))


def bf16_values(rng: np.random.Generator, count: int, deviation: float) -> np.ndarray:
    values = rng.normal(0.0, deviation, count).astype("<f4")
    return values.view("<u2")[1::2].copy().view(np.uint8).reshape(count, 2)


BLOCKS: dict[str, Blocks] = {
    "F16": f16_values, "BF16": bf16_values, "Q8_0": q8_0_blocks, "Q5_0": q5_0_blocks, "Q4_K": q4_k_blocks, "Q6_K": q6_k_blocks,
    "IQ1_S": bits_under_scale(50, 0, 7.2), "IQ1_M": iq1_m_blocks, "IQ2_XXS": bits_under_scale(66, 0, 53.5),
    "IQ2_XS": bits_under_scale(74, 0, 55.8), "IQ2_S": bits_under_scale(82, 0, 56.4),
    "IQ3_XXS": bits_under_scale(98, 0, 142.4), "IQ3_S": bits_under_scale(110, 0, 140.4), "Q1_0": bits_under_scale(18, 0, 1.0),
    "Q2_0": bits_under_scale(18, 0, 1.22), "TQ1_0": bits_under_scale(54, 52, 0.82), "TQ2_0": bits_under_scale(66, 64, 1.22),
    "NVFP4": nvfp4_blocks,
}
