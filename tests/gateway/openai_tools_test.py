"""Tool calls as OpenAI's own Python package sees them, by the templates of ten families and in what their models write.

Skipped where the packages of PyPI are not installed.
"""

import importlib.util
import json
import os
import sys
import unittest

sys.path.insert(0, "tests/gateway")
from call_templates import TEMPLATES  # noqa: E402
from scripted_case import PACKAGES, OpenAiCase  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402

TRL = os.path.join(PACKAGES, "trl/chat_templates")
AXOLOTL = os.path.join(PACKAGES, "axolotl/utils/chat_templates/templates")
TOOL = {"type": "function", "function": {
    "name": "weather", "description": "The weather of now.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
ARGUMENTS = {"city": "Zürich"}
USER = {"role": "user", "content": "How warm is it in Zürich?"}


@unittest.skipUnless(importlib.util.find_spec("openai") and os.path.isdir(TRL) and os.path.isdir(AXOLOTL),
                     "needs openai, trl and axolotl of PyPI")
class OpenAiToolsTest(OpenAiCase):

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

    def test_qwen3_5(self):
        self.check_conversation(
            os.path.join(TRL, "qwen3_5_think.jinja"), "It asks.\n</think>\n\n<tool_call>\n<function=weather>\n<parameter=city>\n"
            "Zürich\n</parameter>\n</function>\n</tool_call>", "So.\n</think>\n\nIt is 17 °C.")

    def test_glm(self):
        self.check_conversation(os.path.join(TRL, "glm4moe.jinja"), "\n<think></think>\n<tool_call>weather\n<arg_key>city</arg_key>\n"
                                "<arg_value>Zürich</arg_value>\n</tool_call>", "\n<think>So.</think>\nIt is 17 °C.")

    def test_gemma(self):
        self.check_conversation(os.path.join(TRL, "gemma4.jinja"), '<|tool_call>call:weather{city:<|"|>Zürich<|"|>}<tool_call|>')

    def test_minimax(self):
        self.check_conversation(TEMPLATES["minimax_m2"], '\n<minimax:tool_call>\n<invoke name="weather">\n'
                                '<parameter name="city">Zürich</parameter>\n</invoke>\n</minimax:tool_call>')

    def test_deepseek(self):
        self.check_conversation(TEMPLATES["deepseek_v31"], '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Zürich"}'
                                "<｜tool▁call▁end｜><｜tool▁calls▁end｜>")
        self.check_conversation(
            TEMPLATES["deepseek_v32"], '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n<｜DSML｜parameter name="city" '
            'string="true">Zürich</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>')

    def test_kimi(self):
        self.check_conversation(TEMPLATES["kimi_k2"], "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
                                '<|tool_call_argument_begin|>{"city": "Zürich"}<|tool_call_end|><|tool_calls_section_end|>')

    def test_lfm2(self):
        self.check_conversation(os.path.join(TRL, "lfm2_v2.jinja"), "<|tool_call_start|>[weather(city='Zürich')]<|tool_call_end|>")

    def test_arguments_have_the_types_of_their_schemas(self):
        self.start(os.path.join(TRL, "qwen3_6.jinja"))
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "string"}, "c": {"anyOf": [{"type": "array"}, {"type": "null"}]}}}}}
        parameters = "".join(f"<parameter={key}>\n5\n</parameter>\n" for key in "abc").replace("c>\n5", "c>\n[5]")
        asked = self.ask([USER], f"</think>\n\n<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>", tools=[tool])
        self.assertEqual(json.loads(asked.message.tool_calls[0].function.arguments), {"a": 5, "b": "5", "c": [5]})

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
        with self.assertRaisesRegex(openai.BadRequestError, "calls are in channels"):
            self.client.chat.completions.create(model="scripted", messages=[USER], tools=[TOOL], tool_choice="required")

    def check_form_after_thoughts(self, template, prompt_end, written, answer, **reasoning):
        """An answer of some form, by a model that thinks first."""
        self.start(template)
        self.server.answers = [written, written]
        request = {"model": "scripted", "messages": [USER], "response_format": {"type": "json_object"}}
        message = self.client.chat.completions.create(**request).choices[0].message
        self.assertEqual((message.content, message.reasoning_content, message.reasoning), (answer, "Let me see.", "Let me see."))
        deltas = [chunk.choices[0].delta for chunk in self.client.chat.completions.create(**request, stream=True)]
        self.assertEqual("".join(one.content or "" for one in deltas), answer)
        self.assertEqual("".join(getattr(one, "reasoning_content", None) or "" for one in deltas), "Let me see.")
        self.assertTrue(self.server.prompts[-1].endswith(prompt_end), self.server.prompts[-1])
        self.assertEqual(self.server.params[-1].reasoning, api.Reasoning(**reasoning))

    def test_forms_after_thoughts(self):
        answer = '{"city": "Zürich"}'
        thought = f"\nLet me see.\n</think>\n\n{answer}"
        self.check_form_after_thoughts(os.path.join(TRL, "qwen3.jinja"), "assistant\n", "<think>" + thought, answer,
                                       start="<think>", end="</think>")
        self.check_form_after_thoughts(os.path.join(TRL, "deepseek_r1_distill.jinja"), "<think>\n", thought, answer, end="</think>")
        self.check_form_after_thoughts(os.path.join(TRL, "gemma4.jinja"), "model\n", f"<|channel>thought\nLet me see.<channel|>{answer}",
                                       answer, start="<|channel>", end="<channel|>")
        self.check_form_after_thoughts(os.path.join(TRL, "gptoss.jinja"), "<|start|>assistant",
                                       self.thought(f"<|channel|>final<|message|>{answer}"), answer,
                                       end="<|channel|>final", answer_start="<|message|>")

    def test_no_room_for_thoughts_where_the_prompt_has_ended_them(self):
        self.start(os.path.join(TRL, "qwen3.jinja"))
        self.server.answers = ["{}"]
        self.client.chat.completions.create(
            model="scripted", messages=[USER], reasoning_effort="none", response_format={"type": "json_object"})
        self.assertTrue(self.server.prompts[-1].endswith("</think>\n\n"))
        self.assertFalse(self.server.params[-1].HasField("reasoning"))

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
