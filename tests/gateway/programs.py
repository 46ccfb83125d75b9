"""A coordinator with the demo model and a gateway in front of it, as real processes."""

import http.client
import json
import os
import re
import select
import subprocess
import sys
import time

GATEWAY = "gateway/tandem_gateway"
sys.path.insert(0, GATEWAY)
PATIENCE_S = 60

# Writes what the demo model was trained on: the last message is the beginning of a text.
TEMPLATE = ("{{ bos_token }}{% for message in messages %}{{ message.content }}{% if not loop.last %}\n{% endif %}"
            "{% endfor %}")


class Program:
    """A process that says "ready: ... ADDRESS" on stdout. stderr is kept in a file."""

    def __init__(self, *command):
        self.log_path = os.path.join(os.environ["TEST_TMPDIR"], f"log-{time.monotonic_ns()}")
        with open(self.log_path, "wb") as log:
            # A proxy for other hosts must not be asked for this one.
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log,
                                            env={**os.environ, "http_proxy": "http://127.0.0.1:9"})
        readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline().decode() if readable else ""
        found = re.search(r"(127\.0\.0\.1:\d+)", line)
        if not found:
            self.process.kill()
            raise AssertionError(f"{command[0]} is not ready: {line}{self.log()}")
        self.address = found.group(1)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self):
        """SIGTERM; the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def start_coordinator(*flags, program="coordinator/tandem_coordinator"):
    return Program(program, "--model", "models/demo.gguf", "--listen",
                   "127.0.0.1:0", "--worker-binary", "worker/tandem_worker",
                   # How many tokens are guessed depends on what else runs, and so do usage and times.
                   "--speculation", "off", "--threads-per-worker", "1", *flags)


def start_gateway(*flags, template=TEMPLATE):
    path = os.path.join(os.environ["TEST_TMPDIR"], f"template-{time.monotonic_ns()}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(template)
    return Program(GATEWAY, "--listen", "127.0.0.1:0", "--chat-template", path, *flags)


def until(condition, what):
    """Polls: a state is waited for, never a time."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} in {PATIENCE_S} s")
        time.sleep(0.02)


def call(address, path, body=None, method=None, headers=None):
    """(status, headers, parsed JSON or bytes) of one request."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    try:
        data = json.dumps(body) if isinstance(body, dict) else body
        connection.request(method or ("GET" if body is None else "POST"), path, data,
                           headers or {})
        response = connection.getresponse()
        content = response.read()
        if response.headers.get_content_type() == "application/json":
            content = json.loads(content)
        return response.status, response.headers, content
    finally:
        connection.close()


def events(address, path, body):
    """The data of a stream's events, parsed; "[DONE]" as it is."""
    status, headers, content = call(address, path, {**body, "stream": True})
    assert status == 200, content
    assert headers.get_content_type() == "text/event-stream", headers
    parts = content.decode().split("\n\n")
    assert parts.pop() == "" and all(part.startswith("data: ") for part in parts), content
    return [part[6:] if part == "data: [DONE]" else json.loads(part[6:]) for part in parts]


def stats(address):
    done = subprocess.run(["client/tandem", "stats", "--server", address, "--json"],
                          capture_output=True, timeout=PATIENCE_S, check=True)
    return json.loads(done.stdout)


def open_stream(address, body):
    """A connection whose stream of a completion has begun; `response` is what it reads from."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}))
    connection.response = connection.getresponse()
    assert connection.response.read(1), "the stream is empty"
    return connection
