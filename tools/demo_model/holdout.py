"""The rule that keeps combinations out of training.

A fifth of all (person, colour, thing) triples and of all (person, place) pairs, chosen by CRC-32, never
occurs in a training text. Evaluation stories are made of such combinations only.
"""

from __future__ import annotations

import zlib

MODULUS = 5


def _held_out(*words: str) -> bool:
    return zlib.crc32("|".join(words).encode("utf-8")) % MODULUS == 0


def thing_held_out(person: str, colour: str, thing: str) -> bool:
    """Whether training never lets person have this thing in this colour."""
    return _held_out("thing", person, colour, thing)


def place_held_out(person: str, place: str) -> bool:
    """Whether training never lets person be at place."""
    return _held_out("place", person, place)
