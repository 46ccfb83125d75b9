"""Reads a story back, sentence by sentence, and finds the first contradiction.

Every sentence must be one that the templates can make (with any of the known words); the facts it states go through
the same World that guards the generator. What counts against a story: a sentence that no template makes, a
thing with two colours or two owners, someone giving, putting down or being proud of what another has, a person at
two places without having gone, a person or thing spoken of before it was named, a pronoun that does not
fit the person named last, an unfinished last sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import words
from templates import OPENING_PHRASE, OPENING_SENTENCE, TEMPLATES
from world import Contradiction, World


def _any(choices: list[str]) -> str:
    return "(?:" + "|".join(sorted(map(re.escape, choices), key=len, reverse=True)) + ")"


_SLOTS = {
    "N": _any(words.PEOPLE),
    "M": _any(words.PEOPLE),
    "HE": "(?:He|She)",
    "he": "(?:he|she)",
    "HIS": "(?:his|her)",
    "HIM": "(?:him|her)",
    "AC": _any([f"{words.article(c)} {c}" for c in words.COLOURS]),
    "C": _any(words.COLOURS),
    "T": _any(words.THINGS),
    "P": _any(words.PLACES),
    "PC": _any([p[0].upper() + p[1:] for p in words.PLACES]),
    "D": _any([words.destination(p) for p in words.PLACES]),
    "S": _any(words.SPOTS),
    "adjective": _any(words.ADJECTIVES),
    "time": _any(words.TIMES),
}
_PLACE_OF_DESTINATION = {words.destination(p): p for p in words.PLACES}
_FEMALE_PRONOUNS = {"She", "she", "her"}


def _expression(template: str) -> str:
    parts = re.split(r"\{(\w+)\}", template)
    return "".join(re.escape(part) if i % 2 == 0 else f"(?P<{part}>{_SLOTS[part]})"
                   for i, part in enumerate(parts))


_OPENING = re.compile(_expression(OPENING_PHRASE))
_OPENING_SENTENCE = re.compile(_expression(OPENING_SENTENCE))
_SENTENCES = [(kind, re.compile(_expression(template)))
              for kind, templates in TEMPLATES.items() for template in templates]


@dataclass(frozen=True)
class Sentence:
    kind: str
    slots: dict[str, str]


def parse_sentence(text: str) -> Sentence | None:
    """The template this sentence comes from and what fills it; None if there is none."""
    for kind, expression in _SENTENCES:
        match = expression.fullmatch(text)
        if match:
            return Sentence(kind, _normalised(match.groupdict()))
    return None


def _normalised(slots: dict[str, str]) -> dict[str, str]:
    """Colour without article, place with its preposition in lower case."""
    if "AC" in slots:
        slots["C"] = slots["AC"].split(" ", 1)[1]
    if "PC" in slots:
        slots["P"] = slots["PC"][0].lower() + slots["PC"][1:]
    if "D" in slots:
        slots["P"] = _PLACE_OF_DESTINATION[slots["D"]]
    return slots


class StoryChecker:
    """Follows one story; apply() raises Contradiction."""

    def __init__(self) -> None:
        self.world = World()
        self._subject: str | None = None

    def apply(self, sentence: Sentence) -> None:
        slots = dict(sentence.slots)
        kind = sentence.kind
        if kind.endswith("_pronoun"):
            slots["N"] = self._antecedent()
            kind = kind.removesuffix("_pronoun")
        self._check_gender(slots)
        if "M" in slots and slots["M"] == slots.get("N"):
            raise Contradiction(f"{slots['N']} and {slots['M']} are one person")
        getattr(self, f"_{kind}")(slots)
        alone = kind in ("own", "at", "at_own", "move")
        self._subject = slots["N"] if alone else None

    def _antecedent(self) -> str:
        if self._subject is None:
            raise Contradiction("a pronoun with nobody to mean")
        return self._subject

    def _check_gender(self, slots: dict[str, str]) -> None:
        for slot in ("HE", "he", "HIS", "HIM"):
            if slot in slots and (slots[slot] in _FEMALE_PRONOUNS) != (slots["N"] in words.FEMALE):
                raise Contradiction(f"{slots[slot]} cannot mean {slots['N']}")

    def _own(self, s: dict[str, str]) -> None:
        self.world.own(s["N"], s["C"], s["T"])

    def _own_plain(self, s: dict[str, str]) -> None:
        self.world.own(s["N"], None, s["T"])

    def _colour(self, s: dict[str, str]) -> None:
        self.world.set_colour(s["T"], s["C"])

    def _at(self, s: dict[str, str]) -> None:
        self.world.at(s["N"], s["P"])

    def _at_own(self, s: dict[str, str]) -> None:
        self._at(s)
        self._own(s)

    def _at_both(self, s: dict[str, str]) -> None:
        self.world.at(s["N"], s["P"])
        self.world.at(s["M"], s["P"])

    def _move(self, s: dict[str, str]) -> None:
        self.world.move(s["N"], s["P"])

    def _give(self, s: dict[str, str]) -> None:
        self.world.give(s["N"], s["M"], s.get("C"), s["T"])

    def _put(self, s: dict[str, str]) -> None:
        self.world.put(s["N"], s.get("C"), s["T"], s["S"])

    def _again(self, s: dict[str, str]) -> None:
        self.world.confirm(s["N"], s.get("C"), s["T"])
        if "M" in s:
            self.world.seen(s["M"])

    def _middle(self, s: dict[str, str]) -> None:
        pass

    def _close(self, s: dict[str, str]) -> None:
        pass


def split_sentences(text: str) -> list[str]:
    """Sentences with their final mark; an unfinished tail is the last one."""
    return [part for part in re.split(r"(?<=[.!?]) ", text.strip()) if part]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a story, in words, and the characters of the sentence that it is wrong with."""

    problem: str
    begin: int
    end: int


def find_fault(text: str) -> Fault | None:
    """The first sentence that contradicts what was said before, or that no template makes; None for a sound story."""
    text = text.strip()
    sentences = split_sentences(text)
    if not sentences:
        return Fault("no story at all", 0, len(text))
    checker = StoryChecker()
    begin = 0
    for number, whole in enumerate(sentences):
        end = begin + len(whole)
        said = whole
        if number == 0:
            opening = _OPENING.match(said)
            said = said[opening.end():] if opening else said
        if number > 0 or not _OPENING_SENTENCE.fullmatch(said):
            sentence = parse_sentence(said)
            if sentence is None:
                return Fault(f"not a sentence of these stories: {said!r}", begin, end)
            try:
                checker.apply(sentence)
            except Contradiction as problem:
                return Fault(f"{said!r}: {problem}", begin, end)
        begin = end + 1
    if not checker.world.people:
        return Fault("a story about nobody", 0, len(text))
    return None


def find_contradiction(text: str) -> str | None:
    """What is wrong with the story, in words; None when nothing is."""
    fault = find_fault(text)
    return fault.problem if fault else None
