"""Chat answers with tool calls, whole and as chunks."""

import json
import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import chat_request  # noqa: E402
from gateway.answer_reader import MarkedReader  # noqa: E402
from gateway.chat_answer import ChatForm  # noqa: E402
from gateway.generation import Answer  # noqa: E402
from gateway.reasoning import MARKERS, Begins, ThoughtsReader  # noqa: E402
from gateway.tool_parsers import PARSERS  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402

CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Köln"}}</tool_call>'
BODY = {"messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "weather"}}]}


def make_form(parser="hermes", **fields):
    request = chat_request.read({**BODY, **fields})
    return ChatForm("chatcmpl-1", "m", request,
                    [MarkedReader(ThoughtsReader(MARKERS["think"], Begins.BEFORE), PARSERS[parser](request.tools))
                     for _ in range(request.choices)])


def parts_of(text, reason=api.FINISH_REASON_STOP):
    """One message per character and a last one, as they come from the coordinator."""
    parts = [api.GenerateResponse(text=one) for one in text]
    return parts + [api.GenerateResponse(finish_reason=reason, usage=api.Usage(
        prompt_tokens=5, completion_tokens=len(text)))]


def stream(form, text, **last):
    return [chunk["choices"][0] for part in parts_of(text, **last)
            for chunk in form.chunks(0, part, {})]


class ChatAnswerTest(unittest.TestCase):

    def check_call(self, call):
        self.assertEqual((call["type"], call["function"]["name"]), ("function", "weather"))
        self.assertEqual(json.loads(call["function"]["arguments"]), {"city": "Köln"})
        self.assertRegex(call["id"], "^call_[0-9a-f]{24}$")

    def whole(self, text, **fields):
        answer = Answer(keeps_messages=True)
        for part in parts_of(text):
            answer.add(part)
        return make_form(**fields).whole([answer], {})["choices"][0]

    def test_a_call_whole(self):
        choice = self.whole(CALL)
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]),
                         ("tool_calls", None))
        self.check_call(choice["message"]["tool_calls"][0])

    def test_text_and_calls_whole(self):
        choice = self.whole(f"Wait. {CALL}\n{CALL}")
        self.assertEqual(choice["message"]["content"], "Wait. ")
        self.assertEqual(len(choice["message"]["tool_calls"]), 2)

    def test_no_call_whole(self):
        choice = self.whole("Hello.")
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("stop", "Hello."))
        self.assertNotIn("tool_calls", choice["message"])

    def test_calls_streamed(self):
        choices = stream(make_form(), f"Wait. {CALL}\n{CALL}")
        self.assertEqual("".join(one["delta"].get("content", "") for one in choices), "Wait. ")
        calls = [call for one in choices for call in one["delta"].get("tool_calls", [])]
        self.assertEqual([call["index"] for call in calls], [0, 1])
        for call in calls:
            self.check_call(call)
        self.assertEqual([one["finish_reason"] for one in choices],
                         [None] * (len(choices) - 1) + ["tool_calls"])

    def test_an_answer_that_is_cut_off_is_text(self):
        choices = stream(make_form(), CALL[:30], reason=api.FINISH_REASON_LENGTH)
        self.assertEqual("".join(one["delta"].get("content", "") for one in choices), CALL[:30])
        self.assertEqual(choices[-1]["finish_reason"], "length")

    def test_one_call_if_calls_may_not_be_parallel(self):
        choice = self.whole(CALL * 2, parallel_tool_calls=False)
        self.assertEqual(len(choice["message"]["tool_calls"]), 1)
        choices = stream(make_form(parallel_tool_calls=False), CALL * 2)
        self.assertEqual(sum("tool_calls" in one["delta"] for one in choices), 1)

    def test_thoughts_are_beside_the_content(self):
        written = f"<think>\nThe weather.\n</think>\n\nWait. {CALL}"
        thoughts = {"reasoning": "The weather.", "reasoning_content": "The weather."}
        message = self.whole(written)["message"]
        self.assertEqual({key: message[key] for key in thoughts}, thoughts)
        self.assertEqual((message["content"], len(message["tool_calls"])), ("Wait. ", 1))
        deltas = [one["delta"] for one in stream(make_form(), written)]
        for key in thoughts:
            self.assertEqual("".join(one.get(key, "") for one in deltas), "The weather.")
        self.assertEqual("".join(one.get("content", "") for one in deltas), "Wait. ")
        self.assertFalse(any("content" in one and "reasoning" in one for one in deltas))

    def test_thoughts_may_be_left_out(self):
        written = "<think>a</think>b"
        message = self.whole(written, include_reasoning=False)["message"]
        self.assertEqual((message["content"], "reasoning" in message), ("b", False))
        deltas = [one["delta"] for one in stream(make_form(include_reasoning=False), written)]
        self.assertEqual([one for one in deltas if one], [{"content": "b"}])

    def test_thoughts_that_are_cut_off_have_no_answer(self):
        message = self.whole("<think>a")["message"]
        self.assertEqual((message["content"], message["reasoning"]), ("", "a"))

    def test_no_call_if_none_is_allowed(self):
        written = "<|channel|>commentary to=functions.weather<|message|>{}<|call|><|channel|>final<|message|>Hello."
        for fields in ({"tool_choice": "none"}, {"tools": []}):
            choice = self.whole(written, parser="gpt_oss", **fields)
            self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("stop", "Hello."))
            self.assertNotIn("tool_calls", choice["message"])
            choices = stream(make_form("gpt_oss", **fields), written)
            self.assertEqual("".join(one["delta"].get("content", "") for one in choices), "Hello.")
            self.assertFalse(any("tool_calls" in one["delta"] for one in choices))
            self.assertEqual(choices[-1]["finish_reason"], "stop")
        self.assertEqual(self.whole(written, parser="gpt_oss")["finish_reason"], "tool_calls")

    def test_usage_of_several_choices(self):
        form = make_form(n=2, stream=True, stream_options={"include_usage": True})
        for index in range(2):
            for part in parts_of("ab"):
                form.chunks(index, part, {})
        usage = form.last_chunk()["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"],
                          usage["total_tokens"]), (5, 4, 9))


if __name__ == "__main__":
    unittest.main()
