"""Tests of op_table: names of cases, the choice of kernels, rows."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import op_table  # noqa: E402
from peaks import Peaks  # noqa: E402

NAMES = ["ReadMemory/huge_pages/ahead:0/real_time/threads:2", "Decode/avx2/Q8_0/threads:2/real_time",
         "Decode/avx2/F32/threads:2/real_time", "Decode/avx512/Q8_0/threads:2/real_time",
         "Decode/avx512-vnni/Q8_0/threads:2/real_time"]


def run(name, gigabytes, gigaops):
    return {"name": name, "run_type": "iteration", "bytes_per_second": gigabytes * 1e9, "FLOPS": gigaops * 1e9}


class OpTable(unittest.TestCase):
    def test_the_best_kernels_of_those_asked_for(self):
        sets = op_table.kernel_sets(NAMES)
        self.assertEqual(sets, ["avx2", "avx512", "avx512-vnni"])
        self.assertEqual([op_table.choose_kernels(sets, asked) for asked in ("auto", "avx2", "avx512")],
                         ["avx512-vnni", "avx2", "avx512-vnni"])
        self.assertEqual([op_table.choose_kernels(["avx2", "avx2-vnni"], asked) for asked in ("auto", "avx2", "avx2-vnni")],
                         ["avx2-vnni", "avx2", "avx2-vnni"])
        with self.assertRaisesRegex(ValueError, "no kernels 'avx512', only avx2"):
            op_table.choose_kernels(["avx2"], "avx512")

    def test_the_filter_takes_no_other_kernels(self):
        wanted = re.compile(op_table.case_filter("avx512"))
        self.assertEqual([name for name in NAMES if wanted.search(name)], ["Decode/avx512/Q8_0/threads:2/real_time"])
        self.assertTrue(wanted.search("Experts/avx512/Q8_0/threads:2/tokens:16/real_time"))
        self.assertFalse(wanted.search("Experts/avx512/Q8_0/threads:2/tokens:1/real_time"))

    def test_rows(self):
        report = {"benchmarks": [
            run("Decode/avx2/Q8_0/threads:2/real_time", 20, 40),
            run("Decode/avx2/Q8_0/threads:2/real_time", 22, 44),
            run("Prefill512/avx2/Q8_0/threads:2/real_time", 0.5, 150),
            run("Decode/avx2/Q4_0/threads:2/real_time", 10, 40),
            run("DecodeBatch/avx2/Q8_0/threads:2/batch:8/real_time", 5, 100),
            run("Experts/avx2/Q8_0/threads:2/tokens:16/real_time", 5, 100),
            run("DecodeQ4_K_M/avx2/threads:2/real_time", 5, 100),
            {"name": "ReadMemory/huge_pages/ahead:0", "run_type": "iteration", "bytes_per_second": 1.0},
        ]}
        rows = list(op_table.rows(report, Peaks(25e9, {("avx2", "int8:1"): 2e11}), "avx2"))
        self.assertEqual(rows[0], ("decode", "Q8_0", "21.0 (20.0 to 22.0)", "84%", "42.0 (40.0 to 44.0)", "21%"))
        self.assertEqual([row[:2] for row in rows],
                         [("decode", "Q8_0"), ("decode", "Q4_0"), ("decode", "Q4_K_M"), ("prefill 512, one layer", "Q8_0"),
                          ("decode x8", "Q8_0"), ("8 of 128 experts, 16 tokens", "Q8_0")])
        self.assertEqual([row[5] for row in rows], ["21%", "-", "-", "75%", "50%", "50%"])


if __name__ == "__main__":
    unittest.main()
