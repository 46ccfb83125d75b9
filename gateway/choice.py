"""One choice of a chat's answers, as its messages come: its thoughts, content and calls."""

from collections.abc import Sequence
from typing import NamedTuple

from gateway import forced_calls
from gateway.answer_reader import AnswerReader
from gateway.chat_request import ChatRequest
from gateway.finish import FINISH_REASONS
from gateway.forced_calls import CallPart
from gateway.generation import Answer
from gateway.tool_calls import ToolCall
from tandem.v1 import generation_pb2 as api


class Added(NamedTuple):
    """What a message adds. Calls that the request does not force are whole."""
    reasoning: str = ""
    content: str = ""
    calls: Sequence[CallPart] = ()


def joined(added: list[Added]) -> Added:
    return Added("".join(one.reasoning for one in added), "".join(one.content for one in added),
                 [call for one in added for call in one.calls])


class Choice:
    """Calls that the request forces are in the reader's content. `thought_tokens`: so far, by the
    messages in which thoughts came."""

    def __init__(self, request: ChatRequest, reader: AnswerReader):
        self._request = request
        self._reader = reader
        self._forced = forced_calls.reader(request.forced) if request.forced else None
        self._num_calls = 0
        self.thought_tokens = 0

    def add(self, text: str, num_tokens: int, last: bool) -> Added:
        parts = self._reader.read(text, last)
        if parts.reasoning or parts.thinking:
            self.thought_tokens += num_tokens
        reasoning = parts.reasoning if self._request.include_reasoning else ""
        if self._forced:
            has_begun = parts.content or (last and not parts.thinking)
            return Added(reasoning, calls=self._forced.feed(parts.content) if has_begun else [])
        return Added(reasoning, parts.content, self._numbered(parts.calls) if parts.calls else ())

    def _numbered(self, calls: Sequence[ToolCall]) -> list[CallPart]:
        if not self._request.tools:  # gpt-oss may write calls all the same
            return []
        if self._request.one_call:
            calls = calls[:max(1 - self._num_calls, 0)]
        first, self._num_calls = self._num_calls, self._num_calls + len(calls)
        return [CallPart(first + i, one.arguments, one.id, one.name) for i, one in enumerate(calls)]

    def add_whole(self, answer: Answer) -> list[Added]:
        """By its messages, if they are kept."""
        messages = answer.messages if answer.keeps_messages else [(answer.text, 0)]
        return [*(self.add(text, num_tokens, last=False) for text, num_tokens in messages),
                self.add("", 0, last=True)]

    def finish_reason(self, last: api.GenerateResponse) -> str:
        reason = FINISH_REASONS.get(last.finish_reason, "stop")
        has_calls = self._forced.complete if self._forced else self._num_calls
        return "tool_calls" if reason == "stop" and has_calls else reason
