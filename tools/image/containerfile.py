"""Reads a Containerfile: the instructions that ours use, with the meaning that container builders give them."""

import json
import re
from typing import NamedTuple

NAMES = ("FROM", "ARG", "ADD", "COPY", "RUN", "ENV", "USER", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD")
_FLAG = re.compile(r"--([a-z]+)=(\S+)\s+")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class Malformed(Exception):
    """A line that is not understood."""


class Instruction(NamedTuple):
    """`--name=value` before the text is in `flags`."""
    line: int
    name: str
    flags: dict
    text: str

    def words(self):
        """The members of an exec form (["a", "b"]); of a shell form the command that runs it."""
        if self.text.startswith("["):
            return json.loads(self.text)
        return ["/bin/sh", "-c", self.text]


def read(text):
    """The instructions of a file, in order. Raises Malformed."""
    found, parts, first = [], [], 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        first = first if parts else number
        parts.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            found.append(_instruction(first, "".join(parts)))
            parts = []
    if parts:
        raise Malformed(f"line {first}: it ends in a backslash at the end of the file")
    if not found or found[0].name != "FROM":
        raise Malformed("a FROM is needed, at the start")
    return found


def stage(instruction):
    """Of a FROM: what the stage begins with, and its name, empty without one. Raises Malformed."""
    match = re.fullmatch(r"(\S+)(?: AS (\w+))?", instruction.text)
    if match is None:
        raise Malformed(f"line {instruction.line}: FROM IMAGE or FROM IMAGE AS NAME is needed, found {instruction.text}")
    return match[1], match[2] or ""


def _instruction(line, text):
    name, _, rest = text.partition(" ")
    if name not in NAMES:
        raise Malformed(f"line {line}: {name} is none of {', '.join(NAMES)}")
    flags = {}
    rest = rest.strip()
    while match := _FLAG.match(rest):
        flags[match[1]] = match[2]
        rest = rest[match.end():]
    return Instruction(line, name, flags, rest)


def substitute(text, variables):
    """$NAME and ${NAME} by their values; what is not set is an error here, where builders take an empty string."""
    def value(match):
        name = match[1] or match[2]
        if name not in variables:
            raise Malformed(f"${name} is not set")
        return variables[name]
    return _VARIABLE.sub(value, text)
