"""What a gateway tells the coordinator that started it: how far it is, a byte for each step, as
coordinator/startup/http_gateway.h has them."""

import logging
import os

_LOG = logging.getLogger("gateway")

LISTENS, SERVES = b"l", b"s"


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
