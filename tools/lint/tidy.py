"""clang-tidy, with the checks of .clang-tidy.

usage: tidy.py [FILE...]    C++ sources; those of all programs and libraries if none is given
"""

import sys

import compiler_checks
import source_tree

# One file takes 4 to 10 s of processor time, nearly all of it for the headers it includes, so
# `lint` looks where moved-from values, views and sizes matter most and headers are few.
_LINTED = ("common/gguf/", "common/step/", "common/transport/", "coordinator/engine/",
           "coordinator/kvcache/", "coordinator/scheduler/", "worker/runtime/")
_PRODUCTION = ("client/", "common/", "coordinator/", "kernels/host/", "kernels/reference/",
               "worker/")
# They need NVIDIA's header, which has no emulated twin, and macros that Bazel defines at links.
_LEFT_OUT = ("worker/comm/nccl_communicator.cc", "common/base/version_stamp.cc")


def check(tree, paths=None, cache_folder=None):
    """Yields "path:line:column: message"; `paths` are those that `lint` looks at if not given."""
    paths = sources(tree, _LINTED) if paths is None else paths
    config = tree.text(".clang-tidy")

    def command(path, flags):
        return ["clang-tidy", "--quiet", f"--config={config}", path, "--", *flags]

    seen = set()  # A header's problem is found by all that include it.
    for path, output in compiler_checks.failures(tree, "tidy", paths, command, cache_folder):
        errors = [line.removeprefix(f"{tree.root}/") for line in output.splitlines()
                  if " error: " in line]
        for line in errors or [f"{path}: {output}"]:
            if line not in seen:
                seen.add(line)
                yield line


def sources(tree, folders):
    return [path for path in tree.with_suffix((".cc",))
            if path.startswith(folders) and path not in _LEFT_OUT]


def main(paths):
    tree = source_tree.SourceTree()
    problems = list(check(tree, paths or sources(tree, _PRODUCTION)))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
