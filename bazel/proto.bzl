"""C++ Protobuf and gRPC code from .proto files, with Debian's protoc and grpc_cpp_plugin."""

# .proto files are named from here, as in `import "tandem/v1/generation.proto";`.
_ROOT = "proto"

def tandem_proto_library(name, srcs, deps = [], visibility = [], alwayslink = False):
    """A cc_library of the messages and services in `srcs`.

    Include it as "proto/tandem/v1/<file>.pb.h" and "proto/tandem/v1/<file>.grpc.pb.h".

    Args:
      name: the cc_library's name.
      srcs: .proto files of this package, which lies in or under proto/.
      deps: other tandem_proto_library targets that `srcs` import.
      visibility: as everywhere.
      alwayslink: also files of which no code uses a message, so that reflection finds them.
    """
    package = native.package_name()
    if package != _ROOT and not package.startswith(_ROOT + "/"):
        fail("tandem_proto_library belongs in or under %s/, not in %s" % (_ROOT, package))
    stems = []
    for src in srcs:
        if not src.endswith(".proto"):
            fail("%s is not a .proto file" % src)
        stems.append(src[:-len(".proto")])

    native.filegroup(
        name = name + "_proto_files",
        srcs = srcs + [dep + "_proto_files" for dep in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_generate",
        srcs = [name + "_proto_files"],
        outs = [stem + ext for stem in stems for ext in _EXTENSIONS],
        cmd = " ".join([
            "protoc -I" + _ROOT,
            "--cpp_out=$(BINDIR)/" + _ROOT,
            "--grpc_out=$(BINDIR)/" + _ROOT,
            "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin)",
        ] + ["%s/%s" % (package, src) for src in srcs]) +
              # Our warnings are not for generated headers.
              "".join([
                  " && sed -i '1i #pragma GCC system_header' $(RULEDIR)/%s%s" % (stem, ext)
                  for stem in stems
                  for ext in _EXTENSIONS
                  if ext.endswith(".h")
              ]),
        message = "Generating C++ from",
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [stem + ext for stem in stems for ext in _EXTENSIONS if ext.endswith(".cc")],
        hdrs = [stem + ext for stem in stems for ext in _EXTENSIONS if ext.endswith(".h")],
        copts = ["-w"],
        # The generated code includes its own headers as "tandem/v1/<file>.pb.h".
        strip_include_prefix = "/" + _ROOT,
        visibility = visibility,
        alwayslink = alwayslink,
        deps = deps + [
            "@grpc//:grpc++",
            "@protobuf",
        ],
    )

_EXTENSIONS = [
    ".pb.h",
    ".pb.cc",
    ".grpc.pb.h",
    ".grpc.pb.cc",
]
