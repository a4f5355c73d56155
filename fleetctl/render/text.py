"""A document as text of a width, with or without colour."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleetctl.render.document import (
    Block,
    Change,
    Document,
    Facts,
    Heading,
    Items,
    Lines,
    Paragraph,
    Table,
    Tone,
    Verbatim,
    Verdict,
)
from fleetctl.render.inert import inert, padded, width

DEFAULT_WIDTH = 80
MIN_WIDTH = 20
_SGR: dict[Tone, str] = {"good": "32", "warn": "33", "bad": "31", "dim": "2", "strong": "1"}
_MARK_TONES: dict[str, Tone] = {"+": "good", "-": "bad", "~": "warn", "!": "bad"}
_COMMAND = re.compile(r"\(?`(fleetctl|--[a-z])")
_GAP = "  "
_INDENT = "    "
_READABLE = 24  # columns that running text needs at least


def to_text(document: Document, *, columns: int = DEFAULT_WIDTH, colour: bool = False, fold: bool = False) -> str:
    """The document in lines of at most `columns` where its words allow it, ending in a newline; empty for no blocks.

    `fold`: rows of a table that is wider than that go on in a second line. Without it a row is a line, as tools want it.
    """
    page = _Page(max(columns, MIN_WIDTH), colour, fold)
    lines: list[str] = []
    before: Block | None = None
    for block in document:
        if before is not None and not (isinstance(block, Change) and isinstance(before, (Change, Heading))):
            lines.append("")
        lines += page.lines(block)
        before = block
    return "\n".join(line.rstrip() for line in lines) + "\n" if lines else ""


def wrapped(text: str, columns: int) -> list[str]:
    """Inert text in lines of at most `columns`; a word that is wider gets a line of its own and is not broken.

    What stands in backticks is one word where it fits a line, and a command always: it is there to be copied.
    """
    if len(text) <= columns and text.isascii():  # nearly every line
        return [text]
    words = _words(text, columns)
    lines, current, used = list[str](), [words[0]], width(words[0])
    for word in words[1:]:
        size = width(word)
        if used + 1 + size > columns and any(current):
            lines.append(" ".join(current))
            current, used = [word], size
        else:
            current.append(word)
            used += 1 + size
    return [*lines, " ".join(current)]


def _words(text: str, columns: int) -> list[str]:
    words = text.split(" ")
    if "`" not in text:
        return words
    out: list[str] = []
    opened: list[str] = []
    for word in words:
        odd = word.count("`") % 2 == 1
        if not opened and not odd:
            out.append(word)
            continue
        opened.append(word)
        if odd and len(opened) > 1:
            whole = " ".join(opened)
            out += [whole] if width(whole) <= columns or _COMMAND.match(whole) else opened
            opened = []
    return out + opened


class _Page:
    def __init__(self, columns: int, colour: bool, fold: bool) -> None:
        self._columns, self._colour, self._fold = columns, colour, fold

    def lines(self, block: Block) -> Iterator[str]:
        match block:
            case Verdict(text, tone):
                yield from (self._toned(line, tone) for line in wrapped(inert(text), self._columns))
            case Heading(text):
                yield self._toned(inert(text), "strong")
            case Paragraph(text, tone):
                yield from (self._toned(line, tone) for line in wrapped(inert(text), self._columns))
            case Items(items):
                for text, tone in items:
                    yield from self._hanging("- ", text, tone)
            case Lines(found):
                yield from (self._toned(inert(text), tone) for text, tone in found)
            case Facts(facts):
                yield from self._facts(facts)
            case Table():
                yield from self._table(block)
            case Change():
                yield from self._change(block)
            case Verbatim(lines):
                yield from (f"{_GAP}{inert(line)}" for line in lines)

    def _hanging(self, lead: str, text: str, tone: Tone | None, indent: int = 0) -> Iterator[str]:
        start = " " * indent
        room = max(self._columns - indent - len(lead), MIN_WIDTH)
        for number, line in enumerate(wrapped(inert(text), room)):
            yield self._toned(f"{start}{lead if number == 0 else ' ' * len(lead)}{line}", tone)

    def _facts(self, facts: Sequence[tuple[str, str]]) -> Iterator[str]:
        size = max((width(inert(name)) for name, _ in facts), default=0)
        for name, value in facts:
            yield f"{self._toned(padded(inert(name), size), 'dim')}{_GAP}{inert(value)}"

    def _change(self, block: Change) -> Iterator[str]:
        note = f"  ({block.note})" if block.note else ""
        tone = block.tone or _MARK_TONES.get(block.mark)
        yield from self._hanging(f"{block.mark} ", f"{block.title}{note}", tone, 2)
        for mark, text in block.lines:
            yield from self._hanging(f"{mark} ", text, _MARK_TONES.get(mark), 6)

    def _table(self, table: Table) -> Iterator[str]:
        titles = [inert(column.title) for column in table.columns]
        rows = [[inert(cell) for cell in row] for row in table.rows]
        sizes = _sizes(table, titles, rows, self._columns)
        right = [column.right for column in table.columns]
        if table.columns[-1].wraps and sizes[-1] < min(_READABLE, max(width(row[-1]) for row in [titles, *rows])):
            yield from self._with_notes(table, titles, rows)
            return
        if self._fold and sum(sizes) + len(_GAP) * (len(sizes) - 1) > self._columns:
            yield from self._folded(table, titles, rows)
            return
        yield self._toned(_row(titles, sizes, right), "dim")
        for number, row in enumerate(rows):
            tone = table.tones[number] if table.tones else None
            cells = [
                wrapped(cell, size) if column.wraps else [cell]
                for cell, size, column in zip(row, sizes, table.columns, strict=True)
            ]
            for part in range(max(map(len, cells))):
                yield self._toned(_row([cell[part] if part < len(cell) else "" for cell in cells], sizes, right), tone)

    def _folded(self, table: Table, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """A table in which each row takes several lines, the later ones indented; each line has columns of its own."""
        sizes = [max(width(cell) for cell in column) for column in zip(titles, *rows, strict=True)]
        right = [column.right for column in table.columns]
        runs = _runs(sizes, self._columns)
        tones: Sequence[Tone | None] = ["dim", *(table.tones or [None] * len(rows))]
        for row, tone in zip([titles, *rows], tones, strict=True):
            for start, end in runs:
                line = _row(row[start:end], sizes[start:end], right[start:end])
                yield self._toned(f"{_INDENT if start else ''}{line}", tone)

    def _with_notes(self, table: Table, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """A table whose last column has no room: what stands in it gets lines of its own below its row."""
        columns = table.columns[:-1]
        sizes = [max(width(cell) for cell in column) for column in list(zip(titles, *rows, strict=True))[:-1]]
        right = [column.right for column in columns]
        yield self._toned(_row(titles[:-1], sizes, right), "dim")
        for number, row in enumerate(rows):
            tone = table.tones[number] if table.tones else None
            yield self._toned(_row(row[:-1], sizes, right), tone)
            if row[-1] not in ("", "-"):
                yield from self._hanging(f"{titles[-1]}: ", row[-1], tone, 2)

    def _toned(self, line: str, tone: Tone | None) -> str:
        if not self._colour or tone is None or not line:
            return line
        return f"\x1b[{_SGR[tone]}m{line.rstrip()}\x1b[0m"


def _row(cells: Sequence[str], sizes: Sequence[int], right: Sequence[bool]) -> str:
    found = (padded(cell, size, right=at) for cell, size, at in zip(cells, sizes, right, strict=True))
    return _GAP.join(found).rstrip()


def _runs(sizes: Sequence[int], columns: int) -> list[tuple[int, int]]:
    """Runs of neighbouring columns, as (start, end), that fit a line each; a column that does not is a run of its own."""
    runs, start, used = list[tuple[int, int]](), 0, sizes[0]
    for index, size in enumerate(sizes[1:], 1):
        if used + len(_GAP) + size > columns:
            runs.append((start, index))
            start, used = index, len(_INDENT) + size
        else:
            used += len(_GAP) + size
    return [*runs, (start, len(sizes))]


def _sizes(table: Table, titles: Sequence[str], rows: Sequence[Sequence[str]], columns: int) -> list[int]:
    """Natural widths, and where they do not fit, `wraps` columns narrowed to their longest word."""
    sizes = [max(width(cell) for cell in column) for column in zip(titles, *rows, strict=True)]
    over = sum(sizes) + len(_GAP) * (len(sizes) - 1) - columns
    for index, column in enumerate(table.columns):
        if over > 0 and column.wraps:
            cells = [titles[index], *(row[index] for row in rows)]
            least = max(width(word) for cell in cells for word in cell.split(" "))
            narrowed = max(sizes[index] - over, least)
            over -= sizes[index] - narrowed
            sizes[index] = narrowed
    return sizes
