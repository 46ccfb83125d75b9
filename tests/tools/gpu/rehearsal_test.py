"""run-checks.sh rehearsed: every section with emulated programs and toy sizes, a complete results.json, and a program that fails."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path("tools/gpu/run-checks.sh").absolute()
SECTIONS = ["device", "nccl", "step", "replay", "table", "ablation", "sizes", "contract", "goldens", "demo", "determinism", "ranks",
            "sanitizer"]
# What the figures of a section have, each a list of rows.
FIGURES = {"nccl": "communicators", "step": "steps", "replay": "replays", "table": "ops", "ablation": "ablation", "sizes": "sizes"}


class Rehearsal(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        sanitizer = self.folder / "bin/compute-sanitizer"
        sanitizer.parent.mkdir()
        sanitizer.write_text('#!/bin/bash\nshift 4\nexec "$@"\n')
        sanitizer.chmod(0o755)

    def rehearse(self, *arguments, programs="."):
        done = subprocess.run(
            [SCRIPT, "--rehearse", "--limit", "900", "--programs", programs, "--results", self.folder / "results", *arguments],
            capture_output=True, text=True, check=False, env={**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"})
        report = json.loads((self.folder / "results/results.json").read_text())
        return done, report

    def test_every_section_passes_and_leaves_its_figures(self):
        done, report = self.rehearse()
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr)
        self.assertEqual([section["name"] for section in report["sections"]], SECTIONS)
        for section in report["sections"]:
            self.assertEqual(section["verdict"], "PASS", section)
            self.assertTrue(section["checks"])
            if section["name"] in FIGURES:
                self.assertTrue(section["figures"][FIGURES[section["name"]]], section["name"])
        self.assertTrue(report["finished"])
        self.assertEqual((report["gpu"], report["kind"], report["fail"], report["not-run"]), ("device 0: emulated", "emulated", 0, 0))
        self.assertTrue(report["date"] and report["seed"])
        steps = report["sections"][2]["figures"]["steps"]
        self.assertEqual({step["mode"] for step in steps}, {"graphs", "eager"})
        for figure in ("encode_us", "submit_us", "wait_us", "step_us", "percent_of_roof"):
            self.assertTrue(all(figure in step for step in steps))

    def broken(self, path, text):
        """A copy of the programs in which that one is a script."""
        copy = self.folder / "programs"
        shutil.copytree(".", copy, symlinks=True)
        (copy / path).unlink()
        (copy / path).write_text("#!/bin/bash\n" + text + "\n")
        (copy / path).chmod(0o755)
        return copy

    def test_a_program_that_fails_is_reported_and_the_rest_runs(self):
        copy = self.broken("tests/worker/step_bench/step_bench_emulated", "echo 'toy-dense: row 3: 7, needed 9' >&2; exit 1")
        done, report = self.rehearse("device", "replay", "nccl", programs=copy)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([(section["name"], section["verdict"]) for section in report["sections"]],
                         [("device", "PASS"), ("replay", "FAIL"), ("nccl", "PASS")])
        self.assertIn("row 3: 7, needed 9", report["sections"][1]["checks"][0]["detail"])
        self.assertIn("FAIL    replay", done.stdout)
        self.assertEqual((report["fail"], report["finished"]), (1, True))

    def test_other_bits_beside_a_busy_device_are_a_failure(self):
        suite = "tests/kernels/elementwise_test_emulated"
        lists = '[[ $1 == --gtest_list_tests ]] && { echo "A."; echo "  b"; exit; }'
        copy = self.broken(suite, lists + "; echo \"bits A.b ${TANDEM_TEST_HOG:-0}\"; echo '[  PASSED  ] 1 test.'")
        for other in ("route", "scatter_runs"):
            (copy / f"tests/kernels/{other}_test_emulated").unlink()
        done, report = self.rehearse("determinism", programs=copy)
        self.assertEqual(done.returncode, 1)
        self.assertEqual({check["name"]: check["verdict"] for check in report["sections"][0]["checks"]},
                         {"calm:A": "PASS", "busy:A": "PASS", "same-bits:A": "FAIL"})


if __name__ == "__main__":
    unittest.main()
