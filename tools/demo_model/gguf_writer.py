"""Writes GGUF version 3 files: metadata, tensor table, then the tensors one after the other.

Source: the GGUF specification in the ggml repository (docs/gguf.md). Little-endian, tensor data aligned to 32 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

ALIGNMENT = 32

# Metadata value types.
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
_FORMATS = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}


@dataclass(frozen=True)
class TensorType:
    """A storage type: its number in GGUF, elements per block, bytes per block."""

    name: str
    number: int
    block: int
    bytes: int


TYPE_F32 = TensorType("F32", 0, 1, 4)
TYPE_F16 = TensorType("F16", 1, 1, 2)
TYPE_BF16 = TensorType("BF16", 30, 1, 2)
TYPE_Q4_0 = TensorType("Q4_0", 2, 32, 18)
TYPE_Q5_0 = TensorType("Q5_0", 6, 32, 22)
TYPE_Q8_0 = TensorType("Q8_0", 8, 32, 34)
TYPE_Q4_K = TensorType("Q4_K", 12, 256, 144)
TYPE_Q6_K = TensorType("Q6_K", 14, 256, 210)
TYPE_IQ2_XXS = TensorType("IQ2_XXS", 16, 256, 66)
TYPE_IQ2_XS = TensorType("IQ2_XS", 17, 256, 74)
TYPE_IQ3_XXS = TensorType("IQ3_XXS", 18, 256, 98)
TYPE_IQ1_S = TensorType("IQ1_S", 19, 256, 50)
TYPE_IQ3_S = TensorType("IQ3_S", 21, 256, 110)
TYPE_IQ2_S = TensorType("IQ2_S", 22, 256, 82)
TYPE_IQ1_M = TensorType("IQ1_M", 29, 256, 56)
TYPE_TQ1_0 = TensorType("TQ1_0", 34, 256, 54)
TYPE_TQ2_0 = TensorType("TQ2_0", 35, 256, 66)
TYPE_NVFP4 = TensorType("NVFP4", 40, 64, 36)
TYPE_Q1_0 = TensorType("Q1_0", 41, 128, 18)
TYPE_Q2_0 = TensorType("Q2_0", 42, 64, 18)


@dataclass(frozen=True)
class Metadata:
    """One key with its value; an array names the type of its items."""

    key: str
    type: int
    value: object
    item_type: int | None = None


@dataclass(frozen=True)
class Tensor:
    """One tensor; data yields its bytes, `num_bytes` in all. shape is (rows, columns) or (columns,)."""

    name: str
    type: TensorType
    shape: tuple[int, ...]
    data: Callable[[], Iterable[bytes]]

    def num_bytes(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        if self.shape[-1] % self.type.block != 0:
            raise ValueError(f"{self.name}: {self.shape[-1]} columns are no multiple of {self.type.block}")
        return count // self.type.block * self.type.bytes


def write_gguf(path: Path, metadata: list[Metadata], tensors: list[Tensor]) -> None:
    """Writes the file under a temporary name and renames it when complete."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        for entry in metadata:
            file.write(_string(entry.key) + struct.pack("<I", entry.type) + _value(entry))
        offset = 0
        for tensor in tensors:
            file.write(_string(tensor.name) + struct.pack("<I", len(tensor.shape)))
            file.write(struct.pack(f"<{len(tensor.shape)}Q", *reversed(tensor.shape)))
            file.write(struct.pack("<IQ", tensor.type.number, offset))
            offset += _aligned(tensor.num_bytes())
        _pad(file)
        for tensor in tensors:
            start = file.tell()
            for chunk in tensor.data():
                file.write(chunk)
            if file.tell() - start != tensor.num_bytes():
                raise ValueError(f"{tensor.name}: {file.tell() - start} bytes, not {tensor.num_bytes()}")
            _pad(file)
    temporary.replace(path)


def _string(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _value(entry: Metadata) -> bytes:
    if entry.type != ARRAY:
        return _scalar(entry.type, entry.value)
    head = struct.pack("<IQ", entry.item_type, len(entry.value))
    return head + b"".join(_scalar(entry.item_type, item) for item in entry.value)


def _scalar(kind: int, value: object) -> bytes:
    return _string(value) if kind == STRING else struct.pack(_FORMATS[kind], value)


def _aligned(size: int) -> int:
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def _pad(file: BinaryIO) -> None:
    file.write(b"\0" * (_aligned(file.tell()) - file.tell()))
