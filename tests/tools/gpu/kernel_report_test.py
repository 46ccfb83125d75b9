"""Tests of kernel_report: what it reads out of ptxas's words."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/gpu"))

import kernel_report  # noqa: E402

REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN1a7FKernelEv' for 'sm_90a'
ptxas info    : Function properties for _ZN1a7FKernelEv
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 60 registers, used 1 barriers, 16 bytes cumulative stack size
ptxas info    : Compiling entry function '_ZN1a7GKernelILi4EEEvPf' for 'sm_90a'
ptxas info    : Function properties for _ZN1a7GKernelILi4EEEvPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers
"""


class KernelReport(unittest.TestCase):
    def test_registers_stack_and_spills(self):
        self.assertEqual(list(kernel_report.parse(REPORT)),
                         [("_ZN1a7FKernelEv", 60, 16, 12), ("_ZN1a7GKernelILi4EEEvPf", 32, 0, 0)])

    def test_names(self):
        names = ["_ZN1a7FKernelEv", "_ZN1a7GKernelILi4EEEvPf"]
        self.assertEqual(kernel_report.demangle(names), {names[0]: "FKernel", names[1]: "GKernel"})

    def test_spans(self):
        self.assertEqual((kernel_report.span([3, 3]), kernel_report.span([5, 2, 3])), ("3", "2 to 5"))

    def test_a_table_replaces_the_one_before(self):
        text = "a\n<!-- kernels -->\nold\n<!-- end of kernels -->\nb\n"
        self.assertEqual(kernel_report.replace(text, "kernels", ["new"]),
                         "a\n<!-- kernels -->\nnew\n<!-- end of kernels -->\nb\n")


if __name__ == "__main__":
    unittest.main()
