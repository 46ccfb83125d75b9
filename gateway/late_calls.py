"""Calls that a model writes at the end of its thoughts, without an end of these before: some forget it."""

import re

from gateway.marked_calls import MarkedParser
from gateway.tool_calls import ToolCall
from gateway.tool_parsers import feed

_MAX_TRIES = 16  # of markers, the last ones


class LateCalls:
    """Of an answer that is nothing but thoughts. `parser`: the kind of the model's calls."""

    def __init__(self, parser: type[MarkedParser], tools: list[dict]):
        self._parser = parser
        self._tools = tools
        self._functions = {one["function"]["name"] for one in tools}
        self._thoughts: list[str] = []

    def add(self, thoughts: str) -> None:
        self._thoughts.append(thoughts)

    def take(self) -> list[ToolCall]:
        """Those of functions among the tools, if the thoughts end with them."""
        text = "".join(self._thoughts)
        markers = "|".join(map(re.escape, (*self._parser.MARKERS.starts, self._parser.MARKERS.call)))
        for found in list(re.finditer(markers, text))[-_MAX_TRIES:]:
            content, calls = feed(self._parser(self._tools), text[found.start():], last=True)
            if calls and not content.strip() and all(one.name in self._functions for one in calls):
                return calls
        return []
