"""Tool calls out of texts, whole and cut at every place."""

import json
import sys
import unittest

sys.path[:0] = ["gateway/tandem_gateway", "tests/gateway"]
from gateway.tool_calls import MAX_CALL_CHARS  # noqa: E402
from gateway.tool_parsers import PARSERS, form_of_answers, has_channels, parser_of_template  # noqa: E402
from parsing import ParsingTest, parse, tool  # noqa: E402

WEATHER = '{"name": "weather", "arguments": {"city": "Köln", "days": 2}}'
LLAMA = WEATHER.replace("arguments", "parameters")
FOUND = ("weather", {"city": "Köln", "days": 2})


class ToolCallsTest(ParsingTest):

    def test_plain_text(self):
        for name in PARSERS:
            self.check(name, "It is <b>fine</b> [today].", "It is <b>fine</b> [today].")
            self.check(name, "", "")

    def test_hermes(self):
        call = f"<tool_call>\n{WEATHER}\n</tool_call>"
        self.check("hermes", call, "", FOUND)
        self.check("hermes", f"{call}\n{call}", "", FOUND, FOUND)
        self.check("hermes", f"I look. {call}", "I look. ", FOUND)
        self.check("hermes", f"<tool_call>{WEATHER}", "", FOUND)

    def test_hermes_with_its_markers_in_a_string(self):
        text = '"<tool_call>\\n{\\"</tool_call>\\\\"'
        self.check("hermes", '<tool_call>{"name": "f", "arguments": {"a": %s}}</tool_call> x' % text, " x", ("f", {"a": json.loads(text)}))

    def test_hermes_that_is_no_call_stays_text(self):
        for text in ("<tool_call>weather?</tool_call> end", "a <tool_call", "<tool_call>{",
                     '<tool_call>{"name": 3}</tool_call>', "<tool_call>[1]</tool_call>"):
            self.check("hermes", text, text)

    def test_llama(self):
        self.check("llama3_json", LLAMA, "", FOUND)
        self.check("llama3_json", f"<|python_tag|>{LLAMA}", "", FOUND)
        self.check("llama3_json", f"{LLAMA}; {LLAMA}\n", "", FOUND, FOUND)
        self.check("llama3_json", '{"name": "now"}', "", ("now", {}), tools=[tool("now")])

    def test_llama_that_is_no_call_stays_text(self):
        for text in ('{"name": "Ada", "age": 36}', '{"city": "Köln"}', "{not json", "Sure: " + LLAMA, '  {"name": 1} x'):
            self.check("llama3_json", text, text)

    def test_mistral(self):
        self.check("mistral", f"[TOOL_CALLS] [{WEATHER}, {WEATHER}]", "", FOUND, FOUND)
        arguments = json.dumps(FOUND[1])
        self.check("mistral", f"[TOOL_CALLS]weather{arguments}", "", FOUND)
        self.check("mistral", f"So: [TOOL_CALLS]weather[ARGS]{arguments}[TOOL_CALLS]now[ARGS]{{}}",
                   "So: ", FOUND, ("now", {}))
        self.check("mistral", f"[TOOL_CALLS]weather[CALL_ID]123456789[ARGS]{arguments}", "", FOUND)

    def test_mistral_that_is_no_call_stays_text(self):
        for text in ("[TOOL_CALLS] [1]", "[TOOL_CALLS]", "a [TOOL_", "[TOOL_CALLS]{}"):
            self.check("mistral", text, text)

    def test_gpt_oss(self):
        thought = "<|channel|>analysis<|message|>So <tool_call>.<|end|>"
        arguments = json.dumps(FOUND[1])
        call = f"<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{arguments}"
        final = "<|start|>assistant<|channel|>final<|message|>It is < 3 °C."
        self.check("gpt_oss", f"{thought}{final}<|return|>", "It is < 3 °C.")
        self.check("gpt_oss", f"{thought}{final}", "It is < 3 °C.")
        self.check("gpt_oss", f"{thought}<|start|>assistant{call}<|call|>", "", FOUND)
        self.check("gpt_oss", f"{thought}<|start|>assistant{call}", "", FOUND)
        self.check("gpt_oss", f" to=functions.weather<|channel|>commentary json<|message|>{arguments}<|call|>{final}",
                   "It is < 3 °C.", FOUND)
        self.check("gpt_oss", "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" + call, "I look.", FOUND)
        self.check("gpt_oss", "<|channel|>commentary to=functions.now<|message|><|call|>", "", ("now", {}))
        self.check("gpt_oss", "<|channel|>analysis to=python<|message|>print(1)<|call|>", "")

    def test_gpt_oss_that_is_no_call_stays_text(self):
        begin = "<|channel|>commentary to=functions.f<|message|>"
        for text in ("weather?", "[1]", '{"a": '):
            self.check("gpt_oss", begin + text, text)
        for text in ("a <|end", "<", " t", "<|start", "a <| b"):
            self.check("gpt_oss", text, text)
        self.check("gpt_oss", "<|channel|>final", "")  # ended before its message

    def test_gpt_oss_headers_that_are_not_in_order(self):
        final = "<|channel|>final<|message|>Hi"
        for text in (f"<|channel|>analysis<|end|><|start|>assistant{final}<|return|>",
                     f"<|channel|>analysis<|start|>assistant{final}", f"<|channel|>analysis{final}",
                     f"<|channel|>analysis<|end|>assistant{final}",
                     f"<|channel|>analysis<|message|>So.<|end|>assistant{final}", f"assistant{final}",
                     f"<|channel|>analysis to=functions.f<|call|>{final}"):
            self.check("gpt_oss", text, "Hi")
        self.check("gpt_oss", "<|channel|>analysis to=python to=functions.f<|message|>{}", "", ("f", {}))
        self.check("gpt_oss", "assistant to=functions.f<|channel|>commentary<|message|>{}", "", ("f", {}))
        self.check("gpt_oss", "<|channel|>final<|channel|>analysis<|message|>So.", "")
        self.check("gpt_oss", "assistant", "assistant")

    def test_gpt_oss_messages_are_lines(self):
        look, final = "<|channel|>commentary<|message|>I look.<|end|>", "<|channel|>final<|message|>Hi"
        call = "<|channel|>commentary to=functions.f<|message|>"
        self.check("gpt_oss", look + final, "I look.\nHi")
        self.check("gpt_oss", f"{look}{call}{{}}<|call|>{final}", "I look.\nHi", ("f", {}))
        self.check("gpt_oss", f"{call}[1]<|call|>{final}", "[1]\nHi")
        self.check("gpt_oss", f"{look}<|channel|>final<|message|><|end|>", "I look.")
        self.check("gpt_oss", f"{look}assist", "I look.\nassist")

    def test_a_call_has_a_name(self):
        self.check("gpt_oss", "<|channel|>commentary to=functions.<|message|>{}<|call|>", "{}")
        text = '<tool_call>{"name": "", "arguments": {}}</tool_call>'
        self.check("hermes", text, text)

    def test_a_call_without_end_becomes_text(self):
        for name, start in (("hermes", "<tool_call>{"), ("llama3_json", '{"name": "'),
                            ("mistral", "[TOOL_CALLS]f{"), ("gpt_oss", "<|channel|>")):
            parser = PARSERS[name]([])
            self.assertEqual(parser.feed(start), ("", []))
            content, calls = parser.feed("x" * MAX_CALL_CHARS)
            self.assertEqual((len(content), calls), (len(start) + MAX_CALL_CHARS, []))

    def test_arguments_that_are_no_json(self):
        for arguments in ('{"a": NaN}', '{"a": 1e999}', '"' + "[" * 20000 + '"'):
            text = '<tool_call>{"name": "f", "arguments": %s}</tool_call>' % arguments
            self.assertEqual(parse("hermes", text), (text, []))

    def test_arguments_as_text(self):
        call = json.dumps({"name": "f", "arguments": '{"a": 1}'})
        self.check("hermes", f"<tool_call>{call}</tool_call>", "", ("f", {"a": 1}))

    def test_the_template_names_the_form(self):
        for template, expected in (
                ("{{ tools }}<tool_call>", "hermes"), ("{{ tools }}[TOOL_CALLS]", "mistral"),
                ('{{ tools }}<|start_header_id|>{"name": x, "parameters": y}', "llama3_json"),
                ("{{ tools }}<|channel|><|message|>", "gpt_oss"),
                ("{{ tools }}<tool_call><function=f>", None), ("{{ tools }}", None),
                ("<tool_call>", None)):
            self.assertEqual(parser_of_template(template), expected, template)

    def test_the_chosen_form_is_for_answers_with_tools(self):
        gpt_oss, hermes = "{{ tools }}<|channel|><|message|>", "{{ tools }}<tool_call>"
        for template, chosen, with_tools, without in (
                (gpt_oss, None, "gpt_oss", "gpt_oss"), (hermes, None, "hermes", None), ("", None, None, None),
                (hermes, "gpt_oss", "gpt_oss", None), (gpt_oss, "hermes", "hermes", "gpt_oss")):
            self.assertEqual((form_of_answers(template, True, chosen), form_of_answers(template, False, chosen)),
                             (with_tools, without), (template, chosen))

    def test_answers_in_channels(self):
        gpt_oss = "{{ tools }}<|channel|>final<|message|>"
        for template, has_tools, chosen, expected in (
                (gpt_oss, False, None, True), (gpt_oss, True, None, True), (gpt_oss, True, "hermes", True),
                ("{{ tools }}", True, "gpt_oss", True), ("{{ tools }}", False, "gpt_oss", False),
                ("{{ tools }}<tool_call>", True, None, False), ("", False, None, False)):
            self.assertEqual(has_channels(template, has_tools, chosen), expected, (template, has_tools, chosen))


if __name__ == "__main__":
    unittest.main()
