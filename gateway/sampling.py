"""The sampling fields that completions and chat share, as SamplingParams."""

import hashlib

from gateway.constraint import read_constraint
from gateway.fields import INT32_MAX, Fields, finite
from tandem.v1 import generation_pb2 as api

MAX_CHOICES = 128  # and the next: common/base/limits.h
MAX_TOP_LOGPROBS = 20
_MAX_BIASES = 1024  # the coordinator's
_MOST_PRIORITY = 100  # likewise

# They say who asks, how a request is stored, billed or routed, not what the answer is.
HARMLESS = ("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
            "prompt_cache_options", "prompt_cache_retention", "verbosity")

# Fields of OpenAI's and vLLM's APIs that the coordinator does not have yet, with their neutral
# values.
_NEUTRAL = {
    "length_penalty": (1,),
    "use_beam_search": (False,),
    "best_of": (1,),
    "allowed_token_ids": ([],),
    "spaces_between_special_tokens": (True,),
    "prompt_logprobs": (),
    "truncate_prompt_tokens": (),
}


# Named as in SamplingParams.
_NUMBERS = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty",
            "repetition_penalty", "typical_p", "xtc_probability", "xtc_threshold",
            "dry_multiplier", "dry_base")
_INTEGERS = ("top_k", "min_tokens", "penalty_window", "dry_allowed_length", "dry_penalty_last_n")


def _read_biases(fields: Fields) -> dict[int, float]:
    biases = fields.object("logit_bias") or {}
    if len(biases) > _MAX_BIASES:
        raise fields.error("logit_bias", f"has {len(biases)} entries, at most {_MAX_BIASES}")
    if not all(_is_id(key) and finite(bias) is not None for key, bias in biases.items()):
        raise fields.error("logit_bias", "must be an object of token ids and numbers")
    return {int(key): finite(bias) for key, bias in biases.items()}


def _is_id(key: str) -> bool:
    """Written in one way, so that no two keys are one id."""
    return key.isascii() and key.isdigit() and len(key) <= 10 and (
        int(key) <= INT32_MAX and str(int(key)) == key)


def read_sampling(fields: Fields) -> api.SamplingParams:
    """Ranges are the coordinator's to check; logprobs and max_tokens differ between endpoints."""
    params = api.SamplingParams(stop=fields.strings("stop"),
                                stop_token_ids=fields.integers("stop_token_ids"),
                                bad_words=fields.strings("bad_words"),
                                dry_sequence_breakers=fields.strings("dry_sequence_breakers"),
                                logit_bias=_read_biases(fields),
                                ignore_eos=fields.boolean("ignore_eos"))
    if fields.boolean("include_stop_str_in_output"):
        params.include_stop = True
    if not fields.boolean("speculation", default=True):
        params.speculation = False
    for name in _NUMBERS:
        if (number := fields.number(name)) is not None:
            setattr(params, name, number)
    for name in _INTEGERS:
        if (integer := fields.integer(name)) is not None:
            setattr(params, name, integer)
    if (seed := fields.integer("seed", -2**63, 2**64 - 1)) is not None:
        params.seed = seed % 2**64
    read_constraint(fields, params)
    fields.ignore(HARMLESS)
    for name, neutral in _NEUTRAL.items():
        fields.only(name, *neutral)
    return params


def read_choices(fields: Fields) -> int:
    """`n`."""
    return fields.integer("n", 1, MAX_CHOICES) or 1


def read_priority(fields: Fields) -> int:
    """vLLM's: a lower number goes first."""
    return fields.integer("priority", -_MOST_PRIORITY, _MOST_PRIORITY) or 0


def for_choice(params: api.SamplingParams, choice: int) -> api.SamplingParams:
    """The first choice has the request's own seed, each other one a seed derived from it."""
    if choice == 0 or not params.HasField("seed"):
        return params
    derived = api.SamplingParams()
    derived.CopyFrom(params)
    key = params.seed.to_bytes(8, "little") + choice.to_bytes(4, "little")
    derived.seed = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
    return derived


def read_stream(fields: Fields) -> tuple[bool, bool]:
    """(stream, stream_options.include_usage)."""
    stream = fields.boolean("stream")
    options = fields.fields("stream_options")
    if options is None:
        return stream, False
    if not stream:
        raise fields.error("stream_options", "needs stream to be true")
    include_usage = options.boolean("include_usage")
    options.ignore(("continuous_usage_stats", "include_obfuscation"))
    options.refuse_others()
    return stream, include_usage
