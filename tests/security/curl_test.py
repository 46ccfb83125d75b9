"""The HTTP API by curl, as the documents show it: plain, by TLS with a token, streamed, and refused."""

import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/security")
import authority  # noqa: E402
import edge  # noqa: E402
from edge import programs  # noqa: E402

STORY = {"prompt": "Story:", "temperature": 0, "max_tokens": 8}


@unittest.skipUnless(shutil.which("curl"), "needs curl")
class CurlTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.authority = authority.Authority()
        cert, key = cls.authority.issue(*edge.SERVER_NAMES)
        cls.coordinator = programs.start_coordinator("--tokens", edge.tokens())
        cls.addClassCleanup(cls.coordinator.kill)
        cls.gateway = programs.start_gateway("--server", cls.coordinator.address, "--token-file", edge.write(edge.USER),
                                             "--tls-cert", cert, "--tls-key", key)
        cls.addClassCleanup(cls.gateway.kill)
        programs.until(lambda: cls.curl("/health")[0] == 200, "the gateway is not healthy")

    @classmethod
    def curl(cls, path, body=None, *flags):
        """(status, text)"""
        data = ["-d", json.dumps(body)] if body else []
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--cacert", cls.authority.ca, "--write-out", "\n%{http_code}", *data, *flags,
             f"https://{cls.gateway.address}{path}"], capture_output=True, text=True, timeout=programs.PATIENCE_S, check=True)
        text, _, status = done.stdout.rpartition("\n")
        return int(status), text

    def test_whole_and_streamed(self):
        token = ("-H", f"Authorization: Bearer {edge.USER}")
        for path, body in (("/v1/completions", STORY),
                           ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Story:"}], "temperature": 0, "max_tokens": 8})):
            status, text = self.curl(path, body, *token)
            self.assertEqual(status, 200, text)
            [choice] = json.loads(text)["choices"]
            whole = choice["text"] if "text" in choice else choice["message"]["content"]
            status, text = self.curl(path, {**body, "stream": True}, "--no-buffer", *token)
            self.assertEqual(status, 200, text)
            *events, done = [line[6:] for line in text.splitlines() if line]
            self.assertEqual(done, "[DONE]")
            choices = [json.loads(event)["choices"][0] for event in events]
            parts = [one["text"] if "text" in one else one["delta"].get("content", "") for one in choices]
            self.assertTrue(whole)
            self.assertEqual("".join(parts), whole)

    def test_refusals(self):
        for flags, wanted in (((), (401, "invalid_api_key")), (("-H", f"Authorization: Bearer {edge.OPS}"), (403, "insufficient_permissions"))):
            status, text = self.curl("/v1/completions", STORY, *flags)
            self.assertEqual((status, json.loads(text)["error"]["code"]), wanted)
        status, text = self.curl("/v1/completions", {**STORY, "top_p": 7}, "-H", f"Authorization: Bearer {edge.USER}")
        self.assertEqual((status, json.loads(text)["error"]["param"]), (400, "top_p"))

    def test_an_unknown_authority(self):
        done = subprocess.run(["curl", "--silent", "--show-error", f"https://{self.gateway.address}/health"],
                              capture_output=True, text=True, timeout=programs.PATIENCE_S, check=False, env={**os.environ, "CURL_CA_BUNDLE": ""})
        self.assertEqual(done.returncode, 60, done.stderr)  # a certificate that it cannot verify


if __name__ == "__main__":
    unittest.main()
