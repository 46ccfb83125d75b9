"""Compiles every header alone. A header whose text and includes did not change is not tried again."""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess

import include_rules

# Without warnings: those are the build's business.
_FLAGS = ["-std=c++20", "-march=x86-64-v2", "-fsyntax-only", "-w", "-x", "c++"]
# What needs CUDA is compiled against the emulated toolkit, which every machine has.
_CUDA = re.compile(r"^(tests/)?kernels/cuda/")
_CUDA_FLAGS = ["-DTANDEM_CUDA_EMULATION", "-Ikernels/cuda/testing/toolkit"]


def check(tree, cache_folder=None):
    """Yields "path: message" of each header that needs something included before it."""
    cache = pathlib.Path(cache_folder or tree.root / ".cache" / "lint")
    generated = cache / "generated"
    errors = generate_protos(tree, generated)
    if errors:
        yield errors
        return
    passed_file = cache / "headers_passed"
    passed = set(passed_file.read_text().split()) if passed_file.exists() else set()
    wanted = {path: key(tree, path) for path in tree.with_suffix((".h",))}
    todo = [path for path, digest in wanted.items() if digest not in passed]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path, message in pool.map(lambda path: (path, compile_alone(tree, path, generated)),
                                      todo):
            if message:
                yield f"{path}: does not compile alone:\n{message}"
            else:
                passed.add(wanted[path])
    passed_file.write_text("\n".join(sorted(passed & set(wanted.values()))) + "\n")


def key(tree, path):
    """A digest of the header, all of ours that it includes, the .proto files and the flags."""
    digest = hashlib.sha256(" ".join(_FLAGS + _CUDA_FLAGS).encode())
    seen, waiting = set(), [path]
    known = set(tree.paths)
    while waiting:
        name = waiting.pop()
        if name in seen or name not in known:
            continue
        seen.add(name)
        waiting += [header for _, _, header in include_rules.includes(tree.text(name))]
        if any(header.endswith(".pb.h") for header in waiting):
            waiting += tree.with_suffix((".proto",))
    for name in sorted(seen):
        digest.update(f"{name}\0{tree.text(name)}\0".encode())
    return digest.hexdigest()


def compile_alone(tree, path, generated):
    """The compiler's errors, empty if there are none."""
    folders = [tree.root, generated, generated / "proto"]
    flags = _FLAGS + (_CUDA_FLAGS if _CUDA.match(path) else [])
    command = ["g++", *flags, *(f"-I{folder}" for folder in folders), path]
    result = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
    return "\n".join(result.stderr.splitlines()[:8]) if result.returncode else ""


def generate_protos(tree, generated):
    """Writes C++ from the .proto files, as headers may include it; returns errors."""
    out = generated / "proto"
    out.mkdir(parents=True, exist_ok=True)
    protos = [path for path in tree.with_suffix((".proto",)) if path.startswith("proto/")]
    if not protos:
        return ""
    plugin = subprocess.run(["which", "grpc_cpp_plugin"], capture_output=True, text=True,
                            check=True).stdout.strip()
    result = subprocess.run(
        ["protoc", "-Iproto", f"--cpp_out={out}", f"--grpc_out={out}",
         f"--plugin=protoc-gen-grpc={plugin}", *protos],
        cwd=tree.root, capture_output=True, text=True, check=False)
    return result.stderr.strip() if result.returncode else ""
