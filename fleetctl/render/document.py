"""What can be shown: a document is a sequence of blocks. Each output syntax has its own renderer and does its own escaping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fleetctl.frozen import dataclass

Tone = Literal["good", "warn", "bad", "dim", "strong"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The one line that says how it stands; comes first."""

    text: str
    tone: Tone = "strong"


@dataclass(frozen=True, slots=True)
class Heading:
    """Opens a part."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text, wrapped."""

    text: str
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """Points, each with an optional tone."""

    items: Sequence[tuple[str, Tone | None]]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that are never wrapped, each with an optional tone."""

    lines: Sequence[tuple[str, Tone | None]]


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column. Figures stand at the right; a `wraps` column gives way when the page is narrow."""

    title: str
    right: bool = False
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under titles. `tones` has one entry for each row, or none at all."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    tones: Sequence[Tone | None] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, one a line; values are never broken, so that they can be copied."""

    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Change:
    """One object's change: a mark (`+ ~ -`), a title, a note beside it, and lines of the fields that it touches."""

    mark: str
    title: str
    note: str = ""
    lines: Sequence[tuple[str, str]] = ()
    """(mark, text)."""
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines shown as they are, never wrapped: commands, digests."""

    lines: Sequence[str]


Block = Verdict | Heading | Paragraph | Items | Lines | Table | Facts | Change | Verbatim
Document = Sequence[Block]
