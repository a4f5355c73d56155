"""The node tree of a YAML document: text scalars, mappings, sequences, each with its place (`config.sources`).

Plain mutable classes: 10,000 pools are 350,000 nodes, and a frozen dataclass costs three times as much to make. Nobody
changes a node after the reader has finished its document; an alias is the very node of its anchor.
"""

from __future__ import annotations

from collections.abc import Iterator

NULLS = frozenset(("", "~", "null", "Null", "NULL"))
"""What YAML 1.2 core reads as null when it is plain."""


class Scalar:
    """A scalar as text. `plain` tells an unquoted one (`12`) from a quoted or block one (`"12"`)."""

    __slots__ = ("at", "plain", "text")

    def __init__(self, at: int, plain: bool, text: str) -> None:
        self.at = at
        self.plain = plain
        self.text = text


class Mapping:
    """A mapping in the order of the file; `key_places` runs parallel to `entries`."""

    __slots__ = ("_places", "at", "entries", "key_places")

    def __init__(self, at: int) -> None:
        self.at = at
        self.entries: dict[str, Node] = {}
        self.key_places: list[int] = []
        self._places: dict[str, int] | None = None

    def key_at(self, key: str) -> int:
        """The place of a key."""
        if self._places is None or len(self._places) != len(self.entries):
            self._places = dict(zip(self.entries, self.key_places, strict=True))
        return self._places[key]

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


def is_absent(node: Node | None) -> bool:
    """Whether there is no value: none at all, or a null, which is the same."""
    return node is None or (type(node) is Scalar and node.plain and node.text in NULLS)
