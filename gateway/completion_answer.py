"""Answers of /v1/completions, whole and as chunks."""

import dataclasses
import time

from gateway import logprobs
from gateway.completion_request import CompletionRequest
from gateway.errors import ApiError
from gateway.finish import FINISH_REASONS, stop_reason
from gateway.generation import Answer
from gateway.responses import DONE
from gateway.usage import UsageSum
from tandem.v1 import generation_pb2 as api


@dataclasses.dataclass(frozen=True)
class Prompt:
    """As sent, and as an echo gives it back; `ids` only where log-probabilities need them."""
    text: str
    ids: list[int]


class CompletionForm:
    """The JSON of one request's answers. Answer i is choice i % n of prompt i // n."""

    end = DONE
    by_message = False
    failed = staticmethod(ApiError.body)

    def __init__(self, id: str, model: str, request: CompletionRequest, prompts: list[Prompt]):
        self._id = id
        self._model = model
        self._created = int(time.time())
        self._request = request
        self._prompts = prompts
        num_answers = len(request.prompts) * request.choices
        self._logprobs = [logprobs.CompletionLogprobs() for _ in range(num_answers)]
        self._echoed = [False] * num_answers
        self._usage = UsageSum(request.choices)

    def whole(self, answers: list[Answer], pieces: logprobs.Pieces) -> dict:
        choices = [self._choice(i, one, one.last, pieces) for i, one in enumerate(answers)]
        for index, answer in enumerate(answers):
            self._usage.add(index, self._used(answer.last.usage))
        return {**self._chunk(choices), "usage": self._usage.json()}

    def first_chunks(self) -> list[dict]:
        return []

    def chunks(self, index: int, message: api.GenerateResponse,
               pieces: logprobs.Pieces) -> list[dict]:
        if message.finish_reason:
            self._usage.add(index, self._used(message.usage))
        choice = self._choice(index, message, message, pieces)
        if not (choice["text"] or choice["finish_reason"] or message.logprobs
                or message.prompt_logprobs):
            return []
        chunk = self._chunk([choice])
        if self._request.include_usage:
            chunk["usage"] = None
        return [chunk]

    def last_chunk(self) -> dict | None:
        if not self._request.include_usage:
            return None
        return {**self._chunk([]), "usage": self._usage.json()}

    def _choice(self, index: int, part: Answer | api.GenerateResponse, last: api.GenerateResponse,
                pieces: logprobs.Pieces) -> dict:
        """Of an answer, or of a part of it; `last` says whether and why it ended."""
        text, entries = part.text, part.logprobs
        if self._request.no_answer:
            text, entries = "", []
        if self._request.echo and not self._echoed[index]:
            self._echoed[index] = True
            text = self._prompt(index).text + text
        form = None
        if self._request.params.HasField("logprobs"):
            form = self._logprobs[index].form([*part.prompt_logprobs, *entries], pieces,
                                              self._prompt(index).ids[:1])
        reason = FINISH_REASONS.get(last.finish_reason)
        matched = stop_reason(last, self._request.params)
        if reason and self._request.no_answer:
            reason, matched = "length", None
        return {"index": index, "text": text, "logprobs": form, "finish_reason": reason,
                "stop_reason": matched}

    def _prompt(self, index: int) -> Prompt:
        return self._prompts[index // self._request.choices]

    def _used(self, usage: api.Usage) -> api.Usage:
        if not self._request.no_answer:
            return usage
        return api.Usage(prompt_tokens=usage.prompt_tokens, cached_tokens=usage.cached_tokens)

    def _chunk(self, choices: list[dict]) -> dict:
        return {"id": self._id, "object": "text_completion", "created": self._created,
                "model": self._model, "choices": choices}
