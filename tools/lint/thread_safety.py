"""Clang's thread safety analysis of what common/base/mutex.h annotates: a guarded member is accessed only with its mutex held."""

import compiler_checks
import include_rules

_MUTEX = "common/base/mutex.h"


def check(tree, cache_folder=None):
    """Yields "path:line:column: message"."""
    for path, output in compiler_checks.failures(tree, "thread_safety", sources(tree), _command,
                                                 cache_folder):
        errors = [line for line in output.splitlines() if " error: " in line]
        yield from errors or [f"{path}: {output}"]


def sources(tree):
    """The sources that include the mutex, or a header that does: where its classes are."""
    headers = {path for path in tree.with_suffix((".h",)) if _MUTEX in _includes(tree, path)}
    return [path for path in tree.with_suffix((".cc",))
            if _includes(tree, path) & (headers | {_MUTEX})]


def _includes(tree, path):
    return {header for _, _, header in include_rules.includes(tree.text(path))}


def _command(path, flags):
    return ["clang++", *flags, "-fsyntax-only", "-Wno-everything", "-Wthread-safety",
            "-Werror=thread-safety", path]
