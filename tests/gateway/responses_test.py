"""Streamed responses: what is sent, and what is released when."""

import asyncio
import json
import sys
import unittest
from unittest import mock

import grpc

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import responses, service  # noqa: E402
from gateway.errors import unavailable  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402


async def never(*_):
    await asyncio.Event().wait()


async def two_events():
    yield [{"a": 1}]
    yield [{"b": 2}, {"c": 3}]


async def an_error():
    yield [{"a": 1}]
    raise unavailable("the server is gone")


class ResponsesTest(unittest.IsolatedAsyncioTestCase):

    def setUp(self):
        self.sent = []
        self.closed = []

    async def send(self, message):
        self.sent.append(message)

    async def run_stream(self, events, receive, send):
        stream = responses.EventStream(events, lambda: self.closed.append("call"), {"x-request-id": "1"})
        stream.call_at_end(lambda: self.closed.append("place"))
        await stream({}, receive, send)

    def body(self):
        return b"".join(one["body"] for one in self.sent[1:]).decode()

    async def test_events_and_done(self):
        await self.run_stream(two_events(), never, self.send)
        self.assertEqual(self.body(),
                         'data: {"a":1}\n\ndata: {"b":2}\n\ndata: {"c":3}\n\ndata: [DONE]\n\n')
        self.assertEqual((self.sent[0]["status"], self.closed), (200, ["call", "place"]))

    async def test_comments_while_no_event_comes(self):
        pinged = asyncio.Event()

        async def late_event():
            await pinged.wait()
            yield [{"a": 1}]

        async def send(message):
            self.sent.append(message)
            if message.get("body") == b": ping\n\n":
                pinged.set()

        stream = responses.EventStream(late_event(), lambda: None, {}, ping_s=0)
        await stream({}, never, send)
        self.assertRegex(self.body(), r'\A(: ping\n\n)+data: {"a":1}\n\n(: ping\n\n)*data: \[DONE\]\n\n\Z')

    async def test_whole_where_no_chunks_are_known(self):
        stream = responses.EventStream(two_events(), lambda: None, {})
        await stream({"http_version": "1.0"}, never, self.send)
        self.assertEqual(len(self.sent), 2)
        self.assertEqual(dict(self.sent[0]["headers"])[b"content-length"], str(len(self.body())).encode())
        self.assertTrue(self.body().endswith("data: [DONE]\n\n"))

    async def test_an_error_is_the_last_event(self):
        with self.assertLogs("gateway", "INFO") as logs:
            await self.run_stream(an_error(), never, self.send)
        self.assertRegex(self.body(), r'^data: {"a":1}\n\ndata: {"error":{.*is gone.*}}\n\n$')
        self.assertIn("a stream ended with 503", logs.output[0])

    async def send_pieces(self, pieces, receive, send, version="1.1"):
        response = responses.JsonPieces(pieces, {"x-request-id": "1"})
        response.call_at_end(lambda: self.closed.append("place"))
        await response({"http_version": version}, receive, send)
        self.assertEqual(self.closed, ["place"])

    async def test_pieces_are_one_body(self):
        await self.send_pieces(iter(["[1", ",2", "]"]), never, self.send)
        self.assertEqual(self.body(), "[1,2]")
        self.assertNotIn(b"content-length", dict(self.sent[0]["headers"]))

    async def test_json_in_pieces_is_the_same_json(self):
        entries = [{"token": str(i), "top": [{"a": [1, None]}]} for i in range(1000)]
        for value in ({}, [], {"a": []}, [{}], {"choices": [{"logprobs": {"content": entries}, "text": "\u00fc"}] * 3},
                      list(range(257)), {"a": {"b": {"c": {"d": {"e": {"f": [1.5, True]}}}}}}):
            self.assertEqual("".join(responses.json_pieces(value)),
                             json.dumps(value, separators=(",", ":")))

    async def test_pieces_with_a_length_where_no_chunks_are_known(self):
        await self.send_pieces(iter(['["\u00e4"', "]"]), never, self.send, version="1.0")
        self.assertEqual(self.body(), '["\u00e4"]')
        self.assertEqual(dict(self.sent[0]["headers"])[b"content-length"], b"6")

    async def test_an_error_between_pieces_is_logged(self):
        def pieces():
            yield "["
            raise RuntimeError("no more")

        with self.assertLogs("gateway", "ERROR") as logs:
            await self.send_pieces(pieces(), never, self.send)
        self.assertIn("no more", logs.output[0])
        self.assertTrue(self.sent[-1]["more_body"], "the body is cut, not ended")

    async def test_pieces_for_a_client_that_goes(self):
        async def gone():
            return {"type": "http.disconnect"}

        await self.send_pieces(iter(["[", "]"]), gone, never)

    async def test_pieces_that_are_not_read(self):
        async def send(message):
            if message["type"] == "http.response.body":
                await never()

        with mock.patch.object(responses, "_SEND_TIMEOUT_S", 0), self.assertLogs("gateway", "INFO"):
            await self.send_pieces(iter(["[", "]"]), never, send)

    async def test_a_client_that_goes_ends_it(self):
        async def gone():
            return {"type": "http.disconnect"}

        await self.run_stream(two_events(), gone, never)
        self.assertEqual(self.closed, ["call", "place"])

    async def test_a_client_that_does_not_read_is_left(self):
        async def send(message):
            if message["type"] == "http.response.body":
                await never()

        with mock.patch.object(responses, "_SEND_TIMEOUT_S", 0), self.assertLogs("gateway", "INFO"):
            await self.run_stream(two_events(), never, send)
        self.assertEqual(self.closed, ["call", "place"])


class WaitingCall:
    """Of a coordinator that sends its first message when it is told to."""

    in_flight = 0

    def __init__(self, error=None):
        self.may_send = asyncio.Event()
        self.cancelled = False
        self._error = error
        self._messages = [api.GenerateResponse(finish_reason=api.FINISH_REASON_STOP)]

    def generate(self, *_):
        return self

    def cancel(self):
        self.cancelled = True

    async def read(self):
        await self.may_send.wait()
        if self._error:
            raise self._error
        return self._messages.pop() if self._messages else grpc.aio.EOF


class SlowStartTest(unittest.IsolatedAsyncioTestCase):

    async def asyncSetUp(self):
        patch = mock.patch.object(service, "_STATUS_AFTER_S", 0)
        patch.start()
        self.addCleanup(patch.stop)

    async def start(self, call):
        form = mock.Mock(end=responses.DONE, first_chunks=lambda: [{"a": 1}], chunks=lambda *_: [], last_chunk=lambda: None,
                         failed=lambda error: error.body())
        config = mock.Mock(request_timeout_s=1)
        return await service.respond(mock.Mock(config=config), call, "1", [api.GenerateRequest()], form, stream=True)

    async def body_of(self, stream, receive=never):
        sent = []

        async def send(message):
            sent.append(message)

        await stream({}, receive, send)
        self.assertEqual(sent[0]["status"], 200)
        return b"".join(one["body"] for one in sent[1:]).decode()

    async def test_the_stream_begins_before_the_first_message(self):
        call = WaitingCall()
        stream = await self.start(call)
        call.may_send.set()
        self.assertEqual(await self.body_of(stream), 'data: {"a":1}\n\ndata: [DONE]\n\n')

    async def test_an_error_is_then_an_event(self):
        call = WaitingCall(unavailable("no server"))
        stream = await self.start(call)
        call.may_send.set()
        self.assertRegex(await self.body_of(stream), r'^data: {"error":{"message":"no server"')

    async def test_a_client_may_go_before_it(self):
        async def gone():
            return {"type": "http.disconnect"}

        async def send(_):
            pass

        call = WaitingCall()
        stream = await self.start(call)
        await stream({}, gone, send)
        self.assertTrue(call.cancelled)


if __name__ == "__main__":
    unittest.main()
