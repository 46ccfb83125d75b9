"""The body of /v1/completions, checked."""

import dataclasses

from gateway import sampling
from gateway.errors import bad_request
from gateway.fields import Fields, is_ids
from tandem.v1 import generation_pb2 as api

DEFAULT_MAX_TOKENS = 16  # OpenAI's
MAX_ANSWERS = 256  # prompts times choices


@dataclasses.dataclass
class CompletionRequest:
    model: str | None
    prompts: list[str | list[int]]
    params: api.SamplingParams
    priority: int
    choices: int  # of each prompt
    echo: bool
    no_answer: bool  # max_tokens 0 with echo: only the prompts are wanted
    add_special_tokens: bool
    skip_special_tokens: bool
    stream: bool
    include_usage: bool


def read(body: object) -> CompletionRequest:
    fields = Fields(body)
    params = sampling.read_sampling(fields)
    echo = fields.boolean("echo")
    max_tokens = fields.integer("max_tokens")
    no_answer = echo and max_tokens == 0
    params.max_tokens = 1 if no_answer else DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    top = fields.integer("logprobs", 0, sampling.MAX_TOP_LOGPROBS)
    if top is not None:
        params.logprobs = top
        if echo:
            params.prompt_logprobs = top
    stream, include_usage = sampling.read_stream(fields)
    request = CompletionRequest(
        model=fields.text("model"), prompts=_read_prompts(fields), params=params,
        priority=sampling.read_priority(fields), choices=sampling.read_choices(fields), echo=echo, no_answer=no_answer,
        add_special_tokens=fields.boolean("add_special_tokens", default=True),
        skip_special_tokens=fields.boolean("skip_special_tokens", default=True), stream=stream,
        include_usage=include_usage)
    if len(request.prompts) * request.choices > MAX_ANSWERS:
        raise bad_request(f"{len(request.prompts)} prompts with n {request.choices} are "
                          f"{len(request.prompts) * request.choices} answers, at most "
                          f"{MAX_ANSWERS}", "prompt")
    fields.only("suffix", "")
    fields.refuse_others()
    return request


def _read_prompts(fields: Fields) -> list[str | list[int]]:
    """A text, token ids, or a list of either."""
    prompt = fields.take("prompt")
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt, list) and prompt:
        if is_ids(prompt):
            return [prompt]
        if all(isinstance(one, str) or (isinstance(one, list) and one and is_ids(one))
               for one in prompt):
            return prompt
    raise fields.error("prompt", "must be a string, a list of token ids, or a list of either")
