"""Python Protobuf and gRPC modules from .proto files, with Debian's protoc and grpc_python_plugin."""

def tandem_py_proto(name, src, root, visibility = []):
    """The modules of one .proto file: <stem>_pb2.py and <stem>_pb2_grpc.py under python/.

    Args:
      name: the target's name.
      src: the .proto file, in or under `root`.
      root: the folder, in this package, that module names count from; "." is this package.
      visibility: as everywhere.
    """
    package = native.package_name()
    folder = package if root == "." else package + "/" + root
    module = src if root == "." else src[len(root) + 1:]
    stem = "python/" + module[:-len(".proto")]
    native.genrule(
        name = name,
        srcs = [src],
        outs = [stem + "_pb2.py", stem + "_pb2_grpc.py"],
        cmd = " ".join([
            "protoc -I" + folder,
            "--python_out=$(BINDIR)/%s/python" % package,
            "--grpc_out=$(BINDIR)/%s/python" % package,
            "--plugin=protoc-gen-grpc=$$(command -v grpc_python_plugin)",
            module,
        ]),
        message = "Generating Python from",
        visibility = visibility + ["//tests:__subpackages__"],
    )
