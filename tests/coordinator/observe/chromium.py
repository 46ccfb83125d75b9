"""Headless Chromium, spoken to by its DevTools protocol over two pipes: https://chromedevtools.github.io/devtools-protocol/"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
PATIENCE_S = 60


class Chromium:
    """A browser with one page of `width` x `height` CSS pixels, a phone's if `mobile`; `requested` are the URLs it asked for."""

    def __init__(self, width, height, mobile):
        self._folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        self._number = 0
        self._rest = b""
        self.requested = []
        self.messages = []  # of the console, and exceptions
        self._start()
        try:
            self._open_page(width, height, mobile)
        except BaseException:
            self.close()
            raise

    def _open_page(self, width, height, mobile):
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def _start(self):
        """The protocol's pipes are its descriptors 3 and 4."""
        self._session = None
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        # Beyond 3 and 4, so that neither is overwritten before it is copied.
        theirs, its_answers = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write))
        command = [PROGRAM, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-proxy-server",
                   "--disable-dev-shm-usage", f"--user-data-dir={self._folder}"]
        with open(os.path.join(self._folder, "log"), "wb") as log:
            self.process = subprocess.Popen(
                ["/bin/bash", "-c", f'exec "$@" 3<&{theirs} 4>&{its_answers}', "bash", *command],
                pass_fds=(theirs, its_answers), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "HOME": self._folder})
        for end in (read, write, theirs, its_answers):
            os.close(end)

    def open(self, url):
        self._call("Page.navigate", url=url)

    def value(self, expression):
        """Of JavaScript, which the page's content security policy does not hold back."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path):
        """The whole page, as far down as it goes."""
        picture = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = json.loads(self._read(deadline))
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._note(answer)

    def _note(self, event):
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])
        elif event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.messages.append(params)

    def _read(self, deadline):
        """One message; each ends with a zero byte."""
        while b"\0" not in self._rest:
            readable, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self._from, 1 << 20) if readable else b""
            if not data:
                with open(os.path.join(self._folder, "log"), encoding="utf-8", errors="replace") as log:
                    raise AssertionError(f"Chromium does not answer: {log.read()[-2000:]}")
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return message
