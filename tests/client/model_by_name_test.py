"""Tests of models by name without a network, and of `tandem_coordinator --model hf:...`."""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).absolute().parent), str(Path("tools").absolute())]

from hub_stub import COMMIT, Reply  # noqa: E402
from pull_case import NAME, PullCase  # noqa: E402


class Offline(PullCase):
    def test_by_setting(self):
        path = self.pull()
        self.hub.requests.clear()
        for name in (NAME, f"{NAME}:q8_0", f"{NAME}:tiny-Q8_0.gguf"):
            self.assertEqual(self.pull(name, HF_HUB_OFFLINE="1"), path)
        status, _, err = self.run_pull(f"{NAME}:Q4_0", HF_HUB_OFFLINE="1")
        self.assertEqual(status, 1)
        self.assertRegex(err, "HF_HUB_OFFLINE is set: .*there is no Q4_0; there is: Q8_0: tiny")
        self.assertEqual(self.hub.requests, [])

    def test_nothing_is_cached(self):
        self.refused("HF_HUB_OFFLINE is set: in .*models--acme--tiny-GGUF: there is: no GGUF file",
                     HF_HUB_OFFLINE="yes")
        self.assertEqual(self.hub.requests, [])

    def test_no_network(self):
        path = self.pull()
        nowhere = socket.socket()
        self.addCleanup(nowhere.close)
        nowhere.bind(("127.0.0.1", 0))  # not listening: every connection is refused
        endpoint = f"http://127.0.0.1:{nowhere.getsockname()[1]}"
        status, out, err = self.run_pull(NAME, "--attempts", "2", HF_ENDPOINT=endpoint)
        self.assertEqual((status, out), (0, f"{path}\n"))
        self.assertRegex(err, r"^W [^\n]*; using [^\n]*\n$")
        status, _, err = self.run_pull(f"{NAME}:Q4_0", "--attempts", "2", HF_ENDPOINT=endpoint)
        self.assertEqual(status, 1)
        self.assertRegex(err, r"W .*; trying again in .* \(attempt 2 of 2\)\n")
        self.assertRegex(err, "(?i)connect.*; in .*there is no Q4_0; there is: Q8_0: tiny")

    def test_the_hub_is_down(self):
        path = self.pull()
        self.hub.on_tree = lambda request: Reply(503)
        self.assertEqual(self.pull(NAME, "--attempts", "1"), path)

    def test_the_hub_refuses(self):
        path = self.pull()
        for number in (401, 403, 404):
            self.hub.on_tree = lambda request, number=number: Reply(number)
            status, out, err = self.run_pull()
            self.assertEqual((status, out), (0, f"{path}\n"))
            self.assertRegex(err, f"^W .*HTTP status {number}.*; using ")


class Coordinator(PullCase):
    def serve(self, *flags, **environment):
        """Serves until it is ready, then ends it."""
        process = subprocess.Popen(
            ["coordinator/tandem_coordinator", *flags, "--listen", "127.0.0.1:0",
             "--worker-binary", "worker/tandem_worker", "--threads-per-worker", "1",
             "--num-kv-blocks", "32"],
            env=self.environment(**environment), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertRegex(process.stdout.readline(), "^ready: ")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)

    def test_serves_a_model_by_name(self):
        self.serve("--model", NAME)
        self.assertTrue((self.repo / "snapshots" / COMMIT / "tiny-Q8_0.gguf").exists())

    def test_the_service_manager_is_asked_for_time(self):
        folder = tempfile.mkdtemp(prefix="systemd")  # short: a socket's path is limited
        self.addCleanup(shutil.rmtree, folder)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.settimeout(60)
        manager.bind(folder + "/notify")
        self.serve("--model", NAME, NOTIFY_SOCKET=folder + "/notify")
        self.assertEqual([manager.recv(100) for _ in range(3)],
                         [b"EXTEND_TIMEOUT_USEC=1200000000", b"READY=1", b"STOPPING=1"])
        self.serve("--model", NAME, NOTIFY_SOCKET=folder + "/notify")
        self.assertEqual(manager.recv(100), b"READY=1", "nothing is fetched")

    def test_the_name_may_be_in_the_environment(self):
        self.serve(TANDEM_MODEL=NAME)

    def test_stops_while_it_fetches(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.hub.on_file = lambda request, path, usual: Reply(
            usual.status, usual.body, usual.headers, 5000, gate)
        process = subprocess.Popen(
            ["coordinator/tandem_coordinator", "--model", NAME, "--listen", "127.0.0.1:0"],
            env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(self.hub.arrived.wait(60))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)

    def test_the_worker_has_no_libcurl(self):
        linked = subprocess.run(["ldd", "worker/tandem_worker"], capture_output=True, text=True)
        self.assertEqual(linked.returncode, 0, linked.stderr)
        self.assertNotIn("curl", linked.stdout)
