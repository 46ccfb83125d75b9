"""Tests of model_work: which tensors of a GGUF file a step multiplies with."""

import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import model_work  # noqa: E402

Q8_0, F32 = 8, 0
DENSE = {"layers": 1, "features": {"tied_embeddings": True}}
MIXTURE = {"layers": 1, "features": {"tied_embeddings": False}, "moe": {"experts": 8, "experts_per_token": 2}}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(tensors):
    """A header with two keys, of a string and of an array of strings, and no data."""
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 2)
    data += text("general.architecture") + struct.pack("<I", 8) + text("qwen2")
    data += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    for name, dims, kind in tensors:
        data += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, 0)
    return data


class ModelWork(unittest.TestCase):
    def matrices(self, tensors, info):
        return list(model_work.matrices(tensors, info))

    def test_files_are_read_whether_split_or_not(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = (Path(folder) / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
            first.write_bytes(gguf([("token_embd.weight", (64, 100), Q8_0)]))
            second.write_bytes(gguf([("blk.0.ffn_up.weight", (64, 32), F32)]))
            self.assertEqual(model_work.read(first, DENSE), [model_work.Matrix("Q8_0", 6400, 6800, head=True),
                                                             model_work.Matrix("F32", 2048, 8192)])
            self.assertEqual(len(model_work.read(second, DENSE)), 1)
            second.write_bytes(b"not a model, though long enough")
            with self.assertRaisesRegex(ValueError, "not a GGUF file"):
                model_work.read(first, DENSE)

    def test_what_is_looked_up_or_not_served_does_not_count(self):
        tensors = [("token_embd.weight", (64, 100), Q8_0), ("output.weight", (64, 100), Q8_0), ("blk.0.attn_norm.weight", (64,), F32),
                   ("blk.0.attn_q.bias", (64, 2), F32), ("position_embd.weight", (64, 100), F32), ("blk.1.attn_q.weight", (64, 64), Q8_0)]
        self.assertEqual(self.matrices(tensors, MIXTURE), [model_work.Matrix("Q8_0", 6400, 6800, head=True)])

    def test_experts(self):
        (experts,) = self.matrices([("blk.0.ffn_up_exps.weight", (32, 10, 8), F32)], MIXTURE)
        self.assertEqual((experts.weights, experts.used), (2560, 0.25))
        self.assertEqual(experts.bytes_read(1), 2560)
        self.assertEqual(experts.bytes_read(2), 10240 * (1 - 0.75 ** 2))

    def test_an_unknown_type_is_named(self):
        with self.assertRaisesRegex(ValueError, "blk.0.ffn_up.weight: type 99"):
            self.matrices([("blk.0.ffn_up.weight", (32, 10), 99)], DENSE)


if __name__ == "__main__":
    unittest.main()
