"""HTTP around an endpoint: a bounded body in, a response or an error out.

A client that goes away cancels what is done for it.
"""

import asyncio
import contextlib
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from gateway import tracing
from gateway.access import calling_for, unauthenticated
from gateway.errors import ApiError, as_api_error, bad_request
from gateway.responses import Json, Streamed, disconnected

_LOG = logging.getLogger("gateway")
_BODY_TIMEOUT_S = 60

Answer = Callable[[object], Awaitable[Response]]  # of the body
Endpoint = Callable[[Request], Awaitable[Response]]
Admit = Callable[[], Awaitable[None]]  # raises if the caller may not
Place = Callable[[], contextlib.AbstractContextManager[None]]  # raises ApiError if there is none


def _authorization(request: Request) -> str:
    """The header, or Anthropic's in place of it; a proxy in front may have looked at another one of several."""
    values = request.headers.getlist("authorization")
    values = values or [f"Bearer {key}" for key in request.headers.getlist("x-api-key")]
    if len(values) > 1:
        raise unauthenticated("there are several headers Authorization, or X-Api-Key")
    return values[0] if values else ""


def check_site(request: Request, allowed_origins: list[str]) -> None:
    """Browsers send what pages of other sites post as plain text without asking first
    (https://fetch.spec.whatwg.org/#simple-header), but say where it comes from. Raises ApiError 403."""
    if request.headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return
    if "*" not in allowed_origins and request.headers.get("origin") not in allowed_origins:
        raise ApiError(403, "a page of another site asks, and --allowed-origin does not name it",
                       code="insufficient_permissions")


async def read_json(request: Request, max_bytes: int) -> object:
    """The body. Raises ApiError: 413 if it is too long, 408 if it does not come, 400 if not JSON."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            async for part in request.stream():
                body += part
                if len(body) > max_bytes:
                    raise ApiError(413, f"the body has more than {max_bytes} bytes")
    except ClientDisconnect:
        raise _client_gone() from None
    except TimeoutError:
        raise ApiError(408, f"the body did not come within {_BODY_TIMEOUT_S} s") from None
    return parse_json(body)


def parse_json(body: bytes | bytearray) -> object:
    """Raises ApiError 400 if it is not JSON, or not all of it is text."""
    try:
        # json itself would guess UTF-16 and let halves of pairs pass.
        value = json.loads(body.decode(), parse_constant=_no_constant, parse_float=_finite)
        if b"\\ud" in body.lower():  # half a surrogate pair is no text
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is not JSON: {_problem(error)}") from None
    return value


def _problem(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return str(error)
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "not Unicode text" if isinstance(error, UnicodeError) else "a number has too many digits"


def _client_gone() -> ApiError:
    """Nobody reads it; the log has its status."""
    return ApiError(499, "the client is gone")


def _finite(text: str) -> float:
    """No answer could repeat another one."""
    if math.isinf(value := float(text)):
        raise json.JSONDecodeError(f"the number {text[:20]} is not finite", text, 0)
    return value


def _no_constant(name: str):
    raise json.JSONDecodeError(f"{name} is no JSON number", name, 0)


def endpoint(answer: Answer, max_body_bytes: int, place: Place, admit: Admit,
             error_body: Callable[[ApiError], dict] = ApiError.body) -> Endpoint:
    """POST of JSON: errors as JSON, an end if the client goes away, and one line of log.

    `place` is held from the first byte of the body to the last of the answer; `admit` has passed
    before that byte is read.
    """

    async def respond(request: Request) -> Response:
        start = time.monotonic()
        tracing.enter(request.headers.get("traceparent"))
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(calling_for(_authorization(request)))
                await admit()
                release = stack.enter_context(contextlib.ExitStack())
                release.enter_context(place())
                body = await read_json(request, max_body_bytes)
                response = await _unless_gone(request, answer(body))
                if isinstance(response, Streamed):
                    response.call_at_end(release.pop_all().close)
        except Exception as error:
            api_error = as_api_error(error)
            response = Json(error_body(api_error), api_error.status, api_error.headers())
        _LOG.info("%s %s: %d after %.3f s", request.method, request.url.path,
                  response.status_code, time.monotonic() - start)
        return response

    return respond


def guarded(answer: Endpoint, admit: Admit) -> Endpoint:
    """GET, for callers that may generate."""

    async def respond(request: Request) -> Response:
        try:
            with calling_for(_authorization(request)):
                await admit()
            return await answer(request)
        except Exception as error:
            api_error = as_api_error(error)
            return Json(api_error.body(), api_error.status, api_error.headers())

    return respond


async def _unless_gone(request: Request, answer: Awaitable[Response]) -> Response:
    working = asyncio.ensure_future(answer)
    gone = asyncio.create_task(disconnected(request.receive))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise _client_gone()
    finally:
        working.cancel()
        gone.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)
