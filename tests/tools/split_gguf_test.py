"""Tests of split_gguf: the parts together hold what the file held, under the names and keys that loaders look for."""

from __future__ import annotations

import struct
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import split_gguf as tool  # noqa: E402

MODEL = ROOT / "tests/golden/arch/llama/model.gguf"


def content(tensor: tool.Tensor) -> bytes:
    return tensor.row + tensor.data.rstrip(b"\0")


class Split(unittest.TestCase):
    def test_parts_hold_what_the_file_held(self) -> None:
        pairs, tensors, alignment = tool.read(MODEL.read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            paths = tool.split(MODEL, f"{folder}/m", 3)
            self.assertEqual([path.name for path in paths],
                             ["m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"])
            files = [path.read_bytes() for path in paths]
        parts = [tool.read(data) for data in files]
        self.assertEqual(parts[0][0], pairs)
        self.assertEqual(parts[1][0], [])
        self.assertEqual([content(t) for part in parts for t in part[1]], [content(t) for t in tensors])
        self.assertTrue(all(part[1] for part in parts))
        self.assertTrue(all(t.offset % alignment == 0 for part in parts for t in part[1]))
        for number, data in enumerate(files):
            self.assertIn(tool.pair("split.no", tool.UINT16, struct.pack("<H", number)), data)
            self.assertIn(tool.pair("split.count", tool.UINT16, struct.pack("<H", 3)), data)
            self.assertIn(tool.pair("split.tensors.count", tool.INT32, struct.pack("<i", len(tensors))), data)

    def test_another_kind_of_file(self) -> None:
        with self.assertRaisesRegex(ValueError, "not a GGUF file"):
            tool.read(b"PK\3\4")


if __name__ == "__main__":
    unittest.main()
