"""Admission: whether a caller may generate, asked of a server before a request costs anything.

The server checks each call itself; what is kept here only spares the question, for a moment.
"""

import hashlib
import time
from collections.abc import Callable

from gateway.access import caller
from gateway.errors import none_ready
from gateway.fleet import Fleet

_KEPT_S = 5
_MOST_KEPT = 4096


class Admission:
    """Of the event loop's thread."""

    def __init__(self, fleet: Fleet, now: Callable[[], float] = time.monotonic):
        self._fleet = fleet
        self._now = now
        self._until: dict[bytes, float] = {}  # by the hash of what the caller shows

    async def check(self) -> None:
        """Raises what the server answers: UNAUTHENTICATED, PERMISSION_DENIED; 503 if none does."""
        key = hashlib.sha256(caller().encode()).digest()
        if self._until.get(key, 0) > self._now():
            return
        coordinator = self._fleet.any_serving()
        if coordinator is None:
            raise none_ready()
        await coordinator.ask_for_caller()
        if len(self._until) >= _MOST_KEPT:
            self._until.clear()
        self._until[key] = self._now() + _KEPT_S
