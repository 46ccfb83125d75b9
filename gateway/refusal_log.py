"""Log lines about connections that are refused: few, however many there are."""

import logging
import ssl
import time

_LOG = logging.getLogger("gateway")
_LINES_AT_ONCE = 10
_LINES_PER_SECOND = 1


class RefusalLog:
    """Of one thread. A line counts those before it that had none."""

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._lines = float(_LINES_AT_ONCE)
        self._last = clock()
        self._without_line = 0

    def add(self, reason: str) -> None:
        now = self._clock()
        self._lines = min(_LINES_AT_ONCE, self._lines + _LINES_PER_SECOND * (now - self._last))
        self._last = now
        if self._lines < 1:
            self._without_line += 1
            return
        self._lines -= 1
        more = f"; and {self._without_line} before it" if self._without_line else ""
        self._without_line = 0
        _LOG.warning("a connection is refused: %s%s", reason, more)


_HANDSHAKES = RefusalLog()


class LoggedHandshake(ssl.SSLObject):
    """For SSLContext.sslobject_class: an event loop tells nobody of a handshake that fails."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            _HANDSHAKES.add(f"TLS handshake: {(error.reason or 'failed').lower().replace('_', ' ')}")
            raise
