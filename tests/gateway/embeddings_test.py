"""Embeddings in several calls, against a coordinator that is a script."""

import asyncio
import base64
import json
import struct
import sys
import types
import unittest
from unittest import mock

import grpc

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import embeddings  # noqa: E402
from gateway.errors import ApiError  # noqa: E402
from gateway.fleet import Served  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402


def failure(code, details, pushback_ms=None):
    trailing = () if pushback_ms is None else (("grpc-retry-pushback-ms", str(pushback_ms)),)
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)


def full(pushback_ms=1):
    return failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full", pushback_ms)


class Call:
    """The answers to a request, in no order; or an error."""

    def __init__(self, request, error):
        self._messages = [] if error else [
            api.EmbedResponse(index=i, embedding=[len(one.text), 1 / 3],
                              usage=api.Usage(prompt_tokens=2))
            for i, one in enumerate(request.inputs)]
        self._error = error

    async def read(self):
        if self._error is not None:
            raise self._error
        return self._messages.pop() if self._messages else grpc.aio.EOF

    def cancel(self):
        pass


class ScriptedCoordinator:
    model = types.SimpleNamespace(id='a "model"')

    def __init__(self, errors):
        self.in_flight = 0
        self._errors = list(errors)  # of its calls; None: it is answered
        self.calls = []

    def embed(self, request, timeout_s):
        self.calls.append((len(request.inputs), request.request_id, timeout_s))
        return Call(request, self._errors.pop(0) if self._errors else None)


class EmbeddingsTest(unittest.IsolatedAsyncioTestCase):

    async def answer(self, body, errors=(), timeout_s=100, coordinator=ScriptedCoordinator):
        self.coordinator = coordinator(errors)
        service = types.SimpleNamespace(
            fleet=types.SimpleNamespace(pick=lambda model: Served(
                self.coordinator, self.coordinator.model.id, "")),
            config=types.SimpleNamespace(request_timeout_s=timeout_s))
        response = await embeddings.answer(service, body)
        sent = []

        async def send(message):
            sent.append(message)

        async def never():
            await asyncio.Event().wait()

        await response({}, never, send)
        self.assertEqual(self.coordinator.in_flight, 0)
        return json.loads(b"".join(one["body"] for one in sent[1:]))

    async def refusal(self, *args, **kwargs):
        with self.assertRaises(ApiError) as caught:
            await self.answer(*args, **kwargs)
        return caught.exception

    async def test_many_inputs_keep_their_order(self):
        texts = ["x" * (1 + i % 7) for i in range(70)]
        answer = await self.answer({"input": texts})
        self.assertEqual([one["embedding"][0] for one in answer["data"]],
                         [len(one) for one in texts])
        self.assertEqual([one["index"] for one in answer["data"]], list(range(70)))
        self.assertEqual(answer["usage"], {"prompt_tokens": 140, "total_tokens": 140})
        self.assertEqual((answer["object"], answer["model"]), ("list", 'a "model"'))
        self.assertEqual([one[0] for one in self.coordinator.calls], [32, 32, 6])
        ids = [one[1] for one in self.coordinator.calls]
        self.assertRegex(ids[0], "^embd-[0-9a-f]{32}-0$")
        self.assertEqual(ids[1:], [ids[0][:-1] + "1", ids[0][:-1] + "2"])

    async def test_lists_have_the_digits_of_a_float(self):
        answer = await self.answer({"input": "x"})
        self.assertEqual(answer["data"][0]["embedding"], [1, 0.333333343])
        coded = await self.answer({"input": "x", "encoding_format": "base64"})
        self.assertEqual(base64.b64decode(coded["data"][0]["embedding"]), struct.pack("<2f", 1, 1 / 3))

    async def test_a_full_server_is_waited_for_once_something_is_computed(self):
        answer = await self.answer({"input": ["x"] * 40}, [None, full(), full()])
        self.assertEqual(len(answer["data"]), 40)
        self.assertEqual([one[0] for one in self.coordinator.calls], [32, 8, 8, 8])
        first = await self.refusal({"input": ["x"] * 40}, [full()])
        self.assertEqual((first.status, first.message), (429, "the queue is full"))

    async def test_a_server_that_ends_is_not_waited_for(self):
        ending = failure(grpc.StatusCode.UNAVAILABLE, "the server is shutting down", 1)
        error = await self.refusal({"input": ["x"] * 40}, [None, ending])
        self.assertEqual((error.status, len(self.coordinator.calls)), (503, 2))

    async def test_pauses_grow(self):
        with mock.patch.object(asyncio, "sleep", wraps=asyncio.sleep) as sleep:
            await self.answer({"input": ["x"] * 40}, [None, full(), full(), full()])
        pauses = [call.args[0] for call in sleep.call_args_list if call.args[0] > 0]
        self.assertEqual(pauses, [0.001, 0.002, 0.004])

    async def test_another_model_is_not_mixed_in(self):
        class Restarted(ScriptedCoordinator):
            def embed(self, request, timeout_s):
                if self.calls:
                    self.model = types.SimpleNamespace(id="another")
                return super().embed(request, timeout_s)

        error = await self.refusal({"input": ["x"] * 40}, coordinator=Restarted)
        self.assertEqual((error.status, error.message),
                         (503, "the server was restarted with another model"))

    async def test_not_beyond_the_requests_time(self):
        late = await self.refusal({"input": ["x"] * 40}, [None, full(pushback_ms=200_000)])
        self.assertEqual((late.status, late.retry_after_s), (429, 200))
        self.assertLess(self.coordinator.calls[1][2], self.coordinator.calls[0][2])

    async def test_errors_name_the_clients_input(self):
        def refused(details):
            return failure(grpc.StatusCode.INVALID_ARGUMENT, details)

        error = await self.refusal({"input": ["x"] * 40}, [None, refused("inputs[2]: it is bad")])
        self.assertEqual((error.status, error.message, error.param),
                         (400, "input[34]: it is bad", "input[34]"))
        error = await self.refusal({"input": "x"}, [refused("dimensions is 9, it must be less")])
        self.assertEqual((error.message, error.param),
                         ("dimensions is 9, it must be less", "dimensions"))

    async def test_no_more_values_than_an_answer_may_have(self):
        with mock.patch.object(embeddings, "MAX_VALUES", 79):
            error = await self.refusal({"input": ["x"] * 40})
        self.assertEqual((error.status, error.message),
                         (413, "40 inputs of 2 values each are more than 79 values"))
        self.assertEqual(len(self.coordinator.calls), 1)


if __name__ == "__main__":
    unittest.main()
