"""Tests of rounds: whose turn it is, and what becomes of failures."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import rounds  # noqa: E402
from programs import Failed  # noqa: E402

CASES = [("prefill", 512), ("decode", 1)]


class Rounds(unittest.TestCase):
    def test_programs_take_turns_at_each_case(self):
        calls = []

        def program(name, rate):
            def measure(case):
                calls.append((name, rounds.case_name(case)))
                return rate
            return measure

        results = rounds.measure({"ours": program("ours", 2.0), "other": program("other", 1.0)}, CASES, 2, lambda words: None)
        self.assertEqual(calls, [("ours", "prefill 512"), ("other", "prefill 512"), ("ours", "B=1"), ("other", "B=1"),
                                 ("other", "prefill 512"), ("ours", "prefill 512"), ("other", "B=1"), ("ours", "B=1")])
        self.assertEqual(results["ours"]["decode", 1].rounds, [2.0, 2.0])

    def test_a_case_that_fails_is_left_out_and_the_others_are_measured(self):
        calls, words = [], []

        def other(case):
            calls.append(case)
            if case[0] == "decode":
                raise Failed("it aborts")
            return 4.0

        results = rounds.measure({"other": other}, CASES, 2, words.append)
        self.assertEqual(calls, [CASES[0], CASES[1], CASES[0]])
        self.assertEqual(results["other"]["decode", 1].rounds, [None, None])
        self.assertEqual(words, ["other, B=1: it aborts", "round 1 of 2: other 4.0, -", "round 2 of 2: other 4.0, -"])


if __name__ == "__main__":
    unittest.main()
