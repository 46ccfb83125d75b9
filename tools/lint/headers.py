"""Compiles every header alone."""

import compiler_checks


def check(tree, cache_folder=None):
    """Yields "path: message" of each header that needs something included before it."""
    headers = tree.with_suffix((".h",))
    for path, output in compiler_checks.failures(tree, "headers", headers, _command, cache_folder):
        shown = "\n".join(output.splitlines()[:8])
        yield f"{path}: does not compile alone:\n{shown}"


def _command(path, flags):
    # Without warnings: the build reports those.
    return ["g++", *flags, "-fsyntax-only", "-w", "-x", "c++", path]
