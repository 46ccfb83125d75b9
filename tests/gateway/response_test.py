"""/v1/responses: its input as a chat's, and its output whole and as events."""

import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import response_request  # noqa: E402
from gateway.answer_reader import ChannelReader, MarkedReader  # noqa: E402
from gateway.errors import ApiError  # noqa: E402
from gateway.generation import Answer  # noqa: E402
from gateway.gpt_oss_calls import GptOssParser  # noqa: E402
from gateway.hermes_calls import HermesParser  # noqa: E402
from gateway.reasoning import MARKERS, Begins, ThoughtsReader  # noqa: E402
from gateway.response_answer import ResponseForm  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402

TOOL = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
LENGTH = api.FINISH_REASON_LENGTH


def item(kind, **fields):
    return {"type": kind, **fields}


class InputTest(unittest.TestCase):

    def check(self, given, *messages, **fields):
        read = response_request.read({"input": given, **fields}).chat.messages
        self.assertEqual([{key: value for key, value in one.items() if key not in ("reasoning", "thinking")}
                          for one in read], list(messages))

    def test_text(self):
        user = {"role": "user", "content": "hi"}
        self.check("hi", user)
        self.check("hi", {"role": "system", "content": "Be brief."}, user, instructions="Be brief.")
        self.check([{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}],
                   {"role": "user", "content": "a\nb"})

    def test_instructions_at_the_beginning_are_one_message(self):
        developer = item("message", role="developer", content="B")
        self.check([developer, item("message", role="user", content="hi"), developer],
                   {"role": "system", "content": "A\n\nB"}, {"role": "user", "content": "hi"},
                   {"role": "developer", "content": "B"}, instructions="A")

    def test_what_an_assistant_did_is_one_message(self):
        def call(id):
            return item("function_call", call_id=id, name="f", arguments='{"a": 1}')
        def made(id):
            return {"id": id, "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
        self.check(
            [item("message", role="user", content="hi"),
             item("reasoning", summary=[], content=[{"type": "reasoning_text", "text": "so"}]),
             item("message", role="assistant", content=[{"type": "output_text", "text": "I look."}]), call("1"), call("2"),
             item("function_call_output", call_id="1", output="one"),
             item("function_call_output", call_id="2", output=[{"type": "input_text", "text": "two"}]),
             item("reasoning", summary=[{"type": "summary_text", "text": "then"}]), call("3"),
             item("reasoning", summary=[], encrypted_content="x"),
             item("message", role="assistant", content="a"), item("message", role="assistant", content="b")],
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "I look.", "reasoning_content": "so", "tool_calls": [made("1"), made("2")]},
            {"role": "tool", "tool_call_id": "1", "content": "one"}, {"role": "tool", "tool_call_id": "2", "content": "two"},
            {"role": "assistant", "content": "a", "reasoning_content": "then", "tool_calls": [made("3")]},
            {"role": "assistant", "content": "b"})

    def test_arguments_that_were_cut_are_none(self):
        for arguments in ('{"a": "b', "5", " ", None):
            call = item("function_call", call_id="1", name="f", arguments=arguments)
            [message] = response_request.read({"input": [call]}).chat.messages
            self.assertEqual(message["tool_calls"][0]["function"]["arguments"], {})

    def test_the_rest_of_a_request(self):
        request = response_request.read({
            "input": "hi", "model": "m", "stream": True, "max_output_tokens": 7, "temperature": 0.5, "top_k": 3,
            "tools": [TOOL], "tool_choice": "auto", "parallel_tool_calls": False, "reasoning": {"effort": "low", "summary": "auto"},
            "store": True, "include": ["reasoning.encrypted_content"], "metadata": {"a": "b"}, "user": "u"})
        chat = request.chat
        self.assertEqual((chat.model, chat.stream, chat.one_call, chat.reasoning_effort), ("m", True, True, "low"))
        self.assertEqual((chat.params.max_tokens, chat.params.temperature, chat.params.top_k), (7, 0.5, 3))
        self.assertEqual(chat.tools, [{"type": "function", "function": {
            "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}}])
        self.assertEqual((request.echo["tools"], request.echo["store"], request.echo["metadata"]), ([TOOL], False, {"a": "b"}))

    def test_forms(self):
        def form(**given):
            return response_request.read({"input": "hi", "text": {"format": given}}).chat.params
        self.assertIsNone(form(type="text").WhichOneof("constraint"))
        self.assertTrue(form(type="json_object").json_object)
        self.assertEqual(form(type="json_schema", name="n", strict=True, schema={"const": 1}).json_schema, '{"const":1}')
        forced = response_request.read({"input": "hi", "tools": [TOOL], "tool_choice": {"type": "function", "name": "f"}})
        self.assertEqual(forced.chat.forced.name, "f")

    def test_tools_of_other_types_are_left_out(self):
        request = response_request.read({"input": "hi", "tools": [{"type": "web_search"}, TOOL, {"type": "custom", "name": "p"}]})
        self.assertEqual([one["function"]["name"] for one in request.chat.tools], ["f"])
        self.assertEqual(len(request.echo["tools"]), 3)

    def test_a_namespaces_functions_have_names_of_both_parts(self):
        space = {"type": "namespace", "name": "mcp__x", "description": "d", "tools": [TOOL]}
        past = item("function_call", call_id="1", namespace="mcp__x", name="f", arguments="{}")
        request = response_request.read({"input": ["hi", past][1:], "tools": [TOOL, space, {**space, "name": "mcp__y__"}],
                                         "tool_choice": {"type": "function", "namespace": "mcp__x", "name": "f"}})
        self.assertEqual([one["function"]["name"] for one in request.chat.tools], ["f", "mcp__x__f", "mcp__y__f"])
        self.assertEqual(request.chat.forced.name, "mcp__x__f")
        self.assertEqual(request.chat.messages[0]["tool_calls"][0]["function"]["name"], "mcp__x__f")
        self.assertEqual(request.tools.parts_of("mcp__x__f"), {"namespace": "mcp__x", "name": "f"})
        self.assertEqual(request.tools.parts_of("f"), {"name": "f"})
        for tools, param in (([{**space, "name": ""}], "tools[0].name"), ([{**space, "tools": [{"type": "function"}]}], "tools[0].tools[0].name"),
                             ([space, {**space, "name": "mcp__x__"}], "tools[1].tools[0].name"),
                             ([space, {**TOOL, "name": "mcp__x__f"}], "tools[1].name")):
            with self.assertRaises(ApiError) as caught:
                response_request.read({"input": "hi", "tools": tools})
            self.assertEqual(caught.exception.param, param)

    def test_what_other_servers_did_is_left_out(self):
        self.check([item("web_search_call", id="1"), item("custom_tool_call", call_id="1", name="p", input="+a"),
                    item("custom_tool_call_output", call_id="1", output="done")],
                   {"role": "assistant", "content": "", "tool_calls": [
                       {"id": "1", "type": "function", "function": {"name": "p", "arguments": {"input": "+a"}}}]},
                   {"role": "tool", "tool_call_id": "1", "content": "done"})

    def test_tools_may_be_among_the_items(self):
        request = response_request.read({"input": [item("additional_tools", role="developer", tools=[TOOL]),
                                                   item("message", role="user", content="hi")]})
        self.assertEqual([one["function"]["name"] for one in request.chat.tools], ["f"])
        self.assertEqual(len(request.chat.messages), 1)

    def test_what_clients_tell_of_themselves_is_ignored(self):
        response_request.read({"input": "hi", "client_metadata": {"x": "y"}, "access_programs": [], "prompt_cache_key": "k"})

    def test_what_is_refused(self):
        for fields, param in (
                ({"input": None}, "input"), ({"input": []}, "input"), ({"input": 1}, "input"),
                ({"input": [item("item_reference", id="x")]}, "input[0].type"),
                ({"input": [item("message", role="tool", content="x")]}, "input[0].role"),
                ({"input": [item("message", role="user", content=[{"type": "input_image", "image_url": "x"}])]}, "input[0].content"),
                ({"input": [item("function_call", name="f")]}, "input[0].call_id"),
                ({"previous_response_id": "resp_1"}, "previous_response_id"), ({"conversation": "c"}, "conversation"),
                ({"background": True}, "background"), ({"truncation": "auto"}, "truncation"), ({"n": 2}, "n"),
                ({"messages": []}, "messages"), ({"max_tokens": 3}, "max_tokens"), ({"max_output_tokens": 0}, "max_output_tokens"),
                ({"tools": [{"type": "function"}]}, "tools[0].name"), ({"tools": [{}], "tool_choice": "required"}, "tool_choice"),
                ({"text": {"format": {"type": "grammar"}}}, "text.format.type"), ({"text": {"wibble": 1}}, "text.wibble"),
                ({"input": ["x"] * 10_001}, "input"), ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
                ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "g"}}, "tool_choice.name"),
                ({"tool_choice": "all"}, "tool_choice"), ({"reasoning": {"effort": 1}}, "reasoning.effort"), ({"wibble": 1}, "wibble"), ({"temperature": "x"}, "temperature")):
            with self.assertRaises(ApiError, msg=fields) as caught:
                response_request.read({"input": "hi", **fields})
            self.assertEqual((caught.exception.status, caught.exception.param), (400, param), fields)


class OutputTest(unittest.TestCase):

    def form(self, reader, **fields):
        return ResponseForm("resp_1", "m", response_request.read({"input": "hi", "tools": [TOOL], **fields}), reader())

    @staticmethod
    def last(reason, num_tokens):
        return api.GenerateResponse(finish_reason=reason, usage=api.Usage(
            prompt_tokens=5, completion_tokens=num_tokens, cached_tokens=2))

    def events(self, form, parts, reason):
        events = form.first_chunks()
        for part in parts:
            events += form.chunks(0, api.GenerateResponse(text=part, token_ids=[1]), {})
        events += form.chunks(0, self.last(reason, len(parts)), {})
        self.assertEqual([one["sequence_number"] for one in events], list(range(len(events))))
        return events

    def replay(self, events):
        """The items that a client has who follows the events."""
        items = []
        for event in events:
            kind = event["type"].removeprefix("response.")
            if kind == "output_item.added":
                self.assertEqual(event["output_index"], len(items))
                items.append(event["item"])
            elif kind == "content_part.added":
                self.assertEqual(event["content_index"], len(items[-1]["content"]))
                items[-1]["content"].append(event["part"])
            elif kind in ("output_text.delta", "reasoning_text.delta"):
                items[-1]["content"][event["content_index"]]["text"] += event["delta"]
            elif kind == "function_call_arguments.delta":
                items[-1]["arguments"] += event["delta"]
            elif kind in ("output_text.done", "reasoning_text.done"):
                self.assertEqual(items[-1]["content"][0]["text"], event["text"])
            elif kind == "function_call_arguments.done":
                self.assertEqual(items[-1]["arguments"], event["arguments"])
            elif kind == "content_part.done":
                self.assertEqual(items[-1]["content"][0], event["part"])
            elif kind == "output_item.done":
                items[-1]["status"] = event["item"]["status"]
                self.assertEqual(items[-1], event["item"])
            if "item_id" in event:
                self.assertEqual((event["item_id"], event["output_index"]), (items[-1]["id"], len(items) - 1))
        return items

    def check(self, reader, text, *expected, reason=api.FINISH_REASON_STOP, **fields):
        """The same whole, in one piece and in characters."""
        def shape(items):
            return [(one["type"], one["content"][0]["text"] if "content" in one else (one["name"], one["arguments"]))
                    for one in items]
        status = "incomplete" if reason == LENGTH else "completed"
        for parts in ([text], list(text)):
            events = self.events(self.form(reader, **fields), parts, reason)
            self.assertEqual([one["type"] for one in events[:2]], ["response.created", "response.in_progress"])
            ended = events[-1]
            self.assertEqual((ended["type"], ended["response"]["status"]), (f"response.{status}", status))
            items = self.replay(events)
            self.assertEqual(items, ended["response"]["output"])
            self.assertEqual(shape(items), list(expected))
            self.assertEqual([one["status"] for one in items[:-1]], ["completed"] * len(items[:-1]))
            self.assertEqual([one["status"] for one in items[-1:]], [status] * len(items[-1:]))
            answer = Answer(keeps_messages=True)
            for part in parts:
                answer.add(api.GenerateResponse(text=part, token_ids=[1]))
            answer.add(self.last(reason, len(parts)))
            whole = self.form(reader, **fields).whole([answer], {})
            self.assertEqual((shape(whole["output"]), whole["status"]), (list(expected), status))
            self.assertEqual(whole["usage"], ended["response"]["usage"])
        return whole

    @staticmethod
    def thinking():
        return MarkedReader(ThoughtsReader(MARKERS["think"], Begins.BEFORE), HermesParser([]))

    def test_text(self):
        whole = self.check(self.thinking, "Hello.", ("message", "Hello."))
        self.assertEqual((whole["usage"]["output_tokens"], whole["usage"]["input_tokens_details"]["cached_tokens"]), (6, 2))
        self.assertEqual(whole["usage"]["output_tokens_details"], {"reasoning_tokens": 0})
        self.check(self.thinking, "")

    def test_thoughts_text_and_calls(self):
        whole = self.check(self.thinking, f"<think>\nSo.\n</think>\n\nI look.{CALL}\n{CALL}", ("reasoning", "So."),
                           ("message", "I look."), ("function_call", ("f", '{"a": 1}')), ("function_call", ("f", '{"a": 1}')))
        # A token is a character here: from the end of <think> to the beginning of </think> and what it may be.
        self.assertEqual(whole["usage"]["output_tokens_details"]["reasoning_tokens"], len(">\nSo.\n</think"))
        calls = whole["output"][2:]
        self.assertEqual(len({one["call_id"] for one in calls} | {one["id"] for one in calls}), 4)

    def test_forced_calls_come_in_parts(self):
        self.check(lambda: MarkedReader(ThoughtsReader(MARKERS["think"], Begins.WITHIN)), 'so</think>{"a": [1, 2]}',
                   ("reasoning", "so"), ("function_call", ("f", '{"a": [1, 2]}')),
                   tool_choice={"type": "function", "name": "f"})

    def test_a_call_tells_its_namespace(self):
        whole = self.check(lambda: MarkedReader(None), "{}", ("function_call", ("f", "{}")),
                           tools=[{"type": "namespace", "name": "mcp__x", "tools": [TOOL]}],
                           tool_choice={"type": "function", "namespace": "mcp__x", "name": "f"})
        self.assertEqual(whole["output"][0]["namespace"], "mcp__x")

    def test_channels_take_turns(self):
        text = ("<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
                "<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>")
        events = self.events(self.form(lambda: ChannelReader(GptOssParser())), list(text), api.FINISH_REASON_STOP)
        self.assertEqual([one["type"] for one in self.replay(events)], ["reasoning", "message", "function_call"])

    def test_a_call_is_complete_whatever_comes_after_it(self):
        events = self.events(self.form(self.thinking), [CALL, " and"], LENGTH)
        kinds = [one["type"].removeprefix("response.") for one in events]
        self.assertLess(kinds.index("function_call_arguments.done"), kinds.index("output_text.delta"))
        self.assertEqual([one["status"] for one in self.replay(events)], ["completed", "incomplete"])

    def test_what_is_cut_off_is_incomplete(self):
        whole = self.check(self.thinking, "Hel", ("message", "Hel"), reason=LENGTH)
        self.assertEqual(whole["incomplete_details"], {"reason": "max_output_tokens"})
        self.check(self.thinking, "<think>So", ("reasoning", "So"), reason=LENGTH)

    def test_an_error_is_an_event(self):
        form = self.form(self.thinking)
        form.first_chunks()
        self.assertEqual(form.failed(ApiError(503, "no", code="unavailable")), {
            "type": "error", "code": "unavailable", "message": "no", "param": None, "sequence_number": 2})


if __name__ == "__main__":
    unittest.main()
