"""Questions that a story answers, with their answers."""

from __future__ import annotations

import random
from dataclasses import dataclass

from words import article
from world import World


@dataclass(frozen=True)
class Question:
    kind: str
    text: str
    answer: str


def all_questions(world: World, rng: random.Random) -> list[Question]:
    """Every question the final state answers, one random wording of each, in random order."""
    found = _about_things(world, rng) + _about_people(world, rng)
    rng.shuffle(found)
    return found


def _about_things(world: World, rng: random.Random) -> list[Question]:
    found: list[Question] = []

    def ask(kind: str, answer: str, *wordings: str) -> None:
        found.append(Question(kind, rng.choice(wordings), answer + "."))

    for name, thing in world.things.items():
        colour, holder = thing.colour, thing.holder
        full = f"{colour} {name}"
        ask("colour", colour, f"What colour is the {name}?")
        if holder is not None:
            ask("who has", holder, f"Who has the {full}?", f"Who has the {name} now?", f"Who has the {name}?")
            ask("colour", colour, f"What colour is {holder}'s {name}?")
        if thing.giver is not None:
            ask("who gave", thing.giver, f"Who gave the {full} to {thing.receiver}?",
                f"Who gave the {name} away?")
            ask("who got", thing.receiver, f"Who got the {name} from {thing.giver}?",
                f"Who got the {full}?")
        if thing.spot is not None:
            ask("where thing", thing.spot, f"Where is the {full}?", f"Where is the {name}?")
            ask("who put", thing.placed_by, f"Who put the {name} {thing.spot}?")
    return found


def _about_people(world: World, rng: random.Random) -> list[Question]:
    found: list[Question] = []
    for person in world.people:
        held = world.held_by(person)
        if len(held) == 1:
            colour = world.things[held[0]].colour
            found.append(Question("what has", f"What does {person} have?",
                                  f"{article(colour)} {colour} {held[0]}."))
        place = world.places.get(person)
        if place is None:
            continue
        wording = rng.choice((f"Where is {person}?", f"Where is {person} now?"))
        found.append(Question("where person", wording, f"{place}."))
        if list(world.places.values()).count(place) == 1:
            found.append(Question("who is at", f"Who is {place}?", f"{person}."))
    return found
