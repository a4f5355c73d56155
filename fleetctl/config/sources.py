"""The bytes of a fleet's files, and places in them as one integer.

A place is the count of code points before it over all files read so far, so a node carries one small integer and no
file name; `Sources.span` turns it into file, line and column when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_right

from fleetctl.canonical import Digest, sha256_hex
from fleetctl.diagnostics import Span
from fleetctl.frozen import dataclass

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file as read. `name` is relative to the fleet's path, with `/`; `base` is the place of its first character."""

    name: str
    data: bytes
    base: int

    @property
    def content(self) -> bytes:
        """The bytes without a byte order mark at the start."""
        return self.data[len(BOM) :] if self.data.startswith(BOM) else self.data

    def text(self) -> str:
        """The content decoded; bytes that are not UTF-8 become U+FFFD, which moves no place before the first of them."""
        return self.content.decode("utf-8", errors="replace")

    def digest(self) -> Digest:
        """SHA-256 of the bytes as they are on disk."""
        return sha256_hex(self.data)


class Sources:
    """All files of a fleet, in the order they were read."""

    def __init__(self) -> None:
        self._files: list[Source] = []
        self._bases: list[int] = []
        self._cursor: _Cursor | None = None
        self._end = 0

    def add(self, name: str, data: bytes) -> Source:
        """Take a file in. Its places never meet those of another file."""
        source = Source(name=name, data=data, base=self._end)
        self._files.append(source)
        self._bases.append(source.base)
        self._end += len(data) + 1  # one more than the code points can be, so that the end of a file is a place in it
        return source

    def files(self) -> tuple[Source, ...]:
        return tuple(self._files)

    def source_at(self, at: int) -> Source:
        """The file that a place is in."""
        return self._files[bisect_right(self._bases, at) - 1]

    def span(self, at: int) -> Span:
        """File, line and column (both from 1, columns in code points) of a place. Cheap when asked in reading order."""
        source = self.source_at(at)
        if self._cursor is None or self._cursor.source is not source:
            self._cursor = _Cursor(source)
        return self._cursor.move(at - source.base)


class _Cursor:
    """A line number that moves with the place asked for: a table of line starts would cost more than the file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._text = source.text()
        self._offset = 0
        self._line = 1
        self._line_start = 0

    def move(self, offset: int) -> Span:
        text = self._text
        if offset >= self._offset:
            passed = text.count("\n", self._offset, offset)
        else:
            passed = -text.count("\n", offset, self._offset)
        if passed or offset < self._line_start:
            self._line += passed
            self._line_start = text.rfind("\n", 0, offset) + 1
        self._offset = offset
        return Span(self.source.name, self._line, offset - self._line_start + 1)
