"""Tool calls as Hermes and Qwen 2.5 and 3 write them."""

import json
import re
from collections.abc import Generator

from gateway.marked_calls import Markers
from gateway.object_calls import ObjectParser
from gateway.tool_calls import make_call


class HermesParser(ObjectParser):
    """<tool_call>{"name": ..., "arguments": {...}}</tool_call>, any number; Hermes, Qwen."""

    MARKERS = Markers(call="<tool_call>", head=re.compile("<tool_call>"), call_end="</tool_call>")

    def _read_calls_of(self, at: int, is_inside: bool) -> Generator:
        at = yield from self._scanner.skip_blanks(at + len(self.MARKERS.call))
        if not self._scanner.begins(at, "{"):
            return [], at
        text, end, first_end = yield from self._read_text(at)
        try:
            call = make_call(json.loads(text, strict=False))
        except (ValueError, RecursionError):
            call = None
        return ([call], end) if call else ([], first_end)
