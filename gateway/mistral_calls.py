"""Tool calls as Mistral's models write them."""

from gateway.tool_calls import (MAX_CALL_CHARS, ToolCall, make_call, split_at_marker,
                                take_json)


class MistralParser:
    """[TOOL_CALLS] and a list of {"name", "arguments"}, or name{...} or name[ARGS]{...} each."""

    MARKER = "[TOOL_CALLS]"

    def __init__(self):
        self._held = ""

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        self._held += text
        content, calls = "", []
        while True:
            before, self._held = split_at_marker(self._held, self.MARKER)
            content += before
            closed = "}" in text or "]" in text
            taken = self._take(self._held[len(self.MARKER):].lstrip()) if closed else None
            if taken is None:
                if len(self._held) > MAX_CALL_CHARS:
                    content, self._held = content + self._held, ""
                return content, calls
            calls += taken[0]
            self._held = taken[1]

    def finish(self) -> tuple[str, list[ToolCall]]:
        held, self._held = self._held, ""
        return held, []

    def _take(self, text: str) -> tuple[list[ToolCall], str] | None:
        """(calls, the text after them); None while incomplete, or if it is something else."""
        if text.startswith("["):
            taken = take_json(text)
            if taken is None or not isinstance(taken[0], list):
                return None
            calls = [make_call(one) for one in taken[0]]
            return None if None in calls or not calls else (calls, taken[1])
        name, brace, _ = text.partition("{")
        name = name.split("[", 1)[0].strip()  # [CALL_ID]..., [ARGS]
        taken = take_json(text[text.find("{"):]) if brace and name else None
        if taken is None:
            return None
        call = make_call({"name": name, "arguments": taken[0]})
        return None if call is None else ([call], taken[1])
