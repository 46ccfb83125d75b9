"""POST /v1/embeddings."""

import asyncio
import base64
import contextlib
import json
import re
import struct
from collections.abc import Iterator

import grpc
from starlette.responses import Response

from gateway import embedding_request
from gateway.backend import Coordinator
from gateway.errors import ApiError, from_grpc, pushback_s, unavailable
from gateway.limits import check_prompts
from gateway.responses import JsonPieces
from gateway.service import Service, new_id
from tandem.v1 import generation_pb2 as api

MAX_VALUES = 1 << 23  # of an answer: 32 MiB while it is gathered
_MOST_DOUBLINGS = 5


async def answer(service: Service, body: object) -> Response:
    request = embedding_request.read(body)
    served = service.fleet.pick(request.model)
    coordinator = served.coordinator
    check_prompts(request.inputs)
    id = new_id("embd")
    deadline = asyncio.get_running_loop().time() + service.config.request_timeout_s
    model = coordinator.model
    answers: list[api.EmbedResponse] = []
    with _counted(coordinator, len(request.inputs)):
        for call in embedding_request.batches(request, id):  # one by one: none fills the queue
            call.adapter = served.adapter
            answers += await _embed(coordinator, call, deadline, len(answers))
            _check_values(len(request.inputs), len(answers[0].embedding))
            if coordinator.model != model:
                raise unavailable("the server was restarted with another model")
    return JsonPieces(_pieces(served.id, answers, request.base64), headers={"x-request-id": id})


@contextlib.contextmanager
def _counted(coordinator: Coordinator, num_inputs: int) -> Iterator[None]:
    """As load of the coordinator, also while it is waited for."""
    coordinator.in_flight += num_inputs
    try:
        yield
    finally:
        coordinator.in_flight -= num_inputs


async def _embed(coordinator: Coordinator, request: api.EmbedRequest, deadline: float,
                 begin: int) -> list[api.EmbedResponse]:
    """Of the inputs from number `begin` on. After the first ones it waits while the server is full,
    or the caller's rate used up, rather than give up what is computed."""
    now = asyncio.get_running_loop().time
    attempts = 0
    while True:
        try:
            return await _call(coordinator, request, max(deadline - now(), 0))
        except grpc.aio.AioRpcError as error:
            pause_s = _pause_s(error, attempts)
            if begin == 0 or pause_s is None or now() + pause_s >= deadline:
                raise _named(error, begin) from None
            await asyncio.sleep(pause_s)
            attempts += 1


def _pause_s(error: grpc.aio.AioRpcError, attempts: int) -> float | None:
    """As the server asks, and twice as long each time: an attempt counts against the rate."""
    asked = pushback_s(error)
    if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED or asked is None:
        return None
    return asked * 2**min(attempts, _MOST_DOUBLINGS)


async def _call(coordinator: Coordinator, request: api.EmbedRequest,
                timeout_s: float) -> list[api.EmbedResponse]:
    """In the order of the inputs."""
    call = coordinator.embed(request, timeout_s)
    answers = {}
    try:
        while (message := await call.read()) is not grpc.aio.EOF:
            if message.finish_reason == api.FINISH_REASON_CANCELLED:
                raise unavailable("the server is shutting down")
            answers[message.index] = message
    finally:
        call.cancel()  # no effect on one that has ended
    return [answers[i] for i in range(len(request.inputs))]


def _named(error: grpc.aio.AioRpcError, begin: int) -> ApiError:
    """With the client's name and number of what is wrong."""
    api_error = from_grpc(error)
    if found := re.match(r"inputs\[(\d+)\](.*)", api_error.message, re.DOTALL):
        api_error.param = f"input[{begin + int(found.group(1))}]"
        api_error.message = api_error.param + found.group(2)
    elif api_error.message.startswith("dimensions "):
        api_error.param = "dimensions"
    return api_error


def _check_values(num_inputs: int, dimensions: int) -> None:
    if num_inputs * dimensions > MAX_VALUES:
        raise ApiError(413, f"{num_inputs} inputs of {dimensions} values each are more than "
                       f"{MAX_VALUES} values", param="input")


def _pieces(model: str, answers: list[api.EmbedResponse], as_base64: bool) -> Iterator[str]:
    """The answer's JSON: a piece for each input."""
    encode = _base64 if as_base64 else _list
    yield f'{{"object":"list","model":{json.dumps(model)},"data":['
    for i, one in enumerate(answers):
        yield f'{"," if i else ""}{{"object":"embedding","index":{i},"embedding":{encode(one)}}}'
    tokens = sum(one.usage.prompt_tokens for one in answers)
    yield f'],"usage":{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}}}'


def _list(answer: api.EmbedResponse) -> str:
    """Nine digits tell all 32-bit floats apart."""
    return f"[{','.join(['%.9g' % value for value in answer.embedding])}]"


def _base64(answer: api.EmbedResponse) -> str:
    """Of 32-bit floats, little-endian: what OpenAI's clients ask for."""
    data = struct.pack(f"<{len(answer.embedding)}f", *answer.embedding)
    return f'"{base64.b64encode(data).decode()}"'
