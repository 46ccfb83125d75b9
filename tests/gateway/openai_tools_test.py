"""Tool calls as OpenAI's own Python package sees them, by the templates of four families and in what their models write.

Skipped where the packages of PyPI are not installed.
"""

import importlib.util
import json
import os
import sys
import unittest

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402
from scripted_server import ScriptedServer  # noqa: E402

PACKAGES = os.path.join(os.environ.get("TANDEM_VENV", "/none"), "lib", f"python3.{sys.version_info[1]}", "site-packages")
sys.path.append(PACKAGES)
TRL = os.path.join(PACKAGES, "trl/chat_templates")
AXOLOTL = os.path.join(PACKAGES, "axolotl/utils/chat_templates/templates")
TOOL = {"type": "function", "function": {
    "name": "weather", "description": "The weather of now.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
ARGUMENTS = {"city": "Zürich"}
USER = {"role": "user", "content": "How warm is it in Zürich?"}


@unittest.skipUnless(importlib.util.find_spec("openai") and os.path.isdir(TRL) and os.path.isdir(AXOLOTL),
                     "needs openai, trl and axolotl of PyPI")
class OpenAiToolsTest(unittest.TestCase):

    def start(self, template):
        import openai
        with open(template, encoding="utf-8") as file:
            self.server = ScriptedServer(file.read())
        self.addCleanup(self.server.stop)
        gateway = programs.Program(programs.GATEWAY, "--listen", "127.0.0.1:0", "--server", self.server.address)
        self.addCleanup(gateway.kill)
        programs.until(lambda: programs.call(gateway.address, "/health")[0] == 200, "the gateway is not healthy")
        self.client = openai.OpenAI(base_url=f"http://{gateway.address}/v1", api_key="none", max_retries=0,
                                    timeout=programs.PATIENCE_S)

    def ask(self, messages, written, **fields):
        """The same answer whole and streamed; the package puts the stream's parts together."""
        self.server.answers = [written, written]
        request = {"model": "scripted", "messages": messages, "tools": [TOOL], **fields}
        whole = self.client.chat.completions.create(**request).choices[0]
        with self.client.chat.completions.stream(**request) as stream:
            streamed = stream.get_final_completion().choices[0]
        self.assertEqual(whole.finish_reason, streamed.finish_reason)
        self.assertEqual(whole.message.content or "", streamed.message.content or "")
        self.assertEqual([(call.function.name, call.function.arguments) for call in whole.message.tool_calls or []],
                         [(call.function.name, call.function.arguments) for call in streamed.message.tool_calls or []])
        return whole

    def check_conversation(self, template, written, final="It is 17 °C."):
        """A question, a call, its result, and an answer."""
        self.start(template)
        asked = self.ask([USER], written)
        self.assertIn("The weather of now.", self.server.prompts[0])
        self.assertEqual((asked.finish_reason, asked.message.content), ("tool_calls", None))
        [call] = asked.message.tool_calls
        self.assertEqual((call.type, call.function.name, json.loads(call.function.arguments)), ("function", "weather", ARGUMENTS))
        told = [USER, asked.message.model_dump(exclude_none=True),
                {"role": "tool", "tool_call_id": call.id, "content": "seventeen degrees"}]
        answered = self.ask(told, final)
        self.assertEqual((answered.finish_reason, answered.message.content, answered.message.tool_calls),
                         ("stop", "It is 17 °C.", None))
        for part in ("weather", "Zürich", "seventeen degrees"):
            self.assertIn(part, self.server.prompts[-1])

    def test_qwen(self):
        self.check_conversation(os.path.join(TRL, "qwen2_5.jinja"),
                                '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>')

    def test_llama(self):
        self.check_conversation(os.path.join(TRL, "llama3_1.jinja"), '{"name": "weather", "parameters": {"city": "Zürich"}}')

    def test_mistral(self):
        self.check_conversation(os.path.join(AXOLOTL, "mistral_v3_tekken.jinja"),
                                '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Zürich"}}]')

    def test_gpt_oss(self):
        call = '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Zürich"}<|call|>'
        final = "<|channel|>final<|message|>It is 17 °C.<|return|>"
        self.check_conversation(os.path.join(TRL, "gptoss.jinja"), self.thought(call), self.thought(final))
        self.server.answers = [self.thought(final)]
        answer = self.client.chat.completions.create(model="scripted", messages=[USER])
        self.assertEqual(answer.choices[0].message.content, "It is 17 °C.")
        for fields in ({}, {"tools": [TOOL], "tool_choice": "none"}):
            self.server.answers = [call]
            answer = self.client.chat.completions.create(model="scripted", messages=[USER], **fields)
            self.assertEqual((answer.choices[0].finish_reason, answer.choices[0].message.tool_calls), ("stop", None))

        import openai
        for fields in ({"response_format": {"type": "json_object"}}, {"tools": [TOOL], "tool_choice": "required"}):
            with self.assertRaisesRegex(openai.BadRequestError, "answers are in channels"):
                self.client.chat.completions.create(model="scripted", messages=[USER], **fields)

    def test_forced_calls(self):
        self.start(os.path.join(TRL, "qwen2_5.jinja"))
        arguments = '{\n  "city": "Zürich"\n}'
        call = '{"name": "weather", "parameters": %s}' % arguments
        for choice, written, reason, calls in (
                ({"type": "function", "function": {"name": "weather"}}, arguments, "stop", 1),
                ("required", f"[{call}]", "tool_calls", 1), ("required", f"[{call}, {call}]", "tool_calls", 2)):
            answer = self.ask([USER], written, tool_choice=choice)
            self.assertEqual((answer.finish_reason, answer.message.content), (reason, None))
            self.assertEqual([(one.function.name, one.function.arguments) for one in answer.message.tool_calls],
                             [("weather", arguments)] * calls)
            self.assertIn("The weather of now.", self.server.prompts[-1])
            self.assertIn('"city":{"type":"string"}', self.server.params[-1].json_schema)

    def test_an_answer_by_a_class(self):
        import pydantic

        class Reading(pydantic.BaseModel):
            city: str
            degrees: int

        self.start(os.path.join(TRL, "qwen2_5.jinja"))
        written = '{"city": "Zürich", "degrees": 17}'
        self.server.answers = [written, written]
        request = {"model": "scripted", "messages": [USER], "response_format": Reading}
        answer = self.client.chat.completions.parse(**request)
        self.assertEqual(answer.choices[0].message.parsed, Reading(city="Zürich", degrees=17))
        with self.client.chat.completions.stream(**request) as stream:
            self.assertEqual(stream.get_final_completion().choices[0].message.parsed, answer.choices[0].message.parsed)
        self.assertIn('"properties":{"city":{', self.server.params[-1].json_schema)

    @staticmethod
    def thought(then):
        return f"<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant{then}"


if __name__ == "__main__":
    unittest.main()
