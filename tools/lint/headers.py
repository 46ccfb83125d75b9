"""Headers compile alone: each is the first that a source of the build includes, or is compiled here.

Whatever compiles foo.cc, whose first line of code includes foo.h, compiles foo.h with nothing before
it, and so too what foo.h itself includes first. The compiler is started for the others only.
"""

import re

import build_files
import compiler_checks
import include_rules

_SOURCES = (".cc", ".cu")
# What may stand before the first #include.
_BLANK = re.compile(r"\s*(//.*)?$|#pragma once$")
_GUARD = re.compile(r"#(ifndef|define) TANDEM_\w+_H_$")


def check(tree, cache_folder=None):
    """Yields "path: message"."""
    yield from check_own_first(tree)
    built = build_files.built_sources(build_files.read_targets(tree)[0])
    proven = first_included(tree, built)
    others = [path for path in tree.with_suffix((".h",)) if path not in proven]
    for path, output in compiler_checks.failures(tree, "headers", others, _command, cache_folder):
        shown = "\n".join(output.splitlines()[:8])
        yield f"{path}: does not compile alone:\n{shown}"


def check_own_first(tree):
    """Yields a line for each foo.cc beside a foo.h that does not include it before anything else."""
    known = set(tree.paths)
    for path in tree.with_suffix(_SOURCES):
        header = path.rpartition(".")[0] + ".h"
        if header in known and first_include(tree.text(path)) != header:
            yield f'{path}: must include "{header}" before anything else'


def first_included(tree, sources):
    """The headers that some of `sources` includes first, and those that these include first."""
    known = set(tree.paths)
    found = set()
    waiting = [path for path in sources if path in known]
    while waiting:
        header = first_include(tree.text(waiting.pop()))
        if header in known and header not in found:
            found.add(header)
            waiting.append(header)
    return found


def first_include(text):
    """The header that a file includes before any code or directive, else None."""
    for line in text.splitlines():
        match = include_rules.INCLUDE.match(line)
        if match:
            return match.group(2)
        if not _BLANK.match(line) and not _GUARD.match(line):
            return None
    return None


def _command(path, flags):
    # Without warnings: the build reports those.
    return ["g++", *flags, "-fsyntax-only", "-w", "-x", "c++", path]
