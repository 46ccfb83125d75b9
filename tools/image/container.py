"""A container of a built image: its ENTRYPOINT as process 1 in namespaces of its own, as the image's user, without capabilities, on a
read-only root."""

import os
import shlex
import signal
import subprocess

DEADLINE_S = 120  # of every wait


class Container:
    """Use as a context manager: its end kills what is left."""

    def __init__(self, image, log_path):
        """`image`: the Builder that made it."""
        self.image, self.log_path = image, log_path

    def __enter__(self):
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-ec", self._script()],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "up\n":
            raise OSError("the container's namespaces could not be set up")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.kill(self.first_process(), signal.SIGKILL)  # --kill-child ended with setpriv, which changes the user
        self.process.wait(DEADLINE_S)
        self.process.stdout.close()

    def _script(self):
        root = shlex.quote(self.image.root)
        lines = [f"mount --bind {root} {root}", f"mount -o remount,bind,ro {root}",
                 f"mount -t proc proc {root}/proc", f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",
                 f"mount --rbind /dev {root}/dev", f"mount -t tmpfs -o size=64m,mode=1777 shm {root}/dev/shm", "ip link set lo up",
                 "echo up",
                 f"exec {shlex.join(self._inside(self.image.entrypoint + self.image.command))} >{shlex.quote(self.log_path)} 2>&1"]
        return "\n".join(lines)

    def _inside(self, command):
        user, group = self.image.user.split(":")
        variables = [f"{name}={value}" for name, value in self.image.environment.items()]
        return ["chroot", self.image.root, "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups",
                "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--", "env", "-i", *variables, *command]

    def first_process(self):
        """The id here of the container's process 1."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
            return int(children.read().split()[0])

    def run(self, *command):
        """A second command in it: its output. Raises subprocess.CalledProcessError."""
        return subprocess.run(["nsenter", "-t", str(self.first_process()), "-m", "-n", "-p", "--", *self._inside(command)],
                              check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S).stdout

    def stop(self):
        """The stop signal to process 1; the exit code."""
        os.kill(self.first_process(), signal.Signals[self.image.stop_signal])
        return self.process.wait(DEADLINE_S)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as text:
            return text.read()
