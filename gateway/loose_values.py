"""Values in JSON's notation, Python's and Gemma 4's, which are alike: the last has strings between <|"|> as they are, and
bare keys. Words that are none of their constants are strings, since models forget quotes."""

import ast
import json
import re

from gateway.argument_types import PYTHON_WORDS, json_or_text

_QUOTE = '<|"|>'
_BLANKS = re.compile(r"\s*")
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_BARE_KEY = re.compile(r"([^:,{}\[\]]+):")
_COLON = re.compile(r"\s*:")
_WORD = re.compile(r"[^,{}\[\]()]+")


def parse_object(text: str) -> dict | None:
    """None if it is none."""
    try:
        value, end = read_value(text, 0)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and end == len(text) else None


def read_value(text: str, at: int) -> tuple[object, int]:
    """(it, where it ends). Raises ValueError, or RecursionError if it nests too deeply."""
    at = _BLANKS.match(text, at).end()
    if text.startswith("{", at):
        return _read_object(text, at + 1)
    if text.startswith("[", at):
        return _read_list(text, at + 1)
    if text.startswith((_QUOTE, '"', "'"), at):
        return _read_string(text, at)
    if (found := _WORD.match(text, at)) is None:
        raise ValueError("no value")
    word = found[0].strip()
    return PYTHON_WORDS.get(word, json_or_text(word)), found.end()


def begin(text: str, at: int, bracket: str) -> tuple[bool, int]:
    """Behind an opening bracket: (whether there are members, where the next one begins or what follows them)."""
    at = _BLANKS.match(text, at).end()
    return (False, at + 1) if text.startswith(bracket, at) else (True, at)


def go_on(text: str, at: int, bracket: str) -> tuple[bool, int]:
    """Behind a member, likewise."""
    at = _BLANKS.match(text, at).end()
    if text.startswith((bracket, ","), at):
        return text[at] == ",", at + 1
    raise ValueError("neither a comma nor an end")


def _read_object(text: str, at: int) -> tuple[dict, int]:
    members = {}
    goes_on, at = begin(text, at, "}")
    while goes_on:
        key, at = _read_key(text, _BLANKS.match(text, at).end())
        members[key], at = read_value(text, at)
        goes_on, at = go_on(text, at, "}")
    return members, at


def _read_key(text: str, at: int) -> tuple[str, int]:
    if text.startswith((_QUOTE, '"', "'"), at):
        key, at = _read_string(text, at)
        found = _COLON.match(text, at)
    else:
        found = _BARE_KEY.match(text, at)
        key = found[1].strip() if found else ""
    if found is None:
        raise ValueError("no key")
    return key, found.end()


def _read_list(text: str, at: int) -> tuple[list, int]:
    members = []
    goes_on, at = begin(text, at, "]")
    while goes_on:
        member, at = read_value(text, at)
        members.append(member)
        goes_on, at = go_on(text, at, "]")
    return members, at


def _read_string(text: str, at: int) -> tuple[str, int]:
    if text.startswith(_QUOTE, at):
        end = text.index(_QUOTE, at + len(_QUOTE))
        return text[at + len(_QUOTE):end], end + len(_QUOTE)
    if (found := _STRING.match(text, at)) is None:
        raise ValueError("a string without end")
    try:
        return json.loads(found[0]), found.end()
    except ValueError:
        return _python_string(found[0].replace("\r", "\\r").replace("\n", "\\n")), found.end()


def _python_string(literal: str) -> str:
    try:
        return ast.literal_eval(literal)
    except (SyntaxError, MemoryError):
        raise ValueError("no string") from None
