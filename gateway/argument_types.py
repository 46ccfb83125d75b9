"""JSON values of arguments that models write as plain text, by the schemas of the request's tools.

Text is right wherever a schema allows a string and nothing else fits. Python's spellings of true, false and null
are read, too: templates write past arguments with them, and so models do.
"""

import json
from collections.abc import Iterator

_NUMBERS, _CONTAINERS = ("integer", "number"), ("object", "array")
_KINDS = {bool: ("boolean",), int: _NUMBERS, float: _NUMBERS, type(None): ("null",), dict: _CONTAINERS,
          list: _CONTAINERS, str: ("string",)}
_NAMES = frozenset(name for names in _KINDS.values() for name in names)
_MAX_PARTS = 256  # of schemas that are looked at for a key: a model may write any number of keys
PYTHON_WORDS = {"True": True, "False": False, "None": None}


def _finite(number: str) -> float:
    if (value := float(number)) in (float("inf"), float("-inf")):
        raise ValueError(number)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)


def json_or_text(text: str) -> object:
    """The JSON value, unless that is a string: those are written as they are."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else value


class ArgumentTypes:
    """Of one request's tools, whose parameters may be anything that a client sends."""

    def __init__(self, tools: list[dict]):
        self._parameters = {one["function"]["name"]: one["function"].get("parameters") for one in tools}
        self._types: dict[tuple[str, str], frozenset[str]] = {}

    def __contains__(self, function: str) -> bool:
        return function in self._parameters

    def value(self, function: str, key: str, text: str) -> object:
        """What is of none of the argument's types stays text."""
        if (function, key) not in self._types:
            self._types[function, key] = self._types_of(function, key)
        types = self._types[function, key]
        if types == {"string"}:
            return text
        value = json_or_text(text)
        if not types:  # any
            return value
        if isinstance(value, str):
            value = PYTHON_WORDS.get(text.strip(), text)
        return value if types.intersection(_KINDS[type(value)]) else text

    def _types_of(self, function: str, key: str) -> frozenset[str]:
        """Empty: it has any type, or no schema, or one of too many parts."""
        root = self._parameters.get(function)
        of_root = list(_parts([root], root))
        schemas = [one["properties"][key] for one in of_root
                   if isinstance(one.get("properties"), dict) and key in one["properties"]]
        schemas = schemas or [one["additionalProperties"] for one in of_root if "additionalProperties" in one]
        parts = list(_parts(schemas, root))
        if max(len(of_root), len(parts)) >= _MAX_PARTS:
            return frozenset()
        return frozenset(name for part in parts for name in _named(part))


def _parts(schemas: list, root: object) -> Iterator[dict]:
    """These schemas and those that they are made of, each once, up to _MAX_PARTS."""
    waiting, seen = schemas[:_MAX_PARTS], set()
    while waiting and len(seen) < _MAX_PARTS:
        one = waiting.pop()
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        for word in ("anyOf", "oneOf", "allOf"):
            if isinstance(one.get(word), list):
                waiting += one[word][:_MAX_PARTS]
        waiting.append(_target(one.get("$ref"), root))


def _target(reference: object, root: object) -> object:
    """What "#/$defs/NAME" is; None if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    for step in reference[1:].split("/")[1:]:
        if not isinstance(root, dict):
            return None
        root = root.get(step.replace("~1", "/").replace("~0", "~"))
    return root


def _named(schema: dict) -> Iterator[str]:
    """Its types; those of its values if it names none."""
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return (one for one in types if isinstance(one, str) and one in _NAMES)
    values = schema["enum"] if isinstance(schema.get("enum"), list) else []
    values = values + [schema["const"]] if "const" in schema else values
    return (name for value in values for name in _KINDS[type(value)])
