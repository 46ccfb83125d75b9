"""Q8_0: blocks of 32 weights, each one F16 scale and 32 signed bytes."""

from __future__ import annotations

import numpy as np

BLOCK = 32


def quantise_q8_0(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """weights (rows, columns) -> scales F16 (blocks, 1) and values int8 (blocks, 32)."""
    blocks = weights.astype(np.float32).reshape(-1, BLOCK)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127.0)
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales > 0)
    return scales.astype(np.float16), np.rint(blocks * inverse).astype(np.int8)


def q8_0_bytes(weights: np.ndarray) -> bytes:
    scales, values = quantise_q8_0(weights)
    return np.concatenate((scales.view(np.uint8), values.view(np.uint8)), axis=1).tobytes()


def through_q8_0(weights: np.ndarray) -> np.ndarray:
    """What a reader of the quantised weights sees, in F32."""
    scales, values = quantise_q8_0(weights)
    return (scales.astype(np.float32) * values.astype(np.float32)).reshape(weights.shape)
