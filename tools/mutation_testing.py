"""Mutation testing: a copy of what is committed is broken on purpose, one error at a time, and a table says what noticed it."""

import argparse
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Subject:
    """A copy of the tree with a Bazel output base of its own.

    mutations: each with `file` (below `folder`), `name`, and the text `old` that `new` replaces.
    table: the document with the results, between two marks. columns: the header of its lines."""

    def __init__(self, folder, mutations, table, columns):
        self.folder, self.mutations, self.table, self.columns = folder, mutations, ROOT / table, columns
        self.tree = self.output_base = None

    def build(self, target):
        """The path of the target's program. What a mutation leaves unused is no error."""
        done = subprocess.run(["bazel", f"--output_base={self.output_base}", "build", "--jobs=2", "--symlink_prefix=/",
                               f"--per_file_copt={self.folder}/.*@-Wno-error", target], cwd=self.tree, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"mutate: it does not compile\n{done.stderr}")
        return self.output_base / "execroot/tandem/bazel-out/k8-opt/bin" / target.removeprefix("//").replace(":", "/")

    @contextlib.contextmanager
    def broken(self, mutation):
        path = self.tree / self.folder / mutation.file
        good = path.read_text()
        if good.count(mutation.old) != 1:
            sys.exit(f"mutate: {mutation.file} has {good.count(mutation.old)} times: {mutation.old}")
        path.write_text(good.replace(mutation.old, mutation.new))
        yield
        path.write_text(good)

    def write(self, mutation, line):
        """Puts the mutation's line into the table, in the order of the mutations. Its first two cells are file and name."""
        text = self.table.read_text()
        begin, end = "<!-- mutations -->\n", "<!-- end of mutations -->"
        first, last = text.index(begin) + len(begin), text.index(end)
        known = {tuple(cell.strip(" `") for cell in row.split("|")[1:3]): row for row in text[first:last].splitlines()[2:]}
        known[mutation.file, mutation.name] = line
        rows = [self.columns, "| --- " * self.columns.count(" | ") + "| --- |",
                *(known[m.file, m.name] for m in self.mutations if (m.file, m.name) in known)]
        self.table.write_text(text[:first] + "\n".join(rows) + "\n" + text[last:])

    @contextlib.contextmanager
    def copied(self, output_base):
        with tempfile.TemporaryDirectory() as folder:
            self.tree, self.output_base = Path(folder) / "tandem", output_base.absolute()
            self.tree.mkdir()
            archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
            subprocess.run(["tar", "x", "-C", self.tree], input=archive, check=True)
            own = ROOT / "user.bazelrc"
            if own.exists():
                (self.tree / own.name).write_text(own.read_text())
            yield
            subprocess.run(["bazel", f"--output_base={self.output_base}", "shutdown"], cwd=self.tree, check=False)


def main(doc, subject, picks, try_one, options=()):
    """The command line. picks(mutation, name): whether a NAME chooses it. try_one(mutation, arguments): (noticed, its line)."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--output-base", type=Path, required=True, help="a folder for Bazel, kept between runs")
    parser.add_argument("--write", action="store_true")
    for option, default in options:
        parser.add_argument(option, type=type(default), default=default)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    survived = 0
    with subject.copied(arguments.output_base):
        for mutation in subject.mutations:
            if arguments.names and not any(picks(mutation, name) for name in arguments.names):
                continue
            noticed, line = try_one(mutation, arguments)
            survived += not noticed
            print(line, flush=True)
            if arguments.write:
                subject.write(mutation, line)
    return 1 if survived else 0
