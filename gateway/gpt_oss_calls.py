"""Answers of gpt-oss: messages in channels, of which some are calls.

The form is OpenAI's Harmony (docs/format.md of its repository openai/harmony): a header, which names a channel and perhaps
whom the message is for, <|message|>, the message, and a marker of its end.
"""

import dataclasses
import re

from gateway.tool_calls import MAX_CALL_CHARS, ToolCall, make_call, split_at_marker

_MESSAGE = "<|message|>"
_NEXT = "<|start|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>", _NEXT)
_HEADERS = (_NEXT, "<|channel|>", " to=")  # what one begins with
_CHANNEL = re.compile(r"<\|channel\|>(\w+)")
_RECIPIENT = re.compile(r" to=([^\s<]+)")
_FUNCTIONS = "functions."


@dataclasses.dataclass
class _Message:
    shown: bool = False
    function: str | None = None  # that it calls
    arguments: str = ""


def _message_of(header: str) -> _Message:
    if recipient := _RECIPIENT.search(header):
        name = recipient[1]
        return _Message(function=name.removeprefix(_FUNCTIONS) if name.startswith(_FUNCTIONS) else None)
    channel = _CHANNEL.search(header)
    return _Message(shown=channel is None or channel[1] in ("final", "commentary"))


class GptOssParser:
    """Content is what the channels final and commentary tell the user. What is in analysis, and for
    tools that are no functions, is left out."""

    def __init__(self):
        self._held = ""
        self._message: _Message | None = None  # None: in a header

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
        """A last message may lack its end marker; a header without a message is nothing."""
        held, self._held = self._held, ""
        if self._message is None:
            return ("" if held.startswith(_HEADERS) else held), []
        content = self._add(held)
        rest, calls = self._end_message()
        return content + rest, calls

    def _read_header(self) -> bool:
        """Whether a message begins; not yet, while its header is incomplete."""
        header, marker, rest = self._held.partition(_MESSAGE)
        if not any(start.startswith(self._held[:len(start)]) for start in _HEADERS) or len(header) > MAX_CALL_CHARS:
            self._message = _Message(shown=True)  # text without one
        elif marker:
            self._message, self._held = _message_of(header), rest
        return self._message is not None

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
        if message.function is None:
            return piece if message.shown else ""
        message.arguments += piece
        if len(message.arguments) <= MAX_CALL_CHARS:
            return ""
        self._message = _Message(shown=True)
        return message.arguments

    def _end_message(self) -> tuple[str, list[ToolCall]]:
        message, self._message = self._message, None
        if message.function is None:
            return "", []
        call = make_call({"name": message.function, "arguments": message.arguments.strip() or "{}"})
        return (message.arguments, []) if call is None else ("", [call])
