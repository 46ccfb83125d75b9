"""Tests of `tandem pull` on connections that break, stall or lie, and with other pulls."""

import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).absolute().parent), str(Path("tools").absolute())]

from hub_stub import COMMIT, Reply, entry  # noqa: E402
from pull_case import MODEL, NAME, PullCase  # noqa: E402


class Transfers(PullCase):
    def faulty(self, *replies):
        """Answers the first requests for the file with what `replies` make of the usual reply."""
        queue = list(replies)
        lock = threading.Lock()

        def on_file(request, path, usual):
            with lock:
                if request.command == "HEAD" or not queue:
                    return None
                return queue.pop(0)(usual)
        self.hub.on_file = on_file

    @staticmethod
    def cut(after):
        return lambda usual: Reply(usual.status, usual.body, usual.headers, cut_after=after)

    @staticmethod
    def status(number, **headers):
        return lambda usual: Reply(number, b"no", headers)

    def test_cut_connections_are_continued(self):
        self.faulty(self.cut(100_000), self.cut(0), self.cut(200_000))
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 100_000, 100_000, 300_000])

    def test_a_later_run_continues(self):
        self.faulty(self.cut(123_456))
        status, _, err = self.run_pull(NAME, "--attempts", "1")
        self.assertEqual(status, 1, err)
        self.assertEqual(self.incomplete().read_bytes(), MODEL[:123_456])
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 123_456])
        self.assertFalse(self.incomplete().exists())

    def test_what_was_left_is_complete(self):
        self.incomplete().parent.mkdir(parents=True)
        self.incomplete().write_bytes(MODEL)
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [])

    def test_what_was_left_is_wrong(self):
        self.incomplete().parent.mkdir(parents=True)
        for wrong, ranges in ((b"x" * 1000, [1000, 0]), (b"x" * (len(MODEL) + 1), [0])):
            for blob in self.repo.glob("blobs/*"):
                blob.unlink()
            self.hub.requests.clear()
            self.incomplete().write_bytes(wrong)
            self.assertEqual(self.pull().read_bytes(), MODEL)
            self.assertEqual(self.ranges(), ranges)

    def test_wrong_bytes(self):
        self.hub.on_file = lambda request, path, usual: Reply(
            usual.status, usual.body[:-1] + b"!", usual.headers)
        self.refused("another digest")
        self.assertEqual(self.incomplete().stat().st_size, 0)

    def test_wrong_lengths(self):
        for body, headers, error in (
                (MODEL, {"Content-Length": "1000"}, "announces 1000 bytes"),
                (MODEL, {"Content-Length": str(len(MODEL) + 1)}, "announces"),
                (MODEL + b"more", {}, "announces"),
                (MODEL + b"more", {"Content-Length": None, "Connection": "close"}, "sends more"),
                (MODEL[:-1], {"Content-Length": None, "Connection": "close"}, "sent only")):
            self.faulty(lambda usual: Reply(200, body, {**usual.headers, **headers}))
            self.refused(error)
            self.incomplete().unlink()

    def test_range_is_ignored(self):
        self.faulty(self.cut(100_000), lambda usual: Reply(200, MODEL))
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 100_000])

    def test_another_range(self):
        self.faulty(self.cut(100_000),
                    lambda usual: Reply(206, MODEL[5:], {"Content-Range": "bytes 5-9/10"}))
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 100_000, 100_000])

    def test_range_is_refused(self):
        self.faulty(self.cut(100_000), self.status(416))
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 100_000, 0])

    def test_transient_statuses(self):
        self.faulty(self.status(429, **{"Retry-After": "0"}), self.status(503), self.status(500))
        self.assertEqual(self.pull().read_bytes(), MODEL)

    def test_statuses_that_last(self):
        for number, error in ((500, "500"), (429, "429: too many"), (404, "404"), (418, "418"),
                              (403, "403: this needs a token in HF_TOKEN"), (302, "302 without")):
            self.faulty(*[self.status(number)] * 9)
            self.refused(f"resolve/{COMMIT}/tiny-Q8_0.gguf: HTTP status {error}")

    def test_changed_since_listed(self):
        self.hub.listing = [entry("tiny-Q8_0.gguf", b"y" * len(MODEL))]
        self.refused("has changed since it was listed")

    def test_stall(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.faulty(lambda usual: Reply(usual.status, usual.body, usual.headers, 5000, gate))
        self.assertEqual(self.pull(HF_HUB_DOWNLOAD_TIMEOUT="5").read_bytes(), MODEL)
        self.assertEqual(self.ranges()[:2], [0, 5000])

    def test_slow_servers(self):
        self.faulty(lambda usual: Reply(usual.status, usual.body, usual.headers, drip=1))
        self.refused("fewer than 1024 bytes were received in 5 s", HF_HUB_DOWNLOAD_TIMEOUT="5")
        self.hub.on_tree = lambda request: Reply(200, b" " * 1_000_000, drip=2000)
        self.refused("the answer takes too long", HF_HUB_DOWNLOAD_TIMEOUT="5")

    def test_stop_signal(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.faulty(lambda usual: Reply(usual.status, usual.body, usual.headers, 5000, gate))
        process = self.start(NAME)
        self.assertTrue(self.hub.arrived.wait(60))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err.splitlines()[-1], "^tandem: .*: stopped$")

    def test_two_at_once(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.faulty(lambda usual: Reply(usual.status, usual.body, usual.headers, 5000, gate))
        first = self.start(NAME)
        self.assertTrue(self.hub.arrived.wait(60))
        second = self.start(NAME)
        self.assertRegex(second.stderr.readline(), "waiting for another process")
        gate.set()
        paths = {process.communicate(timeout=60)[0] for process in (first, second)}
        self.assertEqual(len(paths), 1)
        self.assertEqual(Path(paths.pop()[:-1]).read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0])

    def test_terminal(self):
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        process = subprocess.Popen(["client/tandem", "pull", NAME], env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        text = b""
        try:
            while piece := os.read(controller, 4096):
                text += piece
        except OSError:
            pass  # the other end is closed
        self.assertEqual(process.wait(60), 0)
        self.assertRegex(text, rb"\rtiny-Q8_0.gguf: 1.64 MiB of 1.64 MiB \(100%\), [^\n]*\n")
