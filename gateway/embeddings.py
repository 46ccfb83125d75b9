"""POST /v1/embeddings."""

import base64
import struct

import grpc
from starlette.responses import Response

from gateway import embedding_request
from gateway.backend import Coordinator
from gateway.errors import unavailable
from gateway.http import Json
from gateway.limits import check_prompts
from gateway.service import Service
from tandem.v1 import generation_pb2 as api


async def answer(service: Service, body: object) -> Response:
    request = embedding_request.read(body)
    coordinator = service.fleet.pick(request.model)
    check_prompts(request.inputs)
    answers: list[api.EmbedResponse] = []
    for call in embedding_request.batches(request):  # one by one: none takes the whole queue
        answers += await _embed(coordinator, call, service.config.request_timeout_s)
    tokens = sum(one.usage.prompt_tokens for one in answers)
    return Json({
        "object": "list", "model": coordinator.model.id,
        "data": [{"object": "embedding", "index": i,
                  "embedding": _base64(one) if request.base64 else list(one.embedding)}
                 for i, one in enumerate(answers)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})


async def _embed(coordinator: Coordinator, request: api.EmbedRequest,
                 timeout_s: float) -> list[api.EmbedResponse]:
    """In the order of the inputs."""
    call = coordinator.embed(request, timeout_s)
    coordinator.in_flight += len(request.inputs)
    answers = {}
    try:
        while (message := await call.read()) is not grpc.aio.EOF:
            if message.finish_reason == api.FINISH_REASON_CANCELLED:
                raise unavailable("the server is shutting down")
            answers[message.index] = message
    finally:
        call.cancel()  # no effect on one that has ended
        coordinator.in_flight -= len(request.inputs)
    return [answers[i] for i in range(len(request.inputs))]


def _base64(answer: api.EmbedResponse) -> str:
    """Of 32-bit floats, little-endian: what OpenAI's clients ask for."""
    return base64.b64encode(struct.pack(f"<{len(answer.embedding)}f", *answer.embedding)).decode()
