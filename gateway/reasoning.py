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


_MAX_LINE_ENDS = 2

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


def beginning_in(markers: Markers, content: str) -> Begins:
    """Of an answer that goes on in a message with this content."""
    _, start, thoughts = content.rpartition(markers.start)
    return Begins.WITHIN if start and markers.end not in thoughts else Begins.AFTER


class ThoughtsReader:
    """Takes the thoughts out of one answer as it comes. Line ends and blanks around them are in neither;
    what ends in the middle of them has no answer. If the answer `has_form`, only so many line ends are
    left out before it as may stand there (coordinator/grammar/reasoning.h).

    Work is by what comes, however much is held.
    """

    def __init__(self, markers: Markers, begins: Begins, has_form: bool = False):
        self._markers = markers
        self._held = ""  # what may become a marker
        self._blanks: list[str] = []  # before what is held
        self._begins = begins
        self._line_ends = _MAX_LINE_ENDS if has_form else None  # that may still be left out; None: all blanks
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
        if self.thinking:
            return (self._take_blanks() if self._held else "") + self._held, ""
        return "", self._take_blanks() + self._held

    def _read_start(self) -> tuple[str, str]:
        self._hold_blanks()
        if self._held.startswith(self._markers.start):
            self._blanks.clear()
            self._go_on(self._held.removeprefix(self._markers.start), self._read_label)
        elif not self._markers.start.startswith(self._held):
            self._go_on(self._take_blanks() + self._held, self._read_rest)
        return "", ""

    def _read_label(self) -> tuple[str, str]:
        """Blanks, and what else is at the beginning of thoughts: perhaps a start that the prompt has too."""
        self._held = held = self._held.lstrip()
        heads = (self._markers.label, self._markers.start if self._begins is Begins.WITHIN else "")
        for head in heads:
            if head and held.startswith(head):
                self._go_on(held.removeprefix(head), self._read_label)
                return "", ""
        if held and not any(head.startswith(held) for head in heads):
            self._go_on(held, self._read_thoughts)
        return "", ""

    def _read_thoughts(self) -> tuple[str, str]:
        before, self._held = split_at_marker(self._held, self._markers.end)
        thoughts = before.rstrip()
        blanks = before[len(thoughts):]
        if thoughts:
            thoughts = self._take_blanks() + thoughts
        if self._held.startswith(self._markers.end):
            self._blanks.clear()
            self._go_on(self._held.removeprefix(self._markers.end), self._read_blanks)
        elif blanks:
            self._blanks.append(blanks)
        return thoughts, ""

    def _read_blanks(self) -> tuple[str, str]:
        if self._line_ends is None:
            self._held = self._held.lstrip()
        while self._line_ends and self._held.startswith("\n"):
            self._held, self._line_ends = self._held[1:], self._line_ends - 1
        if self._held:
            self._go_on(self._held, self._read_rest)
        return "", ""

    def _read_rest(self) -> tuple[str, str]:
        answer, self._held = self._held, ""
        return "", answer

    def _hold_blanks(self) -> None:
        held = self._held.lstrip()
        if len(held) < len(self._held):
            self._blanks.append(self._held[:len(self._held) - len(held)])
            self._held = held

    def _take_blanks(self) -> str:
        blanks = "".join(self._blanks)
        self._blanks.clear()
        return blanks

    def _go_on(self, held: str, reads) -> None:
        self._held, self._reads = held, reads
