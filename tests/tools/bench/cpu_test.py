"""Tests of cpu: its flags, and limits by round."""

import contextlib
import io
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import cpu  # noqa: E402
from limits import Limits  # noqa: E402
from model_work import Matrix  # noqa: E402
from peaks import Peaks  # noqa: E402
from samples import Samples  # noqa: E402


class Flags(unittest.TestCase):
    def refused(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as ended:
            cpu.parse_arguments(arguments)
        self.assertEqual(ended.exception.code, 2)
        return errors.getvalue()

    def test_defaults(self):
        options = cpu.parse_arguments(["--model", "m.gguf"])
        self.assertEqual((options.rounds, options.batches, options.prefill, options.kernels), (5, [1, 4, 8, 16, 32], 512, "auto"))
        self.assertGreaterEqual(options.threads, 1)

    def test_batches_are_sorted_once_each(self):
        self.assertEqual(cpu.parse_arguments(["--batches", "8,1,8"]).batches, [1, 8])

    def test_bad_usage(self):
        self.assertIn("--compare needs --model", self.refused("--compare", "x"))
        self.assertIn("--svg needs --model", self.refused("--svg", "x.svg"))
        self.assertIn("needed 1 or more, found 0", self.refused("--rounds", "0"))
        self.assertIn("'Tandem' is taken", self.refused("--model", "m", "--compare", "x", "--compare-name", "Tandem"))
        self.assertIn("--svg: no folder", self.refused("--model", "m", "--svg", "no/such/folder/x.svg"))

    def test_names_of_rows_are_taken(self):
        self.assertIn("is taken", self.refused("--model", "m", "--compare", "x", "--compare-name", cpu.READING))


class Reading(unittest.TestCase):
    def test_no_bandwidth_fails_the_case_and_not_the_run(self):
        with mock.patch.object(cpu.programs, "google_benchmark", return_value={"benchmarks": []}):
            with self.assertRaises(cpu.programs.Failed):
                cpu.reading_rate(cpu.parse_arguments([]))


class BoundByRound(unittest.TestCase):
    def test_memory_is_as_fast_as_in_the_round_or_at_its_best(self):
        roof = Limits(Peaks(4e9, {("avx2", "int8:1"): 1e12}), "avx2", [Matrix("Q8_0", 10_000_000, 10_000_000)])
        bounds = cpu.bound_by_round(roof, ("decode", 1), Samples([1.0, None, 2.0]))
        self.assertEqual(bounds.rounds, [100, 400, 200])


if __name__ == "__main__":
    unittest.main()
