"""Tests of plan: the same load goes to the server and to its simulation."""

import contextlib
import io
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import plan  # noqa: E402


class Plan(unittest.TestCase):
    def test_flags_after_dashes_are_the_servers(self):
        options = plan.parse_arguments(["--model", "m.gguf", "--rounds", "2", "--", "--max-num-seqs", "8"])
        self.assertEqual(plan.server_flags(options), ["--model", "m.gguf", "--max-num-seqs", "8"])
        self.assertEqual(options.rounds, 2)

    def test_bad_usage(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit):
            plan.parse_arguments(["--model", "m", "--rounds", "0"])
        self.assertIn("--rounds: needed 1 or more, found 0", errors.getvalue())

    def test_each_load_runs_on_both_with_prompts_of_its_round(self):
        calls = []

        def result_of(flags):
            calls.append(flags)
            speed = 2.0 if flags[0] == "--simulate" else 1.0
            return {**{key: speed for key in plan.FIGURES.values()}, "request_throughput": 3.0}

        @contextlib.contextmanager
        def served(options):
            yield "host:1"

        options = plan.parse_arguments(["--model", "m.gguf", "--rounds", "2"])
        with mock.patch.object(plan, "result_of", result_of), mock.patch.object(plan, "served", served), \
                contextlib.redirect_stderr(io.StringIO()):
            results = plan.measure(options, "a.profile")
        for figures in results.values():
            for server, simulated in figures.values():
                self.assertEqual((server.rounds, simulated.rounds), ([1.0, 1.0], [2.0, 2.0]))
        real, simulated = calls[1::2], calls[2::2]
        self.assertEqual(len(real), 2 * len(plan.LOADS))
        for one, other in zip(real, simulated):
            self.assertEqual(one[:2], ["--server", "host:1"])
            self.assertEqual(other[:2], ["--simulate", "a.profile"])
            self.assertEqual(one[2:], other[2:])
        self.assertEqual(len({flags[-1] for flags in real}), len(real), "seeds")
        self.assertIn("1.500", [flag for flags in real for flag in flags])


if __name__ == "__main__":
    unittest.main()
