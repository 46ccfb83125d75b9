"""Tests of launches: cases read from op_launches' words, and what is predicted of them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/gpu"))

import launches  # noqa: E402
from launches import LAUNCH, RATE, READ  # noqa: E402

# Loaded 0x1000 higher than nm has it.
SYMBOLS = {0x10: "main", 0x20: "_Zf", 0x30: "_Zg"}
TEXT = """main\t0x1010
case\tMatMul\t4 -> 8, 1 token\t4500\t64
launch\t0x1020\t66\t512
launch\t0x1030\t8\t0
case\tNorm\t1 row\t9000\t0
launch\t0x1030\t200\t128
"""


def call(flops, blocks):
    return launches.Case("MatMul", "", 0.0, flops, [launches.Launch("FKernel", count, 0) for count in blocks])


class Launches(unittest.TestCase):
    def cases(self):
        return launches.parse(TEXT, SYMBOLS, lambda names: {name: name[2:].upper() + "Kernel" for name in names})

    def test_cases_have_their_launches(self):
        first, second = self.cases()
        self.assertEqual((first.op, first.shape, first.bytes, first.operations), ("MatMul", "4 -> 8, 1 token", 4500, 64))
        self.assertEqual([(one.kernel, one.blocks, one.shared) for one in first.launches], [("FKernel", 66, 512), ("GKernel", 8, 0)])
        self.assertEqual([one.kernel for one in second.launches], ["GKernel"])

    def test_shared_bytes(self):
        self.assertEqual(launches.shared_bytes(self.cases()), {"FKernel": {512}, "GKernel": {0, 128}})

    def test_every_launch_costs(self):
        first, second = self.cases()
        self.assertAlmostEqual(first.predicted(), 2 * LAUNCH + 4500 / READ)
        self.assertAlmostEqual(second.predicted(), LAUNCH + 9000 / READ)

    def test_idle_multiprocessors_multiply_nothing(self):
        for blocks, busy in ((132, 1), (66, 1 / 2), (198, 3 / 4), (264, 1)):
            self.assertAlmostEqual(call(RATE, [blocks]).predicted(), LAUNCH + 1 / busy, msg=blocks)
        self.assertAlmostEqual(call(RATE, [1, 132]).predicted(), 2 * LAUNCH + 1)

    def test_products_that_are_not_launched_here_keep_all_busy(self):
        one = launches.Case("MatMul", "", 0.0, RATE, [launches.Launch("RoundRowsKernel", 66, 0)])
        self.assertAlmostEqual(one.predicted(), LAUNCH + 1)
        one.launches.append(launches.Launch("FKernel", 33, 0))
        self.assertAlmostEqual(one.predicted(), 2 * LAUNCH + 4)

    def test_the_table_has_each_kernel_once(self):
        rows = [line.split(" | ") for line in launches.prediction_table(self.cases())[2:]]
        self.assertEqual([row[0] for row in rows], ["| `FKernel`", "| `GKernel`"])
        self.assertEqual([row[2] for row in rows], ["MatMul 4 -> 8, 1 token", "Norm 1 row"])
        self.assertEqual(rows[1][6], "MatMul 4 -> 8, 1 token")


if __name__ == "__main__":
    unittest.main()
