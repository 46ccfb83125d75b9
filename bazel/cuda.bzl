"""Rules for code that needs the CUDA toolkit: no target at all where it is not installed.

`tandem_cuda_kernels` makes two libraries of the same sources: NAME, compiled by nvcc, and
NAME_emulated, compiled by the C++ compiler against the emulated toolkit of tools/cuda_emulation,
which is there on every machine.
"""

load("//bazel:tandem.bzl", "tandem_cc_binary", "tandem_cc_library", "tandem_cc_test")
load("@cuda//:defs.bzl", "CUDA_ROOT", "HAVE_CUDA")

# Target architectures, as --define=cuda_archs=NAME,NAME or all names them; without, one, so that
# everyday builds are fast. Machine code runs on GPUs of its major number and no smaller minor one;
# later GPUs compile PTX when they load it, which takes minutes.
_ARCHS = {
    "80": "arch=compute_80,code=sm_80",
    "90a": "arch=compute_90a,code=sm_90a",
    "100": "arch=compute_100,code=sm_100",
    "120": "arch=compute_120,code=sm_120",
    "ptx": "arch=compute_90,code=compute_90",
}
_EVERYDAY = "90a"

def _arch_flags(define):
    names = sorted(_ARCHS) if define == "all" else define.split(",")
    for name in names:
        if name not in _ARCHS:
            fail("--define=cuda_archs=%s: no '%s', there are: all, %s" %
                 (define, name, ", ".join(_ARCHS)))
    return ["-gencode=" + _ARCHS[name] for name in names]

# Warnings off for CUDA C++: unknown pragmas and shadowed names. Misaligned accesses are errors of a
# kernel (tools/cuda_emulation/alignment.cc).
EMULATED_COPTS = [
    "-Wno-unknown-pragmas",
    "-Wno-shadow",
    "-fsanitize=alignment",
    "-fno-sanitize-recover=alignment",
]

_EMULATED_TOOLKIT = "//tools/cuda_emulation:toolkit"

# Parts of the CUDA backend are visible to each other; targets for others declare it.
_BACKEND = ["//kernels/cuda:__subpackages__"]

def tandem_cuda_library(visibility = _BACKEND, **kwargs):
    if HAVE_CUDA:
        tandem_cc_library(visibility = visibility, **kwargs)

def tandem_cuda_binary(**kwargs):
    if HAVE_CUDA:
        tandem_cc_binary(**kwargs)

def tandem_cuda_test(**kwargs):
    if HAVE_CUDA:
        tandem_cc_test(**kwargs)

def _nvcc_objects_impl(ctx):
    headers = []
    flags = []
    for dep in ctx.attr.deps:
        context = dep[CcInfo].compilation_context
        headers.append(context.headers)
        flags += ["-D" + d for d in context.defines.to_list()]
        folders = context.system_includes.to_list() + context.includes.to_list()

        # nvcc knows the toolkit's own headers.
        flags += ["-isystem=" + f for f in folders if "external/cuda" not in f]
    archs = _arch_flags(ctx.var.get("cuda_archs", _EVERYDAY))
    objects = []
    for source in ctx.files.srcs:
        out = ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, source.basename[:-3]))
        ctx.actions.run(
            outputs = [out],
            inputs = depset(ctx.files.srcs + ctx.files.hdrs, transitive = headers),
            executable = CUDA_ROOT + "/bin/nvcc",
            arguments = ["-c", "-x", "cu", source.path, "-o", out.path] + archs +
                        ctx.attr.flags + ["-I.", "-I" + ctx.genfiles_dir.path] + flags,
            mnemonic = "Nvcc",
            use_default_shell_env = True,
        )
        objects.append(out)
    return [DefaultInfo(files = depset(objects))]

_nvcc_objects = rule(
    implementation = _nvcc_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "flags": attr.string_list(),
    },
)

_NVCC_FLAGS = [
    "-std=c++20",
    "-O3",
    "-DNDEBUG",
    "--expt-relaxed-constexpr",
    "-Werror",
    "all-warnings",
    "-Xcompiler=-Wall,-Wno-unused-function,-march=x86-64-v2",
    "-lineinfo",
]

def _emulated(label):
    name = label.split(":")[-1].split("/")[-1]
    return (label if ":" in label else label + ":" + name) + "_emulated"

def tandem_cuda_kernels(name, srcs = [], hdrs = [], deps = [], cuda_deps = [], toolkit_srcs = [], toolkit_deps = [], emulated_srcs = [], visibility = _BACKEND, **kwargs):
    """Sources (.cu and .cc) as NAME for GPUs and NAME_emulated for the emulation.

    Args:
      name: the name.
      srcs: .cu, .cc and private .h files.
      hdrs: public headers.
      deps: libraries that both need.
      cuda_deps: libraries made by this macro; the emulated one takes their emulated form.
      toolkit_srcs: .cc files of NAME alone.
      toolkit_deps: parts of the toolkit, such as @cuda//:cublaslt, that only NAME needs.
      emulated_srcs: .cc files of NAME_emulated alone.
      visibility: of both.
      **kwargs: as tandem_cc_library.
    """
    kernels = [s for s in srcs if s.endswith(".cu")]
    others = [s for s in srcs if not s.endswith(".cu")]
    private = [s for s in others if s.endswith(".h")]
    if HAVE_CUDA:
        real_deps = deps + cuda_deps + toolkit_deps + ["@cuda//:cudart"]
        objects = []
        if kernels:
            _nvcc_objects(
                name = name + "_objects",
                srcs = kernels,
                hdrs = hdrs + private,
                flags = _NVCC_FLAGS,
                deps = real_deps,
            )
            objects = [":" + name + "_objects"]
        tandem_cc_library(
            name = name,
            srcs = others + toolkit_srcs + objects,
            hdrs = hdrs,
            visibility = visibility,
            deps = real_deps,
            **kwargs
        )
    wrappers = []
    for kernel in kernels:
        wrapper = "%s/%s_emulated.cc" % (name, kernel[:-3].replace("/", "_"))
        native.genrule(
            name = wrapper.replace("/", "_").replace(".cc", "_source"),
            outs = [wrapper],
            cmd = "echo '#include \"%s/%s\"' > $@" % (native.package_name(), kernel),
        )
        wrappers.append(wrapper)
    tandem_cc_library(
        name = name + "_emulated",
        srcs = others + emulated_srcs + wrappers,
        hdrs = hdrs,
        textual_hdrs = kernels,
        copts = EMULATED_COPTS,
        visibility = visibility,
        deps = deps + [_emulated(d) for d in cuda_deps] + [_EMULATED_TOOLKIT],
        **kwargs
    )
