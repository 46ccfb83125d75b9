"""What is true in a story: who is where, who has what, which colour it has, where it lies."""

from __future__ import annotations

from dataclasses import dataclass, field


class Contradiction(ValueError):
    """An event that cannot happen after what the story has said before."""


@dataclass
class Thing:
    colour: str | None
    holder: str | None
    spot: str | None = None
    giver: str | None = None
    receiver: str | None = None
    placed_by: str | None = None


@dataclass
class World:
    """The state after the events so far; every event is checked against the ones before."""

    things: dict[str, Thing] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    people: list[str] = field(default_factory=list)

    def own(self, person: str, colour: str | None, thing: str) -> None:
        if thing in self.things:
            raise Contradiction(f"the {thing} appears a second time")
        self._know(person)
        self.things[thing] = Thing(colour, person)

    def set_colour(self, thing: str, colour: str) -> None:
        entry = self._thing(thing)
        if entry.colour not in (None, colour):
            raise Contradiction(f"the {thing} was {entry.colour}, not {colour}")
        entry.colour = colour

    def at(self, person: str, place: str) -> None:
        if person in self.places:
            raise Contradiction(f"{person} is already {self.places[person]}")
        self._know(person)
        self.places[person] = place

    def move(self, person: str, place: str) -> None:
        if person not in self.people:
            raise Contradiction(f"{person} goes away but never came")
        if self.places.get(person) == place:
            raise Contradiction(f"{person} goes to where {person} is")
        self.places[person] = place

    def give(self, giver: str, receiver: str, colour: str | None, thing: str) -> None:
        self.confirm(giver, colour, thing)
        if receiver == giver or receiver not in self.people:
            raise Contradiction(f"{giver} gives the {thing} to {receiver}")
        entry = self.things[thing]
        entry.holder, entry.giver, entry.receiver = receiver, giver, receiver

    def put(self, person: str, colour: str | None, thing: str, spot: str) -> None:
        self.confirm(person, colour, thing)
        entry = self.things[thing]
        entry.holder, entry.spot, entry.placed_by = None, spot, person

    def confirm(self, person: str, colour: str | None, thing: str) -> None:
        """Checks that person has the thing, in this colour when one is named."""
        entry = self._thing(thing)
        if entry.holder != person:
            raise Contradiction(f"{entry.holder or 'nobody'} has the {thing}, not {person}")
        if colour is not None and entry.colour != colour:
            raise Contradiction(f"the {thing} was {entry.colour}, not {colour}")

    def seen(self, person: str) -> None:
        """Checks that the story has named person before."""
        if person not in self.people:
            raise Contradiction(f"{person} was never named before")

    def held_by(self, person: str) -> list[str]:
        return [name for name, entry in self.things.items() if entry.holder == person]

    def _know(self, person: str) -> None:
        if person not in self.people:
            self.people.append(person)

    def _thing(self, thing: str) -> Thing:
        if thing not in self.things:
            raise Contradiction(f"the {thing} was never named before")
        return self.things[thing]
