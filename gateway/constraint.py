"""The form of an answer's whole text: OpenAI's `response_format`, vLLM's ways to say it, and
llama.cpp's `grammar`."""

import json

from gateway.fields import Fields
from tandem.v1 import generation_pb2 as api

_MAX_NAME = 64  # OpenAI's

# Of vLLM's `structured_outputs`: what the coordinator does not have, with neutral values.
_NEUTRAL = {
    "structural_tag": (),
    "whitespace_pattern": (),
    "disable_fallback": (False,),
    "disable_any_whitespace": (False,),
    "disable_additional_properties": (False,),
}


def read_constraint(fields: Fields, params: api.SamplingParams) -> None:
    """At most one of the fields may give a form. What a schema may have is the coordinator's to
    check."""
    given = _given(fields, {
        "response_format": _read_response_format, "guided_json": _read_json,
        "guided_regex": _read_regex, "guided_choice": _read_choice,
        "guided_grammar": _read_grammar, "grammar": _read_grammar,
        "structured_outputs": _read_structured_outputs})
    if len(given) > 1:
        first, second, *_ = given
        raise fields.error(second, f"is given beside {first}: an answer has one form")
    for form in given.values():
        params.MergeFrom(form)


def schema_text(fields: Fields, name: str, schema: dict) -> str:
    """With the keys in their order: members come in the order of `properties`."""
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError):  # 1e999, half a surrogate pair
        raise fields.error(name, "is not a JSON schema: it has what no JSON text has, or nests "
                           "too deeply") from None
    return text


def _given(fields: Fields, readers: dict) -> dict[str, api.SamplingParams]:
    found = {name: read(fields, name) for name, read in readers.items()}
    return {name: form for name, form in found.items() if form is not None}


def _read_response_format(fields: Fields, name: str) -> api.SamplingParams | None:
    wanted = fields.fields(name)
    if wanted is None:
        return None
    kind = wanted.text("type")
    if kind not in ("text", "json_object", "json_schema"):
        raise wanted.error("type", 'must be "text", "json_object" or "json_schema"')
    form = None
    if kind == "json_object":
        form = api.SamplingParams(json_object=True)
    elif kind == "json_schema":
        form = _read_named_schema(wanted)
    wanted.refuse_others()
    return form


def _read_named_schema(wanted: Fields) -> api.SamplingParams:
    """`json_schema` of OpenAI's. It is kept to, whatever `strict` says."""
    named = wanted.fields("json_schema")
    if named is None:
        raise wanted.error("json_schema", "is missing")
    title = named.text("name")
    if not title or len(title) > _MAX_NAME:
        raise named.error("name", f"must be a string of 1 to {_MAX_NAME} characters")
    named.text("description")
    named.boolean("strict")
    schema = named.object("schema")
    named.refuse_others()
    if schema is None:
        return api.SamplingParams(json_object=True)
    return api.SamplingParams(json_schema=schema_text(named, "schema", schema))


def _read_json(fields: Fields, name: str) -> api.SamplingParams | None:
    """A schema as it is, or as text."""
    schema = fields.object_or_text(name)
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            schema = None
        if not isinstance(schema, dict):
            raise fields.error(name, "must be a JSON object, or one as text")
    if schema is None:
        return None
    return api.SamplingParams(json_schema=schema_text(fields, name, schema))


def _read_regex(fields: Fields, name: str) -> api.SamplingParams | None:
    regex = fields.text(name)
    return None if regex is None else api.SamplingParams(regex=regex)


def _read_choice(fields: Fields, name: str) -> api.SamplingParams | None:
    texts = fields.array(name)
    if texts is None:
        return None
    if not texts or not all(isinstance(one, str) for one in texts):
        raise fields.error(name, "must be a list of at least one string")
    return api.SamplingParams(choice=api.Choices(texts=texts))


def _read_grammar(fields: Fields, name: str) -> api.SamplingParams | None:
    grammar = fields.text(name)
    return api.SamplingParams(grammar=grammar) if grammar else None  # llama.cpp's default is ""


def _read_json_object(fields: Fields, name: str) -> api.SamplingParams | None:
    return api.SamplingParams(json_object=True) if fields.boolean(name) else None


def _read_structured_outputs(fields: Fields, name: str) -> api.SamplingParams | None:
    """vLLM's newer name for its `guided_*`."""
    wanted = fields.fields(name)
    if wanted is None:
        return None
    given = _given(wanted, {"json": _read_json, "regex": _read_regex, "choice": _read_choice,
                            "grammar": _read_grammar, "json_object": _read_json_object})
    for key, neutral in _NEUTRAL.items():
        wanted.only(key, *neutral)
    wanted.refuse_others()
    if len(given) != 1:
        raise fields.error(name, "must have one of json, regex, choice, grammar and json_object")
    return next(iter(given.values()))
