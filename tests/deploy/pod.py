"""A pod of a rendered manifest as processes: its own mount, network and pid namespaces, its volumes, user and probes.

What the kubelet does is done here in small: the image is laid over the machine's own root, which is read-only inside; emptyDir volumes
are tmpfs, claims and secrets are folders; a container runs as the manifest's user without capabilities.
"""

import ctypes
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time

import secret_volume

DEADLINE = 120  # seconds; of every wait
_CLONE_NEWNET = 0x40000000  # linux/sched.h

os.environ["PATH"] += ":/usr/sbin:/sbin"  # of chroot and ip


def missing_rights():
    """Why pods can't run here, or None."""
    tools = [tool for tool in ("unshare", "nsenter", "setpriv", "chroot", "ip", "mount") if shutil.which(tool) is None]
    if tools:
        return f"not installed: {', '.join(tools)}"
    script = "mount --make-rprivate / && d=$(mktemp -d) && mount -t tmpfs tmpfs $d && mkdir $d/u $d/w $d/m && " \
             "mount -t overlay -o lowerdir=/usr,upperdir=$d/u,workdir=$d/w overlay $d/m"
    done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", script],
                          capture_output=True, text=True, timeout=60)
    return None if done.returncode == 0 else f"no namespaces or overlay mounts: {done.stderr.strip()}"


def _enter(network):
    """Takes this thread to another network namespace."""
    if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Pod:
    """The processes of one pod. Use as a context manager: its end kills what is left."""

    def __init__(self, spec, image, claims, work, secrets=None):
        """`image`: a folder laid over /usr. `claims`: folders by name. `work`: an empty folder. `secrets`: by name their
        contents by file; the member of that name has their volumes, by name."""
        self.spec, self.image, self.claims, self.work = spec, image, claims, work
        self.root = os.path.join(work, "root")
        self.containers = {}
        group = spec["securityContext"]["fsGroup"]
        modes = {v["secret"]["secretName"]: v["secret"]["defaultMode"] for v in spec["volumes"] if "secret" in v}
        self.secrets = {name: secret_volume.SecretVolume(os.path.join(work, "secrets", name), files, group, modes[name])
                        for name, files in (secrets or {}).items()}

    def __enter__(self):
        os.makedirs(self.root)
        self.pause = subprocess.Popen(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-ec",
             self._setup() + "echo up; exec sleep infinity"],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        if self.pause.stdout.readline() != "up\n":
            raise AssertionError("the pod's namespaces could not be set up")
        with open(f"/proc/{self.pause.pid}/task/{self.pause.pid}/children", encoding="utf-8") as children:
            self.first = children.read().split()[0]
        return self

    def __exit__(self, *_):
        self.pause.kill()
        self.pause.wait()
        self.pause.stdout.close()
        for process in self.containers.values():
            process.wait()

    def _setup(self):
        """Shell lines: the root folder with the image over it, the network's loopback."""
        root = shlex.quote(self.root)
        lines = [
            "mount --make-rprivate /",
            f"mount -t tmpfs tmpfs {root}",
            f"cd {root}",
            "mkdir usr etc proc sys dev tmp over over/up over/work",
            "ln -s usr/bin usr/lib usr/lib64 usr/sbin .",
            f"mount -t overlay -o lowerdir={shlex.quote(self.image)}:/usr overlay usr",
            # Over it what volumes below /etc are mounted on.
            f"mount -t overlay -o lowerdir={shlex.quote(self._etc())}:/etc overlay etc",
            "mount --rbind /dev dev",
            "mount -t proc proc proc",
            # Without it a new thread's malloc leaves ENOENT in errno, which gRPC 1.51 takes for a failed connect.
            "mount --bind /sys sys",
            "mount -o remount,bind,ro sys",
            "ip link set lo up",
        ]
        mounts = {m["mountPath"]: m["name"] for c in self._all_containers() for m in c["volumeMounts"]}
        volumes = {v["name"]: v for v in self.spec["volumes"]}
        for path, name in sorted(mounts.items()):
            lines += [] if path.startswith("/etc/") else [f"mkdir -p .{path}"]
            lines.append(self._mount(volumes[name], path))
        lines += ["rmdir over/up over/work over", f"mount -o remount,ro {root}"]
        return "\n".join(lines) + "\n"

    def _mount(self, volume, path):
        group = self.spec["securityContext"]["fsGroup"]
        if "emptyDir" in volume:
            size = volume["emptyDir"]["sizeLimit"].replace("Gi", "g").replace("Mi", "m")
            return f"mount -t tmpfs -o size={size},mode=2770,gid={group} tmpfs .{path}"
        if "secret" in volume:
            folder, read_only = self.secrets[volume["secret"]["secretName"]].folder, True
        else:
            claim = volume["persistentVolumeClaim"]
            folder, read_only = self.claims[claim["claimName"]], claim.get("readOnly", False)
        bind = f"mount --bind {shlex.quote(folder)} .{path}"
        return f"{bind} && mount -o remount,bind,ro .{path}" if read_only else bind

    def _etc(self):
        """A folder with the mount points below /etc."""
        folder = os.path.join(self.work, "etc")
        os.makedirs(folder)
        for container in self._all_containers():
            for mount in container["volumeMounts"]:
                if mount["mountPath"].startswith("/etc/"):
                    os.makedirs(folder + mount["mountPath"].removeprefix("/etc"), exist_ok=True)
        return folder

    def _all_containers(self):
        return self.spec.get("initContainers", []) + self.spec["containers"]

    def _inside(self, command, container=None):
        """The command line that runs a command as a container does; `container`'s variables and read-only mounts are its own."""
        user = self.spec["securityContext"]
        mounts = [m["mountPath"] for m in container["volumeMounts"] if m.get("readOnly")] if container else []
        script = self._own_mounts(container) if container else ""
        script += "".join(f"mount -o remount,bind,ro {shlex.quote(self.root + path)}; " for path in mounts) + 'exec "$@"'
        # A secret that is optional is not there.
        variables = [f"{e['name']}={e['value']}" for e in container.get("env", []) if "value" in e] if container else []
        return ["nsenter", "-t", self.first, "-m", "-n", "-p", "--", "unshare", "--mount", "sh", "-ec", script, "sh",
                "chroot", self.root, "setpriv", f"--reuid={user['runAsUser']}", f"--regid={user['runAsGroup']}", f"--groups={user['fsGroup']}",
                "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--",
                "env", "-i", "PATH=/usr/bin:/bin", *variables, *command]

    def _own_mounts(self, container):
        """Shell lines: the container's volumes where other containers of the pod have others."""
        volumes = {v["name"]: v for v in self.spec["volumes"]}
        taken = {(m["mountPath"], m["name"]) for c in self._all_containers() for m in c["volumeMounts"]}
        paths = [path for path, _ in taken]
        return f"cd {shlex.quote(self.root)}; " + "".join(
            f"{self._mount(volumes[m['name']], m['mountPath'])}; "
            for m in container["volumeMounts"] if paths.count(m["mountPath"]) > 1)

    def start(self, name):
        """Starts a container; its output goes to a file of its name."""
        [container] = [c for c in self._all_containers() if c["name"] == name]
        with open(self.log_path(name), "wb") as log:
            self.containers[name] = subprocess.Popen(
                self._inside(container["command"] + container.get("args", []), container),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        return container

    def run_to_end(self, name):
        """Runs an init container; its exit code."""
        self.start(name)
        return self.containers.pop(name).wait(timeout=DEADLINE)

    def in_network(self, command):
        """The command line that runs a program of this machine in the pod's network, but with the machine's files."""
        return ["nsenter", "-t", self.first, "-n", "--", *command]

    def popen_in_network(self, command):
        """A program of this machine that only this pod can reach."""
        return subprocess.Popen(self.in_network(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def cable_to(self, other, own, theirs):
        """A cable to another pod, with an address for each end."""
        lines = [self.in_network(["ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", other.first])]
        for pod, address in ((self, own), (other, theirs)):
            lines += [pod.in_network(["ip", "address", "add", f"{address}/24", "dev", "cable"]),
                      pod.in_network(["ip", "link", "set", "cable", "up"])]
        for line in lines:
            subprocess.run(line, check=True, capture_output=True, timeout=DEADLINE)

    def connect(self, port):
        """A connection of this process to a port of the pod: a socket stays in the network in which it was made."""
        with open("/proc/thread-self/ns/net", encoding="ascii") as here, open(f"/proc/{self.first}/ns/net", encoding="ascii") as there:
            _enter(there)
            try:
                plain = socket.socket()
            finally:
                _enter(here)
        plain.settimeout(DEADLINE)
        try:
            plain.connect(("127.0.0.1", port))
        except OSError:
            plain.close()
            raise
        return plain

    def log_path(self, name):
        return os.path.join(self.work, name + ".log")

    def log(self, name):
        with open(self.log_path(name), encoding="utf-8", errors="replace") as text:
            return text.read()

    def run(self, command, deadline=DEADLINE):
        """A command in a container, as of `kubectl exec`."""
        return subprocess.run(self._inside(command), capture_output=True, text=True, timeout=deadline, check=False)

    def probe(self, probe):
        """Whether a probe succeeds now: a command, or Kubernetes' own call of the health service."""
        if "exec" in probe:
            try:
                return self.run(probe["exec"]["command"], deadline=probe["timeoutSeconds"]).returncode == 0
            except subprocess.TimeoutExpired:
                return False
        server = f"127.0.0.1:{probe['grpc']['port']}"
        return self.run(["tandem", "wait", "--server", server, "--service", probe["grpc"]["service"], "--timeout", f"{probe['timeoutSeconds']}s"]).returncode == 0

    def until(self, what, condition):
        """Waits for a condition while the containers run."""
        end = time.monotonic() + DEADLINE
        while not condition():
            for name, process in self.containers.items():
                if process.poll() is not None:
                    raise AssertionError(f"{name} ended with {process.returncode}: {self.log(name)}")
            if time.monotonic() > end:
                raise AssertionError(f"not within {DEADLINE} s: {what}")
            time.sleep(0.05)

    def pre_stop(self, name):
        """Runs a container's preStop hook to its end."""
        [container] = [c for c in self.spec["containers"] if c["name"] == name]
        done = self.run(container["lifecycle"]["preStop"]["exec"]["command"])
        if done.returncode != 0:
            raise AssertionError(f"preStop: {done.stderr}")

    def terminate(self, name):
        self.send(name, signal.SIGTERM)

    def send(self, name, number):
        """A signal to a container's first process, which nsenter has forked into the pid namespace."""
        pid = self.containers[name].pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
            os.kill(int(children.read().split()[0]), number)
