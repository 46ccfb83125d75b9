#!/usr/bin/env python3
"""Writes the demo model's stories and questions.

A training text is

    Story: <sentences>
    Question: <question>
    Answer: <answer>
    ...

with one space after each colon, "\\n" between lines and the end token after the last line. Some texts have no
questions. So the prompts are

    "Story:"                                       the model writes a story, stop at "\\n"
    "Story: <sentences>\\nQuestion: <q>\\nAnswer:"   the model answers, stop at "\\n"

Training texts never contain a combination that holdout.py holds out; evaluation stories
contain no other.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass

import words
from holdout import place_held_out, thing_held_out
from questions import Question, all_questions
from templates import OPENING_PHRASE, OPENING_SENTENCE, TEMPLATES, render
from world import World

STORY_PROMPT = "Story:"


@dataclass
class Story:
    text: str
    world: World


class StoryWriter:
    """Tells one story: draws an event, applies it to the world, renders it as a sentence."""

    def __init__(self, rng: random.Random, held_out: bool, plain: bool = False,
                 num_words: int | None = None) -> None:
        """num_words: take only that many of the people, of the things and of the places."""
        self._rng = rng
        self._held_out = held_out
        self._people = words.PEOPLE[-num_words:] if num_words else words.PEOPLE
        self._things = words.THINGS[:num_words]
        self._places = words.PLACES[:num_words]
        self._plain = plain  # every sentence names its person, nothing but new facts
        self._world = World()
        self._sentences: list[str] = []
        self._subject: str | None = None  # whom a pronoun would mean

    def write(self, num_people: int, num_events: int) -> Story:
        people = self._rng.sample(self._people, num_people)
        self._introduce(people)
        for _ in range(num_events):
            self._event(people)
        if not self._plain and self._rng.random() < 0.5:
            self._say("close")
        return Story(self._opening() + " ".join(self._sentences), self._world)

    def _opening(self) -> str:
        chance = 1.0 if self._plain else self._rng.random()
        slots = {"adjective": self._rng.choice(words.ADJECTIVES), "time": self._rng.choice(words.TIMES)}
        if chance < 0.3:
            return OPENING_SENTENCE.format(**slots) + " "
        first = self._sentences[0].split(" ", 1)[0]
        if chance < 0.6 and first in words.PEOPLE:
            return OPENING_PHRASE.format(**slots)
        return ""

    def _introduce(self, people: list[str]) -> None:
        rest = list(people)
        if not self._plain and self._rng.random() < 0.2:
            self._at_both(rest[0], rest[1])
        for person in rest:
            known = person in self._world.places
            choice = self._rng.random()
            if not known and choice < 0.25:
                self._at_own(person)
            elif known or choice < 0.6:
                self._own(person)
                if not known and self._rng.random() < 0.5:
                    self._at(person)
            else:
                self._at(person)
                if self._rng.random() < 0.7:
                    self._own(person)
            if not self._plain and self._rng.random() < 0.08:
                self._say("middle")

    def _event(self, people: list[str]) -> None:
        person = self._rng.choice(people)
        held = self._world.held_by(person)
        choice = self._rng.random()
        if choice < 0.35 or not held:
            self._move(person)
        elif choice < 0.65:
            self._give(person, self._rng.choice(held), people)
        elif choice < 0.8:
            self._put(person, self._rng.choice(held))
        else:
            self._again(person, self._rng.choice(held), people)

    # One method per kind of event.

    def _own(self, person: str) -> None:
        colour, thing = self._new_thing(person)
        follows = self._subject == person
        if not self._plain and not follows and self._rng.random() < 0.12:
            self._world.own(person, None, thing)
            self._world.set_colour(thing, colour)
            self._say("own_plain", N=person, T=thing)
            self._say("colour", T=thing, C=colour)
            return
        self._world.own(person, colour, thing)
        pronoun = follows and self._rng.random() < 0.7
        self._say("own_pronoun" if pronoun else "own", N=person, C=colour, T=thing)
        self._named_last(person)

    def _at(self, person: str) -> None:
        place = self._new_place(person)
        pronoun = self._subject == person and self._rng.random() < 0.7
        self._world.at(person, place)
        self._say("at_pronoun" if pronoun else "at", N=person, P=place)
        self._named_last(person)

    def _at_own(self, person: str) -> None:
        place, (colour, thing) = self._new_place(person), self._new_thing(person)
        self._world.at(person, place)
        self._world.own(person, colour, thing)
        self._say("at_own", N=person, P=place, C=colour, T=thing)
        self._named_last(person)

    def _at_both(self, person: str, other: str) -> None:
        places = [p for p in self._places if self._allowed(place_held_out(person, p))
                  and self._allowed(place_held_out(other, p))]
        if not places:
            return
        place = self._rng.choice(places)
        self._world.at(person, place)
        self._world.at(other, place)
        self._say("at_both", N=person, M=other, P=place)

    def _move(self, person: str) -> None:
        place = self._new_place(person)
        pronoun = self._subject == person and self._rng.random() < 0.7
        self._world.move(person, place)
        self._say("move_pronoun" if pronoun else "move", N=person, P=place)
        self._named_last(person)

    def _give(self, person: str, thing: str, people: list[str]) -> None:
        entry = self._world.things[thing]
        others = [p for p in people if p != person
                  and self._allowed(thing_held_out(p, entry.colour, thing))]
        if entry.giver is not None or not others:
            return
        other = self._rng.choice(others)
        self._world.give(person, other, entry.colour, thing)
        self._say("give", N=person, M=other, C=entry.colour, T=thing)

    def _put(self, person: str, thing: str) -> None:
        taken = {entry.spot for entry in self._world.things.values()}
        spot = self._rng.choice([s for s in words.SPOTS if s not in taken])
        colour = self._world.things[thing].colour
        self._world.put(person, colour, thing, spot)
        self._say("put", N=person, C=colour, T=thing, S=spot)

    def _again(self, person: str, thing: str, people: list[str]) -> None:
        other = self._rng.choice([p for p in people if p != person])
        colour = self._world.things[thing].colour
        self._say("again", N=person, M=other, C=colour, T=thing)

    # Choosing what the held-out rule allows.

    def _allowed(self, held_out: bool) -> bool:
        return held_out == self._held_out

    def _new_thing(self, person: str) -> tuple[str, str]:
        while True:
            colour, thing = self._rng.choice(words.COLOURS), self._rng.choice(self._things)
            if thing not in self._world.things and self._allowed(thing_held_out(person, colour, thing)):
                return colour, thing

    def _new_place(self, person: str) -> str:
        while True:
            place = self._rng.choice(self._places)
            if place != self._world.places.get(person) and self._allowed(place_held_out(person, place)):
                return place

    def _say(self, kind: str, **slots: str) -> None:
        sentence = render(self._rng.choice(TEMPLATES[kind]), slots)
        self._sentences.append(sentence)
        self._subject = None

    def _named_last(self, person: str) -> None:
        if not self._plain:
            self._subject = person


FULL = 3  # the highest level
MAX_QUESTIONS = 6


def make_story(rng: random.Random, held_out: bool = False, level: int = FULL) -> Story:
    """One story. The lower levels are for the beginning of training: plain with few words, plain, short."""
    if level <= 1:
        num_words = 24 if level == 0 else None
        num_people, num_events = rng.choice((3, 4)), rng.choice((0, 0, 1))
        return StoryWriter(rng, held_out, plain=True, num_words=num_words).write(num_people, num_events)
    if level == 2:
        return StoryWriter(rng, held_out).write(rng.choice((2, 2, 3)), rng.randint(0, 3))
    return StoryWriter(rng, held_out).write(rng.choice((2, 3, 3)), rng.choice((1, 2, 2, 3)))


def question_prompt(story: Story, question: Question) -> str:
    """The prompt that asks the model one question."""
    return f"{STORY_PROMPT} {story.text}\nQuestion: {question.text}\nAnswer:"


def training_text(rng: random.Random, level: int = FULL) -> str:
    """One training text, without begin and end tokens."""
    story = make_story(rng, held_out=False, level=level)
    text = f"{STORY_PROMPT} {story.text}"
    if rng.random() < (0.6 if level == FULL else 0.1):
        return text
    # Answers are whole sentences; early in training they also come without questions, closer together.
    answers_only = level == 0 or level == 1 and rng.random() < 0.5
    for question in all_questions(story.world, rng)[:None if answers_only else MAX_QUESTIONS]:
        text += "" if answers_only else f"\nQuestion: {question.text}"
        text += f"\nAnswer: {question.answer}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=3)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    print("\n\n".join(training_text(rng) for _ in range(args.count)))


if __name__ == "__main__":
    main()
