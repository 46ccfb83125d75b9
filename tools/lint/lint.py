"""./dev lint: runs every check over the tree and prints problems, one line each.

usage: lint.py [CHECK...]    with CHECK one of the names below; all if none is given
"""

import sys
import time

import build_files
import commits
import format as formatting
import headers
import include_rules
import leftovers
import links
import source_tree
import thread_safety
import tidy

CHECKS = {
    "format": formatting.check,
    "includes": include_rules.check,
    "leftovers": leftovers.check,
    "links": links.check,
    "build": build_files.check,
    "commits": commits.check,
    "headers": headers.check,
    "threads": thread_safety.check,
    "tidy": tidy.check,
}


def main(names):
    unknown = set(names) - set(CHECKS)
    if unknown:
        sys.exit(f"lint: no check {', '.join(sorted(unknown))}; there are: {', '.join(CHECKS)}")
    tree = source_tree.SourceTree()
    found = 0
    for name in names or CHECKS:
        start = time.monotonic()
        problems = list(CHECKS[name](tree))
        found += len(problems)
        for problem in problems:
            print(problem)
        print(f"lint: {name}: {len(problems) or 'no'} problem{'s' * (len(problems) != 1)} "
              f"({time.monotonic() - start:.1f} s)", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
