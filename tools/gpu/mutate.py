#!/usr/bin/env python3
"""Breaks kernels on purpose, one at a time (mutations.py), and reports which emulated contract suite detects it, and how.

usage: mutate.py [--output-base FOLDER] [--write] [NAME...]

Works on a copy of what is committed, with a Bazel output base of its own; NAMEs pick mutations whose file or name has one of them. With
--write the table of docs/cuda-kernels.md gets their lines, after each mutation. Exit code 1 if a mutation survives.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import mutations

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "docs/cuda-kernels.md"
SECONDS = 900  # of one suite


def copy_tree(folder):
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)
    own = ROOT / "user.bazelrc"
    if own.exists():
        (folder / "user.bazelrc").write_text(own.read_text())


def build(tree, output_base, suite):
    """The suite's program, or None with the compiler's errors."""
    target = f"//tests/kernels:{suite}_test_emulated"
    # A mutation may leave a name unused.
    done = subprocess.run(["bazel", f"--output_base={output_base}", "build", "--jobs=2", "--symlink_prefix=/",
                           "--per_file_copt=kernels/cuda/.*@-Wno-error", target], cwd=tree, capture_output=True, text=True)
    program = output_base / f"execroot/tandem/bazel-out/k8-opt/bin/tests/kernels/{suite}_test_emulated"
    return (program, "") if done.returncode == 0 else (None, done.stderr)


def run(program, suite_folder):
    """The suite's failure; empty if it passes."""
    try:
        done = subprocess.run([program, "--gtest_fail_fast", "--gtest_brief=1"], cwd=suite_folder, capture_output=True, text=True,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"does not end in {SECONDS} s"
    if done.returncode == 0:
        return ""
    text = done.stdout + done.stderr
    test = re.search(r"\[  FAILED  \] (\S+)\.(\w+)", text)
    return f"`{test.group(2) if test else 'the program'}`: {reason(text, done.returncode)}"


def reason(text, code):
    """One line of a failed suite's output, without run-dependent parts."""
    patterns = (r"cudaErrorLaunchFailure: (.*)", r"(at \d+ of \d+: .*)", r"(Expected.*|Which is.*|Value of.*)")
    for pattern in patterns:
        if match := re.search(pattern, text):
            if match.group(1).startswith("Expected equality"):
                return "other values"
            return match.group(1).strip().replace("|", "\\|")[:200]
    return f"ends with code {code}"


def line_of(mutation, said):
    return f"| {mutation.file} | {mutation.name} | {mutation.suite}_test | {said or '**not noticed**'} |"


def write(mutation, said):
    """Inserts the mutation's line in the table, in the order of mutations.py."""
    text = DOC.read_text()
    begin, end = "<!-- mutations -->\n", "<!-- end of mutations -->"
    first, last = text.index(begin) + len(begin), text.index(end)
    known = {tuple(part.strip() for part in line.split("|")[1:3]): line for line in text[first:last].splitlines()[2:]}
    known[mutation.file, mutation.name] = line_of(mutation, said)
    lines = ["| file | broken | suite | how it shows |", "| --- | --- | --- | --- |",
             *(known[m.file, m.name] for m in mutations.MUTATIONS if (m.file, m.name) in known)]
    DOC.write_text(text[:first] + "\n".join(lines) + "\n" + text[last:])


def try_one(tree, output_base, mutation):
    path = tree / "kernels/cuda" / mutation.file
    good = path.read_text()
    if good.count(mutation.old) != 1:
        sys.exit(f"mutate: {mutation.file} has {good.count(mutation.old)} times: {mutation.old}")
    path.write_text(good.replace(mutation.old, mutation.new))
    program, error = build(tree, output_base, mutation.suite)
    said = run(program, tree) if program else ""
    path.write_text(good)
    if program is None:
        sys.exit(f"mutate: does not compile: {mutation.name}\n{error}")
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output-base", type=Path, required=True, help="a folder for Bazel, kept between runs")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    chosen = [m for m in mutations.MUTATIONS
              if not arguments.names or any(name in m.file or name in m.name or name == m.suite for name in arguments.names)]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tandem"
        tree.mkdir()
        copy_tree(tree)
        for mutation in chosen:
            said = try_one(tree, arguments.output_base.absolute(), mutation)
            survived += not said
            print(f"{'noticed ' if said else 'SURVIVED'} {mutation.file}: {mutation.name}: {said}", flush=True)
            if arguments.write:
                write(mutation, said)
        subprocess.run(["bazel", f"--output_base={arguments.output_base.absolute()}", "shutdown"], cwd=tree, check=False)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
