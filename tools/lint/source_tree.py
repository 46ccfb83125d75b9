"""The files that lint looks at: what git tracks or would track, in the repository's root."""

import os
import pathlib
import subprocess

CXX = (".h", ".cc", ".cu", ".cuh")
FORMATTED = CXX + (".proto",)
CODE = CXX + (".proto", ".py", ".sh", ".bzl", ".BUILD", ".bazel")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class SourceTree:
    """Paths relative to `root`, sorted, and their texts (read once)."""

    def __init__(self, root=ROOT, paths=None):
        self.root = pathlib.Path(root)
        self.paths = sorted(_list_files(self.root) if paths is None else paths)
        self._texts = {}

    def with_suffix(self, suffixes):
        return [path for path in self.paths if path.endswith(suffixes)]

    def code(self):
        """Hand-written files, except data, licences and documents."""
        return [path for path in self.paths if path.endswith(CODE) or is_script(path)]

    def text(self, path):
        if path not in self._texts:
            with open(self.root / path, encoding="utf-8", errors="replace", newline="") as file:
                self._texts[path] = file.read()
        return self._texts[path]


def is_script(path):
    return path in ("dev", "WORKSPACE", ".bazelrc", ".ci/run")


def _list_files(root):
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        names = set(filter(None, listed.stdout.split("\0")))
    except (OSError, subprocess.CalledProcessError):  # An unpacked archive, or no git.
        names = set(_walk(root))
    return [name for name in names if (root / name).is_file()]


def _walk(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders
                      if not name.startswith(("bazel-", ".git", ".cache")) and name != "bin"]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)
