"""The sentences of the demo stories, by kind of event.

The generator fills a template, the checker turns the same template into a regular expression.
Slots: {N} the person who acts, {M} another person, {HE}/{he}/{HIS}/{HIM} pronouns of the person named last,
{AC} colour with its article, {C} colour, {T} thing, {P} place with preposition, {PC} the same capitalised,
{D} place without preposition, {S} spot with preposition.
"""

from __future__ import annotations

import words

TEMPLATES: dict[str, list[str]] = {
    # A person has a new thing.
    "own": [
        "{N} had {AC} {T}.",
        "{N} found {AC} {T}.",
        "{N} bought {AC} {T}.",
        "{N} carried {AC} {T}.",
        "{N} owned {AC} {T}.",
        "{N} loved {HIS} {C} {T}.",
        "{N} received {AC} {T} as a present.",
        "{N} borrowed {AC} {T} from a neighbour.",
    ],
    "own_pronoun": [
        "{HE} had {AC} {T}.",
        "{HE} carried {AC} {T}.",
        "{HE} had {AC} {T} with {HIM}.",
    ],
    # The colour follows in a sentence of its own ("colour").
    "own_plain": ["{N} had a {T}.", "{N} found a {T}."],
    "colour": ["The {T} was {C}."],
    # A person is at a place, said for the first time.
    "at": [
        "{N} was {P}.",
        "{N} sat {P}.",
        "{N} waited {P}.",
        "{N} stood {P}.",
        "{N} rested {P}.",
        "{N} was walking about {P}.",
        "{N} spent the day {P}.",
    ],
    "at_pronoun": ["{HE} was {P}.", "{HE} waited {P}."],
    "at_own": [
        "{N} had {AC} {T} {P}.",
        "{PC}, {N} found {AC} {T}.",
        "{N} sat {P} with {AC} {T}.",
    ],
    "at_both": ["{N} and {M} were {P}.", "{N} met {M} {P}."],
    # A person changes the place.
    "move": [
        "Then {N} went to {D}.",
        "Later, {N} walked to {D}.",
        "After a while, {N} ran to {D}.",
        "Soon {N} hurried to {D}.",
        "{N} got tired and left for {D}.",
    ],
    "move_pronoun": ["Then {he} went to {D}.", "Later, {he} walked to {D}."],
    # A thing changes its owner, from {N} to {M}.
    "give": [
        "{N} gave the {C} {T} to {M}.",
        "{N} gave {M} the {C} {T}.",
        "{N} handed the {C} {T} to {M}.",
        "{M} got the {C} {T} from {N}.",
        "Then {N} gave the {T} to {M}.",
        "{N} kindly gave {M} the {T}.",
        "{N} made {M} a gift of the {C} {T}.",
        "{N} sold the {C} {T} to {M}.",
    ],
    # A thing is put down.
    "put": [
        "{N} put the {C} {T} {S}.",
        "{N} left the {C} {T} {S}.",
        "{N} hid the {T} {S}.",
        "Then {N} put the {T} {S}.",
    ],
    # Says again what holds already: {N} has the thing.
    "again": [
        "{M} liked {N}'s {C} {T}.",
        "{M} smiled at {N}'s {T}.",
        "{M} wanted to borrow {N}'s {C} {T}.",
        "{N} was proud of the {C} {T}.",
        "{N} looked at the {C} {T} for a long time.",
    ],
    # Say nothing that could be contradicted.
    "middle": [
        "The birds were singing.",
        "A dog barked far away.",
        "The clouds moved slowly over the sky.",
        "Nobody was in a hurry.",
        "A cat slept nearby.",
        "Somewhere a bell rang softly.",
        "The air smelled of fresh bread.",
        "Old songs came from an open window.",
        "Children shouted in the distance.",
        "Time passed slowly.",
        "A little bee hummed between the roses.",
        "The wind played with the leaves.",
    ],
    "close": [
        "Everyone was happy.",
        "It was a good day.",
        "They all laughed together.",
        "In the end, they went home for supper.",
        "And that is how the day ended.",
        "They talked about it for a long time.",
        "Nobody ever forgot that day.",
        "Then the sun went down and the stars came out.",
        "Soon everybody fell asleep.",
        "What a wonderful adventure that was!",
        "Tomorrow they would meet again.",
    ],
}

# An opener is a first sentence, or a phrase before the first sentence.
OPENING_SENTENCE = "It was a {adjective} {time}."
OPENING_PHRASE = "One {adjective} {time}, "

# The exercises' ways to say a fact: what is given, and what follows from it.
LINKS: dict[str, list[tuple[str, str]]] = {
    "own": [
        ("{N}", " {T}"),
        ("{N}'s", " {T}"),
        ("{N} had a", " {T}"),
        ("{N} has a", " {T}"),
        ("{N} found a", " {T}"),
        ("{T}", " {N}"),
        ("the {T}", " {N}"),
        ("The {C} {T} belongs to", " {N}"),
        ("The {T} belongs to", " {N}"),
        ("The {T} came from", " {N}"),
    ],
    "at": [
        ("{N} was", " {P}"),
        ("{N} is", " {P}"),
        ("{N} sat", " {P}"),
        ("{PC}", " {N}"),
        ("{PC} is", " {N}"),
        ("{PC} we find", " {N}"),
    ],
    "colour": [
        ("The {T} was", " {C}"),
        ("The {T} is", " {C}"),
        ("a {C}", " {T}"),
    ],
}


def render(template: str, slots: dict[str, str]) -> str:
    """Fills the slots of one template, and those that follow from them."""
    full = dict(slots)
    if "N" in slots:
        female = slots["N"] in words.FEMALE
        full |= {"HE": "She" if female else "He", "he": "she" if female else "he",
                 "HIS": "her" if female else "his", "HIM": "her" if female else "him"}
    if "C" in slots:
        full["AC"] = f"{words.article(slots['C'])} {slots['C']}"
    if "P" in slots:
        full |= {"PC": slots["P"][0].upper() + slots["P"][1:], "D": words.destination(slots["P"])}
    return template.format(**full)
