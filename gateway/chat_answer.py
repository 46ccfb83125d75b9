"""Answers of /v1/chat/completions, whole and as chunks."""

import time

from gateway import forced_calls, logprobs
from gateway.answer_reader import AnswerReader, Parts
from gateway.chat_request import ChatRequest
from gateway.finish import FINISH_REASONS, stop_reason
from gateway.generation import Answer
from gateway.tool_calls import ToolCall
from gateway.usage import UsageSum
from tandem.v1 import generation_pb2 as api


class ChatForm:
    """The JSON of one request's answers. `readers`: one per choice. Calls that the request forces are
    in their content."""

    def __init__(self, id: str, model: str, request: ChatRequest, readers: list[AnswerReader]):
        self._id = id
        self._model = model
        self._created = int(time.time())
        self._request = request
        self._readers = readers
        self._forced = [forced_calls.reader(request.forced) for _ in range(request.choices)
                        if request.forced]
        self._num_calls = [0] * request.choices
        self._usage = UsageSum(request.choices)

    def whole(self, answers: list[Answer], pieces: logprobs.Pieces) -> dict:
        return {"id": self._id, "object": "chat.completion", "created": self._created,
                "model": self._model,
                "choices": [self._choice(i, one, pieces) for i, one in enumerate(answers)],
                "usage": self._usage.json(), "system_fingerprint": None}

    def _choice(self, index: int, answer: Answer, pieces: logprobs.Pieces) -> dict:
        self._usage.add(index, answer.last.usage)
        message = {"role": "assistant", **self._content(index, answer.text), "refusal": None}
        return {"index": index, "message": message,
                "logprobs": self._logprobs(answer.logprobs, pieces),
                **self._finish(index, answer.last)}

    def _content(self, index: int, text: str) -> dict:
        parts = self._read(index, text, last=True)
        message = _reasoning(parts.reasoning)
        if self._forced:
            calls = forced_calls.joined(self._forced[index].feed(parts.content))
            return {"content": None, **message, **({"tool_calls": calls} if calls else {})}
        if parts.calls:
            return {"content": parts.content or None, **message,
                    "tool_calls": [_call(one) for one in parts.calls]}
        return {"content": parts.content, **message}

    def first_chunks(self) -> list[dict]:
        """The roles."""
        content = None if self._forced else ""
        return [self._chunk([self._delta(i, {"role": "assistant", "content": content})])
                for i in range(self._request.choices)]

    def chunks(self, index: int, message: api.GenerateResponse,
               pieces: logprobs.Pieces) -> list[dict]:
        """What a message adds, and after the last one the reason."""
        deltas = self._deltas(index, message.text, last=bool(message.finish_reason))
        probs = self._logprobs(message.logprobs, pieces)
        if probs and probs["content"] and not deltas:
            deltas = [{} if self._forced else {"content": ""}]
        chunks = [self._chunk([self._delta(index, delta, None if i else probs)])
                  for i, delta in enumerate(deltas)]
        if message.finish_reason:
            self._usage.add(index, message.usage)
            chunks.append(self._chunk([self._delta(index, {}) | self._finish(index, message)]))
        return chunks

    def last_chunk(self) -> dict | None:
        """The usage, if it was asked for."""
        return self._chunk([], self._usage.json()) if self._request.include_usage else None

    def _deltas(self, index: int, text: str, last: bool) -> list[dict]:
        first_call = self._num_calls[index]
        parts = self._read(index, text, last)
        deltas = [_reasoning(parts.reasoning)] if parts.reasoning else []
        if self._forced:
            return deltas + [{"tool_calls": [part.json()]}
                             for part in self._forced[index].feed(parts.content)]
        delta = {"content": parts.content} if parts.content else {}
        if parts.calls:
            delta["tool_calls"] = [{"index": first_call + i, **_call(one)}
                                   for i, one in enumerate(parts.calls)]
        return deltas + [delta] if delta else deltas

    def _read(self, index: int, text: str, last: bool) -> Parts:
        parts = self._readers[index].read(text, last)
        calls = parts.calls
        if not self._request.tools:  # gpt-oss may write calls all the same
            calls = []
        elif self._request.one_call:
            calls = calls[:max(1 - self._num_calls[index], 0)]
        self._num_calls[index] += len(calls)
        return Parts(parts.reasoning if self._request.include_reasoning else "", parts.content, calls)

    def _finish(self, index: int, last: api.GenerateResponse) -> dict:
        reason = FINISH_REASONS.get(last.finish_reason, "stop")
        has_calls = self._forced[index].complete if self._forced else self._num_calls[index]
        if reason == "stop" and has_calls:
            reason = "tool_calls"
        return {"finish_reason": reason, "stop_reason": stop_reason(last, self._request.params)}

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


def _call(call: ToolCall) -> dict:
    return {"id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": call.arguments}}
