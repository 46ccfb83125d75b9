"""Who may be a worker of another machine: certificate, rank and token, by TLS alone."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/security")
import authority  # noqa: E402
import edge  # noqa: E402
from edge import programs  # noqa: E402

COORDINATOR = "DNS:tandem-coordinator"
TOKEN = "the-token-of-the-workers"


def tls(pair, ca):
    return ("--worker-tls-cert", pair[0], "--worker-tls-key", pair[1], "--worker-tls-ca", ca)


class WorkerPortTest(unittest.TestCase):

    def setUp(self):
        self.authority = authority.Authority()
        self.token = edge.write(TOKEN)
        self.pair = self.authority.issue(
            COORDINATOR, path=os.path.join(self.authority.folder, "coordinator"))
        log = os.path.join(os.environ["TEST_TMPDIR"], f"{self.id()}.log")
        with open(log, "wb") as file:
            self.coordinator = subprocess.Popen(
                ["coordinator/tandem_coordinator", "--model", "models/demo.gguf", "--listen",
                 "127.0.0.1:0", "--workers", "external", "--worker-listen", "0.0.0.0:0",
                 "--worker-token-file", self.token, "--tensor-parallel-size", "2",
                 "--threads-per-worker", "1", "--log-level", "debug",
                 *tls(self.pair, self.authority.ca)], stdout=subprocess.PIPE, stderr=file)
        self.log_path = log
        self.addCleanup(self.kill, self.coordinator)
        programs.until(self.find_port, "there is no worker port")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def find_port(self):
        """The coordinator says it while it waits for workers."""
        self.assertIsNone(self.coordinator.poll(), self.log())
        marker = "waiting for workers on 0.0.0.0:"
        if marker not in self.log():
            return False
        self.address = "127.0.0.1:" + self.log().split(marker)[1].split()[0]
        return True

    def start_worker(self, *flags, rank="auto", token=None):
        worker = subprocess.Popen(
            ["worker/tandem_worker", "--coordinator", self.address, "--rank", rank, "--token-file",
             token or self.token, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.kill, worker)
        return worker

    def check_refused(self, reason, *flags, **kwargs):
        """It ends, and says why."""
        worker = self.start_worker(*flags, **kwargs)
        _, err = worker.communicate(timeout=2 * programs.PATIENCE_S)
        self.assertNotEqual(worker.returncode, 0, err)
        self.assertRegex(err, reason)

    def issue(self, *names, **kwargs):
        return self.authority.issue(*names, **kwargs)

    def check_not_connected(self, reason, *flags, **kwargs):
        """It goes on trying, and says why."""
        worker = self.start_worker(*flags, **kwargs)
        said = ""
        while "yet: " not in said:
            line = worker.stderr.readline()
            self.assertTrue(line, said)
            said += line
        self.assertRegex(said, reason)
        worker.kill()

    def test_those_who_may_serve_and_the_others_may_not(self):
        ca = self.authority.ca
        stranger = authority.Authority("a stranger")
        worker = self.issue("DNS:tandem-worker")
        # Neither side talks to one that it does not know.
        self.check_not_connected("(?i)handshake|certificate|connect", *tls(worker, stranger.ca))
        self.check_not_connected("(?i)handshake|certificate|connect|closed",
                                 *tls(stranger.issue("DNS:tandem-worker"), ca))
        # A certificate of the authority that is not a worker's, or of another rank.
        self.check_refused("none of its names is tandem-worker", *tls(self.issue("DNS:a"), ca))
        first = self.issue("DNS:tandem-worker-1")
        self.check_refused("the certificate is of rank 1, the worker asks for rank 0",
                           *tls(first, ca), rank="0")
        self.check_refused("worker token does not match", *tls(worker, ca),
                           token=edge.write("another-token-of-workers"))
        expired = self.issue("DNS:tandem-worker", dates=authority.EXPIRED)
        self.check_refused("holds a certificate that ended", *tls(expired, ca))
        self.check_not_connected("yet: [A-Za-z]")  # plain text
        self.assertRegex(self.log(), r"--worker-listen: refused: a worker of \S+: the certificate is of rank 1")
        # The coordinator's certificate is replaced while it waits.
        cert, key = self.issue(COORDINATOR)
        os.rename(cert, self.pair[0])
        os.rename(key, self.pair[1])
        self.start_worker(*tls(first, ca))
        self.start_worker(*tls(worker, ca))
        line = self.coordinator.stdout.readline().decode()
        self.assertIn("ready: listening on", line, self.log())
        address = line.split("listening on ")[1].split(",")[0]
        code, err = edge.generate(address)
        self.assertEqual(code, 0, err)
        self.assertIn("new certificates are in use", self.log())

    def test_a_coordinator_of_another_name_is_none(self):
        cert, key = self.issue("DNS:tandem-worker", "IP:127.0.0.1")
        os.rename(cert, self.pair[0])
        os.rename(key, self.pair[1])
        self.check_not_connected("(?i)name|peer|handshake|connect",
                                 *tls(self.issue("DNS:tandem-worker"), self.authority.ca))


class StartTest(unittest.TestCase):

    def test_a_worker_port_for_other_machines_needs_tls(self):
        token = edge.write(TOKEN)
        for flags, reason in (
                (("--worker-listen", "0.0.0.0:0"), "so it needs --worker-tls-cert"),
                (("--worker-listen", "0.0.0.0:0", "--insecure"), "so it needs --worker-tls-cert"),
                (("--worker-tls-cert", "a", "--worker-tls-key", "b"), "needs --worker-tls-ca"),
                (("--worker-tls-cert", "a"), "are given together")):
            code, err = edge.refused_start("--workers", "external", "--worker-token-file", token,
                                           *flags)
            self.assertEqual(code, 2, err)
            self.assertIn(reason, err)
        code, err = edge.refused_start("--worker-tls-cert", "a", "--worker-tls-key", "b",
                                       "--worker-tls-ca", "c")
        self.assertEqual(code, 2, err)
        self.assertIn("--worker-tls-cert is of --workers external", err)

    def test_a_worker_of_another_machine_needs_tls(self):
        token = edge.write(TOKEN)
        done = subprocess.run(
            ["worker/tandem_worker", "--coordinator", "192.0.2.1:1", "--token-file", token],
            capture_output=True, text=True, timeout=programs.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is on another machine: it needs --worker-tls-cert", done.stderr)


if __name__ == "__main__":
    unittest.main()
