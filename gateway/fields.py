"""Fields: a JSON object from a client, read field by field with its type; what is left is refused."""

import json
import math

from gateway.errors import bad_request

INT32_MAX = 2**31 - 1


class Fields:
    """A field that is absent or null has the default. `where` is the path before a field's name."""

    def __init__(self, values: object, where: str = ""):
        if not isinstance(values, dict):
            name = where.rstrip(".") or "the body"
            raise bad_request(f"{name} must be a JSON object, it is {_kind(values)}")
        self._values = values
        self._where = where
        self._read: set[str] = set()

    def take(self, name: str):
        """The value as it is, or None."""
        self._read.add(name)
        return self._values.get(name)

    def _typed(self, name: str, kinds: tuple[type, ...], wanted: str):
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.error(name, f"must be {wanted}, it is {_kind(value)}")
        return value

    def path(self, name: str) -> str:
        """Of a field, from the body on."""
        return self._where + name

    def error(self, name: str, problem: str):
        return bad_request(f"{self._where}{name} {problem}", param=self._where + name)

    def boolean(self, name: str, default: bool = False) -> bool:
        value = self._typed(name, (bool,), "true or false")
        return default if value is None else value

    def text(self, name: str) -> str | None:
        return self._typed(name, (str,), "a string")

    def needed_text(self, name: str) -> str:
        """One that is there and not empty."""
        value = self.text(name)
        if not value:
            raise self.error(name, "is missing")
        return value

    def number(self, name: str) -> float | None:
        value = self._typed(name, (int, float), "a number")
        number = finite(value)
        if value is not None and number is None:
            raise self.error(name, "must be a finite number")
        return number

    def integer(self, name: str, least: int = -INT32_MAX - 1, most: int = INT32_MAX) -> int | None:
        value = self._typed(name, (int,), "an integer")
        if value is not None and not least <= value <= most:
            raise self.error(name, f"is {value}, it must be from {least} to {most}")
        return value

    def array(self, name: str) -> list | None:
        return self._typed(name, (list,), "a list")

    def object(self, name: str) -> dict | None:
        return self._typed(name, (dict,), "an object")

    def object_or_text(self, name: str) -> dict | str | None:
        return self._typed(name, (dict, str), "an object or a string")

    def fields(self, name: str) -> "Fields | None":
        value = self.object(name)
        return None if value is None else Fields(value, f"{self._where}{name}.")

    def integers(self, name: str) -> list[int]:
        values = self.array(name) or []
        if not is_ids(values):
            raise self.error(name, "must be a list of token ids")
        return values

    def strings(self, name: str) -> list[str]:
        """A string or a list of strings."""
        value = self._typed(name, (str, list), "a string or a list of strings")
        values = [value] if isinstance(value, str) else value or []
        if not all(isinstance(one, str) for one in values):
            raise self.error(name, "must be a string or a list of strings")
        return values

    def ignore(self, names: tuple[str, ...]) -> None:
        """These do not change the answer."""
        self._read.update(names)

    def only(self, name: str, *allowed: object) -> None:
        """A field of which only these values, or none, are supported."""
        value = self.take(name)
        if value is not None and not any(
                value == one and isinstance(value, bool) == isinstance(one, bool)
                for one in allowed):
            choices = " or ".join(["absent"] + [json.dumps(one) for one in allowed])
            raise self.error(name, f"is not supported: it must be {choices}")

    def unread(self) -> dict:
        """What has not been looked at."""
        return {name: value for name, value in self._values.items() if name not in self._read}

    def refuse_others(self) -> None:
        for name, value in self._values.items():
            if name not in self._read and value is not None:
                raise self.error(name[:60], "is not a field that this server knows")


def finite(value: object) -> float | None:
    """A JSON number as a float; None if it is none, or too large for one."""
    if type(value) not in (int, float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def is_ids(values: list) -> bool:
    return all(type(one) is int and 0 <= one <= INT32_MAX for one in values)


def _kind(value: object) -> str:
    """A value for a message: short, and no text of the client's."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)[:30]
    names = {str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), "null") if value not in ("", [], {}) else repr(value)
