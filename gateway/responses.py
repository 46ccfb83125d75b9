"""Responses: JSON, and bodies that are sent while they are made."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator

from starlette.responses import Response

from gateway.errors import ApiError, as_api_error

_LOG = logging.getLogger("gateway")
_SEND_TIMEOUT_S = 60
_PING_S = 15  # proxies take a connection for dead after a minute without a byte
_PING = b": ping\n\n"  # a comment
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_LONG = 256  # elements of a list that are encoded at once, with the interpreter held
DONE = "data: [DONE]\n\n"  # OpenAI's older endpoints end a stream with it
_DEPTH = 5  # of the lists of log-probabilities in an answer


def json_pieces(value: object, depth: int = _DEPTH) -> Iterator[str]:
    """The JSON of a value, between whose pieces other threads may run."""
    if depth == 0 or not isinstance(value, (dict, list)):
        yield _encode(value)
    elif isinstance(value, dict):
        start = "{"
        for key, one in value.items():
            yield f"{start}{_encode(key)}:"
            yield from json_pieces(one, depth - 1)
            start = ","
        yield "}" if value else "{}"
    elif len(value) > _LONG:
        for begin in range(0, len(value), _LONG):
            yield ("," if begin else "[") + _encode(value[begin:begin + _LONG])[1:-1]
        yield "]"
    else:
        start = "["
        for one in value:
            yield start
            yield from json_pieces(one, depth - 1)
            start = ","
        yield "]" if value else "[]"


class Json(Response):
    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return _encode(content).encode()


class Streamed(Response):
    """A body that is made while it is sent.

    A client that does not read is left after _SEND_TIMEOUT_S.
    """

    def __init__(self, media_type: str, headers: dict[str, str]):
        super().__init__(headers=headers, media_type=media_type)
        del self.headers["content-length"]
        self._closers: list[Callable[[], None]] = []

    def call_at_end(self, close: Callable[[], None]) -> None:
        self._closers.append(close)

    async def __call__(self, scope, receive, send) -> None:
        if scope.get("http_version") == "1.0":  # knows no body without a length
            send = _Whole(self, send)
        sending = asyncio.create_task(self._send(send))
        gone = asyncio.create_task(disconnected(receive))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            gone.cancel()
            for close in self._closers:
                close()
            await asyncio.gather(sending, gone, return_exceptions=True)

    async def _send(self, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            await self._send_body(send)
        except _NotRead:
            _LOG.info("a stream was not read for %d s", _SEND_TIMEOUT_S)
        except Exception:
            _LOG.exception("a response ends before its end")  # which cuts the connection

    async def _send_body(self, send) -> None:
        raise NotImplementedError


class _Whole:
    """Sends a response when it is whole, with its length."""

    def __init__(self, response: Response, send):
        self._response = response
        self._send = send
        self._body = bytearray()

    async def __call__(self, message: dict) -> None:
        if message["type"] == "http.response.start":
            return
        self._body += message["body"]
        if message.get("more_body"):
            return
        self._response.headers["content-length"] = str(len(self._body))
        await self._send({"type": "http.response.start", "status": 200, "headers": self._response.raw_headers})
        await self._send({"type": "http.response.body", "body": bytes(self._body)})


class EventStream(Streamed):
    """Server-sent events, each a `data:` line of JSON, then `end`.

    An error in the middle is an event, as `failed` has it, and ends the stream without `end`. While none comes
    there is a comment every `ping_s`.
    """

    def __init__(self, events: AsyncIterator[list[dict]], close: Callable[[], None],
                 headers: dict[str, str], failed: Callable[[ApiError], dict] = ApiError.body,
                 end: str = DONE, ping_s: float = _PING_S):
        super().__init__("text/event-stream", {"cache-control": "no-cache", **headers})
        self._events = events
        self._failed = failed
        self._end = end
        self._ping_s = ping_s
        self._sent_at = 0.0
        self.call_at_end(close)

    async def _send_body(self, send) -> None:
        pinging = asyncio.create_task(self._send_pings(send))
        try:
            end = await self._send_events(send)
        finally:
            pinging.cancel()
        await send({"type": "http.response.body", "body": end.encode()})

    async def _send_events(self, send) -> str:
        """Returns what ends the stream."""
        try:
            async for events in self._events:
                data = "".join([_event(one) for one in events])
                self._sent_at = asyncio.get_running_loop().time()
                await _push(send, data.encode())
            return self._end
        except _NotRead:
            raise
        except Exception as error:
            api_error = as_api_error(error)
            _LOG.info("a stream ended with %d", api_error.status)
            return _event(self._failed(api_error))

    async def _send_pings(self, send) -> None:
        loop = asyncio.get_running_loop()
        self._sent_at = loop.time()
        with contextlib.suppress(_NotRead):  # then events are not read either
            while True:
                await asyncio.sleep(max(self._sent_at + self._ping_s - loop.time(), 0))
                if loop.time() >= self._sent_at + self._ping_s:
                    self._sent_at = loop.time()
                    await _push(send, _PING)


def _event(value: dict) -> str:
    """With its name, if it has one."""
    name = f"event: {value['type']}\n" if "type" in value else ""
    return f"{name}data: {_encode(value)}\n\n"


class JsonPieces(Streamed):
    """One JSON value that is too long to be encoded at once: other requests run between pieces."""

    def __init__(self, pieces: Iterator[str], headers: dict[str, str]):
        super().__init__(Json.media_type, headers)
        self._pieces = pieces

    async def _send_body(self, send) -> None:
        for piece in self._pieces:
            await _push(send, piece.encode())
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})


class _NotRead(Exception):
    pass


async def _push(send, data: bytes) -> None:
    """Waits while the client does not read; raises _NotRead if that takes too long."""
    try:
        async with asyncio.timeout(_SEND_TIMEOUT_S):
            await send({"type": "http.response.body", "body": data, "more_body": True})
    except TimeoutError:
        raise _NotRead from None


async def disconnected(receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
