"""Tool calls whose arguments are one object behind a head: DeepSeek V3 and V3.1, Kimi K2, Gemma 4.

The forms are those of the models' chat templates.
"""

import json
import re
from collections.abc import Generator

from gateway.call_scanner import NoCall
from gateway.loose_values import parse_object
from gateway.marked_calls import MarkedParser, Markers
from gateway.tool_calls import ToolCall

_CALLS = {"starts": ("<｜tool▁calls▁begin｜>",), "ends": ("<｜tool▁calls▁end｜>",)}


class ObjectParser(MarkedParser):
    """JSON. A call ends at the first marker that is in no string, or with the text. If that gives none, what is
    before the first marker of all is text: a string there has no end, and calls behind it count."""

    QUOTES = re.compile(r'\\.|"', re.DOTALL)  # what begins with a backslash is none

    def _read_arguments(self, function: str, at: int) -> Generator:
        text, end, first_end = yield from self._read_text(at)
        arguments = self._parse(text)
        return arguments, first_end if arguments is None else end

    def _read_text(self, at: int) -> Generator:
        """(what is before the end of the call, where that ends, where the first marker of an end does)."""
        scanner, end = self._scanner, self.MARKERS.call_end
        begin = counted = at
        first_end = None
        quote = ""  # that a string began with
        while True:
            try:
                found = yield from scanner.find(end, at)
            except NoCall as no_call:
                if not scanner.is_last:
                    raise NoCall(first_end or no_call.end) from None
                return scanner.held[begin:scanner.limit], scanner.limit, first_end or scanner.limit
            first_end = first_end or found + len(end)
            for one in self.QUOTES.findall(scanner.held, counted, found):
                if one == quote:
                    quote = ""
                elif not quote and not one.startswith("\\"):
                    quote = one
            if not quote:
                return scanner.held[begin:found], found + len(end), first_end
            at, counted = found + 1, found

    def _parse(self, text: str) -> dict | None:
        """None if it is none."""
        try:
            value = json.loads(text.strip() or "{}", strict=False)  # models forget to escape line ends
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


class EnclosedParser(ObjectParser):
    """All that a call is is between its markers, and begins with a bracket."""

    BRACKET: str

    def _read_calls_of(self, at: int, is_inside: bool) -> Generator:
        at = yield from self._scanner.skip_blanks(at + len(self.MARKERS.call))
        if not self._scanner.begins(at, self.BRACKET):
            return [], at
        text, end, first_end = yield from self._read_text(at)
        try:
            return self._calls_of(text), end
        except (ValueError, RecursionError):
            return [], first_end

    def _calls_of(self, text: str) -> list[ToolCall]:
        """Raises ValueError, or RecursionError, if that is not what the text is."""
        raise NotImplementedError


class DeepseekV3Parser(ObjectParser):
    """<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME, {...} in a block ```json, and
    <｜tool▁call▁end｜>... <｜tool▁calls▁end｜>; DeepSeek V3 and R1."""

    MARKERS = Markers(
        call="<｜tool▁call▁begin｜>", call_end="<｜tool▁call▁end｜>", **_CALLS,
        head=re.compile(r"<｜tool▁call▁begin｜>[^<>\n]*<｜tool▁sep｜>\s*(?P<name>[^\s<>`]+)\s*```json"))

    def _parse(self, text: str) -> dict | None:
        return super()._parse(text.rstrip().removesuffix("```"))


class DeepseekV31Parser(ObjectParser):
    """<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜>...
    <｜tool▁calls▁end｜>; DeepSeek V3.1."""

    MARKERS = Markers(call="<｜tool▁call▁begin｜>", call_end="<｜tool▁call▁end｜>", **_CALLS,
                      head=re.compile(r"<｜tool▁call▁begin｜>\s*(?P<name>[^\s<>]+)\s*<｜tool▁sep｜>"))


class KimiK2Parser(ObjectParser):
    """<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}
    <|tool_call_end|>... <|tool_calls_section_end|>; Kimi K2, which is told of its calls by these ids."""

    MARKERS = Markers(
        call="<|tool_call_begin|>", call_end="<|tool_call_end|>",
        head=re.compile(r"<\|tool_call_begin\|>\s*(?P<id>(?:functions\.)?+(?P<name>[^\s<>:]+):\d+)\s*"
                        r"<\|tool_call_argument_begin\|>"),
        starts=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
        ends=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"))


class Gemma4Parser(ObjectParser):
    """<|tool_call>call:NAME{KEY:<|"|>TEXT<|"|>,KEY:42}<tool_call|>; Gemma 4."""

    MARKERS = Markers(call="<|tool_call>", head=re.compile(r"<\|tool_call>\s*call:(?P<name>[^\s<>{}]+)\s*(?=\{)"),
                      call_end="<tool_call|>")
    QUOTES = re.compile(r'<\|"\|>')

    def _parse(self, text: str) -> dict | None:
        return parse_object(text.strip())
