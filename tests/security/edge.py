"""What the tests of this folder share: tokens, and a client with flags of its own."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

USER = "the-token-of-a-user"
OPS = "the-token-of-the-ops"
SERVER_NAMES = ("DNS:localhost", "IP:127.0.0.1")


def write(content, path=None):
    """The path of a file that has this content from one instant to the next."""
    folder = os.environ["TEST_TMPDIR"]
    path = path or tempfile.mktemp(dir=folder)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(content)
    os.chmod(path + ".new", 0o600)
    os.rename(path + ".new", path)
    return path


def tokens(user_limits=""):
    return write(f"user generate {USER} {user_limits}\nops admin {OPS}\n")


def client(command, address, *flags):
    """(exit code, stderr) of `tandem COMMAND`; stdout is the answer, which is not looked at."""
    done = subprocess.run(["client/tandem", command, "--server", address, *flags],
                          capture_output=True, text=True, timeout=programs.PATIENCE_S, check=False)
    return done.returncode, done.stderr


def generate(address, *flags):
    return client("generate", address, "--prompt", "Story:", "--max-tokens", "2", *flags)


def refused_start(*flags):
    """(exit code, stderr) of a coordinator that must not start."""
    done = subprocess.run(
        ["coordinator/tandem_coordinator", "--model", "models/demo.gguf", "--worker-binary",
         "worker/tandem_worker", *flags], capture_output=True, text=True,
        timeout=programs.PATIENCE_S, check=False)
    return done.returncode, done.stderr
