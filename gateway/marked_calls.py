"""Calls between markers, of which several may follow each other: what the forms of 2026 have in common.

What begins like a call and is none is text up to where that shows, and what follows is read anew. So each character is
looked at a few times at most.
"""

import dataclasses
import re
from collections.abc import Generator

from gateway.argument_types import ArgumentTypes
from gateway.call_scanner import CallScanner, NoCall
from gateway.tool_calls import ToolCall, make_call, split_at_marker

_PIECE = 4096  # characters that are read at once


@dataclasses.dataclass(frozen=True)
class Markers:
    """Of calls. Where there are `starts`, calls are between one of them and an end; one without is a call if its
    function is among the tools, since models forget them at times."""
    call: str  # what a call begins with
    call_end: str
    head: re.Pattern | None = None  # from its beginning to the arguments, with groups "name" and perhaps "id"
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


class MarkedParser:
    """A ToolParser, but for how arguments are written. Line ends before the first call, if nothing else is there, and
    behind calls are no content."""

    MARKERS: Markers

    def __init__(self, tools: list[dict]):
        self._types = ArgumentTypes(tools)
        self._scanner = CallScanner()
        self._content, self._calls = "", []  # since the last feed
        self._line_ends = ""  # that the answer begins with
        self._has_content = self._is_after_call = False
        self._ids: set[str] = set()
        self._steps = self._read()

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        for at in range(0, len(text), _PIECE):
            self._scanner.held += text[at:at + _PIECE]
            next(self._steps)
        return self._take()

    def finish(self) -> tuple[str, list[ToolCall]]:
        self._scanner.is_last = True
        next(self._steps)
        self._say(len(self._scanner.held))
        self._content += self._line_ends
        return self._take()

    def _take(self) -> tuple[str, list[ToolCall]]:
        taken = self._content, self._calls
        self._content, self._calls = "", []
        return taken

    def _say(self, end: int) -> None:
        """What is before it is content."""
        text = self._scanner.drop(end)
        rest = text.lstrip("\n")
        if self._is_after_call:
            text = rest
        elif not self._has_content:
            self._line_ends += text[:len(text) - len(rest)]
            text = self._line_ends + rest if rest else ""
        if text:
            self._content += text
            self._line_ends, self._has_content, self._is_after_call = "", True, False

    def _read(self) -> Generator:
        """Never ends; pauses where it needs more text."""
        markers = (*self.MARKERS.starts, self.MARKERS.call)
        while True:
            held = self._scanner.held
            self._say(min(len(split_at_marker(held, one)[0]) for one in markers))
            marker = next((one for one in markers if self._scanner.held.startswith(one)), None)
            if marker is None:
                yield
                continue
            try:
                yield from self._read_calls(0 if marker == self.MARKERS.call else len(marker))
            except NoCall as no_call:
                self._say(max(no_call.end, len(marker)))

    def _read_calls(self, at: int) -> Generator:
        is_inside = at > 0 or not self.MARKERS.starts
        goes_on = True
        while goes_on:
            at = yield from self._scanner.skip_blanks(at)
            calls, end = yield from self._read_calls_of(at, is_inside)
            if not calls:
                raise NoCall(end)
            self._calls += calls
            self._ids.update(one.id for one in calls)
            self._scanner.drop(end)
            self._line_ends, self._is_after_call = "", True
            at, goes_on = 0, (yield from self._goes_on())

    def _read_calls_of(self, at: int, is_inside: bool) -> Generator:
        """(the call there, in a list, or none; its end)."""
        head = yield from self._scanner.match(self.MARKERS.head, self.MARKERS.call, at)
        if not is_inside and head["name"] not in self._types:
            return [], head.end()
        arguments, end = yield from self._read_arguments(head["name"], head.end())
        id = head.groupdict().get("id")
        call = make_call({"name": head["name"], "arguments": arguments}, None if id in self._ids else id)
        return [call] if call else [], end

    def _read_arguments(self, function: str, at: int) -> Generator:
        """(them, or None if they are none; the end of the call)."""
        raise NotImplementedError

    def _goes_on(self) -> Generator:
        """Whether another call follows, after one; it is what is held then. Drops the end of all."""
        scanner = self._scanner
        following = (*self.MARKERS.ends, self.MARKERS.call) if self.MARKERS.starts else ()
        try:
            at = (yield from scanner.skip_blanks(0)) if following else 0
            while not scanner.begins(at, *following):
                if not scanner.may_begin(at, *following):
                    return False
                yield from scanner.wait()
        except NoCall:
            return False
        scanner.drop(at)
        if scanner.held.startswith(self.MARKERS.call):
            return True
        scanner.drop(next(len(one) for one in self.MARKERS.ends if scanner.held.startswith(one)))
        return False
