"""Tool calls as Hermes and Qwen write them."""

import json

from gateway.tool_calls import MAX_CALL_CHARS, ToolCall, make_call, split_at_marker


class HermesParser:
    """<tool_call>{"name": ..., "arguments": {...}}</tool_call>, any number; Hermes, Qwen."""

    START, END = "<tool_call>", "</tool_call>"

    def __init__(self):
        self._held = ""
        self._after_call = False  # line ends between calls are no content

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        self._held += text
        content, calls = "", []
        while True:
            before, self._held = split_at_marker(self._held, self.START)
            if self._after_call:
                before = before.lstrip("\n")
                self._after_call = not before
            content += before
            end = self._held.find(self.END)
            if end < 0:
                if len(self._held) > MAX_CALL_CHARS:
                    content, self._held = content + self._held, ""
                return content, calls
            inside = self._held[len(self.START):end]
            whole, self._held = self._held[:end + len(self.END)], self._held[end + len(self.END):]
            if (call := self._parse(inside)) is None:
                content += whole
            else:
                calls.append(call)
                self._after_call = True

    def finish(self) -> tuple[str, list[ToolCall]]:
        """A last call may lack its end marker."""
        held, self._held = self._held, ""
        if held.startswith(self.START):
            if (call := self._parse(held[len(self.START):])) is not None:
                return "", [call]
        return held, []

    @staticmethod
    def _parse(text: str) -> ToolCall | None:
        try:
            return make_call(json.loads(text))
        except (ValueError, RecursionError):
            return None
