"""`usage`, summed over the choices of a request."""

from tandem.v1 import generation_pb2 as api


class UsageSum:
    """A prompt counts once, however many choices it has."""

    def __init__(self, choices_per_prompt: int):
        self._choices_per_prompt = choices_per_prompt
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._cached_tokens = 0
        self._draft_tokens = 0
        self._accepted_draft_tokens = 0
        self.thought_tokens = 0

    def add(self, index: int, usage: api.Usage) -> None:
        """Of the choice with this index."""
        self._completion_tokens += usage.completion_tokens
        self._draft_tokens += usage.draft_tokens
        self._accepted_draft_tokens += usage.accepted_draft_tokens
        if index % self._choices_per_prompt == 0:
            self._prompt_tokens += usage.prompt_tokens
            self._cached_tokens += usage.cached_tokens

    def json(self) -> dict:
        usage = {"prompt_tokens": self._prompt_tokens,
                 "completion_tokens": self._completion_tokens,
                 "total_tokens": self._prompt_tokens + self._completion_tokens,
                 "prompt_tokens_details": {"cached_tokens": self._cached_tokens}}
        details = {"reasoning_tokens": self.thought_tokens} if self.thought_tokens else {}
        if self._draft_tokens > 0:
            # OpenAI's names for what a caller predicts.
            details["accepted_prediction_tokens"] = self._accepted_draft_tokens
            details["rejected_prediction_tokens"] = self._draft_tokens - self._accepted_draft_tokens
        if details:
            usage["completion_tokens_details"] = details
        return usage
