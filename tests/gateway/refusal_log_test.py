"""Refused connections do not fill the log."""

import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway.refusal_log import RefusalLog  # noqa: E402


class RefusalLogTest(unittest.TestCase):

    def test_ten_lines_at_once_then_one_a_second(self):
        now = 5.0
        log = RefusalLog(clock=lambda: now)
        with self.assertLogs("gateway") as lines:
            for _ in range(15):
                log.add("why")
            self.assertEqual(lines.output, ["WARNING:gateway:a connection is refused: why"] * 10)
            now += 1
            log.add("why not")
            log.add("never")
            self.assertEqual(lines.output[10:], ["WARNING:gateway:a connection is refused: why not; and 5 before it"])
            now += 100
            for _ in range(15):
                log.add("again")
            self.assertEqual(len(lines.output), 21)


if __name__ == "__main__":
    unittest.main()
