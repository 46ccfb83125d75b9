"""Real processes of Tandem, and what they hold: descriptors, memory, sockets."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import time

MODEL = "tests/golden/arch/llama/model.gguf"
TANDEM = "client/tandem"
COORDINATOR = "coordinator/tandem_coordinator"
WORKER = "worker/tandem_worker"
LISTEN = "0A"  # a state in /proc/net/tcp
PATIENCE_S = 60  # for what happens at once on an idle machine


def until(condition, what):
    """Polls: a state is waited for, never a time."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} in {PATIENCE_S} s")
        time.sleep(0.02)


def run(*arguments, **kwargs):
    """A program to its end: (exit code, stdout, stderr); negative: ended by a signal."""
    done = subprocess.run(arguments, capture_output=True, timeout=PATIENCE_S, check=False, **kwargs)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(
        errors="replace")


def children(pid):
    """Of every thread of the process."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(child) for child in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass  # the thread has ended
    return sorted(found)


def num_descriptors(pid):
    """Without those of /proc, which a server opens for an instant."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/proc/")
        except FileNotFoundError:
            pass  # closed meanwhile
    return count


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(pid):
    """The most that were ever resident."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        [kib] = [line.split()[1] for line in file if line.startswith("VmHWM:")]
    return int(kib) << 10


def exists(pid):
    """Whether the process runs; one that waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def tcp_sockets():
    """(local port, state, inode) of every TCP socket of this network namespace."""
    for table in ("tcp", "tcp6"):
        if not os.path.exists(f"/proc/net/{table}"):
            continue  # a kernel without IPv6
        with open(f"/proc/net/{table}", encoding="ascii") as file:
            for line in list(file)[1:]:
                field = line.split()
                yield int(field[1].rsplit(":", 1)[1], 16), field[3], field[9]


def sockets_of(pid):
    """The sockets that this process holds, as of tcp_sockets."""
    held = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            held.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return [entry for entry in tcp_sockets() if f"socket:[{entry[2]}]" in held]


def listening_ports(pid):
    """The TCP ports on which this process listens, each with its socket's inode."""
    return {port: inode for port, state, inode in sockets_of(pid) if state == LISTEN}


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Server:
    """A coordinator with two workers."""

    def __init__(self, *flags, prefix=()):
        # stderr to a file of its own: a pipe that is not read would stop the server.
        self.log_path = os.path.join(os.environ["TEST_TMPDIR"], f"server-{time.monotonic_ns()}")
        # One arena of the allocator: with one per thread, what a process holds grows as long as other threads get their turn.
        environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*prefix, COORDINATOR, "--model", MODEL, "--listen", "127.0.0.1:0",
                 "--worker-binary", WORKER, "--tensor-parallel-size", "2",
                 "--threads-per-worker", "1", *flags], env=environment, stdout=subprocess.PIPE,
                stderr=log)
        self.address = None

    def wait_ready(self):
        """Whether it serves; False if it ended instead."""
        readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        if not readable:
            raise AssertionError(f"neither ready nor ended in {PATIENCE_S} s: {self.log()}")
        line = self.process.stdout.readline().decode()
        found = re.search(r"listening on ([^,]+),", line)
        if not found:
            return False
        self.address = found.group(1)
        return True

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def pids(self):
        return [self.process.pid, *children(self.process.pid)]

    def wait_quiet(self):
        """Until the connections of clients that have ended are closed here too."""
        until(lambda: all(state == LISTEN for port, state, _ in sockets_of(self.process.pid)
                          if port == self.port), "a client's connection is open")

    def stats(self):
        code, out, err = run(TANDEM, "stats", "--server", self.address, "--json")
        assert code == 0, err
        return json.loads(out)

    def answer(self):
        """A normal request's answer."""
        code, out, err = run(TANDEM, "generate", "--server", self.address, "--prompt",
                             "hello world", "--max-tokens", "8", "--temperature", "0",
                             "--ignore-eos", "--json")
        assert code == 0, err + self.log()
        answer = json.loads(out)
        return answer["token_ids"], answer["text"], answer["finish_reason"]

    def stop(self):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
