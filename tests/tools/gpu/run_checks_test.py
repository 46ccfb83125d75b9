"""Tests of run-checks.sh over a folder of stand-ins: what counts as passed, and what is said where there is no GPU."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).absolute().parents[3] / "tools/gpu"

DEVICE = "echo 'device 0: A, compute capability 9.0, 80.0 GiB'"
NO_DEVICE = "echo 'device_info: no CUDA device: no driver' >&2; exit 1"
PASSES = "echo '[  PASSED  ] 3 tests.'"
FAILS = "echo 'a.cc:7: Failure'; echo '[  FAILED  ] A.B'; exit 1"
SKIPS = "echo 'a.cc:3: Skipped'; echo 'no GPU: none'; echo '[  PASSED  ] 0 tests.'"


class RunChecks(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for script in ("run-checks.sh", "verdicts.sh", "sections.sh", "report.py", "shared_gpu_worker.sh"):
            shutil.copy(SCRIPTS / script, self.folder)
        for program in ("worker/tandem_worker_cuda", "client/tandem"):
            self.program(program, "exit 0")
        self.program("kernels/cuda/device_info", DEVICE)

    def program(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/bash\n" + text + "\n")
        file.chmod(0o755)

    def suite(self, name, text):
        """A program with one suite, of that name."""
        listing = f'[[ $1 == --gtest_list_tests ]] && {{ echo "Running main() from a.cc"; echo "Backends/{name}."; echo "  B/0  # gpu"; exit; }}'
        self.program(f"tests/kernels/{name}_test_gpu", listing + "\n" + text)

    def run_checks(self, *arguments):
        return subprocess.run([self.folder / "run-checks.sh", *arguments], capture_output=True, text=True, check=False,
                              env={"PATH": os.environ["PATH"]})

    def test_without_a_gpu_it_says_so_in_one_line(self):
        self.program("kernels/cuda/device_info", NO_DEVICE)
        done = self.run_checks()
        self.assertEqual(done.returncode, 1)
        self.assertEqual((done.stdout, done.stderr), ("", "run-checks: no CUDA device: no driver\n"))

    def test_a_missing_library_is_named(self):
        self.program("ldd", "printf '\\tlibnccl.so.2 => not found\\n\\tlibc.so.6 => /lib/libc.so.6 (0x1)\\n'")
        done = subprocess.run([self.folder / "run-checks.sh"], capture_output=True, text=True, check=False,
                              env={"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("run-checks: not found: libnccl.so.2 (looked in", done.stderr)

    def test_an_unknown_section_is_refused(self):
        done = self.run_checks("contracts")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no section 'contracts'", done.stderr)

    def test_suites_that_pass(self):
        self.suite("A", PASSES)
        done = self.run_checks("contract")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("summary: 1 passed, 0 failed, 0 not run", done.stdout)

    def test_a_program_that_cannot_start_has_failed(self):
        self.suite("A", PASSES)
        self.program("tests/kernels/b_test_gpu", "echo 'b_test_gpu: libnccl.so.2: not found' >&2; exit 127")
        done = self.run_checks("contract")
        self.assertEqual(done.returncode, 1)
        self.assertIn("summary: 1 passed, 1 failed, 0 not run", done.stdout)
        self.assertRegex(done.stdout, "FAIL    contract:b_test_gpu +lists no suites: b_test_gpu: libnccl.so.2: not found")

    def test_a_program_that_ends_with_an_error_after_its_list_has_failed(self):
        self.program("tests/kernels/b_test_gpu", "echo B.; echo '  c'; echo 'terminate called' >&2; exit 134")
        done = self.run_checks("contract")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "FAIL    contract:b_test_gpu +lists no suites: terminate called")

    def test_a_program_without_suites_has_failed(self):
        self.program("tests/kernels/b_test_gpu", "exit 0")
        done = self.run_checks("contract")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL    contract:b_test_gpu", done.stdout)

    def test_a_section_that_checks_nothing_has_failed(self):
        done = self.run_checks("device", "contract")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "FAIL    contract +nothing was checked")
        report = json.loads((self.folder / "results/results.json").read_text())
        self.assertEqual([(section["name"], section["verdict"]) for section in report["sections"]],
                         [("device", "PASS"), ("contract", "FAIL")])

    def test_bits_must_be_there_and_the_same(self):
        self.suite("A", "echo 'bits A.b 12'; " + PASSES)
        done = self.run_checks("determinism")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "PASS    same-bits:A +1 tests")
        self.suite("A", PASSES)
        done = self.run_checks("determinism")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "FAIL    same-bits:A +no test has told its bits")

    def test_a_suite_that_fails_names_the_place(self):
        self.suite("A", PASSES)
        self.suite("B", FAILS)
        done = self.run_checks("contract")
        self.assertEqual(done.returncode, 1)
        self.assertIn("summary: 1 passed, 1 failed", done.stdout)
        self.assertIn("a.cc:7: Failure", done.stdout)

    def test_what_is_skipped_has_not_passed(self):
        self.suite("A", SKIPS)
        done = self.run_checks("contract")
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 passed, 1 failed", done.stdout)
        self.assertIn("no GPU: none", done.stdout)

    def test_fresh_inputs_have_a_seed(self):
        self.suite("A", "echo \"seed ${TANDEM_TEST_SEED:-none}\"; " + PASSES)
        done = self.run_checks("contract")
        seed = next(line for line in done.stdout.splitlines() if line.startswith("fresh inputs")).split("=")[1]
        logs = self.folder / "results"
        self.assertIn(f"seed {seed}\n", (logs / "contract:A.log").read_text())
        self.assertEqual(json.loads((logs / "results.json").read_text())["seed"], seed)

    def test_ranks_share_the_only_gpu(self):
        self.program("tests/cluster/cuda_golden_test_gpu", "echo \"worker ${TANDEM_TEST_CUDA_WORKER##*/} $1\"; " + PASSES)
        self.assertEqual(self.run_checks("goldens", "ranks").returncode, 0)
        log = (self.folder / "results/ranks:part0.log").read_text()
        self.assertIn("worker shared_gpu_worker.sh --gtest_filter=*/llama_2:*/gpt2_2:", log)
        one = (self.folder / "results/goldens:part0.log").read_text()
        self.assertIn("--gtest_filter=-*CudaGoldenTest*_2:*CudaGoldenTest*_4\n", one)

    def test_a_shared_worker_is_a_host_of_its_own_on_gpu_0(self):
        self.program("worker/tandem_worker_cuda", 'echo "$NCCL_HOSTID: $*"')
        done = subprocess.run([self.folder / "shared_gpu_worker.sh", "--coordinator", "a:1", "--rank", "1"], capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stdout, "tandem-rank-1: --coordinator a:1 --rank 1 --device-index 0\n")

    def test_demo_tokens_must_be_the_same(self):
        self.program("demo_tokens.sh", 'echo "[1, 2]" >"$1"')
        self.assertIn("PASS    demo:same-tokens", self.run_checks("demo").stdout)
        self.program("demo_tokens.sh", 'echo "[1, $2]" >"$1"')
        done = self.run_checks("demo")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL    demo:same-tokens", done.stdout)

    def sanitize(self):
        self.program("compute-sanitizer", 'echo "$*"; exec "${@: -2}"')
        return subprocess.run([self.folder / "run-checks.sh", "sanitizer"], capture_output=True, text=True, check=False,
                              env={"PATH": f"{self.folder}:{os.environ['PATH']}"})

    def test_suites_run_under_the_sanitizer_on_small_cases(self):
        self.suite("A", "echo \"small: $TANDEM_TEST_SMALL $1\"; " + PASSES)
        done = self.sanitize()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        log = (self.folder / "results/initcheck:A.log").read_text()
        self.assertIn("--tool initcheck", log)
        self.assertIn("small: 1 --gtest_filter=Backends/A.*\n", log)
        self.assertIn("summary: 3 passed", done.stdout)

    def test_racecheck_comes_last_and_only_where_it_tells_most(self):
        self.suite("A", PASSES)
        self.suite("AttentionTest", PASSES)
        checks = [line.split()[1] for line in self.sanitize().stdout.splitlines() if line.startswith("PASS")]
        self.assertEqual(checks[-1], "racecheck:AttentionTest")
        self.assertNotIn("racecheck:A", checks)

    def test_results_json_has_gpu_verdicts_and_figures(self):
        self.program("tests/worker/step_bench/step_bench_gpu", "echo a step; echo '{\"steps\": [1]}' >\"$3\"; exit 0")
        self.program("nvidia-smi", "echo 'name, driver_version'; echo 'GPU A, 580.1'")
        done = subprocess.run([self.folder / "run-checks.sh", "device", "step"], capture_output=True, text=True, check=False,
                              env={"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("a step\n", done.stdout)
        report = json.loads((self.folder / "results/results.json").read_text())
        self.assertEqual((report["gpu"], report["driver"], report["pass"], report["finished"]), ("GPU A", "580.1", 2, True))
        self.assertEqual(report["sections"][1]["figures"], {"steps": [1]})
        self.assertEqual(report["command"], "run-checks.sh device step")

    def test_no_time_left_is_not_run(self):
        self.suite("A", PASSES)
        done = self.run_checks("--limit", "2", "contract")
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 passed, 0 failed, 1 not run", done.stdout)


if __name__ == "__main__":
    unittest.main()
