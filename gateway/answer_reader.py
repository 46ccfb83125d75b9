"""An answer taken apart as it comes: thoughts, content and tool calls."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gateway.gpt_oss_calls import FINAL_MESSAGE, GptOssParser
from gateway.late_calls import LateCalls
from gateway.reasoning import Begins, Markers, ThoughtsReader
from gateway.tool_calls import ToolCall
from gateway.tool_parsers import ToolParser, feed


class Parts(NamedTuple):
    thinking: bool = False  # it ends within thoughts
    reasoning: str = ""
    content: str = ""
    calls: Sequence[ToolCall] = ()


class AnswerReader(Protocol):
    """One choice's answer. `may_think`: some of it may be thoughts."""

    may_think: bool

    def read(self, text: str, last: bool) -> Parts:
        """What the text adds. `last`: no more comes."""


class MarkedReader:
    """Thoughts come first, if at all, and calls are in what follows; in `late` ones if there is nothing."""

    def __init__(self, thoughts: ThoughtsReader | None = None, calls: ToolParser | None = None,
                 late: LateCalls | None = None):
        self.may_think = thoughts is not None
        self._thoughts = thoughts
        self._calls = calls
        self._late = late
        self._has_answer = False

    def read(self, text: str, last: bool) -> Parts:
        reasoning, content = self._thoughts.feed(text) if self._thoughts else ("", text)
        if last and self._thoughts:
            more_reasoning, more_content = self._thoughts.finish()
            reasoning, content = reasoning + more_reasoning, content + more_content
        thinking = self._thoughts is not None and self._thoughts.thinking
        if self._calls is None:
            return Parts(thinking, reasoning, content)
        content, calls = feed(self._calls, content, last)
        self._has_answer = self._has_answer or bool(calls or content.strip())
        if self._late is not None:
            self._late.add(reasoning)
            if last and not self._has_answer:
                calls = self._late.take()
        return Parts(thinking, reasoning, content, calls)


class FinalReader:
    """gpt-oss's answer of some form: behind the first FINAL_MESSAGE in the text, whatever channel that
    seems to be in; what is before are thoughts."""

    may_think = True

    def __init__(self):
        self._thoughts = GptOssParser(no_content=True)
        self._final = ThoughtsReader(Markers("", FINAL_MESSAGE), Begins.WITHIN, has_form=True)

    def read(self, text: str, last: bool) -> Parts:
        before, content = self._final.feed(text)
        self._thoughts.feed(before)
        if last:
            self._thoughts.feed(self._final.finish()[0])
            self._thoughts.finish()
        return Parts(self._final.thinking, self._thoughts.take_thoughts(), content)


class ChannelReader:
    """gpt-oss's messages."""

    may_think = True

    def __init__(self, parser: GptOssParser):
        self._parser = parser

    def read(self, text: str, last: bool) -> Parts:
        content, calls = feed(self._parser, text, last)
        return Parts(self._parser.thinking, self._parser.take_thoughts(), content, calls)
