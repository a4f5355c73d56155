"""The node tree of a YAML document: text scalars, mappings, sequences, each with its place (`config.sources`).

Plain mutable classes: 10,000 pools are 350,000 nodes, and a frozen dataclass costs three times as much to make. Nobody
changes a node after the reader has finished its document; an alias is the very node of its anchor.
"""

from __future__ import annotations

from collections.abc import Iterator


class Scalar:
    """A scalar as text. `plain` tells an unquoted one (`12`) from a quoted or block one (`"12"`)."""

    __slots__ = ("at", "plain", "text")

    def __init__(self, at: int, plain: bool, text: str) -> None:
        self.at = at
        self.plain = plain
        self.text = text

    @property
    def is_null(self) -> bool:
        """Whether YAML 1.2 core reads it as null; a null is the same as leaving out."""
        return self.plain and self.text in ("", "~", "null", "Null", "NULL")


class Mapping:
    """A mapping in the order of the file; `key_places` runs parallel to `entries`."""

    __slots__ = ("at", "entries", "key_places")

    def __init__(self, at: int) -> None:
        self.at = at
        self.entries: dict[str, Node] = {}
        self.key_places: list[int] = []

    def key_at(self, key: str) -> int:
        """The place of a key."""
        return self.key_places[list(self.entries).index(key)]

    def items_at(self) -> Iterator[tuple[str, int, Node]]:
        """Each key with its place and its value."""
        for (key, node), at in zip(self.entries.items(), self.key_places, strict=True):
            yield key, at, node


class Sequence:
    """A sequence."""

    __slots__ = ("at", "items")

    def __init__(self, at: int) -> None:
        self.at = at
        self.items: list[Node] = []


Node = Scalar | Mapping | Sequence
