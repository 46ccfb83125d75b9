"""`tool_choice`: whether an answer may have calls, and the JSON schema of calls that it must have.

A call that is forced does not depend on the form in which a model writes calls: the text is JSON,
of a named function its arguments, else a list of {"name", "parameters"}, as vLLM has it.
"""

import dataclasses
import logging

from gateway.constraint import schema_text
from gateway.fields import Fields
from tandem.v1 import generation_pb2 as api

# Keywords of JSON schemas whose members are schemas by the names that a client gives, and those
# whose values are no schemas.
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_DATA = ("const", "enum", "default", "examples")

_LOG = logging.getLogger("gateway")
_MAX_LOGGED_CHARS = 40


@dataclasses.dataclass(frozen=True)
class ForcedCalls:
    name: str | None  # of the function; None: any of the tools, at least once


def read_tool_choice(fields: Fields, tools: list[dict]) -> str | ForcedCalls:
    """"auto", "none", or the calls that there must be."""
    choice = fields.take("tool_choice")
    if choice is None or choice == "auto" or choice == "none":
        return choice or "auto"
    name = None
    if isinstance(choice, dict):
        name = _read_name(fields.fields("tool_choice"))
    elif choice != "required":
        raise fields.error("tool_choice", 'must be "auto", "none", "required" or an object that '
                           "names a function")
    if not tools:
        raise fields.error("tool_choice", "forces a call, so it needs tools")
    if name is not None and all(one["function"]["name"] != name for one in tools):
        raise fields.error("tool_choice.function.name", "is none of the tools' names")
    return ForcedCalls(name)


def note_left_out(kind: str) -> None:
    """Of a tool that is no function: others' servers run it."""
    _LOG.info("a tool of type %s is left out", kind[:_MAX_LOGGED_CHARS].encode("unicode_escape").decode())


def _read_name(choice: Fields) -> str:
    if choice.text("type") != "function":
        raise choice.error("type", 'must be "function"')
    function = choice.fields("function")
    name = function and function.text("name")
    if not name:
        raise choice.error("function", "must be an object with a name")
    function.refuse_others()
    choice.refuse_others()
    return name


def force(calls: ForcedCalls, tools: list[dict], one_call: bool,
          params: api.SamplingParams) -> None:
    """Makes the calls the form of the answer."""
    where = Fields({}, "tools")
    if calls.name is None:
        params.json_schema = schema_text(where, "", _schema_of_list(tools, one_call))
        return
    index = [one["function"]["name"] for one in tools].index(calls.name)
    params.json_schema = schema_text(where, f"[{index}].function.parameters",
                                     _parameters(tools, index))


def _parameters(tools: list[dict], index: int) -> dict:
    """A function without any takes an empty object, one that does not say so any object."""
    schema = Fields(tools[index]["function"], f"tools[{index}].function.").object("parameters")
    if schema is None:
        return {"type": "object", "properties": {}}
    schema = {key: one for key, one in schema.items() if key not in ("$id", "$schema")}
    if any(key in schema for key in ("type", "$ref", "anyOf", "oneOf", "allOf", "const", "enum")):
        return schema
    return {"type": "object", **schema}


def _schema_of_list(tools: list[dict], one_call: bool) -> dict:
    """Each function's parameters are a definition of their own, with references into it."""
    calls, definitions = [], {}
    for index, tool in enumerate(tools):
        root = f"#/$defs/tool_{index}"
        members = {"name": {"const": tool["function"]["name"]}, "parameters": {"$ref": root}}
        calls.append({"type": "object", "properties": members, "required": list(members),
                      "additionalProperties": False})
        parameters = _parameters(tools, index)
        try:
            definitions[f"tool_{index}"] = _moved(parameters, root)
        except RecursionError:
            raise Fields({}, f"tools[{index}].function.").error(
                "parameters", "nests too deeply") from None
    schema = {"type": "array", "items": {"anyOf": calls}, "minItems": 1}
    if one_call:
        schema["maxItems"] = 1
    return {**schema, "$defs": definitions}


def _moved(schema: object, root: str) -> object:
    """A schema that was a document and is now at `root` of another: its references follow."""
    if isinstance(schema, list):
        return [_moved(one, root) for one in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {}
    for key, one in schema.items():
        if key == "$ref" and isinstance(one, str) and (one == "#" or one.startswith("#/")):
            moved[key] = root + one[1:]
        elif key in _BY_NAME and isinstance(one, dict):
            moved[key] = {name: _moved(schema_of, root) for name, schema_of in one.items()}
        else:
            moved[key] = one if key in _DATA else _moved(one, root)
    return moved
