"""What an image's layer holds: packages, files of no package, programs."""

import os
import stat
import subprocess

COMPILERS = ("as", "cc", "c++", "clang", "g++", "gcc", "ld", "make", "nvcc")


def files(layer):
    """(path in the image, size) of every file and link; what was deleted from the base is left out."""
    found = []
    for folder, _, names in os.walk(layer):
        for name in names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if not stat.S_ISCHR(status.st_mode):  # an overlay's sign of a deleted file
                found.append((path[len(layer):], status.st_size if stat.S_ISREG(status.st_mode) else 0))
    return sorted(found)


def contents(layer):
    """{path: (size, inode, time of the last change)} of every file and link."""
    found = {}
    for path, size in files(layer):
        status = os.lstat(layer + path)
        found[path] = (size, status.st_ino, status.st_ctime_ns)
    return found


def bytes_written(before, after):
    """The bytes of files that are new, or not what they were."""
    return sum(facts[0] for path, facts in after.items() if before.get(path) != facts)


def owned_by_packages(root):
    """The paths that a package brought, as they are after /usr was merged."""
    lists = os.path.join(root, "var/lib/dpkg/info")
    owned = set()
    for name in os.listdir(lists):
        if name.endswith(".list"):
            with open(os.path.join(lists, name), encoding="utf-8") as text:
                owned.update(text.read().splitlines())
    return owned | {"/usr" + path for path in owned}


def packages(root):
    """Installed packages."""
    shown = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f=${Package}\n"],
                           check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(shown.split())


def compilers(root):
    """Tools of a compiler that the image has."""
    return [f"{folder}/{name}" for folder in ("/usr/bin", "/usr/local/bin", "/usr/local/cuda-13.0/bin") for name in COMPILERS
            if os.path.lexists(f"{root}{folder}/{name}")]
