"""OpenAI's and Anthropic's own Python packages in front of a server whose answers are given, for tests."""

import os
import sys
import unittest

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402

PACKAGES = os.path.join(os.environ.get("TANDEM_VENV", "/none"), "lib", f"python3.{sys.version_info[1]}", "site-packages")
sys.path.append(PACKAGES)


class ScriptedCase(unittest.TestCase):

    def start_gateway(self, template):
        """A server of a model with this chat template, or with that of a file; the address of its gateway."""
        if os.path.isabs(template):
            with open(template, encoding="utf-8") as file:
                template = file.read()
        self.server = ScriptedServer(template)
        self.addCleanup(self.server.stop)
        gateway = programs.Program(programs.GATEWAY, "--listen", "127.0.0.1:0", "--server", self.server.address)
        self.addCleanup(gateway.kill)
        programs.until(lambda: programs.call(gateway.address, "/health")[0] == 200, "the gateway is not healthy")
        return gateway.address


class OpenAiCase(ScriptedCase):

    def start(self, template):
        import openai
        self.client = openai.OpenAI(base_url=f"http://{self.start_gateway(template)}/v1", api_key="none",
                                    max_retries=0, timeout=programs.PATIENCE_S)


class AnthropicCase(ScriptedCase):

    def start(self, template):
        import anthropic
        self.client = anthropic.Anthropic(base_url=f"http://{self.start_gateway(template)}", api_key="none",
                                          max_retries=0, timeout=programs.PATIENCE_S)
