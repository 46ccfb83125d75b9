"""/v1/messages: its blocks as a chat's messages, and its output whole and as events."""

import copy
import json
import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import message_answer, message_request  # noqa: E402
from gateway.answer_reader import MarkedReader  # noqa: E402
from gateway.errors import TOO_LONG, ApiError  # noqa: E402
from gateway.generation import Answer  # noqa: E402
from gateway.hermes_calls import HermesParser  # noqa: E402
from gateway.reasoning import MARKERS, Begins, ThoughtsReader  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402

TOOL = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
USER = {"role": "user", "content": "hi"}
STOP, LENGTH = api.FINISH_REASON_STOP, api.FINISH_REASON_LENGTH


def block(kind, **fields):
    return {"type": kind, **fields}


def read(**fields):
    return message_request.read({"messages": [USER], "max_tokens": 9, **fields})


class InputTest(unittest.TestCase):

    def check(self, messages, *expected, **fields):
        found = read(messages=messages, **fields).messages
        self.assertEqual([{key: value for key, value in one.items() if key not in ("reasoning", "thinking")}
                          for one in found], list(expected))

    def test_texts(self):
        self.check([USER], {"role": "system", "content": "a\nb"}, USER,
                   system=[block("text", text="x-anthropic-billing-header: cch=1;"), block("text", text="a"),
                           block("text", text="b", cache_control={"type": "ephemeral"})])
        self.check([USER], {"role": "system", "content": "a"}, USER, system="a")
        for billed in ("x-anthropic-billing-header: cch=1;\na", [block("text", text="x-anthropic-billing-header: a\na")]):
            self.check([USER], {"role": "system", "content": "a"}, USER, system=billed)
        self.check([USER], USER, system="x-anthropic-billing-header: cch=1;")
        self.check([{"role": "user", "content": [block("text", text="a"), block("text", text="b")]}],
                   {"role": "user", "content": "a\nb"})

    def test_calls_and_what_they_gave(self):
        assistant = {"role": "assistant", "content": [
            block("thinking", thinking="so", signature=""), block("redacted_thinking", data="x"),
            block("server_tool_use", id="9", name="w", input={}), block("web_search_tool_result", tool_use_id="9", content=[]),
            block("text", text="I look."), block("tool_use", id="1", name="f", input={"a": 1}),
            block("tool_use", id="2", name="f", input={})]}
        user = {"role": "user", "content": [
            block("tool_result", tool_use_id="1", content="one", is_error=False),
            block("tool_result", tool_use_id="2", content=[block("text", text="two")]),
            block("tool_result", tool_use_id="3", content=[{"type": "tool_reference", "tool_name": "g"}]), block("text", text="and"), block("text", text="now?")]}
        def made(id, arguments):
            return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}
        self.check([USER, assistant, user], USER,
                   {"role": "assistant", "content": "I look.", "reasoning_content": "so",
                    "tool_calls": [made("1", {"a": 1}), made("2", {})]},
                   {"role": "tool", "tool_call_id": "1", "content": "one"},
                   {"role": "tool", "tool_call_id": "2", "content": "two"},
                   {"role": "tool", "tool_call_id": "3", "content": "Tool: g"}, {"role": "user", "content": "and\nnow?"})

    def test_parameters(self):
        request = read(temperature=0.5, top_k=7, stop_sequences=["x"], stream=True, tools=[TOOL, block("web_search_20250305", name="w")],
                       thinking={"type": "enabled", "budget_tokens": 1024}, metadata={"user_id": "u"},
                       output_config={"effort": "low", "task_budget": {}}, diagnostics={"previous_message_id": None})
        params = request.params
        self.assertEqual((params.temperature, params.top_k, list(params.stop), params.max_tokens), (0.5, 7, ["x"], 9))
        self.assertEqual((request.stream, request.reasoning_effort, request.template_variables), (True, "low", {"enable_thinking": True}))
        self.assertEqual(request.tools, [{"type": "function", "function": {
            "name": "f", "description": "d", "parameters": {"type": "object"}}}])
        self.assertEqual(read(thinking={"type": "disabled"}).template_variables, {"enable_thinking": False})

    def test_forms(self):
        form = {"type": "json_schema", "schema": {"const": 1}}
        for fields in ({"output_config": {"format": form}}, {"output_format": form}):
            self.assertEqual(read(**fields).params.json_schema, '{"const":1}')

    def test_tool_choice(self):
        def choose(**choice):
            return read(tools=[TOOL], tool_choice=choice)
        self.assertIsNone(choose(type="auto").forced)
        self.assertEqual(choose(type="none").tools, [])
        self.assertIsNone(choose(type="any").forced.name)
        self.assertEqual(choose(type="tool", name="f").forced.name, "f")
        self.assertTrue(choose(type="any", disable_parallel_tool_use=True).one_call)

    def test_what_is_refused(self):
        def content(*blocks, role="user"):
            return {"messages": [{"role": role, "content": list(blocks)}]}
        for fields, param in (
                ({"messages": []}, "messages"), ({"messages": ["x"]}, "messages[0]"), ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
                ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"), (content(block("image", source={})), "messages[0].content[0].type"),
                (content(block("tool_use", id="1", name="f", input={})), "messages[0].content[0].type"),
                (content(block("tool_use", name="f", input={}), role="assistant"), "messages[0].content[0].id"),
                (content(block("tool_result", tool_use_id="1", content=[block("image")])), "messages[0].content[0].content"),
                ({"system": 1}, "system"), ({"tools": [{"input_schema": {}}]}, "tools[0].name"), ({"tool_choice": {"type": "all"}}, "tool_choice.type"),
                ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}}, "tool_choice.name"), ({"n": 2}, "n"), ({"wibble": 1}, "wibble"),
                ({"thinking": {"type": "much"}}, "thinking.type"), ({"mcp_servers": [{}]}, "mcp_servers"), ({"stop_sequences": 5}, "stop_sequences"),
                ({"output_config": {"format": {"type": "text"}}}, "output_config.format.type")):
            with self.assertRaises(ApiError, msg=fields) as caught:
                read(**fields)
            if param == "messages[0]":  # the whole of it
                continue
            self.assertEqual((caught.exception.status, caught.exception.param), (400, param), fields)


class OutputTest(unittest.TestCase):

    def form(self, reader, **fields):
        return message_answer.MessageForm("msg_1", "m", read(tools=[TOOL], **fields), reader())

    @staticmethod
    def last(reason, num_tokens, **fields):
        return api.GenerateResponse(finish_reason=reason, usage=api.Usage(
            prompt_tokens=5, completion_tokens=num_tokens, cached_tokens=2), **fields)

    def replay(self, events):
        """The message that a client has who follows the events."""
        message = None
        for event in copy.deepcopy(events):
            if event["type"] == "message_start":
                message, pieces = event["message"], []
                continue
            if event["type"] == "content_block_start":
                self.assertEqual(event["index"], len(message["content"]))
                message["content"].append(event["content_block"])
                pieces = []
            elif event["type"] == "content_block_delta":
                kind, text = event["delta"].values()
                pieces.append(text)
                open_block = message["content"][event["index"]]
                self.assertEqual(kind, {"text": "text_delta", "thinking": "thinking_delta", "tool_use": "input_json_delta"}[open_block["type"]])
            elif event["type"] == "content_block_stop":
                self.assertEqual(event["index"], len(message["content"]) - 1)
                if open_block["type"] == "tool_use":
                    open_block["input"] = json.loads("".join(pieces)) if reason_is_whole(events) else {}
                else:
                    open_block[open_block["type"]] = "".join(pieces)
            elif event["type"] == "message_delta":
                message.update(event["delta"], usage=event["usage"])
        self.assertEqual(events[-1], {"type": "message_stop"})
        return message

    def check(self, reader, text, *expected, reason=STOP, stops="end_turn", ending={}, **fields):
        """The same whole, in one piece and in characters."""
        def shape(message):
            return [(one["type"], one.get("text", one.get("thinking", one.get("input")))) for one in message["content"]]
        for parts in ([text], list(text)):
            form = self.form(reader, **fields)
            events = form.first_chunks()
            answer = Answer()
            for part in parts:
                message = api.GenerateResponse(text=part, token_ids=[1])
                answer.add(message)
                events += form.chunks(0, message, {})
            last = self.last(reason, len(parts), **ending)
            answer.add(last)
            events += form.chunks(0, last, {})
            streamed, whole = self.replay(events), self.form(reader, **fields).whole([answer], {})
            self.assertEqual(shape(whole), list(expected))
            self.assertEqual((shape(streamed), streamed["usage"]), (shape(whole), whole["usage"]))
            self.assertEqual((whole["stop_reason"], streamed["stop_reason"]), (stops, stops))
        return whole

    @staticmethod
    def thinking():
        return MarkedReader(ThoughtsReader(MARKERS["think"], Begins.BEFORE), HermesParser([]))

    def test_text(self):
        whole = self.check(self.thinking, "Hello.", ("text", "Hello."))
        self.assertEqual((whole["type"], whole["role"], whole["model"]), ("message", "assistant", "m"))
        self.assertEqual(whole["usage"], {"input_tokens": 3, "cache_creation_input_tokens": 0,
                                          "cache_read_input_tokens": 2, "output_tokens": 6})
        self.check(self.thinking, "")

    def test_thoughts_text_and_calls(self):
        whole = self.check(self.thinking, f"<think>\nSo.\n</think>\n\nI look.{CALL}\n{CALL}", ("thinking", "So."),
                           ("text", "I look."), ("tool_use", {"a": 1}), ("tool_use", {"a": 1}), stops="tool_use")
        self.assertEqual(len({one["id"] for one in whole["content"][2:]}), 2)

    def test_forced_calls_come_in_parts(self):
        self.check(lambda: MarkedReader(None), '{"a": [1, 2]}', ("tool_use", {"a": [1, 2]}), stops="tool_use",
                   tool_choice={"type": "tool", "name": "f"})

    def test_why_it_ends(self):
        self.check(self.thinking, "Hel", ("text", "Hel"), reason=LENGTH, stops="max_tokens")
        whole = self.check(self.thinking, "Hel", ("text", "Hel"), stops="stop_sequence", stop_sequences=["lo"],
                           ending={"matched_stop_string": "lo"})
        self.assertEqual(whole["stop_sequence"], "lo")
        self.check(lambda: MarkedReader(None), '{"a": [1', ("tool_use", {}), reason=LENGTH, stops="max_tokens",
                   tool_choice={"type": "tool", "name": "f"})

    def test_errors(self):
        for error, kind, message in (
                (ApiError(400, "no"), "invalid_request_error", "no"), (ApiError(401, "no"), "authentication_error", "no"),
                (ApiError(503, "no"), "overloaded_error", "no"), (ApiError(500, "no"), "api_error", "no"),
                (ApiError(400, "no", code=TOO_LONG), "invalid_request_error", "prompt is too long: no")):
            body = {"type": "error", "error": {"type": kind, "message": message}}
            self.assertEqual(message_answer.error_body(error), body)
            self.assertEqual(self.form(self.thinking).failed(error), body)


def reason_is_whole(events):
    return events[-2]["delta"]["stop_reason"] != "max_tokens"


if __name__ == "__main__":
    unittest.main()
