"""The include rules of docs/architecture.md as a table, checked on every #include line."""

import re

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Folder -> the first-party folders it may include besides itself. The longest matching prefix of a
# file's path decides. Folders that are not listed (tests, tools) may include anything.
MAY_INCLUDE = {
    "common/": ("common/",),
    "kernels/": ("kernels/", "common/base/", "common/config/device_config.h", "common/tensor/"),
    # The emulation of AVX-512 says what its processor has.
    "kernels/cpu/isa": ("kernels/", "tools/simd_emulation/"),
    # The emulation provides headers of the toolkit's names.
    "kernels/cuda/": ("kernels/", "common/base/", "common/tensor/", "tools/cuda_emulation/"),
    "worker/": ("worker/", "kernels/", "common/"),
    "coordinator/": ("coordinator/", "common/"),
    # They never look upward at the engine, the API or the cluster.
    "coordinator/kvcache/": ("coordinator/kvcache/", "common/"),
    "coordinator/scheduler/": ("coordinator/scheduler/", "coordinator/kvcache/", "common/"),
    # A file is refused where a server refuses it, by the same reading of it.
    "client/": ("client/", "common/", "coordinator/startup/model_file.h"),
    # `tandem bench` and `tandem profile` run a cluster without a server.
    "client/bench": ("client/", "common/", "coordinator/"),
    "client/profile": ("client/", "common/", "coordinator/"),
}

# Generated code, Protobuf and gRPC: only at edges and in codecs.
EDGES = re.compile(r"""^(
    client/ | coordinator/(api|cluster|listener)/ | common/rpc/ | coordinator/[^/]*$ | worker/control/ | worker/[^/]*$ |
    (common|worker|coordinator)/(.*/)?[^/]*(codec|grpc|proto)[^/]*$ | tests/ | tools/
)""", re.VERBOSE)

# Restricted third-party headers: (header pattern, allowed includers, reason).
HOMES = [
    (re.compile(r"^(grpc|grpcpp|grpc\+\+|google/protobuf)/|\.pb\.h$"), EDGES,
     "Protobuf and gRPC belong at edges and in codecs only"),
    (re.compile(r"^(cuda|cublas|curand|cub/|thrust/|cooperative_groups|mma\.h)"),
     re.compile(r"^((kernels|tests/kernels)/cuda|(tests/)?tools/cuda_emulation)/"),
     "CUDA headers belong in kernels/cuda and its emulation only"),
    (re.compile(r"^nccl\.h$"),
     re.compile(r"^((tests/)?worker/comm|tools/cuda_emulation)/nccl"),
     "NCCL belongs in its communicator, its emulation and their tests only"),
    (re.compile(r"^gloo/"), re.compile(r"^worker/comm/gloo"),
     "Gloo belongs in its communicator only"),
    (re.compile(r"^(pcre2\.h|utf8proc\.h)$"), re.compile(r"^(tests/)?common/tokenizer/|^tests/coordinator/grammar/regex_test"),
     "PCRE2 and utf8proc belong in common/tokenizer, and as a reference in the test of regular expressions"),
    (re.compile(r"^curl/"), re.compile(r"^(tests/)?common/hub/|^tests/load/"),
     "libcurl belongs in common/hub and the load harness: workers do without"),
    (re.compile(r"^openssl/"), re.compile(r"^(tests/)?(common/(hub|net|tls)|coordinator/(api/auth|kvcache))/|^tests/load/"),
     "OpenSSL belongs in common/hub, common/net, common/tls, coordinator/api/auth and kvcache, and the load harness"),
    (re.compile(r"^CLI/"), re.compile(r"^common/cli/[^/]*\.cc$|^tools/"),
     "command lines are common/cli's, which parses them"),
    (re.compile(r"^(gtest|gmock|benchmark)/"), re.compile(r"^(tests|tools)/|_bench(mark)?\.cc$"),
     "GoogleTest and Google Benchmark belong in tests only"),
]

FIRST_PARTY = ("bazel/", "client/", "common/", "coordinator/", "kernels/", "proto/", "tests/",
               "tools/", "worker/")

# Libraries that may be included with quotes, as Google's style has it.
_THIRD_PARTY = ("absl/", "benchmark/", "gmock/", "google/protobuf/", "grpcpp/", "gtest/")


def includes(text):
    """Yields (line number, opening character, header) of each #include."""
    for number, line in enumerate(text.splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def check(tree):
    """Yields "path:line: message"."""
    known = set(tree.paths)
    for path in tree.with_suffix((".h", ".cc", ".cu", ".cuh")):
        for number, opening, header in includes(tree.text(path)):
            for message in check_include(path, opening, header, known):
                yield f"{path}:{number}: {message}"


def check_include(path, opening, header, known):
    """Yields the problems of `path` including `header`; `known` holds the tree's files."""
    for pattern, home, why in HOMES:
        if pattern.search(header) and not home.search(path):
            yield f"must not include {header}: {why}"
            return
    first_party = header.startswith(FIRST_PARTY)
    if opening == "<" and first_party:
        yield f'include our own headers with quotes: "{header}"'
    if opening == '"' and not first_party and not header.startswith(_THIRD_PARTY):
        yield f'"{header}" is not a path from the root of the repository; use <> for system headers'
    if not first_party:
        return
    if header not in known and not header.endswith(".pb.h"):
        yield f"{header} does not exist"
    if header.startswith("proto/"):
        return
    allowed = _allowed(path)
    if allowed is not None and not header.startswith(allowed):
        yield f"must not include {header}: {path.split('/')[0]} may include {', '.join(allowed)}"


def _allowed(path):
    prefixes = [prefix for prefix in MAY_INCLUDE if path.startswith(prefix)]
    return MAY_INCLUDE[max(prefixes, key=len)] if prefixes else None
