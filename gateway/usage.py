"""`usage`, summed over the choices of a request."""

from tandem.v1 import generation_pb2 as api


class UsageSum:
    """A prompt counts once, however many choices it has."""

    def __init__(self, choices_per_prompt: int):
        self._choices_per_prompt = choices_per_prompt
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._cached_tokens = 0

    def add(self, index: int, usage: api.Usage) -> None:
        """Of the choice with this index."""
        self._completion_tokens += usage.completion_tokens
        if index % self._choices_per_prompt == 0:
            self._prompt_tokens += usage.prompt_tokens
            self._cached_tokens += usage.cached_tokens

    def json(self) -> dict:
        return {"prompt_tokens": self._prompt_tokens,
                "completion_tokens": self._completion_tokens,
                "total_tokens": self._prompt_tokens + self._completion_tokens,
                "prompt_tokens_details": {"cached_tokens": self._cached_tokens}}
