"""A tool call, and what its parsers share. tool_parsers.py has the parsers, one module each."""

import dataclasses
import json
import uuid

MAX_CALL_CHARS = 64 * 1024  # what is longer is text: parsing it again with each token has a bound
_DECODER = json.JSONDecoder()


@dataclasses.dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: str  # JSON text, an object
    id: str


def new_call_id() -> str:
    return "call_" + uuid.uuid4().hex[:24]


def make_call(value: object, id: str | None = None) -> ToolCall | None:
    """A call of {"name", "arguments" or "parameters"}; None if it is not one."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    try:
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        if not isinstance(arguments, dict):
            return None
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        (value["name"] + text).encode()
    except (ValueError, RecursionError):  # NaN is no JSON, half a surrogate pair no text
        return None
    return ToolCall(value["name"], text, id or new_call_id())


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
