"""Tool calls in a model's text, taken out as they stream. One class per form.

Text before a call goes through at once, except for what may be the beginning of a call. A call goes
out when it is complete, with all its arguments. What looks like a call and is none stays text.
"""

import dataclasses
import json
import uuid
from typing import Protocol

_DECODER = json.JSONDecoder()


@dataclasses.dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: str  # JSON text, an object
    id: str


class ToolParser(Protocol):
    """One choice's answer."""

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        """The text that is content, and the calls that are complete, since the last feed."""

    def finish(self) -> tuple[str, list[ToolCall]]:
        """The rest: no more text comes."""


def make_call(value: object, id: str | None = None) -> ToolCall | None:
    """A call of {"name", "arguments" or "parameters"}; None if it is not one."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return None
    if not isinstance(arguments, dict):
        return None
    return ToolCall(value["name"], json.dumps(arguments, ensure_ascii=False),
                    id or "call_" + uuid.uuid4().hex[:24])


def split_at_marker(text: str, marker: str) -> tuple[str, str]:
    """(what comes before the marker, what begins with it or with a beginning of it at the end)."""
    if (found := text.find(marker)) >= 0:
        return text[:found], text[found:]
    for length in range(min(len(marker) - 1, len(text)), 0, -1):
        if text.endswith(marker[:length]):
            return text[:-length], text[-length:]
    return text, ""


def take_json(text: str) -> tuple[object, str] | None:
    """(the JSON value that text begins with, the text after it); None while it is incomplete."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value, text[end:]


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


class LlamaParser:
    """{"name": ..., "parameters": {...}}, alone or several with ";" between: the whole answer.

    Llama 3.1 to 3.3; <|python_tag|> may come first.
    """

    TAG = "<|python_tag|>"

    def __init__(self):
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
            taken = take_json(rest) if rest.startswith("{") else None
            if taken is None:
                return "", calls
            if (call := make_call(taken[0])) is None:
                return self._give_up(calls)
            calls.append(call)
            self._num_calls += 1
            self._held = taken[1]

    def finish(self) -> tuple[str, list[ToolCall]]:
        held, self._held = self._held, ""
        return ("" if self._num_calls and not held.strip(" \n;") else held), []

    def _rest(self) -> str:
        rest = self._held.lstrip(" \n;" if self._num_calls else " \n")
        return rest.removeprefix(self.TAG).lstrip()

    def _give_up(self, calls: list[ToolCall]) -> tuple[str, list[ToolCall]]:
        held, self._held, self._is_text = self._held, "", True
        return held, calls


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
            taken = self._take(self._held[len(self.MARKER):].lstrip())
            if taken is None:
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
            calls = [make_call(one, _short_id()) for one in taken[0]]
            return None if None in calls or not calls else (calls, taken[1])
        name, brace, _ = text.partition("{")
        name = name.split("[", 1)[0].strip()  # [CALL_ID]..., [ARGS]
        taken = take_json(text[text.find("{"):]) if brace and name else None
        if taken is None:
            return None
        call = make_call({"name": name, "arguments": taken[0]}, _short_id())
        return None if call is None else ([call], taken[1])


def _short_id() -> str:
    """Mistral's templates take ids of nine letters and digits only."""
    return uuid.uuid4().hex[:9]


PARSERS = {"hermes": HermesParser, "llama3_json": LlamaParser, "mistral": MistralParser}


def parser_of_template(template: str) -> str | None:
    """The name of the form that a chat template asks its model for; None if unknown."""
    if "tools" not in template:
        return None
    if "[TOOL_CALLS]" in template:
        return "mistral"
    if "<tool_call>" in template and "<function=" not in template and "<arg_key>" not in template:
        return "hermes"
    if "<|start_header_id|>" in template and '"parameters"' in template:
        return "llama3_json"
    return None
