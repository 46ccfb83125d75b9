"""The fixture of tests that run `tandem pull` against hub_stub."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from hub_stub import REPO, Hub, sha256

MODEL = Path("tests/golden/arch/llama/model.gguf").read_bytes()
TOKEN = "hf_secretsecretsecret"
NAME = f"hf:{REPO}"


class PullCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.cache = self.folder / "cache"
        self.repo = self.cache / "models--acme--tiny-GGUF"
        self.hub = self.start_hub({"tiny-Q8_0.gguf": MODEL})

    def start_hub(self, files):
        hub = Hub(files)
        self.addCleanup(hub.close)
        return hub

    def environment(self, **changes):
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder),
                "HF_HUB_CACHE": str(self.cache), "HF_ENDPOINT": self.hub.url,
                "HF_HUB_DOWNLOAD_TIMEOUT": "60", **changes}

    def start(self, name, *arguments, **environment):
        process = subprocess.Popen(["client/tandem", "pull", name, *arguments],
                                   env=self.environment(**environment), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_pull(self, name=NAME, *arguments, **environment):
        """Exit status, stdout and stderr."""
        process = self.start(name, *arguments, **environment)
        out, err = process.communicate(timeout=120)
        self.assertNotIn(TOKEN, out + err)
        return process.returncode, out, err

    def pull(self, name=NAME, *arguments, **environment):
        """A pull that succeeds: the printed path."""
        status, out, err = self.run_pull(name, *arguments, **environment)
        self.assertEqual(status, 0, err)
        self.assertEqual(out.count("\n"), 1)
        return Path(out[:-1])

    def refused(self, pattern, name=NAME, *arguments, **environment):
        """A pull that fails with one line that has `pattern`, and leaves no file in its place."""
        status, out, err = self.run_pull(name, *(arguments or ("--attempts", "1")), **environment)
        self.assertEqual((status, out), (1, ""), err)
        error = err.splitlines()[-1]
        self.assertRegex(error, f"^tandem: .*{pattern}")
        self.assertEqual([line for line in err.splitlines()[:-1] if line.startswith("tandem: ")], [])
        self.assertEqual(self.blobs(), set())
        self.assertFalse((self.repo / "refs").exists())
        return error

    def blobs(self):
        return {p.name for p in self.repo.glob("blobs/*") if not p.name.endswith(".incomplete")}

    def incomplete(self):
        return self.repo / "blobs" / f"{sha256(MODEL)}.incomplete"

    def ranges(self, hub=None):
        """The first byte of each request for a file."""
        return [int(headers.get("Range", "bytes=0-")[6:-1])
                for _, _, headers in (hub or self.hub).of("GET", ".gguf")]
