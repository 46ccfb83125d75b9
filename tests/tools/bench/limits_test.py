"""Tests of limits: the roofline of a model."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

from limits import Limits  # noqa: E402
from model_work import Matrix  # noqa: E402
from peaks import Peaks  # noqa: E402

PEAKS = Peaks(1e9, {("avx2", "int8:1"): 1e11, ("avx2", "int8:8"): 4e11})
BODY = Matrix("Q8_0", 10_000_000, 10_000_000)
HEAD = Matrix("Q4_0", 10_000_000, 5_000_000, head=True)


class LimitsTest(unittest.TestCase):
    def test_decode_is_bound_by_memory_and_then_by_arithmetic(self):
        roof = Limits(PEAKS, "avx2", [BODY, HEAD])
        self.assertAlmostEqual(roof.decode(1), 1e9 / 15e6)
        self.assertAlmostEqual(roof.decode(4), 4e9 / 15e6)
        per_token = 2e7 / 1e11 + 2e7 / 4e11
        self.assertAlmostEqual(roof.decode(1000), 1 / per_token)

    def test_memory_of_another_speed_leaves_arithmetic_as_it_is(self):
        roof = Limits(PEAKS, "avx2", [BODY, HEAD])
        self.assertAlmostEqual(roof.with_bandwidth(2e9).decode(1), 2e9 / 15e6)
        self.assertAlmostEqual(roof.with_bandwidth(2e9).decode(10_000), roof.decode(10_000))
        self.assertAlmostEqual(roof.decode(1), 1e9 / 15e6)

    def test_prefill_computes_the_head_once(self):
        roof = Limits(PEAKS, "avx2", [BODY, HEAD])
        self.assertAlmostEqual(roof.prefill(500), 500 / (500 * 2e7 / 1e11 + 2e7 / 4e11))
        self.assertEqual(roof.of_case(("prefill", 500)), roof.prefill(500))
        self.assertEqual(roof.of_case(("decode", 8)), roof.decode(8))

    def test_experts_count_as_far_as_they_are_used(self):
        roof = Limits(PEAKS, "avx2", [Matrix("Q8_0", 80_000_000, 80_000_000, used=0.125)])
        self.assertAlmostEqual(roof.decode(1), 100)
        self.assertAlmostEqual(roof.decode(10_000), 1e11 / 2e7)
        self.assertEqual(roof.describe(), "0.08 GB of weights; a token takes 0.02 GOP without the head, 0.02 with it")

    def test_no_peak_no_limit(self):
        self.assertIsNone(Limits(PEAKS, "avx2", [BODY, Matrix("Q6_K", 1, 1)]).decode(1))


if __name__ == "__main__":
    unittest.main()
