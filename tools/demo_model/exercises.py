"""The first two levels of training texts: short exercises in looking up what was said before.

Learnt straight from stories, looking things up takes a small model very long to begin; here nearly every second word rewards
it. An exercise is a list of pieces of text, each with whether what came before tells it.
"""

from __future__ import annotations

import random

import words
from templates import LINKS

PAIRS_PROMPT = "Pairs:"
LINKS_PROMPT = "Links:"

Exercise = list[tuple[str, bool]]


def pairs(rng: random.Random) -> Exercise:
    """A few words, each always followed by the same other one; no word stands in two pairs."""
    num_pairs = rng.randint(3, 8)
    chosen = rng.sample(words.PEOPLE + words.THINGS + words.COLOURS, 2 * num_pairs)
    couples = list(zip(chosen[::2], chosen[1::2]))
    known: set[str] = set()
    pieces: Exercise = [(PAIRS_PROMPT, False)]
    for first, second in rng.choices(couples, k=40):
        pieces += [(f" {first}", False), (f" {second}", first in known)]
        known.add(first)
    return pieces


def links(rng: random.Random) -> Exercise:
    """A few facts, each said several times in different ways, from either end."""
    num_each = rng.randint(2, 3)
    people = rng.sample(words.PEOPLE, 2 * num_each)
    things = rng.sample(words.THINGS, 2 * num_each)
    facts = [("own", {"N": person, "T": thing}) for person, thing in zip(people, things)]
    facts += [("at", {"N": person, "P": place, "PC": place[0].upper() + place[1:]})
              for person, place in zip(people[num_each:], rng.sample(words.PLACES, num_each))]
    facts += [("colour", {"T": thing, "C": colour})
              for thing, colour in zip(things[num_each:], rng.sample(words.COLOURS, num_each))]
    facts = rng.sample(facts, 2 * num_each)
    known: set[int] = set()
    pieces: Exercise = [(LINKS_PROMPT, False)]
    for index in rng.choices(range(len(facts)), k=20):
        kind, slots = facts[index]
        given, told = rng.choice(LINKS[kind])
        pieces += [(" " + given.format(**slots), False), (told.format(**slots), index in known), (".", False)]
        known.add(index)
    return pieces
