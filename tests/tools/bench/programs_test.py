"""Tests of programs: the contract with the command that is compared."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import programs  # noqa: E402


class Programs(unittest.TestCase):
    def test_the_last_line_is_the_rate(self):
        self.assertEqual(programs.parse_rate("loading\n51.25\n\n"), 51.25)
        for output in ("", "51 tokens/s\n", "51\ndone\n", "-1", "0", "nan", "inf"):
            with self.assertRaisesRegex(programs.Failed, "needed tokens per second"):
                programs.parse_rate(output)

    def test_a_command_has_model_threads_and_case(self):
        command = 'test "$MODEL:$CASE" = "m.gguf:decode 8" && echo "$THREADS"'
        self.assertEqual(programs.command_rate(command, Path("m.gguf"), 2, ("decode", 8)), 2.0)

    def test_a_failure_says_why(self):
        with self.assertRaisesRegex(programs.Failed, "exit code 3: out of memory"):
            programs.command_rate("echo out of memory >&2; exit 3", Path("m"), 1, ("prefill", 512))
        with self.assertRaisesRegex(programs.Failed, "no message"):
            programs.command_rate("exit 1", Path("m"), 1, ("prefill", 512))


if __name__ == "__main__":
    unittest.main()
