"""Runs a compiler over files, each alone. A file that passed is not tried again until its text, what
it includes, or the command changes."""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess

import include_rules

_FLAGS = ["-std=c++20", "-march=x86-64-v2"]
# What needs CUDA is compiled against the emulated toolkit, which every machine has.
_CUDA = re.compile(r"^(tests/)?kernels/cuda/")
_CUDA_FLAGS = ["-DTANDEM_CUDA_EMULATION", "-Itools/cuda_emulation/toolkit"]

# The emulation of AVX-512. Without optimisation some of the compiler's intrinsics are macros.
_SIMD = re.compile(r"^tools/simd_emulation/")
_SIMD_FLAGS = ["-O1", "-mavx2", "-mfma", "-mf16c", "-Itools/simd_emulation"]


def failures(tree, name, paths, command, cache_folder=None):
    """Yields (path, output) of each of `paths` that `command(path, flags)` fails on.

    `name` tells this check's results from others'; `cache_folder` is where they are kept.
    """
    cache = pathlib.Path(cache_folder or tree.root / ".cache" / "lint")
    generated = cache / "generated"
    errors = generate_protos(tree, generated)
    if errors:
        yield "proto", errors
        return
    passed_file = cache / f"{name}_passed"
    passed = set(passed_file.read_text().split()) if passed_file.exists() else set()
    commands = {path: command(path, _flags(tree, path, generated)) for path in paths}
    keys = {path: key(tree, path, commands[path]) for path in paths}
    todo = [path for path in paths if keys[path] not in passed]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path, output in pool.map(lambda path: (path, _run(tree, commands[path])), todo):
            if output:
                yield path, output
            else:
                passed.add(keys[path])
    passed_file.write_text("\n".join(sorted(passed & set(keys.values()))) + "\n")


def key(tree, path, command):
    """A digest of the file, all of ours that it includes, the .proto files and the command."""
    digest = hashlib.sha256(" ".join(command).encode())
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


def _flags(tree, path, generated):
    folders = [tree.root, generated, generated / "proto"]
    return (_FLAGS + (_CUDA_FLAGS if _CUDA.match(path) else []) +
            (_SIMD_FLAGS if _SIMD.match(path) else []) +
            [f"-I{folder}" for folder in folders])


def _run(tree, command):
    """What the command wrote if it failed, else nothing."""
    result = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
    return (result.stdout + result.stderr or "failed") if result.returncode else ""


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
