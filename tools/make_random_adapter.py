#!/usr/bin/env python3
"""Writes a LoRA adapter with random values for a GGUF model, in llama.cpp's form: for tests and measurements.

  tools/make_random_adapter.py --model model.gguf --rank 16 --out adapter.gguf
"""

from __future__ import annotations

import argparse
import mmap
import sys
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "demo_model"))

from gguf_writer import F32, STRING, TYPE_F16, TYPE_F32, Metadata, Tensor, TensorType, write_gguf  # noqa: E402
from split_gguf import Reader  # noqa: E402

TARGETS = ("attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
STRING_KIND = 8
TYPES = {"f32": TYPE_F32, "f16": TYPE_F16}


def read_shapes(path: Path) -> tuple[str, dict[str, tuple[int, int]]]:
    """The architecture, and (rows, columns) of each matrix."""
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader = Reader(data)
        if data[:4] != b"GGUF":
            raise ValueError(f"{path} is not a GGUF file")
        reader.at = 8
        num_tensors, num_keys = reader.number("Q"), reader.number("Q")
        architecture, shapes = "", {}
        for _ in range(num_keys):
            key, kind = reader.string(), reader.number("I")
            if key == b"general.architecture" and kind == STRING_KIND:
                architecture = reader.string().decode()
            else:
                reader.skip_value(kind)
        for _ in range(num_tensors):
            name = reader.string().decode()
            dims = [reader.number("Q") for _ in range(reader.number("I"))]
            reader.at += 4 + 8
            if len(dims) == 2:
                shapes[name] = (dims[1], dims[0])
        return architecture, shapes


def is_target(name: str, targets: list[str]) -> bool:
    parts = name.split(".")
    return len(parts) == 4 and parts[0] == "blk" and parts[2] in targets and parts[3] == "weight"


def random_matrix(name: str, kind: TensorType, shape: tuple[int, int], deviation: float, seed: int) -> Tensor:
    def draw():
        generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
        values = generator.normal(0, deviation, shape)
        return (values.astype("<f4" if kind is TYPE_F32 else "<f2").tobytes(),)

    return Tensor(name, kind, shape, draw)


def make_tensors(shapes: dict[str, tuple[int, int]], args: argparse.Namespace) -> list[Tensor]:
    """A keeps the size of what it reads; B A x has about `strength` of W x, as alpha is the rank."""
    tensors = []
    for name, (rows, cols) in shapes.items():
        if not is_target(name, args.targets.split(",")):
            continue
        kind = TYPES[args.type]
        tensors.append(random_matrix(f"{name}.lora_a", kind, (args.rank, cols), cols ** -0.5, args.seed))
        tensors.append(random_matrix(f"{name}.lora_b", kind, (rows, args.rank), args.strength * args.rank ** -0.5,
                                     args.seed))
    return tensors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=float, help="default: the rank")
    parser.add_argument("--strength", type=float, default=0.3, help="of the change, 1: as large as the model's own")
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--targets", default=",".join(TARGETS), help="names of matrices, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    architecture, shapes = read_shapes(args.model)
    tensors = make_tensors(shapes, args)
    if not tensors:
        print(f"{args.model} has none of {args.targets}", file=sys.stderr)
        return 1
    write_gguf(args.out, [
        Metadata("general.type", STRING, "adapter"),
        Metadata("general.architecture", STRING, architecture),
        Metadata("adapter.type", STRING, "lora"),
        Metadata("adapter.lora.alpha", F32, args.rank if args.alpha is None else args.alpha),
    ], tensors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
