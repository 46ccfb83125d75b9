"""What a step of a model reads and computes, from the tensor directory of its GGUF file and `tandem info --json`."""

import mmap
import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from split_gguf import Reader  # noqa: E402

# GGUF's number -> name, values of a block, bytes of a block.
TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
         7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
         13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74),
         18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110),
         22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
         34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
         41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18)}
# Rows are looked up in these, not multiplied.
LOOKED_UP = ("position_embd.weight", "token_types.weight", "per_layer_token_embd.weight")


@dataclass
class Matrix:
    kind: str  # weight type
    weights: int
    bytes: int
    head: bool = False  # only of rows that are sampled
    used: float = 1.0  # the part that a token is multiplied with: k of n experts

    def bytes_read(self, tokens):
        """By a step of `tokens`; of experts those that evenly spread choices reach."""
        return self.bytes * (1 - (1 - self.used) ** tokens)


def read_directory(data):
    """Yields (name, dimensions, GGUF's number of the type)."""
    reader = Reader(data)
    if data[:4] != b"GGUF":
        raise ValueError("not a GGUF file")
    reader.at = 8
    num_tensors, num_keys = reader.number("Q"), reader.number("Q")
    for _ in range(num_keys):
        reader.string()
        reader.skip_value(reader.number("I"))
    for _ in range(num_tensors):
        name = reader.string().decode()
        dims = [reader.number("Q") for _ in range(reader.number("I"))]
        kind = reader.number("I")
        reader.number("Q")
        yield name, dims, kind


def parts_of(path):
    """All files of a split model, of which `path` is the first; else only itself."""
    match = re.fullmatch(r"(.*-)00001(-of-(\d{5})\.gguf)", path.name)
    if not match:
        return [path]
    return [path.with_name(f"{match[1]}{number:05}{match[2]}") for number in range(1, int(match[3]) + 1)]


def matrices(directory, info):
    """Those that a step multiplies with. `info` is that of `tandem info --json`."""
    tied = info["features"]["tied_embeddings"]
    moe = info.get("moe")
    for name, dims, number in directory:
        layer = re.match(r"blk\.(\d+)\.", name)
        if not name.endswith(".weight") or len(dims) < 2 or name in LOOKED_UP:
            continue
        if layer and int(layer[1]) >= info["layers"]:
            continue  # a draft head
        if name == "token_embd.weight" and not tied:
            continue
        if number not in TYPES:
            raise ValueError(f"{name}: type {number} is not known here")
        kind, block, block_bytes = TYPES[number]
        weights = 1
        for size in dims:
            weights *= size
        used = moe["experts_per_token"] / moe["experts"] if moe and "_exps." in name else 1.0
        yield Matrix(kind, weights, weights // block * block_bytes, name in ("token_embd.weight", "output.weight"), used)


def read(path, info):
    """The matrices of a model file."""
    found = []
    for file in parts_of(path):
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found += matrices(list(read_directory(data)), info)
    return found
