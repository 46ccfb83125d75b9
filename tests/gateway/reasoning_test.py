"""Thoughts out of answers, whole and cut at every place, and where answers begin."""

import itertools
import sys
import unittest
from types import SimpleNamespace

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import chat_prompt, chat_request  # noqa: E402
from gateway.answer_layout import AnswerLayout  # noqa: E402
from gateway.answer_reader import ChannelReader, FinalReader, MarkedReader  # noqa: E402
from gateway.errors import ApiError  # noqa: E402
from gateway.gpt_oss_calls import GptOssParser  # noqa: E402
from gateway.hermes_calls import HermesParser  # noqa: E402
from gateway.late_calls import LateCalls  # noqa: E402
from gateway.reasoning import MARKERS, Begins, ThoughtsReader, beginning, beginning_in, markers_of_template  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402

THINK = MARKERS["think"]
CHAT = {"messages": [{"role": "user", "content": "hi"}]}
TOOL = {"type": "function", "function": {"name": "f"}}
FORM = {"response_format": {"type": "json_object"}}
QWEN = "{{ tools }}<tool_call></think>{{ enable_thinking }}"
GPT_OSS = "{{ tools }}<|channel|>final<|message|>{{ reasoning_effort }}"


def read(make, *texts):
    """(thoughts, content, names of calls)."""
    reader = make()
    parts = [reader.read(text, last=False) for text in texts] + [reader.read("", last=True)]
    return ("".join(one.reasoning for one in parts), "".join(one.content for one in parts),
            [call.name for one in parts for call in one.calls])


class ReasoningTest(unittest.TestCase):

    def check(self, make, text, reasoning, content, *calls):
        """However the text is cut."""
        expected = (reasoning, content, list(calls))
        self.assertEqual(read(make, text), expected)
        self.assertEqual(read(make, *text), expected)
        for first, second in itertools.combinations(range(len(text) + 1), 2):
            self.assertEqual(read(make, text[:first], text[first:second], text[second:]), expected)

    def check_marked(self, markers, begins, *case):
        self.check(lambda: MarkedReader(ThoughtsReader(markers, begins)), *case)

    def test_thoughts_before_an_answer(self):
        for text, *expected in (
                ("<think>\nSo.\n</think>\n\nYes.\n", "So.", "Yes.\n"),
                ("\n<think>a < b </thi</think>Yes", "a < b </thi", "Yes"),
                ("<think></think>Yes", "", "Yes"), ("<think>\n\n</think>\n\nYes", "", "Yes"),
                ("<think>So.\n\nThen", "So.\n\nThen", ""), ("<think>So.</thin", "So.</thin", ""),
                ("<think>a</think>b</think><think>c", "a", "b</think><think>c"),
                ("<think>a<think>b</think>c", "a<think>b", "c"), ("<think>a</think>", "a", "")):
            self.check_marked(THINK, Begins.BEFORE, text, *expected)

    def test_answers_without_thoughts(self):
        for text in ("Yes.\n", " <thin", "<thinks>", "x<think>a</think>b", "\n\nYes", "", " "):
            self.check_marked(THINK, Begins.BEFORE, text, "", text)
        self.check_marked(THINK, Begins.AFTER, "<think>a</think>\n", "", "<think>a</think>\n")

    def test_prompts_that_have_begun_the_thoughts(self):
        for text, *expected in (
                ("So.\n</think>\n\nYes", "So.", "Yes"), ("</think>Yes", "", "Yes"), ("So", "So", ""),
                ("<think>\nSo.</think>Yes", "So.", "Yes"), (" <thin", "<thin", "")):
            self.check_marked(THINK, Begins.WITHIN, text, *expected)

    def test_before_a_form_only_line_ends_are_left_out(self):
        for text, *expected in (("a</think> yes", "a", " yes"), ("a</think>\n\n yes ", "a", " yes "), ("a</think>\nyes", "a", "yes"),
                                ("a</think>\n\n\nyes", "a", "\nyes"), ("a</think>   ", "a", "   "), ("a</think>\n", "a", "")):
            self.check(lambda: MarkedReader(ThoughtsReader(THINK, Begins.WITHIN, has_form=True)), text, *expected)

    def test_blanks_in_the_middle_stay(self):
        blanks = " \n\t\n " * 50
        self.check_marked(THINK, Begins.BEFORE, "\n<think>a \n\n b\n</think>\n\nc \n d", "a \n\n b", "c \n d")
        for parts in ([f"<think>a{blanks}b{blanks}</think>{blanks}c"], ["<think>", "a", *blanks, "b", *blanks, "</think>", *blanks, "c"]):
            self.assertEqual(read(lambda: MarkedReader(ThoughtsReader(THINK, Begins.BEFORE)), *parts), (f"a{blanks}b", "c", []))
        self.assertEqual(read(lambda: MarkedReader(ThoughtsReader(THINK, Begins.BEFORE)), *blanks, "b"), ("", blanks + "b", []))

    def test_labels(self):
        gemma = MARKERS["gemma4"]
        self.check_marked(gemma, Begins.BEFORE, "<|channel>thought\nSo.\n<channel|>Yes", "So.", "Yes")
        self.check_marked(gemma, Begins.BEFORE, "<|channel>thoughts", "thoughts", "")
        self.check_marked(gemma, Begins.WITHIN, "thought\nSo.<channel|>Yes", "So.", "Yes")

    def test_calls_are_in_what_follows(self):
        call = '<tool_call>{"name": "f"}</tool_call>'
        self.check(lambda: MarkedReader(ThoughtsReader(THINK, Begins.BEFORE), HermesParser([])),
                   f"<think>{call}</think>\n{call}", call, "", "f")

    def test_calls_that_end_thoughts_without_their_end(self):
        call = '<tool_call>{"name": "f"}</tool_call>'
        tools = [TOOL]

        def make():
            return MarkedReader(ThoughtsReader(THINK, Begins.WITHIN), HermesParser(tools), LateCalls(HermesParser, tools))
        for text, names in ((f"So <tool_call> it is.\n{call}", ["f"]), (f"So.\n{call}\n{call}\n", ["f", "f"]), (f"So.{call}</think>\n", ["f"]),
                            (f"So.{call} or not", []), (f"So.{call}</think>Hi", []), (f"{call.replace('f', 'g', 1)}", []), (f"{call}</think>{call}", ["f"])):
            for parts in ([text], list(text)):
                self.assertEqual(read(make, *parts)[2], names, text)

    def test_channels(self):
        text = ("<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>commentary<|message|>I look."
                "<|end|><|start|>assistant<|channel|>analysis<|message|>Then.<|end|>"
                "<|start|>assistant<|channel|>final<|message|>Yes<|return|>")
        self.assertEqual(read(lambda: ChannelReader(GptOssParser()), *text), ("So.\nThen.", "I look.\nYes", []))
        self.check_ends(FinalReader, "Well.<|end|>" + text.removesuffix("<|return|>"), "Well.\nSo.\nI look.\nThen.", "Yes")

    def check_ends(self, make, text, reasoning, content):
        expected = (reasoning, content, [])
        self.assertEqual(read(make, text), expected)
        self.assertEqual(read(make, *text), expected)

    def test_an_answer_of_some_form_is_behind_the_first_final(self):
        """Whatever else the text seems to be: each of these is allowed before a form, and in it."""
        final = "<|channel|>final<|message|>"
        for before, reasoning in (("<|channel|>analysis<|message|>think", "think"), ("foo", "foo"), ("", ""),
                                  ("<|channel|>commentary to=functions.f", ""), ("<|channel|>analysis<|message|>a<|end|><|sta", "a\n<|sta")):
            self.check_ends(FinalReader, f'{before}{final}{{"a": 1}}', reasoning, '{"a": 1}')
        for answer in ('{"a": "<|end|>b"}', f'"{final}"', '"<|start|>assistant"', " x ", '"<|return|>'):
            self.check_ends(FinalReader, f"<|channel|>analysis<|message|>t<|end|>{final}{answer}", "t", answer)
        self.check_ends(FinalReader, "<|channel|>analysis<|message|>t <|chan", "t <|chan", "")

    def test_markers_of_templates(self):
        for template, expected in ((QWEN, "think"), ("<think>", "think"), (GPT_OSS, None), ("[/THINK]", "mistral"),
                                   ("<channel|>", "gemma4"), ("", None)):
            self.assertEqual(markers_of_template(template), expected)

    def test_where_answers_begin(self):
        gemma = MARKERS["gemma4"]
        for markers, prompt, expected in (
                (THINK, "<think></think>user\nassistant\n", Begins.BEFORE), (THINK, "a<think>\n", Begins.WITHIN),
                (THINK, "a<think>\n\n</think>\n\n", Begins.AFTER), (THINK, "<think>a", Begins.BEFORE),
                (gemma, "<|turn>model\n<|channel>thought\n", Begins.WITHIN),
                (gemma, "<|channel>thought\n<channel|>", Begins.AFTER)):
            self.assertEqual(beginning(markers, prompt), expected, prompt)

    def test_where_answers_go_on(self):
        for content, expected in (("", Begins.AFTER), ("so", Begins.AFTER), ("<think>so", Begins.WITHIN),
                                  ("<think>so</think>", Begins.AFTER), ("so</think>a", Begins.AFTER)):
            self.assertEqual(beginning_in(THINK, content), expected, content)


class LayoutTest(unittest.TestCase):

    def layout(self, template, tool_parser=None, reasoning_parser=None, **fields):
        config = SimpleNamespace(tool_parser=tool_parser, reasoning_parser=reasoning_parser)
        return AnswerLayout(config, SimpleNamespace(chat_template=template), chat_request.read({**CHAT, **fields}))

    def test_a_form_leaves_room_for_thoughts(self):
        for template, prompt, expected in (
                (QWEN, "assistant\n", api.Reasoning(start="<think>", end="</think>")),
                (QWEN, "assistant\n<think>\n", api.Reasoning(end="</think>")),
                (QWEN, "assistant\n<think>\n\n</think>\n\n", None), ("plain", "assistant\n", None),
                (GPT_OSS, "<|start|>assistant", api.Reasoning(end="<|channel|>final", answer_start="<|message|>"))):
            self.assertEqual(self.layout(template, **FORM).room_for_thoughts(prompt), expected, prompt)
            self.assertIsNone(self.layout(template).room_for_thoughts(prompt))
        self.assertIsNone(self.layout(QWEN, reasoning_parser="none", **FORM).room_for_thoughts("assistant\n"))

    def test_forced_calls_come_after_thoughts(self):
        forced = {"tools": [TOOL], "tool_choice": "required"}
        layout = self.layout(QWEN, **forced)
        self.assertEqual(layout.room_for_thoughts("<think>"), api.Reasoning(end="</think>"))
        self.assertEqual(read(lambda: layout.reader("<think>"), "a</think>[]"), ("a", "[]", []))
        with self.assertRaisesRegex(ApiError, "channels"):
            self.layout(GPT_OSS, **forced)

    def test_what_goes_on_in_a_message_begins_within_it(self):
        def layout(content):
            return self.layout(QWEN, messages=[*CHAT["messages"], {"role": "assistant", "content": content}],
                               continue_final_message=True, **FORM)
        self.assertIsNone(layout("It").room_for_thoughts("It"))
        self.assertEqual(read(lambda: layout("It").reader("It"), " <think> is"), ("", " <think> is", []))
        self.assertEqual(layout("<think>It").room_for_thoughts("<think>It"), api.Reasoning(end="</think>"))
        self.assertEqual(read(lambda: layout("<think>It").reader("<think>It"), "is</think>a"), ("is", "a", []))

    def test_control_tokens_are_shown_where_something_is_between_them(self):
        for template, fields, expected in ((QWEN, {}, True), (GPT_OSS, {}, True), ("{{ tools }}", {}, False),
                                           ("{{ tools }}<tool_call>", {"tools": [TOOL]}, True)):
            self.assertEqual(self.layout(template, **fields).shows_control_tokens, expected)

    def test_the_chosen_markers(self):
        text = "[THINK]a[/THINK]<think>b</think>c"
        for chosen, expected in (("mistral", ("a", "<think>b</think>c", [])), (None, ("", text, [])), ("none", ("", text, []))):
            layout = self.layout(QWEN, reasoning_parser=chosen)
            self.assertEqual(read(lambda: layout.reader(""), *text), expected)


class RequestTest(unittest.TestCase):

    def test_effort_is_a_variable_of_the_template(self):
        for template, effort, variables, expected in (
                (QWEN, None, {"a": 1}, {"a": 1}), (GPT_OSS, "high", {}, {"reasoning_effort": "high"}),
                (GPT_OSS, "low", {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
                (QWEN, "none", {}, {"enable_thinking": False}),
                (QWEN + GPT_OSS, "none", {}, {"enable_thinking": False}),
                (QWEN + GPT_OSS, "low", {}, {"reasoning_effort": "low"}), (QWEN, "low", {}, {"enable_thinking": True}),
                (QWEN, "low", {"enable_thinking": False}, {"enable_thinking": False}),
                ("<think>", "low", {"a": 1}, {"a": 1}), ("", "high", {}, {}), ("", "none", {}, {})):
            self.assertEqual(chat_prompt.with_effort(variables, effort, template), expected)
        with self.assertRaises(ApiError) as caught:
            chat_prompt.with_effort({}, "none", "<think>")
        self.assertEqual((caught.exception.status, caught.exception.param), (400, "reasoning_effort"))

    def test_past_thoughts_have_every_name(self):
        def past(**fields):
            messages = [*CHAT["messages"], {"role": "assistant", **fields}]
            return chat_request.read({"messages": messages}).messages[1]
        both = {"reasoning": "so", "reasoning_content": "so", "thinking": "so"}
        for given in ({"reasoning": "so"}, {"reasoning_content": "so"}):
            self.assertEqual(past(content="a", **given), {"role": "assistant", "content": "a", **both})
        call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
        self.assertNotIn("thinking", past(content="a", reasoning="so", tool_calls=[call]))
        self.assertIn("thinking", past(content=None, reasoning="so", tool_calls=[call]))
        self.assertNotIn("thinking", past(content="a", reasoning=""))


if __name__ == "__main__":
    unittest.main()
