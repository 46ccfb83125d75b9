"""Tests of gpu_archs in build.sh: for which GPUs ./dev build compiles kernels."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).absolute().parents[3] / "tools/dev/build.sh"


def gpu_archs(nvidia_smi):
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "nvidia-smi"
        program.write_text("#!/bin/bash\n" + nvidia_smi + "\n")
        program.chmod(0o755)
        return subprocess.run(["bash", "-euo", "pipefail", "-c", f"source {SCRIPT}; gpu_archs"], capture_output=True, text=True, check=True,
                              env={"PATH": f"{folder}:{os.environ['PATH']}"}).stdout


class GpuArchs(unittest.TestCase):
    def test_those_of_the_gpus(self):
        self.assertEqual(gpu_archs("echo 9.0"), "90a\n")
        self.assertEqual(gpu_archs("printf '8.9\\n8.0\\n'"), "80\n")
        self.assertEqual(gpu_archs("printf '12.0\\n10.3\\n12.1\\n'"), "100,120\n")

    def test_a_later_one_compiles_for_itself(self):
        self.assertEqual(gpu_archs("printf '11.0\\n9.0\\n'"), "90a,ptx\n")

    def test_all_without_a_gpu(self):
        self.assertEqual(gpu_archs("exit 127"), "all\n")
        self.assertEqual(gpu_archs("echo 'No devices were found'; exit 6"), "all\n")
        self.assertEqual(gpu_archs("exit 0"), "all\n")


if __name__ == "__main__":
    unittest.main()
