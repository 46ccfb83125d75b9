"""Tool calls as Llama 3.1 to 3.3 write them."""

from gateway.tool_calls import MAX_CALL_CHARS, ToolCall, make_call, take_json


class LlamaParser:
    """{"name": ..., "parameters": {...}}, alone or several with ";" between: the whole answer.

    <|python_tag|> may come first. An object without arguments is a call if its name is a tool's.
    """

    TAG = "<|python_tag|>"

    def __init__(self, tools: list[dict]):
        self._functions = {one["function"]["name"] for one in tools}
        self._held = ""
        self._is_text = False
        self._num_calls = 0

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        if self._is_text:
            return text, []
        self._held += text
        calls = []
        while True:
            rest = self._rest()
            if rest and not rest.startswith("{") and not self.TAG.startswith(rest):
                return self._give_up(calls)
            taken = take_json(rest) if rest.startswith("{") and "}" in text else None
            if taken is None and len(rest) > MAX_CALL_CHARS:
                return self._give_up(calls)
            if taken is None:
                return "", calls
            if (call := self._make_call(taken[0])) is None:
                return self._give_up(calls)
            calls.append(call)
            self._num_calls += 1
            self._held = taken[1]

    def finish(self) -> tuple[str, list[ToolCall]]:
        held, self._held = self._held, ""
        return ("" if self._num_calls and not held.strip(" \n;") else held), []

    def _make_call(self, value: object) -> ToolCall | None:
        call = make_call(value)
        if call is None or call.name in self._functions or any(key in value for key in ("arguments", "parameters")):
            return call
        return None

    def _rest(self) -> str:
        rest = self._held.lstrip(" \n;" if self._num_calls else " \n")
        return rest.removeprefix(self.TAG).lstrip()

    def _give_up(self, calls: list[ToolCall]) -> tuple[str, list[ToolCall]]:
        held, self._held, self._is_text = self._held, "", True
        return held, calls
