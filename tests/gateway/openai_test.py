"""The gateway as OpenAI's own Python package uses it. Skipped where the package is not installed."""

import importlib.util
import os
import sys
import unittest

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

PACKAGES = os.path.join(os.environ.get("TANDEM_VENV", "/none"), "lib",
                        f"python3.{sys.version_info[1]}", "site-packages")
sys.path.append(PACKAGES)
TEMPLATE = programs.TEMPLATE + "{% if tools %}<tool_call>{{ tools | tojson }}</tool_call>{% endif %}"
TOOL = {"type": "function", "function": {
    "name": "weather", "parameters": {"type": "object", "properties": {"city": {}}}}}


@unittest.skipUnless(importlib.util.find_spec("openai"), "needs openai of PyPI")
class OpenAiTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        import openai
        cls.openai = openai
        cls.coordinator = programs.start_coordinator()
        cls.addClassCleanup(cls.coordinator.kill)
        cls.gateway = programs.start_gateway("--server", cls.coordinator.address,
                                             template=TEMPLATE)
        cls.addClassCleanup(cls.gateway.kill)
        programs.until(lambda: programs.call(cls.gateway.address, "/health")[0] == 200,
                       "the gateway is not healthy")
        cls.client = openai.OpenAI(base_url=f"http://{cls.gateway.address}/v1", api_key="none",
                                   max_retries=0, timeout=programs.PATIENCE_S)
        cls.chat = {"model": "Tandem demo", "messages": [{"role": "user", "content": "Story:"}],
                    "max_completion_tokens": 10, "temperature": 0}

    def test_models(self):
        self.assertEqual([one.id for one in self.client.models.list()], ["Tandem demo"])

    def test_chat_whole_and_streamed(self):
        whole = self.client.chat.completions.create(**self.chat)
        stream = self.client.chat.completions.create(
            **self.chat, stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        self.assertEqual("".join(one.choices[0].delta.content or "" for one in chunks[:-1]),
                         whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_choices_and_logprobs(self):
        answer = self.client.chat.completions.create(
            **{**self.chat, "temperature": 1}, n=3, seed=1, logprobs=True, top_logprobs=2)
        self.assertEqual(len({one.message.content for one in answer.choices}), 3)
        self.assertEqual(len(answer.choices[2].logprobs.content), 10)

    def test_completions(self):
        answer = self.client.completions.create(model="Tandem demo", prompt=["Story:", "A"],
                                                max_tokens=3, echo=True, logprobs=1)
        self.assertEqual(len(answer.choices), 2)
        self.assertTrue(answer.choices[0].text.startswith("Story:"))

    def test_tools_reach_the_template(self):
        without = self.client.chat.completions.create(**self.chat)
        answer = self.client.chat.completions.create(**self.chat, tools=[TOOL])
        self.assertGreater(answer.usage.prompt_tokens, without.usage.prompt_tokens + 20)

    def test_errors(self):
        with self.assertRaises(self.openai.BadRequestError) as caught:
            self.client.chat.completions.create(**self.chat, top_p=7)
        self.assertEqual(caught.exception.param, "top_p")
        with self.assertRaises(self.openai.NotFoundError):
            self.client.chat.completions.create(**{**self.chat, "model": "none"})


if __name__ == "__main__":
    unittest.main()
