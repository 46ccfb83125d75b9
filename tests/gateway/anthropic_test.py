"""/v1/messages as Anthropic's own Python package sees it, in front of a server whose answers are given.

Skipped where the packages of PyPI are not installed.
"""

import importlib.util
import sys
import unittest

sys.path.insert(0, "tests/gateway")
from scripted_case import AnthropicCase  # noqa: E402

# Writes calls as Hermes does.
TEMPLATE = """\
{%- for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}
{%- for message in messages %}
{{- '<' ~ message.role ~ '>' }}{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}
{%- endfor %}
{%- if add_generation_prompt %}<assistant>{% endif %}"""
TOOL = {"name": "weather", "description": "The weather of now.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Zürich"}}</tool_call>'
ASKED = {"role": "user", "content": "How warm is it in Zürich?"}


@unittest.skipUnless(importlib.util.find_spec("anthropic"), "needs anthropic of PyPI")
class AnthropicTest(AnthropicCase):

    def setUp(self):
        self.start(TEMPLATE)

    def ask(self, written, messages, **request):
        """The same whole and streamed, by the package's own account of the stream."""
        self.server.answers = [written, written]
        request = {"model": "scripted", "max_tokens": 100, "messages": messages, **request}
        whole = self.client.messages.create(**request)
        with self.client.messages.stream(**request) as stream:
            texts = "".join(stream.text_stream)
            streamed = stream.get_final_message()

        def shape(message):
            return [{key: value for key, value in one.model_dump().items() if key != "id"} for one in message.content]
        self.assertEqual(shape(streamed), shape(whole))
        self.assertEqual((streamed.stop_reason, streamed.usage.output_tokens),
                         (whole.stop_reason, whole.usage.output_tokens))
        self.assertEqual(texts, "".join(one.text for one in whole.content if one.type == "text"))
        return whole

    def test_an_answer(self):
        answer = self.ask("It is 17 °C.", [ASKED], system="Be brief.")
        self.assertEqual((answer.content[0].text, answer.stop_reason), ("It is 17 °C.", "end_turn"))
        self.assertIn("<system>Be brief.<user>How warm", self.server.prompts[-1])

    def test_a_conversation_with_calls(self):
        called = self.ask(f"<think>Let me see.</think>I look.{CALL}{CALL}", [ASKED], tools=[TOOL])
        self.assertEqual([one.type for one in called.content], ["thinking", "text", "tool_use", "tool_use"])
        self.assertEqual((called.content[2].name, called.content[2].input), ("weather", {"city": "Zürich"}))
        self.assertEqual(called.stop_reason, "tool_use")
        results = [{"type": "tool_result", "tool_use_id": one.id, "content": f"result {i}"}
                   for i, one in enumerate(called.content[2:])]
        self.ask("Warm.", [ASKED, {"role": "assistant", "content": called.content}, {"role": "user", "content": results}],
                 tools=[TOOL])
        self.assertIn(f"<assistant><think>Let me see.</think>I look.{CALL}{CALL}<tool>result 0<tool>result 1<assistant>",
                      self.server.prompts[-1])

    def test_an_answer_goes_on_in_the_last_message(self):
        answer = self.ask(" 17 °C.", [ASKED, {"role": "assistant", "content": "It is"}])
        self.assertEqual((answer.content[0].text, self.server.prompts[-1][-16:]), (" 17 °C.", "<assistant>It is"))

    def test_a_forced_call(self):
        called = self.ask('{"city": "Zürich"}', [ASKED], tools=[TOOL], tool_choice={"type": "tool", "name": "weather"})
        self.assertEqual((called.content[0].input, called.stop_reason), ({"city": "Zürich"}, "tool_use"))
        self.assertIn("city", self.server.params[-1].json_schema)

    def test_more_tokens_than_the_context_leaves(self):
        self.ask("Warm.", [ASKED], max_tokens=64000)
        self.assertEqual(self.server.params[-1].max_tokens, 4096 - len(self.server.tokenized[-1]))
        self.ask("Warm.", [{"role": "user", "content": "x" * 5000}], max_tokens=64000)
        self.assertEqual(self.server.params[-1].max_tokens, 1)  # which the server refuses

    def test_tokens_are_counted(self):
        counted = self.client.messages.count_tokens(model="scripted", messages=[ASKED], tools=[TOOL])
        self.assertEqual(counted.input_tokens, len(self.server.tokenized[-1]))
        self.assertIn("How warm", self.server.tokenized[-1])

    def test_errors(self):
        import anthropic
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.client.messages.create(model="scripted", max_tokens=1, messages=[
                {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}])
        self.assertRegex(caught.exception.message, r"messages\[0\].content\[0\].type must be")
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.client.messages.create(model="other", max_tokens=1, messages=[ASKED])
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")


if __name__ == "__main__":
    unittest.main()
