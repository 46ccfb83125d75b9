"""Tests of kernel_report: what it reads out of ptxas's words and out of machine code."""

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

CODE = """
  Function : _ZN1a7FKernelEv
  .headerflags @"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                             /* 0x00000a00ff017b82 */
                                                                                      /* 0x000fe20000000800 */
        /*0010*/               @P0 LDG.E.64 R2, desc[UR4][R2.64] ;                    /* 0x0000000402020981 */
        /*0020*/              @!P1 LDGSTS.E.BYPASS.128 [R15], desc[UR8][R10.64] ;     /* 0x0000000a0f0f9fae */
        /*0030*/                   HMMA.16816.F32.BF16 R4, R8, R2, R4 ;               /* 0x000000020804723c */
        /*0040*/                   IMMA.16832.S8.S8 R4, R8.ROW, R2.COL, R4 ;          /* 0x0000000208047237 */
  Function : _ZN1a7GKernelILi4EEEvPf
        /*0000*/                   LDG.E.U8.CONSTANT R2, desc[UR4][R2.64] ;           /* 0x0000000402020981 */
        /*0010*/                   STG.E.128 desc[UR4][R2.64], R4 ;                   /* 0x0000000402007986 */
        /*0020*/                   LDS.128 R4, [R2] ;                                 /* 0x0000000002047984 */
"""


class KernelReport(unittest.TestCase):
    def test_registers_stack_and_spills(self):
        self.assertEqual(list(kernel_report.parse(REPORT)),
                         [("_ZN1a7FKernelEv", 60, 16, 12), ("_ZN1a7GKernelILi4EEEvPf", 32, 0, 0)])

    def test_tensor_cores_and_the_widest_load(self):
        self.assertEqual(kernel_report.parse_code(CODE),
                         {"_ZN1a7FKernelEv": ({"HMMA", "IMMA"}, 128), "_ZN1a7GKernelILi4EEEvPf": (set(), 8)})
        self.assertEqual([kernel_report.load_bits(one) for one in ("LDG.E", "LDG.E.S16", "LDG.E.64.CONSTANT")], [32, 16, 64])

    def test_tensor_cores_of_all_forms(self):
        self.assertEqual([kernel_report.tensor_cores(forms) for forms in ([{"HMMA"}, {"HMMA"}], [{"IMMA"}, {"HMMA"}], [{"HMMA"}, set()], [set()])],
                         ["HMMA", "HMMA and IMMA", "HMMA and none", ""])

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
