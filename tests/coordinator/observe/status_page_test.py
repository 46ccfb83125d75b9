"""The status page of a real server in headless Chromium, as wide as a phone and as a desk. Its screenshots are the test's outputs.

Skipped where no Chromium is installed: Debian's package chromium-headless-shell.
"""

import os
import re
import sys
import threading
import unittest

import grpc

sys.path[:0] = ["tests/hostile", "tests/coordinator/observe", "gateway/tandem_gateway"]
import chromium  # noqa: E402
import processes  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402
from tandem.v1 import generation_pb2_grpc  # noqa: E402

PORT = re.compile(r"metrics and a status page on http://(127\.0\.0\.1:\d+)")
PHONE = (360, 740)
DESK = (1280, 800)
OUTPUTS = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", ".")


class Load:
    """Requests one after the other until it is stopped, one at least, so that there are rates to show."""

    def __init__(self, address):
        self._stub = generation_pb2_grpc.GenerationStub(grpc.insecure_channel(address, options=(("grpc.enable_http_proxy", 0),)))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        request = api.GenerateRequest(token_ids=api.TokenIds(ids=[1, 2, 3]))
        request.sampling.max_tokens = 40
        request.sampling.ignore_eos = True
        while True:
            for _ in self._stub.Generate(request, timeout=processes.PATIENCE_S):
                pass
            if self._stopped.is_set():
                break

    def stop(self):
        self._stopped.set()
        self._thread.join()


@unittest.skipUnless(chromium.PROGRAM, "needs Debian's package chromium-headless-shell")
class StatusPageTest(unittest.TestCase):

    def setUp(self):
        self.server = processes.Server("--metrics-listen", "127.0.0.1:0")
        self.addCleanup(self.server.process.kill)
        assert self.server.wait_ready(), self.server.log()
        self.address = PORT.search(self.server.log()).group(1)

    def open(self, size):
        page = chromium.Chromium(*size, mobile=size == PHONE)
        self.addCleanup(page.close)
        page.open(f"http://{self.address}/")
        return page

    def text(self, page, element):
        return page.value(f"document.getElementById('{element}')?.textContent ?? ''")

    def wait_for(self, page, element, pattern):
        processes.until(lambda: re.search(pattern, self.text(page, element)), f"{element} does not show {pattern}")

    def check_layout(self, page, size, name):
        page.screenshot(os.path.join(OUTPUTS, f"{name}.png"))
        self.assertEqual(page.value("document.documentElement.clientWidth"), size[0])
        self.assertLessEqual(page.value("document.documentElement.scrollWidth"), size[0], "the page scrolls sideways")
        cut = page.value("[...document.querySelectorAll('section')].filter(s => s.scrollWidth > s.clientWidth)"
                         ".map(s => s.textContent).join()")
        self.assertEqual(cut, "", "a card scrolls sideways")

    def check_live(self, size, name):
        load = Load(self.server.address)
        self.addCleanup(load.stop)
        page = self.open(size)
        self.wait_for(page, "state", "^ready$")
        self.wait_for(page, "generated", r"^[1-9][\d.,]*$")
        self.wait_for(page, "kv-note", r"^[\d,]+ of [\d,]+ blocks free$")
        self.wait_for(page, "latency", r"first token≤ [\d.]+ m?s")
        self.wait_for(page, "ranks", r"0ready\d+ %.*1ready\d+ %")
        self.check_layout(page, size, name)
        self.assertEqual({url.split("?")[0] for url in page.requested} - {"data:,"},
                         {f"http://{self.address}/", f"http://{self.address}/status.json"})
        self.assertEqual(page.messages, [])
        return page

    def test_on_a_phone(self):
        self.check_live(PHONE, "phone")

    def test_on_a_desk(self):
        self.check_live(DESK, "desk")

    def test_it_follows_the_server(self):
        """What has been shown changes when a request ends, and when nobody answers any more."""
        page = self.open(PHONE)
        self.wait_for(page, "ended", r"\b0 length")
        Load(self.server.address).stop()
        self.wait_for(page, "ended", r"\b[1-9]\d* length")
        self.server.process.kill()
        self.wait_for(page, "state", "^does not answer$")
        self.check_layout(page, PHONE, "gone")


if __name__ == "__main__":
    unittest.main()
