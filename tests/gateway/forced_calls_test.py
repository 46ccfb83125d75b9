"""Answers of calls that a request forced, whole and as chunks, cut at every place."""

import json
import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import chat_request  # noqa: E402
from gateway.answer_reader import MarkedReader  # noqa: E402
from gateway.chat_answer import ChatForm  # noqa: E402
from gateway.generation import Answer  # noqa: E402
from gateway.reasoning import MARKERS, Begins, ThoughtsReader  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("weather", 'the "now" {of]')]
ARGUMENTS = ('{"city": "Kö\\"ln, [\\\\", "more": {"name": "x", "parameters": [1, {"a": null}, "}"]},\n  "n": -1.5e3 }')
ONE = '[{"name": "weather", "parameters": %s}]'
TWO = ('[\n  {\n    "name": "weather",\n    "parameters": %s\n  },{"name":"the \\"now\\" {of]","parameters":{}} ]' %
       ARGUMENTS)
FIRST, SECOND = ("weather", ARGUMENTS), ('the "now" {of]', "{}")
NAMED = {"type": "function", "function": {"name": "weather"}}


def make_form(choice, **fields):
    request = chat_request.read({"messages": [{"role": "user", "content": "hi"}], "tools": TOOLS,
                                 "tool_choice": choice, **fields})
    return ChatForm("chatcmpl-1", "m", request, [MarkedReader() for _ in range(request.choices)])


def messages(parts, reason, stop=None):
    last = api.GenerateResponse(finish_reason=reason, usage=api.Usage(completion_tokens=1))
    if stop:
        last.matched_stop_string = stop
    return [api.GenerateResponse(text=one) for one in parts] + [last]


def whole(choice, text, reason=api.FINISH_REASON_STOP, stop=None):
    """(calls, reason)."""
    answer = Answer(keeps_messages=True)
    for message in messages([text], reason, stop):
        answer.add(message)
    found = make_form(choice).whole([answer], {})["choices"][0]
    assert found["message"]["content"] is None and found["message"]["role"] == "assistant"
    calls = found["message"].get("tool_calls")
    assert calls is None or calls and all(one["type"] == "function" and one["id"] for one in calls)
    return [tuple(one["function"].values()) for one in calls or []], found["finish_reason"]


def streamed(choice, parts, reason=api.FINISH_REASON_STOP, stop=None):
    """The same, of the chunks put together as clients do."""
    form = make_form(choice, stream=True)
    [start] = form.first_chunks()
    assert start["choices"][0]["delta"] == {"role": "assistant", "content": None}
    calls, ids = [], set()
    chunks = [one["choices"][0] for message in messages(parts, reason, stop) for one in form.chunks(0, message, {})]
    for chunk in chunks[:-1]:
        assert chunk["finish_reason"] is None and list(chunk["delta"]) == ["tool_calls"], chunk
        [part] = chunk["delta"]["tool_calls"]
        if "id" in part:
            assert (part["index"], part["type"], part["function"]["arguments"]) == (len(calls), "function", "")
            ids.add(part["id"])
            calls.append([part["function"]["name"], ""])
        else:
            assert part["index"] == len(calls) - 1 and part["function"]["arguments"], part
            calls[-1][1] += part["function"]["arguments"]
    assert len(ids) == len(calls) and chunks[-1]["delta"] == {}
    return [tuple(one) for one in calls], chunks[-1]["finish_reason"]


class ForcedCallsTest(unittest.TestCase):

    def check(self, choice, text, calls, finish, **last):
        """However the text is cut."""
        self.assertEqual(whole(choice, text, **last), (calls, finish))
        self.assertEqual(streamed(choice, text, **last), (calls, finish))
        for cut in range(len(text) + 1):
            self.assertEqual(streamed(choice, [text[:cut], text[cut:]], **last), (calls, finish), text[cut:])

    def test_a_named_function(self):
        self.check(NAMED, ARGUMENTS, [FIRST], "stop")

    def test_required(self):
        self.check("required", TWO, [FIRST, SECOND], "tool_calls")
        for value in (ARGUMENTS, "{}", "[]", "[[1], 2]", '"a\\\\"', '"\\u007d\\"}"', "-1", "null", '""'):
            self.check("required", ONE % value, [("weather", value)], "tool_calls")
            self.check("required", (ONE % value).replace(": ", ":").replace("}]", "\n }\n]"),
                       [("weather", value.replace(": ", ":").replace("}]", "\n }\n]"))], "tool_calls")

    def test_names_are_read_as_json(self):
        text = ONE.replace("weather", "w\\u0065\\\\\\n\\/ö") % "{}"
        self.check("required", text, [("we\\\n/ö", "{}")], "tool_calls")

    def test_a_named_function_cut_by_max_tokens(self):
        for length in range(len(ARGUMENTS)):
            cut = ARGUMENTS[:length]
            for found in (whole(NAMED, cut, api.FINISH_REASON_LENGTH), streamed(NAMED, cut, api.FINISH_REASON_LENGTH)):
                self.assertEqual(found, ([("weather", cut)], "length"))

    def test_required_cut_by_max_tokens(self):
        """Calls whose names are known, with what there is of their arguments."""
        for length in range(len(TWO)):
            cut = TWO[:length]
            calls, finish = whole("required", cut, api.FINISH_REASON_LENGTH)
            self.assertEqual((calls, finish), streamed("required", cut, api.FINISH_REASON_LENGTH))
            self.assertEqual(finish, "length")
            names = [name for name, key in (("weather", '"weather"'), (SECOND[0], 'of]"')) if key in cut]
            self.assertEqual([name for name, _ in calls], names)
            for (_, arguments), full in zip(calls, (ARGUMENTS, "{}")):
                self.assertTrue(full.startswith(arguments))
            if len(calls) == 2:
                self.assertEqual(calls[0][1], ARGUMENTS)

    def test_cut_by_a_stop_string(self):
        self.check("required", TWO[:60], whole("required", TWO[:60])[0], "stop", stop="x")
        self.check("required", TWO[:-1], [FIRST, SECOND], "tool_calls", stop="]")
        self.check("required", "", [], "stop", stop="[")

    def test_what_is_no_list_of_calls_is_none(self):
        for text in ("Sure: hello.", '{"name": "weather"}', "]]}}", '[{"parameters": {}}]', "[[[", '["a"]', "\\"):
            self.check("required", text, [], "stop")
        self.check("required", '[{"name": "\\x"}]', [("\\x", "")], "tool_calls")

    def test_several_choices(self):
        form = make_form("required", n=2, stream=True)
        for part in TWO:
            for index in range(2):
                for chunk in form.chunks(index, api.GenerateResponse(text=part), {}):
                    self.assertEqual(chunk["choices"][0]["index"], index)
        last = api.GenerateResponse(finish_reason=api.FINISH_REASON_STOP)
        for index in range(2):
            self.assertEqual(form.chunks(index, last, {})[-1]["choices"][0]["finish_reason"], "tool_calls")

    def test_log_probabilities_come_once(self):
        for choice in ("required", NAMED):
            form = make_form(choice, logprobs=True)
            for text in ("", '[{"name": "weather', '"', ', "parameters": {"a": 1}}, {"name": "x", "parameters": {'):
                message = api.GenerateResponse(text=text, logprobs=[api.TokenLogprobs(token_id=5)])
                chunks = form.chunks(0, message, {5: b"x"})
                found = [chunk["choices"][0]["logprobs"] for chunk in chunks]
                self.assertEqual(sum(len(one["content"]) for one in found if one), 1, text)

    def test_long_arguments(self):
        value = json.dumps({"a": ["x" * 50, {"b": "\\" * 20}] * 20_000})
        self.assertEqual(whole("required", ONE % value), ([("weather", value)], "tool_calls"))


class ThoughtsTest(unittest.TestCase):

    def test_calls_come_after_thoughts(self):
        request = chat_request.read({"messages": [{"role": "user", "content": "hi"}], "tools": TOOLS,
                                     "tool_choice": NAMED})
        for parts in (["so</think>\n\n" + ARGUMENTS], list("so</think>\n\n" + ARGUMENTS)):
            form = ChatForm("chatcmpl-1", "m", request,
                            [MarkedReader(ThoughtsReader(MARKERS["think"], Begins.WITHIN))])
            deltas = [chunk["choices"][0]["delta"] for part in parts
                      for chunk in form.chunks(0, api.GenerateResponse(text=part), {})]
            self.assertEqual("".join(one.get("reasoning", "") for one in deltas), "so")
            calls = [one["tool_calls"][0]["function"] for one in deltas if "tool_calls" in one]
            self.assertEqual("".join(one["arguments"] for one in calls), ARGUMENTS)
            self.assertFalse(any("content" in one for one in deltas))
            kinds = ["reasoning" in one for one in deltas]
            self.assertEqual(kinds, sorted(kinds, reverse=True))  # thoughts come first

    def test_thoughts_that_are_cut_off_have_no_call(self):
        request = chat_request.read({"messages": [{"role": "user", "content": "hi"}], "tools": TOOLS,
                                     "tool_choice": NAMED})
        form = ChatForm("chatcmpl-1", "m", request, [MarkedReader(ThoughtsReader(MARKERS["think"], Begins.WITHIN))])
        chunks = form.chunks(0, api.GenerateResponse(text="so", finish_reason=api.FINISH_REASON_LENGTH), {})
        self.assertFalse(any("tool_calls" in chunk["choices"][0]["delta"] for chunk in chunks))


if __name__ == "__main__":
    unittest.main()
