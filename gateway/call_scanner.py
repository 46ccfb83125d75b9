"""The text of a call as it comes, for a parser that pauses where it needs more: its steps are generators.

What they decide depends on the text alone, not on how it is cut: each waits until there is enough of it, and none looks
past the longest call.
"""

import re
from collections.abc import Generator

from gateway.tool_calls import MAX_CALL_CHARS

BLANKS = re.compile(r"[ \t\r\n]*")
MAX_TAG = 1000  # characters of a head, of what is before a value, or of blanks behind one


class NoCall(Exception):
    def __init__(self, end: int):
        self.end = end  # of what is text; what follows is read anew


class CallScanner:
    """Places are characters from the beginning of what is held."""

    def __init__(self):
        self.held = ""
        self.is_last = False  # no more text comes

    @property
    def limit(self) -> int:
        return min(len(self.held), MAX_CALL_CHARS)

    def drop(self, end: int) -> str:
        text, self.held = self.held[:end], self.held[end:]
        return text

    def wait(self, end: int = MAX_CALL_CHARS) -> Generator:
        """For more of it. If there is none, what is before `end` is text."""
        if self.is_last or len(self.held) >= MAX_CALL_CHARS:
            raise NoCall(end)
        yield

    def begins(self, at: int, *markers: str) -> bool:
        """Whether one of them is there."""
        return self.held.startswith(markers, at, self.limit)

    def may_begin(self, at: int, *markers: str) -> bool:
        """Whether what is there may become one, or is."""
        return any(one.startswith(self.held[at:min(at + len(one), self.limit)]) for one in markers)

    def find(self, marker: str, at: int) -> Generator:
        """Where it is next."""
        while (found := self.held.find(marker, at, self.limit)) < 0:
            at = max(at, self.limit - len(marker) + 1)
            yield from self.wait()
        return found

    def skip_blanks(self, at: int) -> Generator:
        while (at := BLANKS.match(self.held, at, self.limit).end()) == self.limit:
            yield from self.wait()
        return at

    def match(self, pattern: re.Pattern, begin: str, at: int) -> Generator:
        """The pattern there; it begins with `begin`, and more text does not change what it matches."""
        while (found := pattern.match(self.held, at, min(at + MAX_TAG, self.limit))) is None:
            if not self.may_begin(at, begin) or self.limit - at >= MAX_TAG:
                raise NoCall(at)
            yield from self.wait(at)
        return found
