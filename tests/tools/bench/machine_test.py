"""Tests of machine: what it reads out of /proc/cpuinfo."""

import datetime
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import machine  # noqa: E402

CPUINFO = """processor\t: 0
cpu family\t: 25
model\t\t: 1
model name\t: A Processor
stepping\t: 1
flags\t\t: fpu avx2 f16c fma sse4_2

processor\t: 1
model name\t: Another
flags\t\t: avx512f
"""


class MachineTest(unittest.TestCase):
    def test_name_and_flags_of_the_first_processor(self):
        self.assertEqual(machine.parse_cpuinfo(CPUINFO), ("A Processor (cpu family 25, model 1, stepping 1)", ["avx2", "fma", "f16c"]))
        self.assertEqual(machine.parse_cpuinfo(""), ("unknown processor", []))

    def test_lines(self):
        here = machine.Machine("P", ["avx2"], 2, datetime.datetime(2026, 11, 22, 9, 5), "abc-dirty")
        lines = here.lines(1)
        self.assertEqual(lines[:2], ["processor: P, 2 cores, 1 threads used", "flags: avx2"])
        self.assertRegex(lines[2], r"^date: 2026-11-22 09:05 UTC, commit abc-dirty, load average before: [\d.]+ [\d.]+ [\d.]+$")

    def test_what_others_used(self):
        before = machine.parse_stat("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 ...\n", 1.0, 100)
        self.assertEqual(before, machine.ProcessorTime(total=10.0, busy=1.5, stolen=0.0, ours=1.0))
        after = machine.parse_stat("cpu  700 0 150 900 50 0 0 200 0 0\n", 5.0, 100)
        self.assertEqual(after.disturbance(before), "meanwhile other programs used 30% of the processors, the hypervisor 20%")
        self.assertEqual(before.disturbance(before), "meanwhile other programs used 0% of the processors, the hypervisor 0%")


if __name__ == "__main__":
    unittest.main()
