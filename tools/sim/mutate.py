#!/usr/bin/env python3
"""Breaks the coordinator on purpose, one error at a time (mutations.py), and reports which seed of the simulation finds it, and how.

usage: mutate.py --output-base FOLDER [--seeds N] [--write] [NAME...]

Works on a copy of what is committed, with a Bazel output base of its own; NAMEs pick mutations whose file or name has one of them. With
--write the table of tests/sim/README.md gets their lines. Exit code 1 if a mutation survives.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import mutations

sys.path.append(str(Path(__file__).resolve().parents[1]))
import mutation_testing

SUBJECT = mutation_testing.Subject("coordinator", mutations.MUTATIONS, "tests/sim/README.md",
                                   "| file | broken | seed | s | how it shows |")
SECONDS = 600  # of all seeds


def run(program, seeds):
    """The violation as (seed, seconds until then, what); None if there is none."""
    begin = time.monotonic()
    try:
        done = subprocess.run([program, "--seeds", str(seeds)], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode == 0:
        return None
    match = re.search(r"sim: seed (\d+), event \d+: (.*)", done.stderr)
    what = match.group(2)
    if what.startswith("a check failed"):
        what = "check: " + re.search(r"check failed: (.*)|^.*?] (.*)", done.stderr, re.IGNORECASE | re.MULTILINE).group(0)
    return match.group(1), time.monotonic() - begin, what.replace("|", "\\|")[:160]


def try_one(mutation, arguments):
    with SUBJECT.broken(mutation):
        found = run(SUBJECT.build("//tests/sim:sim"), arguments.seeds)
    seed, seconds, what = found or ("-", 0, "**not noticed**")
    return found, f"| `{mutation.file}` | {mutation.name} | {seed} | {seconds:.1f} | {what} |"


if __name__ == "__main__":
    sys.exit(mutation_testing.main(__doc__, SUBJECT, lambda mutation, name: name in mutation.file or name in mutation.name, try_one,
                                   options=[("--seeds", 300)]))
