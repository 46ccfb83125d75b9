"""A network for programs of this machine, with process ids and a /proc of its own, in which connections can be cut."""

import os
import re
import shutil
import signal
import subprocess
import time

DEADLINE_S = 120  # of every command and wait

os.environ["PATH"] += ":/usr/sbin:/sbin"  # of ip and nft

NAMESPACES = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec"]


def missing_rights():
    """Why there can be no such network here, or None."""
    tools = [tool for tool in ("unshare", "nsenter", "ip", "ss", "nft") if shutil.which(tool) is None]
    if tools:
        return f"not installed: {', '.join(tools)}"
    done = subprocess.run([*NAMESPACES, "ip link set lo up; nft add table inet cut"], capture_output=True, text=True, timeout=DEADLINE_S)
    return None if done.returncode == 0 else f"no namespaces or no nftables: {done.stderr.strip()}"


class Network:
    """Use as a context manager: its end kills what still runs inside."""

    def __enter__(self):
        setup = "ip link set lo up; nft add table inet cut; nft 'add chain inet cut in { type filter hook input priority 0; }'; "
        self._outer = subprocess.Popen([*NAMESPACES, setup + "echo up; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._outer.stdout.readline() != "up\n":
            raise AssertionError("the namespaces could not be set up")
        self._first = children_of(self._outer.pid)[0]
        return self

    def __exit__(self, *_):
        self._outer.communicate()  # its input's end ends it, and the kernel all that runs inside

    def _inside(self, command):
        return ["nsenter", "-t", str(self._first), "-m", "-n", "-p", "--", "env", "-C", os.getcwd(), *command]

    def popen(self, command, **options):
        """A program inside. The process is nsenter, which ends as the program does but passes no signals."""
        return subprocess.Popen(self._inside(command), text=True, **options)

    def run(self, command):
        """The output of a command inside, which must succeed."""
        done = subprocess.run(self._inside(command), capture_output=True, text=True, timeout=DEADLINE_S)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def local_port(self, pid, port):
        """The local port of a process' connection to `port`. `pid` is the process' id inside."""
        listed = self.run(["ss", "-Htnp", "state", "established", "dport", "=", f":{port}"])
        [local] = [re.search(r":(\d+) ", line)[1] for line in listed.splitlines() if f",pid={pid}," in line]
        return int(local)

    def connect(self, other, own, theirs):
        """A cable between two networks, with an address for each end."""
        inside = ["nsenter", "-t", str(self._first), "-n", "--"]
        subprocess.run([*inside, "ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", str(other._first)],
                       check=True, capture_output=True, timeout=DEADLINE_S)
        for end, address in ((self, own), (other, theirs)):
            end.run(["sh", "-ec", f"ip address add {address}/24 dev cable; ip link set cable up"])

    def cut(self, port, other):
        """Drops the packets between two ports of the loopback address, in both directions, from here on."""
        rules = [f"add rule inet cut in tcp sport {a} tcp dport {b} counter drop;" for a, b in ((port, other), (other, port))]
        self.run(["nft", " ".join(rules)])

    def num_dropped(self):
        """The packets that were dropped, by rule."""
        return [int(count) for count in re.findall(r"counter packets (\d+)", self.run(["nft", "list", "ruleset"]))]


class Program:
    """A program inside a network, with its log."""

    def __init__(self, network, log, command):
        self._log = log
        with open(log, "wb") as out:
            self._nsenter = network.popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def log(self):
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def until(self, pattern):
        """Waits for lines that match; the last of them."""
        end = time.monotonic() + DEADLINE_S
        while True:
            ended = self._nsenter.poll() is not None
            found = list(re.finditer(pattern, self.log(), re.MULTILINE))
            if found:
                return found[-1]
            if ended or time.monotonic() > end:
                raise AssertionError(f"{'ended without' if ended else f'not within {DEADLINE_S} s:'} {pattern}\n{self.log()}")
            time.sleep(0.01)

    def last_line(self):
        """The last line of the log, and when it was written, as seconds since 1970."""
        return self.log().splitlines()[-1], os.stat(self._log).st_mtime

    def terminate(self):
        self.send(signal.SIGTERM)

    def send(self, number):
        """A signal to the program itself."""
        os.kill(children_of(self._nsenter.pid)[0], number)

    def wait(self):
        return self._nsenter.wait(timeout=DEADLINE_S)


def children_of(pid):
    """The process ids of a process' children, of its first thread."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
        return [int(child) for child in children.read().split()]
