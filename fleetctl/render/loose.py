"""A plan's context read for showing. Unknown fields are ignored and ill-typed ones count as absent: it decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetctl.model.codec import unwide


class Loose:
    """A JSON object whose fields may be anything."""

    __slots__ = ("_data",)

    def __init__(self, data: object) -> None:
        self._data: Mapping[str, Any] = data if isinstance(data, Mapping) else {}

    def value(self, name: str) -> Any:
        """Whatever is there."""
        return self._data.get(name)

    def text(self, name: str) -> str:
        """A string; empty when there is none."""
        found = self._data.get(name)
        return found if isinstance(found, str) else ""

    def integer(self, name: str) -> int:
        """An integer in canonical form; 0 when there is none."""
        try:
            return unwide(self._data.get(name))
        except ValueError:
            return 0

    def texts(self, name: str) -> dict[str, str]:
        """An object's string entries."""
        found = self._data.get(name)
        if not isinstance(found, Mapping):
            return {}
        return {key: item for key, item in found.items() if isinstance(item, str)}

    def nested(self, name: str) -> Loose:
        return Loose(self._data.get(name))

    def objects(self, name: str) -> Iterator[Loose]:
        """A list's objects."""
        found = self._data.get(name)
        if isinstance(found, list):
            yield from (Loose(item) for item in found if isinstance(item, Mapping))
