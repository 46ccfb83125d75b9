"""./dev compdb: compile_commands.json, for clangd and other tools that parse C++ as the build does.

Reads `bazel aquery` of every C++ compilation. A CUDA source gets the flags of its emulated twin, so
it is parsed as C++ on machines without the toolkit too.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
_QUERY = ["bazel", "aquery", "--output=jsonproto", "--ui_event_filters=-info",
          'mnemonic("CppCompile", //...)']
# What parsing needs: Protobuf's and gRPC's headers, and the wrappers of kernels.
_GENERATED = ["bazel", "query", "--ui_event_filters=-info",
              'filter("_(generate|emulated_source)$", kind("genrule", //...))']
# Flags of gcc that clang rejects.
_ONLY_GCC = {"-fno-canonical-system-headers"}
# kernels/cuda/BUILD.bazel's `NAME/path_to_x_emulated.cc` includes kernels/cuda/path/to/x.cu.
_WRAPPER = re.compile(r"^bazel-out/.*_emulated\.cc$")
_INCLUDED_KERNEL = re.compile(r'#include "(.*\.cu)"')


def source_of(arguments):
    """The file that a command compiles."""
    return arguments[arguments.index("-c") + 1]


def is_for_build_tools(arguments):
    """Whether the output goes to a folder of Bazel's configuration for tools of the build."""
    output = arguments[arguments.index("-o") + 1]
    return "-exec-" in output or output.startswith("bazel-out/host/")


def entry(source, arguments, root):
    """One member of compile_commands.json: `arguments`, compiling `source`."""
    changed = [argument for argument in arguments if argument not in _ONLY_GCC]
    at = changed.index("-c") + 1
    changed[at:at + 1] = ["-x", "c++", source] if source.endswith(".cu") else [source]
    return {"directory": str(root), "file": source, "arguments": changed}


def entries(actions, root, read_wrapper):
    """One entry per source, by path; `read_wrapper` returns the text of a generated file."""
    found = {}
    for action in actions:
        arguments = action["arguments"]
        if is_for_build_tools(arguments):
            continue
        source = source_of(arguments)
        if _WRAPPER.match(source):
            source = _INCLUDED_KERNEL.search(read_wrapper(source)).group(1)
        found.setdefault(source, entry(source, arguments, root))
    return [found[source] for source in sorted(found)]


def main():
    generated = subprocess.run(_GENERATED, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    subprocess.run(["bazel", "build", "--ui_event_filters=-info", *generated.stdout.split()],
                   cwd=ROOT, check=True)
    answer = subprocess.run(_QUERY, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    found = entries(json.loads(answer)["actions"], ROOT, lambda path: (ROOT / path).read_text())
    (ROOT / "compile_commands.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"compile_commands.json: {len(found)} files")


if __name__ == "__main__":
    sys.exit(main())
