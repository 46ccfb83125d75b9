#!/usr/bin/env python3
"""Breaks the coordinator on purpose, one error at a time (mutations.py), and reports which seed of the simulation finds it, and how.

usage: mutate.py --output-base FOLDER [--seeds N] [--write] [NAME...]

Works on a copy of what is committed, with a Bazel output base of its own; NAMEs pick mutations whose file or name has one of them. With
--write the table of tests/sim/README.md gets their lines. Exit code 1 if a mutation survives.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mutations

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "tests/sim/README.md"
SECONDS = 600  # of all seeds


def copy_tree(folder):
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)


def build(tree, output_base):
    """The simulation's program. A mutation may leave a name unused."""
    done = subprocess.run(["bazel", f"--output_base={output_base}", "build", "--jobs=2", "--symlink_prefix=/",
                           "--per_file_copt=coordinator/.*@-Wno-error", "//tests/sim"], cwd=tree, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"mutate: it does not compile\n{done.stderr}")
    return output_base / "execroot/tandem/bazel-out/k8-opt/bin/tests/sim/sim"


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


def line_of(mutation, found):
    seed, seconds, what = found or ("-", 0, "**not noticed**")
    return f"| `{mutation.file}` | {mutation.name} | {seed} | {seconds:.1f} | {what} |"


def write(mutation, found):
    """Inserts the mutation's line in the table, in the order of mutations.py."""
    text = DOC.read_text()
    begin, end = "<!-- mutations -->\n", "<!-- end of mutations -->"
    first, last = text.index(begin) + len(begin), text.index(end)
    known = {line.split("|")[2].strip(): line for line in text[first:last].splitlines()[2:]}
    known[mutation.name] = line_of(mutation, found)
    lines = ["| file | broken | seed | s | how it shows |", "| --- | --- | --- | --- | --- |",
             *(known[m.name] for m in mutations.MUTATIONS if m.name in known)]
    DOC.write_text(text[:first] + "\n".join(lines) + "\n" + text[last:])


def try_one(tree, output_base, mutation, seeds):
    path = tree / "coordinator" / mutation.file
    good = path.read_text()
    if good.count(mutation.old) != 1:
        sys.exit(f"mutate: {mutation.file} has {good.count(mutation.old)} times: {mutation.old}")
    path.write_text(good.replace(mutation.old, mutation.new))
    found = run(build(tree, output_base), seeds)
    path.write_text(good)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output-base", type=Path, required=True, help="a folder for Bazel, kept between runs")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    output_base = arguments.output_base.absolute()
    chosen = [m for m in mutations.MUTATIONS if not arguments.names or any(name in m.file or name in m.name for name in arguments.names)]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tandem"
        tree.mkdir()
        copy_tree(tree)
        for mutation in chosen:
            found = try_one(tree, output_base, mutation, arguments.seeds)
            survived += found is None
            print(line_of(mutation, found), flush=True)
            if arguments.write:
                write(mutation, found)
        subprocess.run(["bazel", f"--output_base={output_base}", "shutdown"], cwd=tree, check=False)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
