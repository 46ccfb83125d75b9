"""Answers of /v1/chat/completions, whole and as chunks."""

import time

from gateway import forced_calls, logprobs
from gateway.answer_reader import AnswerReader
from gateway.chat_request import ChatRequest
from gateway.choice import Choice, joined
from gateway.errors import ApiError
from gateway.finish import stop_reason
from gateway.generation import Answer
from gateway.responses import DONE
from gateway.usage import UsageSum
from tandem.v1 import generation_pb2 as api


class ChatForm:
    """The JSON of one request's answers. `readers`: one per choice."""

    end = DONE
    failed = staticmethod(ApiError.body)

    def __init__(self, id: str, model: str, request: ChatRequest, readers: list[AnswerReader]):
        self._id = id
        self._model = model
        self._created = int(time.time())
        self._request = request
        self._choices = [Choice(request, one) for one in readers]
        self.by_message = any(one.may_think for one in readers)
        self._usage = UsageSum(request.choices)

    def whole(self, answers: list[Answer], pieces: logprobs.Pieces) -> dict:
        return {"id": self._id, "object": "chat.completion", "created": self._created,
                "model": self._model,
                "choices": [self._choice(i, one, pieces) for i, one in enumerate(answers)],
                "usage": self._usage.json(), "system_fingerprint": None}

    def _choice(self, index: int, answer: Answer, pieces: logprobs.Pieces) -> dict:
        message = {"role": "assistant", **self._content(index, answer), "refusal": None}
        self._add_usage(index, answer.last)
        return {"index": index, "message": message,
                "logprobs": self._logprobs(answer.logprobs, pieces),
                **self._finish(index, answer.last)}

    def _content(self, index: int, answer: Answer) -> dict:
        added = joined(self._choices[index].add_whole(answer))
        calls = {"tool_calls": forced_calls.joined(added.calls)} if added.calls else {}
        content = None if self._request.forced or (calls and not added.content) else added.content
        return {"content": content, **_reasoning(added.reasoning), **calls}

    def first_chunks(self) -> list[dict]:
        """The roles."""
        content = None if self._request.forced else ""
        return [self._chunk([self._delta(i, {"role": "assistant", "content": content})])
                for i in range(self._request.choices)]

    def chunks(self, index: int, message: api.GenerateResponse,
               pieces: logprobs.Pieces) -> list[dict]:
        """What a message adds, and after the last one the reason."""
        deltas = self._deltas(index, message)
        probs = self._logprobs(message.logprobs, pieces)
        if probs and probs["content"] and not deltas:
            deltas = [{} if self._request.forced else {"content": ""}]
        chunks = [self._chunk([self._delta(index, delta, None if i else probs)])
                  for i, delta in enumerate(deltas)]
        if message.finish_reason:
            self._add_usage(index, message)
            chunks.append(self._chunk([self._delta(index, {}) | self._finish(index, message)]))
        return chunks

    def last_chunk(self) -> dict | None:
        """The usage, if it was asked for."""
        return self._chunk([], self._usage.json()) if self._request.include_usage else None

    def _deltas(self, index: int, message: api.GenerateResponse) -> list[dict]:
        added = self._choices[index].add(message.text, len(message.token_ids),
                                         last=bool(message.finish_reason))
        deltas = [_reasoning(added.reasoning)] if added.reasoning else []
        if self._request.forced:
            return deltas + [{"tool_calls": [part.json()]} for part in added.calls]
        delta = {"content": added.content} if added.content else {}
        if added.calls:
            delta["tool_calls"] = [part.json() for part in added.calls]
        return deltas + [delta] if delta else deltas

    def _add_usage(self, index: int, last: api.GenerateResponse) -> None:
        self._usage.add(index, last.usage)
        self._usage.thought_tokens += self._choices[index].thought_tokens

    def _finish(self, index: int, last: api.GenerateResponse) -> dict:
        return {"finish_reason": self._choices[index].finish_reason(last),
                "stop_reason": stop_reason(last, self._request.params)}

    def _logprobs(self, entries, pieces: logprobs.Pieces) -> dict | None:
        if not self._request.params.HasField("logprobs"):
            return None
        return logprobs.chat_form(entries, pieces)

    @staticmethod
    def _delta(index: int, delta: dict, probs: dict | None = None) -> dict:
        return {"index": index, "delta": delta, "logprobs": probs, "finish_reason": None}

    def _chunk(self, choices: list[dict], usage: dict | None = None) -> dict:
        chunk = {"id": self._id, "object": "chat.completion.chunk", "created": self._created,
                 "model": self._model, "choices": choices}
        if self._request.include_usage:
            chunk["usage"] = usage
        return chunk


def _reasoning(text: str) -> dict:
    """By its older name, which most clients read, and by vLLM's."""
    return {"reasoning_content": text, "reasoning": text} if text else {}
