"""Codes for what one value in a fleet file may get wrong, and the words they share."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from fleetctl.diagnostics import code

WRONG_TYPE = code(
    "wrong-type",
    "A field holds a value of another type",
    trigger='a list for a mapping, `yes` or a quoted "true" for a boolean, a mapping for text',
)
BAD_QUANTITY = code(
    "bad-quantity",
    "A value is not a quantity of its field's kind",
    trigger="`8.0`, `010`, `1e3` or a quoted number for a count, `40 mj` for an energy, `1h30m` for a duration",
)
OUT_OF_RANGE = code(
    "out-of-range", "A number or a list is too small or too large", trigger="a priority of 1001, no pools"
)
UNKNOWN_FIELD = code(
    "unknown-field", "A field is not known", trigger="a field or section that the schema does not have"
)
MISSING_FIELD = code(
    "missing-field",
    "A field that an object needs is missing",
    trigger="a required field that `defaults` do not give either",
)
MISSING_HEADER = code(
    "missing-header", "The fleet's header is incomplete", trigger="no apiVersion, fleet or tenant in any file"
)
NOT_ONE_OF = code("not-one-of", "A value is not one of its field's words", trigger="kind: Shared, apiVersion: v2")
BAD_NAME = code(
    "bad-name",
    "A name, key or reference holds characters that it may not",
    trigger="names other than [a-z0-9][a-z0-9-]{0,62}, keys other than [A-Za-z0-9][A-Za-z0-9._#-]{0,127}",
)
NOT_ASCII = code(
    "non-ascii-text",
    "Text outside of descriptions is not ASCII",
    trigger="letters that look alike, or accents, in a value",
)
NO_DEFAULT = code(
    "not-a-default", "A field cannot have a default", trigger="idempotencyKey, adopt, pool or to under `defaults`"
)
EITHER_OR = code(
    "either-or", "One field of two is needed", trigger="an offer with both of pool and pools, or with none"
)
INVALID = code(
    "invalid-value", "A value does not fit the schema", trigger="any rule of the schema without a code of its own"
)


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known word that `word` looks like, if any does; `cutoff` from 0 (anything) to 1 (only itself)."""
    if len(word) > 64:
        return None
    words = sorted(known)
    folded = {item.lower(): item for item in words}
    if word.lower() in folded:
        return folded[word.lower()]
    close = get_close_matches(word, words, n=1, cutoff=cutoff)
    return close[0] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; do you mean `x`?` or nothing."""
    found = nearest(word, known)
    return f"; do you mean {shown(found)}?" if found else ""


def one_of(words: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    listed = list(words)
    return " or ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)


def shown(text: str) -> str:
    """A user's text for a message: quoted, cut short, escaped where it cannot be shown."""
    return f"`{printable(text if len(text) <= 60 else text[:57] + '...')}`"


def printable(text: str) -> str:
    """Text as it is, or escaped where it cannot be shown."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
