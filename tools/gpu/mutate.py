#!/usr/bin/env python3
"""Breaks kernels on purpose, one at a time (mutations.py), and reports which emulated contract suite detects it, and how.

usage: mutate.py --output-base FOLDER [--write] [NAME...]

Works on a copy of what is committed, with a Bazel output base of its own; NAMEs pick mutations whose file or name has one of them, or
whose suite is one. With --write the table of docs/cuda-kernels.md gets their lines, after each mutation. Exit code 1 if a mutation
survives.
"""

import re
import subprocess
import sys
from pathlib import Path

import mutations

sys.path.append(str(Path(__file__).resolve().parents[1]))
import mutation_testing

SUBJECT = mutation_testing.Subject("kernels/cuda", mutations.MUTATIONS, "docs/cuda-kernels.md", "| file | broken | suite | how it shows |")
SECONDS = 900  # of one suite


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


def try_one(mutation, _):
    with SUBJECT.broken(mutation):
        said = run(SUBJECT.build(f"//tests/kernels:{mutation.suite}_test_emulated"), SUBJECT.tree)
    return said, f"| {mutation.file} | {mutation.name} | {mutation.suite}_test | {said or '**not noticed**'} |"


if __name__ == "__main__":
    sys.exit(mutation_testing.main(
        __doc__, SUBJECT, lambda mutation, name: name in mutation.file or name in mutation.name or name == mutation.suite, try_one))
