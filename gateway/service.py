"""What every endpoint works with, and how a generation becomes a response."""

import asyncio
import contextlib
import dataclasses
import uuid
from collections.abc import Callable, Iterator
from typing import Protocol

from starlette.responses import Response

from gateway import logprobs
from gateway.backend import Coordinator
from gateway.config import Config
from gateway.errors import ApiError
from gateway.fleet import Fleet
from gateway.generation import Answer, Generation, gather
from gateway.limits import check_messages
from gateway.responses import EventStream, Json, json_pieces
from gateway.template_pool import TemplatePool
from tandem.v1 import generation_pb2 as api


# A stream begins then, if no message has come: clients and proxies wait so long for headers alone, not for a body.
_STATUS_AFTER_S = 10
_MANY = 500  # entries of log-probabilities, up to 21 tokens each


@dataclasses.dataclass
class Service:
    config: Config
    fleet: Fleet
    templates: TemplatePool
    num_requests: int = 0

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """One of --max-requests places, until the response is sent."""
        if self.num_requests >= self.config.max_requests:
            raise ApiError(429, f"{self.num_requests} requests are in progress, at most "
                           f"{self.config.max_requests}", kind="rate_limit_error",
                           code="rate_limit_exceeded")
        self.num_requests += 1
        try:
            yield
        finally:
            self.num_requests -= 1


class Form(Protocol):
    """The JSON of an endpoint's answers. `end`: of a stream, after its chunks; `by_message`: whole
    answers need their messages."""

    end: str
    by_message: bool

    def whole(self, answers: list[Answer], pieces: logprobs.Pieces) -> dict: ...
    def first_chunks(self) -> list[dict]: ...
    def chunks(self, index: int, message: api.GenerateResponse,
               pieces: logprobs.Pieces) -> list[dict]: ...
    def last_chunk(self) -> dict | None: ...
    def failed(self, error: ApiError) -> dict: ...  # a chunk, after which none comes


def new_id(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex}"


async def respond(service: Service, coordinator: Coordinator, id: str,
                  requests: list[api.GenerateRequest], form: Form, stream: bool,
                  more_ids: set[int] = frozenset()) -> Response:
    """`more_ids`: of tokens that the form needs beside those in the messages."""
    check_messages(requests)
    headers = {"x-request-id": id}
    generation = Generation(coordinator, requests, service.config.request_timeout_s)
    with contextlib.ExitStack() as closing:
        closing.callback(generation.close)
        if not stream:
            answers = await gather(generation, form.by_message)
            pieces = await _pieces(coordinator, answers, more_ids)
            if sum(_work_of(one) for one in answers) < _MANY:
                return Json(form.whole(answers, pieces), headers=headers)
            body = await _on_a_thread(lambda: "".join(json_pieces(form.whole(answers, pieces))).encode())
            return Response(body, headers=headers, media_type=Json.media_type)
        messages = generation.messages()
        first = asyncio.ensure_future(anext(messages))
        closing.callback(first.cancel)
        # An error that comes before is the response's status.
        await asyncio.wait((first,), timeout=_STATUS_AFTER_S)
        if first.done():
            first.result()
        events = _events(coordinator, first, messages, form, more_ids)
        closing.pop_all()  # the stream does it at its end
        return EventStream(events, generation.close, headers, form.failed, form.end)


def _work_of(answer: Answer) -> int:
    """In such entries: ten messages are about one."""
    return len(answer.logprobs) + len(answer.prompt_logprobs) + len(answer.messages) // 10


async def _on_a_thread(work: Callable[[], bytes]) -> bytes:
    """Does what takes seconds while other requests go on. It can't be stopped: who cancels waits."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


async def _events(coordinator: Coordinator, first: asyncio.Future, messages, form: Form, more_ids: set[int]):
    """Lists of chunks."""
    yield form.first_chunks() + await _chunks(coordinator, *await first, form, more_ids)
    async for index, message in messages:
        if chunks := await _chunks(coordinator, index, message, form, more_ids):
            yield chunks
    if (last := form.last_chunk()) is not None:
        yield [last]


async def _chunks(coordinator: Coordinator, index: int, message: api.GenerateResponse, form: Form,
                  more_ids: set[int]) -> list[dict]:
    pieces = {}
    if message.logprobs or message.prompt_logprobs:
        pieces = await _pieces(coordinator, [message], more_ids)
    return form.chunks(index, message, pieces)


async def _pieces(coordinator: Coordinator, parts, more_ids: set[int]) -> logprobs.Pieces:
    ids = set()
    for part in parts:
        ids |= logprobs.ids_of(part.logprobs) | logprobs.ids_of(part.prompt_logprobs)
    return await coordinator.pieces(ids | more_ids) if ids else {}
