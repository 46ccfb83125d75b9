"""Tool calls as Hermes and Qwen 2.5 and 3 write them."""

import json

from gateway.marked_calls import Markers
from gateway.object_calls import EnclosedParser
from gateway.tool_calls import ToolCall, make_call


class HermesParser(EnclosedParser):
    """<tool_call>{"name": ..., "arguments": {...}}</tool_call>, any number; Hermes, Qwen."""

    MARKERS = Markers(call="<tool_call>", call_end="</tool_call>")
    BRACKET = "{"

    def _calls_of(self, text: str) -> list[ToolCall]:
        if (call := make_call(json.loads(text, strict=False))) is None:
            raise ValueError("no call")
        return [call]
