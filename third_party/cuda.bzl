"""The CUDA toolkit as a repository, found at $CUDA_HOME or /usr/local/cuda.

Without a toolkit the repository still loads: `HAVE_CUDA` in its defs.bzl is False and no target
is made from it, so a machine without CUDA builds and tests everything else.
"""

_LIBRARIES = {
    "cudart": "libcudart.so",
    "cublas": "libcublas.so",
    "cublaslt": "libcublasLt.so",
    "nccl": "libnccl.so",
}

_HEADERS = [
    "cuda_runtime.h",
    "cublasLt.h",
    "nccl.h",
]

def _find(root, folders, name):
    for folder in folders:
        path = root.get_child(folder).get_child(name)
        if path.exists:
            return path
    return None

def _cuda_toolkit_impl(ctx):
    root = ctx.path(ctx.os.environ.get("CUDA_HOME") or "/usr/local/cuda")
    found = root.exists and root.get_child("bin").get_child("nvcc").exists
    for header in _HEADERS:
        found = found and _find(root, ["include"], header) != None
    build = ['package(default_visibility = ["//visibility:public"])']
    if found:
        libdir = None
        for folder in ["lib64", "lib"]:
            if libdir == None and _find(root, [folder], _LIBRARIES["cudart"]):
                libdir = root.get_child(folder)
        for library in _LIBRARIES.values():
            found = found and libdir != None and libdir.get_child(library).exists
    if not found and ctx.os.environ.get("TANDEM_REQUIRE_CUDA"):
        fail("no CUDA toolkit with cudart, cuBLASLt and NCCL at %s (set CUDA_HOME)" % root)
    if found:
        ctx.symlink(root.get_child("include"), "include")

        # Some of the toolkit's headers have no extension, hence the wide glob.
        build.append('cc_library(name = "headers", hdrs = glob(["include/**"]), ' +
                     'includes = ["include"])')
        for name, library in _LIBRARIES.items():
            build.append(('cc_library(name = "%s", linkopts = ["-L%s", "-Wl,-rpath,%s", "-l%s"], ' +
                          'deps = [":headers"])') % (name, libdir, libdir, library[3:-3]))
    ctx.file("BUILD.bazel", "\n".join(build) + "\n")
    ctx.file("defs.bzl", '"""Whether this machine has the CUDA toolkit."""\n' +
                         "HAVE_CUDA = %s\nCUDA_ROOT = \"%s\"\n" % (found, root if found else ""))

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    configure = True,
    environ = ["CUDA_HOME", "TANDEM_REQUIRE_CUDA"],
    local = True,
)
