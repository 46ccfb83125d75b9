#!/usr/bin/env python3
"""Splits a GGUF file into several, OUT-00001-of-0000N.gguf and so on, each with a share of the tensors.

The first file keeps all metadata. Every file gets split.no, split.count and split.tensors.count, as llama.cpp's
gguf-split writes them; Tandem opens the first one.

Example: tools/split_gguf.py models/demo.gguf /var/tmp/demo --files 3
"""

from __future__ import annotations

import argparse
import mmap
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

UINT16, INT32, STRING, ARRAY = 2, 5, 8, 9
NUMBER_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


@dataclass
class Tensor:
    row: bytes  # of the directory, without the offset at its end
    offset: int
    data: bytes = b""  # with the padding that follows it


class Reader:
    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def string(self) -> bytes:
        size = self.number("Q")
        self.at += size
        return bytes(self.data[self.at - size:self.at])

    def skip_value(self, kind: int) -> None:
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            element, count = self.number("I"), self.number("Q")
            if element == STRING:
                for _ in range(count):
                    self.string()
            else:
                self.at += count * NUMBER_BYTES[element]
        else:
            self.at += NUMBER_BYTES[kind]


def pair(key: str, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value


def read(data: bytes | mmap.mmap) -> tuple[list[bytes], list[Tensor], int]:
    """The key-value pairs, the tensors in the order of their data, and the alignment."""
    reader = Reader(data)
    if data[:4] != b"GGUF":
        raise ValueError("not a GGUF file")
    reader.at = 8
    num_tensors, num_keys = reader.number("Q"), reader.number("Q")
    pairs, alignment = [], 32
    for _ in range(num_keys):
        begin = reader.at
        key, kind = reader.string(), reader.number("I")
        value = reader.at
        reader.skip_value(kind)
        if key == b"general.alignment":
            (alignment,) = struct.unpack_from("<I", data, value)
        if not key.startswith(b"split."):
            pairs.append(bytes(data[begin:reader.at]))
    tensors = []
    for _ in range(num_tensors):
        begin = reader.at
        reader.string()
        num_dims = reader.number("I")
        reader.at += 8 * num_dims + 4
        tensors.append(Tensor(bytes(data[begin:reader.at]), reader.number("Q")))
    tensors.sort(key=lambda tensor: tensor.offset)
    start = reader.at + -reader.at % alignment
    for tensor, end in zip(tensors, [t.offset for t in tensors[1:]] + [len(data) - start]):
        tensor.data = bytes(data[start + tensor.offset:start + end])
    return pairs, tensors, alignment


def build(version: int, pairs: list[bytes], tensors: list[Tensor], alignment: int) -> bytes:
    directory, content = b"", bytearray()
    for tensor in tensors:
        directory += tensor.row + struct.pack("<Q", len(content))
        content += tensor.data + bytes(-len(tensor.data) % alignment)
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs) + directory
    return header + bytes(-len(header) % alignment) + bytes(content)


def split(source: Path, prefix: str, files: int) -> list[Path]:
    with source.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        (version,) = struct.unpack_from("<I", data, 4)
        pairs, tensors, alignment = read(data)
    alignment_pair = [pair("general.alignment", 4, struct.pack("<I", alignment))] if alignment != 32 else []
    paths = []
    for number in range(files):
        share = tensors[number * len(tensors) // files:(number + 1) * len(tensors) // files]
        own = [pair("split.no", UINT16, struct.pack("<H", number)),
               pair("split.count", UINT16, struct.pack("<H", files)),
               pair("split.tensors.count", INT32, struct.pack("<i", len(tensors)))]
        path = Path(f"{prefix}-{number + 1:05}-of-{files:05}.gguf")
        path.write_bytes(build(version, (pairs if number == 0 else alignment_pair) + own, share, alignment))
        paths.append(path)
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a GGUF file")
    parser.add_argument("prefix", help="where to: PREFIX-00001-of-0000N.gguf")
    parser.add_argument("--files", type=int, default=2, help="how many (default: %(default)s)")
    arguments = parser.parse_args()
    if not 2 <= arguments.files <= 65535:
        parser.error(f"--files: needed 2 to 65535, found {arguments.files}")
    for path in split(arguments.source, arguments.prefix, arguments.files):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
