"""Strict reading of the pure commands' JSON objects: every field named, typed and bounded, nothing unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.pool1.grade import Grade
from fleetctl.units import MAX_QUANTITY, shown

MALFORMED = code(
    "pool1-malformed",
    "The input of a pure pool/1 command does not have its shape",
    trigger="pool1 decide without a claim, with an unknown field, or with a list where an object is needed",
)
BAD_FIGURE = code(
    "pool1-figure",
    "A figure is not a whole number in its range",
    trigger="estimate_uj: 1.5, -1, true, 1e3, a figure past 2^63-1",
)
BAD_GRADE = code(
    "pool1-grade",
    "A grade is not one of the standard's three",
    trigger="grade: measured",
)

_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,18})", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_GRADES = {grade.value: grade for grade in Grade}


class Reader:
    """One JSON object. Each field is asked for once; `end` refuses what nobody asked for. A null is an absent field."""

    __slots__ = ("_path", "_rest")

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise malformed(path, f"{_kind(value)} stands where an object is needed")
        self._path = path
        self._rest = {name: item for name, item in value.items() if item is not None}

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return name in self._rest

    def text(self, name: str, *, empty: bool = False) -> str:
        """A string, not empty unless `empty`."""
        value = self._take(name)
        if not isinstance(value, str) or not (value or empty):
            raise malformed(self._at(name), f"{_kind(value)} stands where text is needed")
        return value

    def figure(self, name: str, default: int | None = None) -> int:
        """An integer from 0 to 2^63-1, as a number or as decimal text. A missing figure is never 0 by itself (A26)."""
        return self._integer(name, default, 0)

    def signed(self, name: str, default: int | None = None) -> int:
        """An integer within ±(2^63-1)."""
        return self._integer(name, default, -MAX_QUANTITY)

    def optional_figure(self, name: str) -> int | None:
        """A figure, or None where it is absent: unknown is not a value."""
        return self.figure(name) if self.has(name) else None

    def boolean(self, name: str, default: bool) -> bool:
        """`true` or `false`."""
        value = self._rest.pop(name, default)
        if not isinstance(value, bool):
            raise malformed(self._at(name), f"{_kind(value)} stands where true or false is needed")
        return value

    def grade(self, name: str = "grade") -> Grade:
        """One of the three grades; a figure without one cannot be judged."""
        value = self._take(name)
        grade = _GRADES.get(value) if isinstance(value, str) else None
        if grade is None:
            raise BadInput(BAD_GRADE.at(f"{self._at(name)}: write one of {', '.join(_GRADES)}"))
        return grade

    def nested(self, name: str) -> Reader:
        """A nested object."""
        return Reader(self._take(name), self._at(name))

    def objects(self, name: str) -> Iterator[Reader]:
        """A list of objects, in order."""
        value = self._take(name)
        if not isinstance(value, list):
            raise malformed(self._at(name), f"{_kind(value)} stands where a list is needed")
        for index, item in enumerate(value):
            yield Reader(item, f"{self._at(name)}[{index}]")

    def keyed(self, name: str) -> Iterator[tuple[str, Reader]]:
        """An object of objects, by key; nothing when it is absent."""
        if self.has(name):
            value = self._take(name)
            if not isinstance(value, Mapping):
                raise malformed(self._at(name), f"{_kind(value)} stands where an object is needed")
            for key, item in value.items():
                yield key, Reader(item, f"{self._at(name)}.{key if _NAME.fullmatch(key) else shown(key)}")

    def end(self) -> None:
        """Refuse fields that were not asked for."""
        if self._rest:
            name = min(self._rest)
            raise malformed(self._at(name), "no such field; remove it or correct its name")

    def _take(self, name: str) -> object:
        if name not in self._rest:
            raise malformed(self._at(name), "the field is missing; give it a value")
        return self._rest.pop(name)

    def _integer(self, name: str, default: int | None, least: int) -> int:
        if default is not None and name not in self._rest:
            return default
        value = self._take(name)
        number = int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value
        if type(number) is not int or not least <= number <= MAX_QUANTITY or value == "-0":
            raise BadInput(
                BAD_FIGURE.at(
                    f"{self._at(name)}: write a whole number from {least} to {MAX_QUANTITY}, as number or text"
                )
            )
        return number

    def _at(self, name: str) -> str:
        plain = name if _NAME.fullmatch(name) else shown(name)
        return f"{self._path}.{plain}" if self._path else plain


def malformed(path: str, detail: str) -> BadInput:
    """The refusal of a shape at `path`."""
    return BadInput(MALFORMED.at(f"{path or 'the input'}: {detail}"))


def _kind(value: object) -> str:
    for kind, said in ((bool, "a boolean"), (str, "text"), (list, "a list"), (Mapping, "an object")):
        if isinstance(value, kind):
            return "empty text" if value == "" else said
    return "null" if value is None else "a number"
