"""Tool calls as LFM2 writes them. The form is that of its chat template."""

import re

from gateway.loose_values import begin, go_on, read_value
from gateway.marked_calls import Markers
from gateway.object_calls import EnclosedParser
from gateway.tool_calls import ToolCall, make_call

_NAME = re.compile(r"\s*([^\s=,()\[\]{}'\"]+)\s*\(")
_KEY = re.compile(r"([^=,()\[\]{}'\"]+)=")


class Lfm2Parser(EnclosedParser):
    """<|tool_call_start|>[NAME(KEY='text', KEY=42), ...]<|tool_call_end|>, as in Python; LFM2."""

    MARKERS = Markers(call="<|tool_call_start|>", call_end="<|tool_call_end|>")
    QUOTES = re.compile(r"""\\.|['"]""", re.DOTALL)
    BRACKET = "["

    def _calls_of(self, text: str) -> list[ToolCall]:
        calls, text = [], text.strip()
        goes_on, at = begin(text, len(self.BRACKET), "]")
        while goes_on:
            call, at = _read_call(text, at)
            calls.append(call)
            goes_on, at = go_on(text, at, "]")
        if at != len(text) or None in calls:
            raise ValueError("more than a list of calls")
        return calls


def _read_call(text: str, at: int) -> tuple[ToolCall | None, int]:
    if (name := _NAME.match(text, at)) is None:
        raise ValueError("no function")
    arguments = {}
    goes_on, at = begin(text, name.end(), ")")
    while goes_on:
        if (key := _KEY.match(text, at)) is None:
            raise ValueError("an argument without a name")
        arguments[key[1].strip()], at = read_value(text, key.end())
        goes_on, at = go_on(text, at, ")")
    return make_call({"name": name[1], "arguments": arguments}), at
