"""Thoughts that a model writes before its answer, between two markers.

Which markers a model has is told by its chat template; whether its answer begins within thoughts, by
the end of the prompt that the template made. gpt_oss_calls.py has the thoughts of gpt-oss.
"""

import dataclasses
import enum

from gateway.tool_calls import split_at_marker


@dataclasses.dataclass(frozen=True)
class Markers:
    start: str
    end: str
    label: str = ""  # may follow `start`, and is no thought


MARKERS = {
    "think": Markers("<think>", "</think>"),  # DeepSeek, GLM, MiniMax, Qwen
    "mistral": Markers("[THINK]", "[/THINK]"),
    "gemma4": Markers("<|channel>", "<channel|>", "thought\n"),
}


def markers_of_template(template: str) -> str | None:
    """The name of the markers that a chat template has; None: its model writes no thoughts."""
    return next((name for name, one in MARKERS.items()
                 if one.start in template or one.end in template), None)


class Begins(enum.Enum):
    """Where an answer begins."""
    BEFORE = enum.auto()  # it may have thoughts
    WITHIN = enum.auto()
    AFTER = enum.auto()  # there are none, or the prompt has them


def beginning(markers: Markers, prompt: str) -> Begins:
    prompt = prompt.rstrip()
    if prompt.endswith(markers.end):
        return Begins.AFTER
    if prompt.endswith((markers.start, (markers.start + markers.label).rstrip())):
        return Begins.WITHIN
    return Begins.BEFORE


class ThoughtsReader:
    """Takes the thoughts out of one answer as it comes. Line ends and blanks around them are in neither;
    what ends in the middle of them has no answer."""

    def __init__(self, markers: Markers, begins: Begins):
        self._markers = markers
        self._held = ""
        self._begins = begins
        self._reads = {Begins.BEFORE: self._read_start, Begins.WITHIN: self._read_label,
                       Begins.AFTER: self._read_rest}[begins]

    @property
    def thinking(self) -> bool:
        return self._reads in (self._read_label, self._read_thoughts)

    def feed(self, text: str) -> tuple[str, str]:
        """(what it adds to the thoughts, what it adds to the answer)."""
        self._held += text
        thoughts, answer = "", ""
        reads = None
        while reads is not self._reads:
            reads = self._reads
            more_thoughts, more_answer = reads()
            thoughts, answer = thoughts + more_thoughts, answer + more_answer
        return thoughts, answer

    def finish(self) -> tuple[str, str]:
        """The rest: no more text comes."""
        held, self._held = self._held, ""
        if self.thinking:
            return held.strip(), ""
        return "", "" if self._reads == self._read_blanks else held

    def _read_start(self) -> tuple[str, str]:
        held = self._held.lstrip()
        if held.startswith(self._markers.start):
            self._go_on(held.removeprefix(self._markers.start), self._read_label)
        elif not self._markers.start.startswith(held):
            self._reads = self._read_rest
        return "", ""

    def _read_label(self) -> tuple[str, str]:
        """Blanks, and what else is at the beginning of thoughts: perhaps a start that the prompt has too."""
        held = self._held.lstrip()
        heads = (self._markers.label, self._markers.start if self._begins is Begins.WITHIN else "")
        for head in heads:
            if head and held.startswith(head):
                self._go_on(held.removeprefix(head), self._read_label)
                return "", ""
        if held and not any(head.startswith(held) for head in heads):
            self._go_on(held, self._read_thoughts)
        return "", ""

    def _read_thoughts(self) -> tuple[str, str]:
        before, rest = split_at_marker(self._held, self._markers.end)
        thoughts = before.rstrip()
        if rest.startswith(self._markers.end):
            self._go_on(rest.removeprefix(self._markers.end), self._read_blanks)
        else:
            self._held = before[len(thoughts):] + rest
        return thoughts, ""

    def _read_blanks(self) -> tuple[str, str]:
        if held := self._held.lstrip():
            self._go_on(held, self._read_rest)
        return "", ""

    def _read_rest(self) -> tuple[str, str]:
        answer, self._held = self._held, ""
        return "", answer

    def _go_on(self, held: str, reads) -> None:
        self._held, self._reads = held, reads
