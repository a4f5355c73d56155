"""Text that can do nothing to a terminal: what is not printable is written out. And how wide text is on one."""

from __future__ import annotations

import re

_NARROW = re.compile("[ -\u02ff→…–—]*")
"""Letters of one column each: what our own texts hold needs no table."""
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
    """Columns that inert text takes on a terminal: two for wide letters, none for combining marks."""
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Inert text filled with spaces to a number of columns."""
    fill = " " * (columns - width(text))
    return fill + text if right else text + fill
