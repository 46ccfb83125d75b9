"""Errors as OpenAI's API states them: a status and {"error": {message, type, param, code}}."""

import logging
import math
import re

import grpc

_LOG = logging.getLogger("gateway")

MAX_MESSAGE_CHARS = 1000
TOO_LONG = "context_length_exceeded"  # a code
RETRY_AFTER_S = 1  # a place in the coordinator's queue is free again within a step or two


class ApiError(Exception):
    """What a client is told.

    A message may quote the request: it becomes one line of at most MAX_MESSAGE_CHARS characters.
    """

    def __init__(self, status: int, message: str, *, kind: str = "invalid_request_error",
                 param: str | None = None, code: str | None = None,
                 retry_after_s: int = RETRY_AFTER_S):
        self.message = _one_line(message)
        super().__init__(self.message)
        self.retry_after_s = retry_after_s
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code

    def body(self) -> dict:
        return {"error": {"message": self.message, "type": self.kind, "param": self.param,
                          "code": self.code}}

    def headers(self) -> dict[str, str]:
        if self.status == 401:
            return {"www-authenticate": "Bearer"}
        return {"retry-after": str(self.retry_after_s)} if self.status in (429, 503) else {}


def _one_line(text: str) -> str:
    line = "".join(one if one.isprintable() else one.encode("unicode_escape").decode()
                   for one in text[:MAX_MESSAGE_CHARS + 1])
    return line if len(line) <= MAX_MESSAGE_CHARS else line[:MAX_MESSAGE_CHARS - 1] + "\u2026"


def bad_request(message: str, param: str | None = None) -> ApiError:
    return ApiError(400, message, param=param)


def renamed(error: ApiError, names: dict[str, str]) -> ApiError:
    """Of a body that was read as another one: with the names that its fields have here."""
    for name, here in names.items():
        if (error.param or "").startswith(name):
            param = here + error.param.removeprefix(name)
            return bad_request(error.message.replace(error.param, param, 1), param)
    return error


def unavailable(message: str) -> ApiError:
    return ApiError(503, message, kind="server_error", code="unavailable")


def none_ready() -> ApiError:
    return unavailable("no server is ready: the model is being loaded, or none can be reached")


# gRPC status -> (HTTP status, OpenAI's type, code). Others are 500.
_BY_GRPC = {
    grpc.StatusCode.INVALID_ARGUMENT: (400, "invalid_request_error", None),
    grpc.StatusCode.OUT_OF_RANGE: (400, "invalid_request_error", None),
    grpc.StatusCode.FAILED_PRECONDITION: (400, "invalid_request_error", None),
    grpc.StatusCode.UNAUTHENTICATED: (401, "invalid_request_error", "invalid_api_key"),
    grpc.StatusCode.PERMISSION_DENIED: (403, "invalid_request_error", "insufficient_permissions"),
    grpc.StatusCode.NOT_FOUND: (404, "invalid_request_error", "not_found"),
    grpc.StatusCode.ALREADY_EXISTS: (409, "invalid_request_error", "already_exists"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (429, "rate_limit_error", "rate_limit_exceeded"),
    grpc.StatusCode.UNIMPLEMENTED: (501, "server_error", "unimplemented"),
    grpc.StatusCode.CANCELLED: (503, "server_error", "unavailable"),
    grpc.StatusCode.UNAVAILABLE: (503, "server_error", "unavailable"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (504, "server_error", "timeout"),
}

# The coordinator's words (coordinator/scheduler/admission.cc). Clients know a conversation that is too long, which
# they shorten, by OpenAI's code and words.
_TOO_LONG = re.compile(r" exceeds? the context of (?P<context>\d+) tokens| needs? \d+ KV blocks")


def as_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, grpc.aio.AioRpcError):
        return from_grpc(error)
    _LOG.error("a request failed", exc_info=error)
    return ApiError(500, "internal error of the gateway", kind="server_error", code="internal")


def from_grpc(error: grpc.aio.AioRpcError) -> ApiError:
    status, kind, code = _BY_GRPC.get(error.code(), (500, "server_error", "internal"))
    message = error.details() or error.code().name
    if status == 400 and (too_long := _TOO_LONG.search(message)):
        code = TOO_LONG
        if limit := too_long.group("context"):
            message = f"This model's maximum context length is {limit} tokens: {message}"
    field = re.match(r"sampling\.(\w+)", message)  # the coordinator's names are the API's
    return ApiError(status, message, kind=kind, code=code, param=field and field.group(1),
                    retry_after_s=_retry_after_s(error))


def pushback_s(error: grpc.aio.AioRpcError) -> float | None:
    """After what time the server asks for another attempt, in the header that gRPC's own retries
    obey, too (gRFC A6)."""
    for name, value in error.trailing_metadata() or ():
        if name == "grpc-retry-pushback-ms" and str(value).isdecimal():
            return int(value) / 1000
    return None


def _retry_after_s(error: grpc.aio.AioRpcError) -> int:
    return max(RETRY_AFTER_S, math.ceil(pushback_s(error) or 0))
