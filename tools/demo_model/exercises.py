"""The first two levels of training texts: short exercises in looking up what was said before.

Learnt straight from stories, looking things up takes a small model very long to begin; here nearly every second word rewards
it. An exercise is a list of pieces of text, each with whether what came before tells it.
"""

from __future__ import annotations

import random

import words
from templates import LINKS, TEMPLATES, render

PAIRS_PROMPT = "Pairs:"
LINKS_PROMPT = "Links:"

Exercise = list[tuple[str, bool]]


def pairs(rng: random.Random) -> Exercise:
    """A few pairs of words, said again and again in either order; no word stands in two pairs."""
    num_pairs = rng.randint(3, 7)
    chosen = rng.sample(words.PEOPLE + words.THINGS + words.COLOURS, 2 * num_pairs)
    couples = list(zip(chosen[::2], chosen[1::2]))
    known: set[tuple[str, str]] = set()
    pieces: Exercise = [(PAIRS_PROMPT, False)]
    for couple in rng.choices(couples, k=32):
        first, second = couple if rng.random() < 0.5 else reversed(couple)
        pieces += [(f" {first}", False), (f" {second}", couple in known), (",", False)]
        known.add(couple)
    return pieces


def links(rng: random.Random) -> Exercise:
    """A few facts, each told like in a story or shortly, then said again in different ways, from either end."""
    num_each = rng.randint(2, 3)
    people = rng.sample(words.PEOPLE, 2 * num_each)
    things = rng.sample(words.THINGS, 2 * num_each)
    colours = rng.sample(words.COLOURS, 2 * num_each)
    places = rng.sample(words.PLACES, 2 * num_each)
    facts = [("own", {"N": person, "T": thing, "C": colour, "P": place})
             for person, thing, colour, place in zip(people, things, colours, places)]
    facts += [("at", {"N": person, "P": place, "PC": place[0].upper() + place[1:]})
              for person, place in zip(people[num_each:], places[num_each:])]
    facts += [("colour", {"T": thing, "C": colour}) for thing, colour in zip(things[num_each:], colours[num_each:])]
    facts = rng.sample(facts, 2 * num_each)
    known: set[int] = set()
    pieces: Exercise = [(LINKS_PROMPT, False)]
    for index in rng.choices(range(len(facts)), k=22):
        kind, slots = facts[index]
        if index not in known and kind != "colour" and rng.random() < 0.7:
            told_like = rng.choice(("own", "at_own")) if kind == "own" else "at"
            pieces.append((" " + render(rng.choice(TEMPLATES[told_like]), slots), False))
        else:
            given, told = rng.choice(LINKS[kind])
            pieces += [(" " + given.format(**slots), False), (told.format(**slots), index in known), (".", False)]
        known.add(index)
    return pieces
