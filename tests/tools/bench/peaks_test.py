"""Tests of peaks: the best repetition counts, and which mix bounds which type."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import peaks  # noqa: E402


def run(name, kind="iteration", **counters):
    return {"name": name, "run_type": kind, **counters}


REPORT = {"benchmarks": [
    run("ReadMemory/small_pages/ahead:0/real_time/threads:2", bytes_per_second=2e10),
    run("ReadMemory/huge_pages/ahead:2048/real_time/threads:2", bytes_per_second=3e10),
    run("ReadMemory/huge_pages/ahead:2048/real_time/threads:2_mean", kind="aggregate", bytes_per_second=9e10),
    run("Peak/avx2/int8:4/real_time/threads:2", OPS=4e11),
    run("Peak/avx2/int8:4/real_time/threads:2", OPS=5e11),
    run("Peak/avx2/f32/real_time/threads:2", OPS=1e11),
    run("Peak/avx512/f32/real_time/threads:2", error_occurred=True),
]}


class PeaksTest(unittest.TestCase):
    def test_the_best_repetition_counts(self):
        found = peaks.parse(REPORT)
        self.assertEqual(found, peaks.Peaks(3e10, {("avx2", "int8:4"): 5e11, ("avx2", "f32"): 1e11}))

    def test_the_better_of_two_measurements_counts(self):
        first = peaks.Peaks(3e10, {("avx2", "int8:4"): 5e11, ("avx2", "f32"): 1e11})
        second = peaks.Peaks(4e10, {("avx2", "int8:4"): 4e11, ("avx2", "f32"): 2e11})
        self.assertEqual(first.best(second), peaks.Peaks(4e10, {("avx2", "int8:4"): 5e11, ("avx2", "f32"): 2e11}))
        self.assertEqual(list(peaks.rows(first, second)), [("reading memory", "30.0 GB/s", "40.0 GB/s"),
                                                           ("avx2, int8, 4 vpmaddubsw per vpmaddwd", "500 GOPS", "400 GOPS"),
                                                           ("avx2, f32", "100 GFLOPS", "200 GFLOPS")])

    def test_memory_is_as_fast_as_the_fastest_reading(self):
        found = peaks.Peaks(3e10, {})
        self.assertEqual(found.with_readings([2e10, 5e10]).bandwidth, 5e10)
        self.assertEqual(found.with_readings([]).bandwidth, 3e10)

    def test_no_bandwidth_is_an_error(self):
        with self.assertRaises(ValueError):
            peaks.parse({"benchmarks": []})

    def test_mixes_by_kernels_and_type(self):
        ops = {("avx2", "int8:1"): 1, ("avx2", "int8:8"): 2, ("avx2", "f32"): 3, ("avx512", "int8:8"): 4, ("avx512", "f32"): 5,
               ("avx512-vnni", "int8"): 6, ("avx512-bf16", "bf16"): 4.5, ("amx", "int8"): 8, ("amx", "bf16"): 9,
               ("avx2-vnni", "int8"): 10}
        machine = peaks.Peaks(1, ops)
        self.assertEqual([machine.of_type("avx2", kind) for kind in ("Q8_0", "Q4_K", "BF16", "Q5_K", "Q4_K_M")], [1, 2, 3, None, None])
        self.assertEqual([machine.of_type("avx2-vnni", kind) for kind in ("Q8_0", "Q4_K", "F16")], [10, 10, 3])
        self.assertEqual([machine.of_type("avx512", kind) for kind in ("Q4_0", "F16")], [4, 5])
        self.assertEqual([machine.of_type("avx512-vnni", kind) for kind in ("Q8_0", "Q4_K", "BF16")], [6, 6, 5])
        self.assertEqual([machine.of_type("avx512-bf16", kind) for kind in ("Q8_0", "BF16", "F16")], [6, 5, 5])
        self.assertEqual([machine.of_type("avx512-amx", kind) for kind in ("Q8_0", "BF16", "F32")], [8, 9, 5])


if __name__ == "__main__":
    unittest.main()
