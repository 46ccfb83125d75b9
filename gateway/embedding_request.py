"""The body of /v1/embeddings, checked, and the requests to the server that it becomes."""

import dataclasses

from gateway import sampling
from gateway.fields import Fields, is_ids
from gateway.limits import MAX_PROMPT_BYTES, prompt_bytes
from tandem.v1 import generation_pb2 as api

MAX_INPUTS = 2048  # OpenAI's
MAX_INPUTS_OF_A_CALL = 32  # enough to fill steps, and less than a small server's queue
_POOLINGS = {None: api.POOLING_UNSPECIFIED, "mean": api.POOLING_MEAN, "cls": api.POOLING_CLS,
             "last": api.POOLING_LAST}


@dataclasses.dataclass
class EmbeddingRequest:
    model: str | None
    inputs: list[str | list[int]]
    base64: bool
    common: api.EmbedRequest  # without inputs


def read(body: object) -> EmbeddingRequest:
    fields = Fields(body)
    encoding = fields.text("encoding_format")
    if encoding not in (None, "float", "base64"):
        raise fields.error("encoding_format", 'must be "float" or "base64"')
    pooling = fields.text("pooling")
    if pooling not in _POOLINGS:
        raise fields.error("pooling", 'must be "mean", "cls" or "last"')
    common = api.EmbedRequest(
        pooling=_POOLINGS[pooling], normalize=fields.boolean("normalize", default=True),
        add_special_tokens=fields.boolean("add_special_tokens", default=True),
        parse_special_tokens=True, priority=sampling.read_priority(fields))
    if (dimensions := fields.integer("dimensions")) is not None:
        common.dimensions = dimensions
    request = EmbeddingRequest(model=fields.text("model"), inputs=_read_inputs(fields),
                               base64=encoding == "base64", common=common)
    fields.ignore(sampling.HARMLESS)
    fields.refuse_others()
    return request


def _read_inputs(fields: Fields) -> list[str | list[int]]:
    """A text, token ids, or a list of either."""
    value = fields.take("input")
    inputs = [value] if isinstance(value, str) or (
        isinstance(value, list) and value and is_ids(value)) else value
    if not (isinstance(inputs, list) and inputs and all(
            isinstance(one, str) or (isinstance(one, list) and is_ids(one)) for one in inputs)):
        raise fields.error("input", "must be a string, a list of token ids, or a list of either")
    if len(inputs) > MAX_INPUTS:
        raise fields.error("input", f"has {len(inputs)} entries, at most {MAX_INPUTS}")
    for i, one in enumerate(inputs):
        if not one:
            raise fields.error(f"input[{i}]" if len(inputs) > 1 else "input", "must not be empty")
    return inputs


def batches(request: EmbeddingRequest, id: str) -> list[api.EmbedRequest]:
    """As few calls as the bounds allow, in the order of the inputs."""
    calls: list[api.EmbedRequest] = []
    room = 0
    for one in request.inputs:
        if not calls or len(calls[-1].inputs) == MAX_INPUTS_OF_A_CALL or prompt_bytes(one) > room:
            calls.append(api.EmbedRequest())
            calls[-1].CopyFrom(request.common)
            calls[-1].request_id = f"{id}-{len(calls) - 1}"
            room = MAX_PROMPT_BYTES
        # A little more, for what the field itself takes.
        room -= prompt_bytes(one) + 16
        if isinstance(one, str):
            calls[-1].inputs.add(text=one)
        else:
            calls[-1].inputs.add().token_ids.ids.extend(one)
    return calls
