"""The rules that Tandem's BUILD files use: cc_* with our warnings, and proto with gRPC."""

load("//bazel:proto.bzl", _tandem_proto_library = "tandem_proto_library")

# On our code only, not on system include paths or protoc's output.
_COPTS = [
    "-Wall",
    "-Wextra",
    "-Wnon-virtual-dtor",
    "-Wshadow",
    "-Wvla",
] + select({
    # gcc has false positives on instrumented code.
    "//bazel:sanitizer": [],
    "//conditions:default": ["-Werror"],
})

# Private by default, except to the tests, which mirror the tree in separate packages.
_TESTS = ["//tests:__subpackages__"]

def tandem_proto_library(visibility = [], **kwargs):
    _tandem_proto_library(visibility = visibility + _TESTS, **kwargs)

def tandem_cc_library(name, copts = [], tags = [], visibility = [], **kwargs):
    """A library. `copts` come after ours: SIMD files add their own -mavx2 and the like."""
    if native.package_name().startswith("tests"):
        # Not for //tests/...: asked for by itself, a library is built as a shared one, too, and all
        # that it depends on a second time, position-independent. Tests build what they need.
        tags = tags + ["manual"]
    native.cc_library(
        name = name,
        copts = _COPTS + copts,
        tags = tags,
        visibility = visibility + _TESTS,
        **kwargs
    )

def tandem_cc_binary(name, copts = [], visibility = [], **kwargs):
    """A program."""
    native.cc_binary(
        name = name,
        copts = _COPTS + copts,
        visibility = visibility + _TESTS,
        **kwargs
    )

def tandem_cc_benchmark(name, deps = [], tags = [], **kwargs):
    """A Google Benchmark program; `./dev bench` runs them all."""
    tandem_cc_binary(
        name = name,
        tags = tags + ["bench"],
        deps = deps + ["@benchmark//:benchmark_main"],
        **kwargs
    )

def _with_suppressions(data):
    """Tests run programs; a program built for TSan reads its suppressions at start."""
    return data + select({
        "//bazel:tsan": ["//bazel:tsan.supp"],
        "//conditions:default": [],
    })

def tandem_sh_test(name, data = [], **kwargs):
    """A shell script that runs programs of ours from the root of its runfiles."""
    native.sh_test(name = name, data = _with_suppressions(data), **kwargs)

def tandem_cc_test(name, copts = [], deps = [], data = [], size = "small", main = True, **kwargs):
    """A GoogleTest program. `main = False` where the test brings its own main()."""
    gtest = "@googletest//:gtest_main" if main else "@googletest//:gtest"
    native.cc_test(
        name = name,
        copts = _COPTS + copts,
        data = _with_suppressions(data),
        linkstatic = True,
        size = size,
        visibility = _TESTS,
        deps = deps if gtest in deps else deps + [gtest],
        **kwargs
    )

def tandem_py_test(name, src, data = [], size = "small", **kwargs):
    """A file of Python unittest cases, run with Debian's python3 from the root of its runfiles."""
    native.sh_test(
        name = name,
        srcs = ["//tools/dev:py_test.sh"],
        args = ["$(location %s)" % src],
        data = data + [
            src,
            "//tools/dev:py_test.py",
        ],
        size = size,
        **kwargs
    )
