"""What a gateway tells the coordinator that started it: how far it is, and that it lives, a byte for
each, as coordinator/startup/http_gateway.h has them."""

import asyncio
import logging
import os

_LOG = logging.getLogger("gateway")

LISTENS, SERVES, LIVES = b"l", b"s", b"h"
_BETWEEN_SIGNS_S = 1


def report(path: str | None, step: bytes) -> None:
    """Does not wait. `path`: of a pipe, None without such a parent."""
    if path is None:
        return
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(pipe, step)
        finally:
            os.close(pipe)
    except OSError as error:
        _LOG.warning("--parent-reports-file %s: %s", path, error.strerror)


async def report_life(path: str | None) -> None:
    """A sign of life each second. A loop that is held up gives none, and the parent ends the process."""
    while path is not None:
        report(path, LIVES)
        await asyncio.sleep(_BETWEEN_SIGNS_S)
