"""A secret as the kubelet mounts it: each file is a link through `..data`, which one rename exchanges."""

import os


class SecretVolume:
    """`folder` is what a pod mounts; files in it belong to root and the pod's group, with `mode`."""

    def __init__(self, folder, files, group, mode):
        self.folder, self.group, self.mode, self.versions = folder, group, mode, 0
        os.makedirs(folder)
        self.replace(files)
        for name in files:
            os.symlink(os.path.join("..data", name), os.path.join(folder, name))

    def replace(self, files):
        """Other contents of the same files, from one instant to the next."""
        self.versions += 1
        version = f"..version_{self.versions}"
        os.makedirs(os.path.join(self.folder, version))
        for name, content in files.items():
            path = os.path.join(self.folder, version, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(content)
            os.chown(path, 0, self.group)
            os.chmod(path, self.mode)
        link = os.path.join(self.folder, "..data_tmp")
        os.symlink(version, link)
        os.rename(link, os.path.join(self.folder, "..data"))
