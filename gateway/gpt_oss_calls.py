"""Answers of gpt-oss: messages in channels, of which some are calls.

The form is OpenAI's Harmony (docs/format.md of its repository openai/harmony): a header, which names a channel and perhaps
whom the message is for, <|message|>, the message, and a marker of its end. A header that ends without a message is nothing.
"""

import dataclasses
import re

from gateway.tool_calls import MAX_CALL_CHARS, ToolCall, make_call, split_at_marker
from tandem.v1 import generation_pb2 as api

_MESSAGE = "<|message|>"
_NEXT = "<|start|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>", _NEXT)
_HEADERS = (_NEXT, "<|channel|>", " to=", "assistant<|channel|>", "assistant to=")  # what one begins with
_HEADER_END = re.compile("|".join(re.escape(marker) for marker in (_MESSAGE, *_ENDS)))
_CHANNEL = re.compile(r"<\|channel\|>(\w+)")
_RECIPIENT = re.compile(r" to=([^\s<]+)")
_FUNCTIONS = "functions."

# Before an answer of some form: it is the rest of the text. All that is before are thoughts.
_FINAL = "<|channel|>final"
BEFORE_ANSWER = api.Reasoning(end=_FINAL, answer_start=_MESSAGE)
FINAL_MESSAGE = _FINAL + _MESSAGE


class _Lines:
    """The messages of one kind, with a line end between them."""

    def __init__(self):
        self._has_text = False
        self._separator = ""

    def add(self, text: str) -> str:
        if not text:
            return ""
        line, self._separator, self._has_text = self._separator + text, "", True
        return line

    def end_message(self) -> None:
        self._separator = "\n" if self._has_text else ""


@dataclasses.dataclass
class _Message:
    channel: str | None = None
    is_call: bool = False  # for the user if not
    function: str | None = None  # that it calls
    arguments: str = ""


def _message_of(header: str) -> _Message:
    """Of several recipients or channels the last one counts."""
    if recipients := _RECIPIENT.findall(header):
        name = recipients[-1]
        return _Message(is_call=True,
                        function=name.removeprefix(_FUNCTIONS) if name.startswith(_FUNCTIONS) else None)
    channels = _CHANNEL.findall(header)
    return _Message(channels[-1] if channels else None)


class GptOssParser:
    """Content is what the channels final and commentary, or text without any, tell the user, with a line
    end between messages; analysis is thoughts, and so is what else has `no_content`. What is for tools
    that are no functions, and in other channels, is left out."""

    def __init__(self, no_content: bool = False):
        self._held = ""
        self._message: _Message | None = None  # None: in a header
        self._content = _Lines()
        self._thoughts = _Lines()
        self._new_thoughts = ""
        self._of_content = () if no_content else ("final", "commentary", None)

    @property
    def thinking(self) -> bool:
        message = self._message
        return message is not None and not message.is_call and message.channel not in self._of_content

    def take_thoughts(self) -> str:
        """Those since it was last asked."""
        thoughts, self._new_thoughts = self._new_thoughts, ""
        return thoughts

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        self._held += text
        content, calls = "", []
        while self._message or self._read_header():
            piece, ended = self._take_piece()
            content += self._add(piece)
            if not ended:
                break
            rest, some = self._end_message()
            content, calls = content + rest, calls + some
        return content, calls

    def finish(self) -> tuple[str, list[ToolCall]]:
        """A last message may lack its end marker."""
        held, self._held = self._held, ""
        if self._message is None:
            return ("" if held.startswith(_HEADERS) else self._say(held)), []
        content = self._add(held)
        rest, calls = self._end_message()
        return content + rest, calls

    def _read_header(self) -> bool:
        """Whether a message begins; not yet, while its header is incomplete."""
        while self._message is None:
            end = _HEADER_END.search(self._held, len(_NEXT) if self._held.startswith(_NEXT) else 0)
            length = end.start() if end else len(self._held)
            if not any(start.startswith(self._held[:len(start)]) for start in _HEADERS) or length > MAX_CALL_CHARS:
                self._message = _Message()  # text without one
            elif end is None:
                return False
            else:
                self._message = _message_of(self._held[:length]) if end[0] == _MESSAGE else None
                self._held = self._held[length if end[0] == _NEXT else end.end():]
        return True

    def _take_piece(self) -> tuple[str, bool]:
        """What surely belongs to the message, and whether that is its end."""
        piece, self._held = min((split_at_marker(self._held, end) for end in _ENDS), key=lambda parts: len(parts[0]))
        ended = self._held.startswith(_ENDS)
        if ended and not self._held.startswith(_NEXT):  # which begins the next header
            self._held = self._held.partition("|>")[2]
        return piece, ended

    def _add(self, piece: str) -> str:
        """The content among it."""
        message = self._message
        if not message.is_call:
            return self._say(piece, message.channel)
        if message.function is None:
            return ""
        message.arguments += piece
        if len(message.arguments) <= MAX_CALL_CHARS:
            return ""
        self._message = _Message()
        return self._say(message.arguments)

    def _say(self, text: str, channel: str | None = None) -> str:
        """The content among it; the rest are thoughts, or nothing."""
        if channel in self._of_content:
            return self._content.add(text)
        if channel in ("analysis", "commentary", "final", None):
            self._new_thoughts += self._thoughts.add(text)
        return ""

    def _end_message(self) -> tuple[str, list[ToolCall]]:
        message, self._message = self._message, None
        call = None
        if message.function is not None:
            call = make_call({"name": message.function, "arguments": message.arguments.strip() or "{}"})
        content = "" if call else self._say(message.arguments)  # which only calls have
        self._content.end_message()
        self._thoughts.end_message()
        return content, [call] if call else []
