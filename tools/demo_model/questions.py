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

    def ask(kind: str, wording: str, answer: str) -> None:
        found.append(Question(kind, wording, answer))

    for name, thing in world.things.items():
        holder = thing.holder
        # In question and answer alike the thing is called by its name, or by colour and name.
        it = rng.choice((name, f"{thing.colour} {name}"))
        ask("colour", f"What colour is the {name}?", f"The {name} is {thing.colour}.")
        if holder is not None:
            ask("who has", rng.choice((f"Who has the {it}?", f"Who has the {it} now?")),
                f"The {it} belongs to {holder}.")
            ask("colour", f"What colour is {holder}'s {name}?", f"{holder}'s {name} is {thing.colour}.")
        if thing.giver is not None:
            ask("who gave", rng.choice((f"Who gave the {it} to {thing.receiver}?", f"Who gave the {it} away?")),
                f"The {it} came from {thing.giver}.")
            ask("who got", rng.choice((f"Who got the {it} from {thing.giver}?", f"Who got the {it}?")),
                f"The {it} went to {thing.receiver}.")
        if thing.spot is not None:
            ask("where thing", f"Where is the {it}?", f"The {it} is {thing.spot}.")
            ask("who put", f"Who put the {it} {thing.spot}?", f"The {it} was put there by {thing.placed_by}.")
    return found


def _about_people(world: World, rng: random.Random) -> list[Question]:
    found: list[Question] = []
    for person in world.people:
        held = world.held_by(person)
        if len(held) == 1:
            colour = world.things[held[0]].colour
            found.append(Question("what has", f"What does {person} have?",
                                  f"{person} has {article(colour)} {colour} {held[0]}."))
        place = world.places.get(person)
        if place is None:
            continue
        wording = rng.choice((f"Where is {person}?", f"Where is {person} now?"))
        found.append(Question("where person", wording, f"{person} is {place}."))
        if list(world.places.values()).count(place) == 1:
            where = place[0].upper() + place[1:]
            found.append(Question("who is at", f"Who is {place}?", f"{where} we find {person}."))
    return found
