"""Executes a Containerfile's instructions in a Debian root: what a container builder does, without one.

The base is a folder that debootstrap made. An overlay takes what the last stage's instructions write, so the image's layer is a folder
of its own. Stages before it are folders of files. Mounts belong to the mount namespace of this process (`unshare --mount`).
"""

import glob
import os
import shlex
import shutil
import subprocess
import urllib.request

import containerfile
import layer

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEADLINE_S = 1200  # of one instruction
# What Debian's slim images leave out, now and of packages that are installed later.
_SLIM = ("doc", "groff", "info", "linda", "lintian", "locale", "man")


def make_base(folder):
    """A minimal Debian 12 in `folder`, with the package sources of this machine."""
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder], check=True, stdout=subprocess.DEVNULL)
    os.remove(folder + "/etc/apt/sources.list")
    for sources in glob.glob("/etc/apt/sources.list*"):
        subprocess.run(["cp", "-aL", sources, folder + "/etc/apt/"], check=True)
    open(folder + "/etc/resolv.conf", "w", encoding="utf-8").close()  # a mount point: the image keeps it empty
    with open(folder + "/etc/dpkg/dpkg.cfg.d/docker", "w", encoding="utf-8") as rules:
        for name in _SLIM:
            rules.write(f"path-exclude /usr/share/{name}/*\n")
            subprocess.run(["find", f"{folder}/usr/share/{name}", "-mindepth", "1", "-delete"], stderr=subprocess.DEVNULL)
        rules.write("path-include /usr/share/doc/*/copyright\n")
    shutil.rmtree(folder + "/var/cache/apt/archives")
    shutil.rmtree(folder + "/var/lib/apt/lists")


class Builder:
    """`root` is the image's root while it is built, `layer` what was added to the base, `taken_in` the bytes of files that each
    instruction wrote: a container image keeps them all, also what a later one deletes. The other members are what the image says of
    its containers."""

    def __init__(self, base, work, context, stand_ins=None, mounts=()):
        """`work`: an empty folder. `context`: where ADD and COPY read. `stand_ins`: files by URL, read instead of it.
        `mounts`: pairs of a folder here and one in the image, there while RUN runs."""
        self.base, self.context, self.stand_ins, self.mounts = base, context, stand_ins or {}, mounts
        self.root, self.layer = os.path.join(work, "root"), os.path.join(work, "layer")
        self.stages, self.target = os.path.join(work, "stages"), self.root  # of the stage that is built
        self.taken_in = []
        self.arguments, self.environment = {}, {"PATH": PATH}
        self.user, self.entrypoint, self.command, self.stop_signal = "0:0", [], [], "SIGTERM"
        for folder in (self.root, self.layer, os.path.join(work, "overlay")):
            os.makedirs(folder)
        subprocess.run(["mount", "-t", "overlay", "-o",
                        f"lowerdir={base},upperdir={self.layer},workdir={work}/overlay", "overlay", self.root], check=True)

    def execute(self, instruction):
        """One instruction. Raises subprocess.CalledProcessError, OSError or containerfile.Malformed."""
        before = layer.contents(self.layer)
        getattr(self, "_" + instruction.name.lower())(instruction)
        self.taken_in.append(layer.bytes_written(before, layer.contents(self.layer)))

    def _substituted(self, instruction):
        return containerfile.substitute(instruction.text, {**self.arguments, **self.environment})

    def _from(self, instruction):
        image, alias = containerfile.stage(instruction)
        self.arguments = {}
        if image == "scratch" and alias:
            self.target = os.path.join(self.stages, alias)
            os.makedirs(self.target)
            return
        self.target = self.root
        name, _, tag = image.partition(":")
        if name != "debian" or not tag.startswith("12.") or not tag.endswith("-slim"):
            raise containerfile.Malformed(f"FROM {instruction.text}: only debian:12.N-slim, and scratch AS NAME, can be imitated")

    def _arg(self, instruction):
        name, _, value = instruction.text.partition("=")
        self.arguments[name] = value

    def _env(self, instruction):
        for word in shlex.split(self._substituted(instruction)):
            name, _, value = word.partition("=")
            self.environment[name] = value

    def _add(self, instruction):
        [source, target] = self._substituted(instruction).split()
        folder = self.target + target
        if "://" in source:
            self._download(source, os.path.join(folder, os.path.basename(source)))
        elif source.endswith(".tar.gz"):
            subprocess.run(["tar", "-C", folder, "-xzf", os.path.join(self.context, source)], check=True)
        else:
            raise containerfile.Malformed(f"line {instruction.line}: ADD is for archives and URLs, COPY for files")

    def _download(self, url, path):
        if url in self.stand_ins:
            shutil.copyfile(self.stand_ins[url], path)
        else:
            with urllib.request.urlopen(url, timeout=30) as answer, open(path, "wb") as file:
                shutil.copyfileobj(answer, file)
        os.chmod(path, 0o600)  # as builders leave what they download

    def _copy(self, instruction):
        [source, target] = self._substituted(instruction).split()
        path = self.target + target + (os.path.basename(source) if target.endswith("/") else "")
        shutil.copy(os.path.join(self.context, source), path)
        if "chmod" in instruction.flags:
            os.chmod(path, int(instruction.flags["chmod"], 8))

    def _run(self, instruction):
        if self.user != "0:0" or self.target != self.root:
            raise containerfile.Malformed(f"line {instruction.line}: RUN after USER, or from scratch, can't be imitated")
        root = shlex.quote(self.root)
        script = [f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev",
                  f"mount --bind /etc/resolv.conf {root}/etc/resolv.conf"]
        script += [f"mount --bind {shlex.quote(here)} {root}{there}" for here, there in self.mounts]
        if "mount" in instruction.flags:
            here, there = self._mounted(instruction)
            script += [f"mount --bind {shlex.quote(here)} {root}{there}", f"mount -o remount,bind,ro {root}{there}"]
        variables = [f"{name}={value}" for name, value in {**self.arguments, **self.environment}.items()]
        words = ["chroot", self.root, "env", "-i", *variables, *instruction.words()]
        script.append("exec " + shlex.join(words))
        subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", "\n".join(script)],
                       check=True, stdin=subprocess.DEVNULL, timeout=DEADLINE_S)

    def _mounted(self, instruction):
        """The folder of a RUN's --mount, and where it is mounted."""
        options = dict(part.partition("=")[::2] for part in instruction.flags["mount"].split(","))
        if set(options) != {"type", "from", "target"} or options["type"] != "bind":
            raise containerfile.Malformed(f"line {instruction.line}: only --mount=type=bind,from=STAGE,target=FOLDER can be imitated")
        return os.path.join(self.stages, options["from"]), options["target"]

    def _user(self, instruction):
        self.user = self._substituted(instruction)

    def _expose(self, instruction):
        pass  # a note for the reader: it opens nothing

    def _stopsignal(self, instruction):
        self.stop_signal = instruction.text

    def _entrypoint(self, instruction):
        self.entrypoint = instruction.words()

    def _cmd(self, instruction):
        self.command = instruction.words()
