"""Gemma 4's notation of values, as its chat template writes it: JSON, but for strings, which are between <|"|> as they
are, and keys, which are bare."""

import json
import re

from gateway.argument_types import PYTHON_WORDS, json_or_text

_QUOTE = '<|"|>'
_BLANKS = re.compile(r"\s*")
_KEY = re.compile(r'<\|"\|>(?P<quoted>.*?)<\|"\|>\s*:|(?P<bare>[^:,{}\[\]]+):', re.DOTALL)
_WORD = re.compile(r"[^,{}\[\]]+")
_DECODER = json.JSONDecoder()


def parse_object(text: str) -> dict | None:
    """None if it is none."""
    try:
        value, end = _value(text, 0)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and end == len(text) else None


def _value(text: str, at: int) -> tuple[object, int]:
    """(it, where it ends). A word that is no JSON is a string, as is one between plain quotes: models forget."""
    at = _BLANKS.match(text, at).end()
    if text.startswith(_QUOTE, at):
        end = text.index(_QUOTE, at + len(_QUOTE))
        return text[at + len(_QUOTE):end], end + len(_QUOTE)
    if text.startswith("{", at):
        return _object(text, at + 1)
    if text.startswith("[", at):
        return _list(text, at + 1)
    if text.startswith('"', at):
        return _DECODER.raw_decode(text, at)
    if (found := _WORD.match(text, at)) is None:
        raise ValueError("no value")
    word = found[0].strip()
    return PYTHON_WORDS.get(word, json_or_text(word)), found.end()  # the first template writes None


def _object(text: str, at: int) -> tuple[dict, int]:
    members = {}
    goes_on, at = _begin(text, at, "}")
    while goes_on:
        if (key := _KEY.match(text, _BLANKS.match(text, at).end())) is None:
            raise ValueError("no key")
        name = key["bare"].strip() if key["quoted"] is None else key["quoted"]
        members[name], at = _value(text, key.end())
        goes_on, at = _go_on(text, at, "}")
    return members, at


def _list(text: str, at: int) -> tuple[list, int]:
    members = []
    goes_on, at = _begin(text, at, "]")
    while goes_on:
        member, at = _value(text, at)
        members.append(member)
        goes_on, at = _go_on(text, at, "]")
    return members, at


def _begin(text: str, at: int, bracket: str) -> tuple[bool, int]:
    """(whether there are members, where what comes next begins)."""
    at = _BLANKS.match(text, at).end()
    return (False, at + 1) if text.startswith(bracket, at) else (True, at)


def _go_on(text: str, at: int, bracket: str) -> tuple[bool, int]:
    at = _BLANKS.match(text, at).end()
    if text.startswith((bracket, ","), at):
        return text[at] == ",", at + 1
    raise ValueError("neither a comma nor an end")
