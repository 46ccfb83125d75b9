"""/v1/responses as OpenAI's own Python package sees it, in front of a server whose answers are given.

Skipped where the packages of PyPI are not installed.
"""

import importlib.util
import json
import os
import sys
import unittest

sys.path.insert(0, "tests/gateway")
from scripted_case import PACKAGES, OpenAiCase  # noqa: E402

TEMPLATE = os.path.join(PACKAGES, "trl/chat_templates/qwen3.jinja")
TOOL = {"type": "function", "name": "weather", "description": "The weather of now.", "strict": True,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>'
THOUGHT = "<think>\nLet me see.\n</think>\n\n"


@unittest.skipUnless(importlib.util.find_spec("openai") and os.path.isfile(TEMPLATE), "needs openai and trl of PyPI")
class OpenAiResponsesTest(OpenAiCase):

    def setUp(self):
        self.start(TEMPLATE)

    @staticmethod
    def shape(response):
        return [(one.type, one.arguments if one.type == "function_call" else one.content[0].text) for one in response.output]

    def ask(self, written, **request):
        """The same whole and streamed, by the package's own account of the stream."""
        self.server.answers = [written, written]
        whole = self.client.responses.create(model="scripted", **request)
        with self.client.responses.stream(model="scripted", **request) as stream:
            deltas = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            streamed = stream.get_final_response()
        self.assertEqual(self.shape(whole), self.shape(streamed))
        self.assertEqual((whole.status, whole.output_text), (streamed.status, deltas))
        return whole

    def test_an_answer(self):
        answer = self.ask("It is 17 °C.", input="How warm is it?", instructions="Be brief.")
        self.assertEqual((answer.status, answer.output_text), ("completed", "It is 17 °C."))
        self.assertEqual((answer.usage.output_tokens, answer.usage.output_tokens_details.reasoning_tokens), (12, 0))
        self.assertIn("Be brief.", self.server.prompts[-1])

    def test_a_conversation_with_a_call(self):
        asked = [{"role": "user", "content": "How warm is it in Zürich?"}]
        called = self.ask(THOUGHT + CALL, input=asked, tools=[TOOL])
        self.assertEqual([one.type for one in called.output], ["reasoning", "function_call"])
        self.assertGreater(called.usage.output_tokens_details.reasoning_tokens, 0)
        call = called.output[1]
        self.assertEqual((call.name, json.loads(call.arguments)), ("weather", {"city": "Zürich"}))
        asked += [one.model_dump(exclude_none=True) for one in called.output]
        asked.append({"type": "function_call_output", "call_id": call.call_id, "output": "seventeen degrees"})
        answer = self.ask(THOUGHT + "It is 17 °C.", input=asked, tools=[TOOL])
        self.assertEqual(answer.output_text, "It is 17 °C.")
        for part in ("The weather of now.", "Zürich", "seventeen degrees", "Let me see."):
            self.assertIn(part, self.server.prompts[-1])

    def test_an_answer_by_a_class(self):
        import pydantic

        class Reading(pydantic.BaseModel):
            city: str
            degrees: int

        self.server.answers = [THOUGHT + '{"city": "Zürich", "degrees": 17}']
        answer = self.client.responses.parse(model="scripted", input="hi", text_format=Reading)
        self.assertEqual(answer.output_parsed, Reading(city="Zürich", degrees=17))
        params = self.server.params[-1]
        self.assertIn('"properties":{"city":{', params.json_schema)
        self.assertEqual(params.reasoning.end, "</think>")

    def test_what_is_not_kept_is_refused(self):
        import openai
        with self.assertRaisesRegex(openai.BadRequestError, "nothing is kept"):
            self.client.responses.create(model="scripted", input="hi", previous_response_id="resp_1")
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve("resp_1")


if __name__ == "__main__":
    unittest.main()
