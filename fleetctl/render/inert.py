"""Text that can do nothing to a terminal: what is not printable is written out. And how wide text is on one."""

from __future__ import annotations

import unicodedata

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def inert(text: str) -> str:
    """`text` with control, bidirectional, zero-width, unassigned and separating characters written as `\\u{202e}`.

    Everything that is shown goes through here once: names, details and paths may come from anybody.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else _SHORT.get(letter) or f"\\u{{{ord(letter):x}}}" for letter in text
    )


def width(text: str) -> int:
    """Columns that inert text takes: two for wide letters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Inert text filled with spaces to a number of columns."""
    fill = " " * (columns - width(text))
    return fill + text if right else text + fill
