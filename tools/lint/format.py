"""Runs clang-format over the C++ and .proto files: checks, or with --fix rewrites them."""

import os
import subprocess
import sys

import source_tree

_PER_CALL = 16


def _run(root, paths, arguments):
    """Yields the output of clang-format over `paths`, a few files per process, on all cores."""
    batches = [paths[i:i + _PER_CALL] for i in range(0, len(paths), _PER_CALL)]
    running = []
    while batches or running:
        while batches and len(running) < (os.cpu_count() or 1):
            running.append(subprocess.Popen(["clang-format", *arguments, *batches.pop(0)], cwd=root,
                                            stderr=subprocess.PIPE, text=True))
        process = running.pop(0)
        _, errors = process.communicate()
        yield errors


def check(tree):
    """Yields "path:line: message" of the first line of each file that is not well formatted."""
    reported = set()
    paths = tree.with_suffix(source_tree.FORMATTED)
    for errors in _run(tree.root, paths, ["--dry-run", "-Werror"]):
        for line in errors.splitlines():
            path, _, rest = line.partition(":")
            if "clang-format-violations" in rest and path not in reported:
                reported.add(path)
                yield f"{path}:{rest.split(':')[0]}: not formatted; run ./dev fmt"


def fix(tree):
    for errors in _run(tree.root, tree.with_suffix(source_tree.FORMATTED), ["-i"]):
        sys.stderr.write(errors)


if __name__ == "__main__":
    if sys.argv[1:] == ["--fix"]:
        fix(source_tree.SourceTree())
    else:
        sys.exit("usage: format.py --fix")
