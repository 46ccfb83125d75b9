"""Random requests that combine everything a request can ask for, from a seed."""

import random

from tandem.v1 import generation_pb2 as api

VOCABULARY = 1700  # of the demo model, a bit less
MAX_TOKENS = 300
_SENTENCES = (
    "Lily was in the hall. ", "The cat had an orange ball. ", "Anna got tired and went home. ",
    "Question: Where is the dog? Answer: in the garden. ", "Tom said: \"I like the red box!\" ",
    "Story: Once there was a small bird. ", "It rained. ", "The end of the day came. ")


def _text(draw, num_sentences):
    return "".join(draw.choice(_SENTENCES) for _ in range(num_sentences))


# What many prompts begin with.
_PREFIXES = [_text(random.Random(i), 8 * i) for i in range(4)]


def _length(draw, most):
    """From 1 to most, short ones more often."""
    return max(1, int(most**draw.random()))


def _prompt(draw, request):
    if draw.random() < 0.2:
        request.token_ids.ids.extend(draw.randrange(2, VOCABULARY) for _ in range(_length(draw, 60)))
    else:
        request.text = draw.choice(_PREFIXES) + _text(draw, _length(draw, 6))


# Each sets one or a few fields that belong together.
_OPTIONS = (
    lambda draw, s: setattr(s, "top_p", draw.choice((0.5, 0.9, 1))),
    lambda draw, s: setattr(s, "top_k", draw.choice((-1, 0, 1, 5, 100))),
    lambda draw, s: setattr(s, "min_p", draw.choice((0, 0.02, 0.3))),
    lambda draw, s: setattr(s, "typical_p", draw.choice((0.3, 0.9))),
    lambda draw, s: (setattr(s, "xtc_probability", draw.choice((0.5, 1))), setattr(s, "xtc_threshold", 0.05)),
    lambda draw, s: setattr(s, "frequency_penalty", draw.uniform(-1, 1)),
    lambda draw, s: setattr(s, "presence_penalty", draw.uniform(-1, 1)),
    lambda draw, s: (setattr(s, "repetition_penalty", draw.uniform(0.9, 1.5)),
                     setattr(s, "penalty_window", draw.choice((-1, 0, 8, 64)))),
    lambda draw, s: (setattr(s, "dry_multiplier", draw.uniform(0.1, 2)),
                     setattr(s, "dry_allowed_length", draw.randint(1, 4)),
                     s.dry_sequence_breakers.extend(draw.sample((".", "\n", "\"", ":"), 2))),
    lambda draw, s: s.logit_bias.update({draw.randrange(2, VOCABULARY): draw.uniform(-5, 5) for _ in range(8)}),
    lambda draw, s: s.bad_words.extend(draw.sample(("cat", "hall", "Lily was", " the", "."), 2)),
    lambda draw, s: s.stop.extend(draw.sample((".", "Lily", "\n", "Answer:", "zzz"), draw.randint(1, 3))),
    lambda draw, s: s.stop_token_ids.extend(draw.sample(range(2, VOCABULARY), 20)),
    lambda draw, s: setattr(s, "include_stop", True),
    lambda draw, s: setattr(s, "min_tokens", draw.randint(0, s.max_tokens)),
    lambda draw, s: setattr(s, "ignore_eos", True),
    lambda draw, s: setattr(s, "logprobs", draw.randint(0, 5)),
    lambda draw, s: setattr(s, "prompt_logprobs", draw.randint(0, 2)),
    lambda draw, s: setattr(s, "n", draw.randint(2, 4)),
    lambda draw, s: setattr(s, "speculation", draw.random() < 0.5),
)


def drawn_request(seed):
    draw = random.Random(seed)
    request = api.GenerateRequest()
    _prompt(draw, request)
    sampling = request.sampling
    sampling.seed = draw.getrandbits(63)
    sampling.temperature = draw.choice((0, 0.7, 1))
    sampling.max_tokens = _length(draw, MAX_TOKENS)
    for option in draw.sample(_OPTIONS, draw.randint(0, 6)):
        option(draw, sampling)
    if draw.random() < 0.2:
        request.cache_salt = draw.choice("ab")
    if draw.random() < 0.3:
        request.priority = draw.randint(-3, 3)
    return request


def without_each_field(request):
    """The request without one of its fields, each in turn; the prompt and the length stay."""
    for message, name in [(request, "cache_salt"), (request, "priority")] + [
            (request.sampling, field.name) for field, _ in request.sampling.ListFields()]:
        if name in ("max_tokens", "seed") or not dict((f.name, v) for f, v in message.ListFields()).get(name):
            continue
        smaller = api.GenerateRequest()
        smaller.CopyFrom(request)
        (smaller if message is request else smaller.sampling).ClearField(name)
        yield smaller
