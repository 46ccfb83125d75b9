"""The text of an answer that must be calls (tool_choice.py), taken apart as it streams.

A call's arguments are the text as the model wrote it, whole or in parts: put together they are the
same. A text that was cut has what there is of a call whose name is known.
"""

import dataclasses
import json
import re
from typing import Protocol

from gateway.tool_calls import new_call_id
from gateway.tool_choice import ForcedCalls

# What JSON is made of, as far as it matters where a value ends.
_RUN = re.compile(r'[^"\\{}\[\],:]+|["\\{}\[\],:]')


@dataclasses.dataclass(frozen=True)
class CallPart:
    """What a stream adds to a call. The first one has an id and a name."""
    index: int
    arguments: str = ""
    id: str | None = None
    name: str | None = None

    def json(self) -> dict:
        if self.id is None:
            return {"index": self.index, "function": {"arguments": self.arguments}}
        return {"index": self.index, "id": self.id, "type": "function",
                "function": {"name": self.name, "arguments": self.arguments}}


class CallReader(Protocol):
    """One choice's answer. `complete`: whether it has calls and none is cut off."""

    complete: bool

    def feed(self, text: str) -> list[CallPart]: ...


class NamedCall:
    """The text is the arguments. Such an answer's end is "stop", as OpenAI's: it is never a
    model's decision to call."""

    complete = False

    def __init__(self, name: str):
        self._name: str | None = name

    def feed(self, text: str) -> list[CallPart]:
        parts = [] if self._name is None else [CallPart(0, id=new_call_id(), name=self._name)]
        self._name = None
        return parts + [CallPart(0, text)] if text else parts


class ListedCalls:
    """[{"name": ..., "parameters": ...}, ...], with the members in this order."""

    def __init__(self):
        self._depth = 0  # of brackets and braces: 1 is in the list, 2 in a call's object
        self._in_string = False
        self._escaped = False  # the next character of a string
        self._string = ""  # a key or a name, as far as it came
        self._key: str | None = None  # of a call's object; None: one comes next
        self._in_value = False
        self._has_name = False
        self._num_calls = 0

    @property
    def complete(self) -> bool:
        return self._num_calls > 0 and self._depth < 2

    def feed(self, text: str) -> list[CallPart]:
        parts: list[CallPart] = []
        arguments = ""
        for run in _RUN.findall(text):
            num_calls = self._num_calls
            arguments += self._of_arguments(run)
            self._read(run)
            if self._num_calls > num_calls or (arguments and self._depth < 2):
                parts += self._added(num_calls, arguments)
                arguments = ""
            if self._num_calls > num_calls:
                parts.append(CallPart(num_calls, id=new_call_id(), name=_decoded(self._string)))
        return parts + self._added(self._num_calls, arguments)

    @staticmethod
    def _added(num_calls: int, arguments: str) -> list[CallPart]:
        return [CallPart(num_calls - 1, arguments)] if arguments else []

    def _of_arguments(self, run: str) -> str:
        """What of it is the value of "parameters": without the blanks around it."""
        if not (self._has_name and self._in_value and self._key == "parameters"):
            return ""
        if self._depth > 2 or self._in_string:
            return run
        return "" if run in (",", "}", "]") else run.strip()

    def _read(self, run: str) -> None:
        if self._in_string:
            self._read_string(run)
        elif run == '"':
            self._in_string, self._string = True, ""
        elif run in ("{", "["):
            self._depth += 1
        elif run in ("}", "]"):
            self._depth -= 1
            if self._depth < 2:  # between calls
                self._key, self._in_value, self._has_name = None, False, False
        elif self._depth == 2 and run == ":":
            self._in_value = True
        elif self._depth == 2 and run == ",":
            self._key, self._in_value = None, False

    def _read_string(self, run: str) -> None:
        if run == '"' and not self._escaped:
            self._in_string = False
            if self._depth == 2:
                self._end_string()
            return
        self._escaped = run == "\\" and not self._escaped
        if self._depth == 2:
            self._string += run

    def _end_string(self) -> None:
        if not self._in_value:
            self._key = _decoded(self._string)
        elif self._key == "name" and not self._has_name:
            self._has_name = True
            self._num_calls += 1


def _decoded(string: str) -> str:
    try:
        return json.loads(f'"{string}"', strict=False)
    except ValueError:
        return string


def reader(forced: ForcedCalls) -> CallReader:
    return ListedCalls() if forced.name is None else NamedCall(forced.name)


def joined(parts: list[CallPart]) -> list[dict]:
    """The calls of a whole answer."""
    calls = []
    for part in parts:
        if part.id is not None:
            calls.append({"id": part.id, "type": "function",
                          "function": {"name": part.name, "arguments": ""}})
        calls[-1]["function"]["arguments"] += part.arguments
    return calls
