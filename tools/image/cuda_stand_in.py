"""A stand-in for NVIDIA's package repository, where it can't be reached: packages of its names, made of this machine's CUDA libraries.

With it Containerfile.cuda's steps run as they are written. What it can't show is what NVIDIA's own packages do.
"""

import glob
import hashlib
import os
import shutil
import subprocess

KEYRING = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb"
_CUDA = "/usr/local/cuda-13.0/lib64"
# Package: (folder in the image, libraries).
_PACKAGES = {
    "cuda-cudart-13-0": (_CUDA, ("libcudart.so.13",)),
    "libcublas-13-0": (_CUDA, ("libcublas.so.13", "libcublasLt.so.13")),
    "libnccl2": ("/usr/lib/x86_64-linux-gnu", ("libnccl.so.2",)),
}
_MOUNT = "/srv"  # where the image under construction sees the repository


def make(folder):
    """Builder's options: the repository's mount, and the package that adds it to apt's sources in the place of NVIDIA's."""
    repository = os.path.join(folder, "repository")
    os.makedirs(repository)
    with open(os.path.join(repository, "Packages"), "w", encoding="utf-8") as index:
        for name, (target, libraries) in _PACKAGES.items():
            tree = os.path.join(folder, name)
            os.makedirs(tree + target)
            for library in libraries:
                shutil.copyfile(_library(library), f"{tree}{target}/{library}")
            index.write(_entry(name, _package(name, tree, repository)))
    keyring = os.path.join(folder, "keyring")
    os.makedirs(keyring + "/etc/apt/sources.list.d")
    with open(keyring + "/etc/apt/sources.list.d/cuda-debian12-x86_64.list", "w", encoding="utf-8") as source:
        source.write(f"deb [trusted=yes] file:{_MOUNT} ./\n")
    return {"stand_ins": {KEYRING: _package("cuda-keyring", keyring, folder)}, "mounts": [(repository, _MOUNT)]}


def _library(name):
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = [path for folder in ("lib64", "lib") for path in glob.glob(f"{home}/{folder}/{name}")]
    if not found:
        raise FileNotFoundError(f"no {name} in {home}: the stand-in needs the CUDA toolkit")
    return found[0]


def _package(name, tree, folder):
    """The path of a .deb of what is in `tree`, which it removes."""
    path = os.path.join(folder, name + ".deb")
    os.makedirs(tree + "/DEBIAN")
    with open(tree + "/DEBIAN/control", "w", encoding="utf-8") as control:
        control.write(_control(name))
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, path], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return path


def _control(name):
    return f"Package: {name}\nVersion: 13.0-0standin\nArchitecture: amd64\nMaintainer: none\nDescription: a stand-in\n"


def _entry(name, path):
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{_control(name)}Filename: ./{name}.deb\nSize: {os.path.getsize(path)}\nSHA256: {digest}\n\n"
