"""Tests of samples: medians, ranges and tables."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

from samples import Samples, number, part, ratios, spread, table  # noqa: E402


class SamplesTest(unittest.TestCase):
    def test_median_of_the_rounds_with_a_result(self):
        self.assertEqual(Samples([3.0, None, 1.0, 2.0]).median(), 2.0)
        self.assertEqual(Samples([4.0, 1.0]).median(), 2.5)
        self.assertIsNone(Samples([None]).median())

    def test_ratios_are_taken_round_by_round(self):
        both = ratios(Samples([10.0, 30.0, 8.0, None]), Samples([10.0, 10.0, None, 5.0]))
        self.assertEqual(both.rounds, [1.0, 3.0, None, None])
        self.assertEqual(spread(both), "2.00 (1.00 to 3.00)")

    def test_texts(self):
        self.assertEqual([number(value) for value in (1234.5, 99.96, 51.44, 1.234)], ["1234", "100.0", "51.4", "1.23"])
        self.assertEqual((spread(Samples([2.0])), spread(Samples())), ("2.00", "-"))
        self.assertEqual((part(41, 50), part(None, 50), part(41, None)), ("82%", "-", "-"))

    def test_a_table_is_padded_markdown(self):
        self.assertEqual(table(("a", "long"), [("xyzw", 1)]), ["| a    | long |", "| ---- | ---- |", "| xyzw | 1    |"])


if __name__ == "__main__":
    unittest.main()
