"""How this gateway reaches a server: TLS, its own token, and the token of whoever it calls for."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator

import grpc

from gateway import tracing
from gateway.errors import ApiError

_MAX_AUTHORIZATION_BYTES = 4200  # a token has 4096 at most
# Of the HTTP request that is being answered; "" without one.
_caller: contextvars.ContextVar[str] = contextvars.ContextVar("authorization", default="")

Headers = tuple[tuple[str, str], ...]


@contextlib.contextmanager
def calling_for(authorization: str) -> Iterator[None]:
    """Calls made inside, and in tasks started inside, show the caller's token."""
    if not (authorization.isascii() and authorization.isprintable()
            and len(authorization) <= _MAX_AUTHORIZATION_BYTES):
        raise unauthenticated("the header Authorization is not 'Bearer TOKEN'")
    before = _caller.set(authorization)
    try:
        yield
    finally:
        _caller.reset(before)


def caller() -> str:
    return _caller.get()


def unauthenticated(message: str) -> ApiError:
    return ApiError(401, message, code="invalid_api_key")


@dataclasses.dataclass(frozen=True)
class Access:
    """Of all servers alike. `parent_token`: of the coordinator that started this gateway."""
    tls: grpc.ChannelCredentials | None = None
    token: str | None = None
    parent_token: str | None = None

    def own_headers(self) -> Headers:
        """Of calls that no request asked for."""
        token = self.parent_token or self.token
        return (*self._parent(), *((("authorization", f"Bearer {token}"),) if token else ()))

    def callers_headers(self) -> Headers:
        """Of calls for a request: its trace, its token or none, never ours."""
        token = caller()
        return (*self._parent(), *tracing.metadata(),
                *((("authorization", token),) if token else ()))

    def _parent(self) -> Headers:
        return (("tandem-gateway", self.parent_token),) if self.parent_token else ()
