"""The field types of cores: how each is encoded, what it accepts, and the pattern that its encoding matches.

`check` judges a decoded value (or one that a caller wants sealed) and answers what is wrong with it, or None.
`pattern` matches nothing but acceptable encodings, with one group for the value's bytes, and `read` turns that group into the
value; an identifier's length is the one thing that a pattern cannot hold, so `read` raises Mismatch for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fleetctl.frozen import dataclass
from fleetctl.ledger.cbor import (
    MAX_INT,
    encode,
    encode_bytes,
    encode_text,
    encode_uint,
)
from fleetctl.ledger.identifiers import GRADES, MAX_IDENTIFIER, is_identifier, is_ledger_id

DIGEST_BYTES = 32
MAX_TEXT = 1024
MAX_LIST = 1024


_UNSEALABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search


class Mismatch(Exception):
    """A pattern matched at the wrong place; the careful reader decides."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One field type."""

    encode: Callable[[Any], bytes]
    check: Callable[[object], str | None]
    pattern: bytes | None = None
    read: Callable[[bytes], Any] = encode  # only called where there is a pattern


@dataclass(frozen=True, slots=True)
class Field:
    """`name` on the wire, `attr` in Python (the same unless given)."""

    name: str
    kind: Kind
    attr: str = ""
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "attr", self.attr or self.name)


def _check_uint(value: object) -> str | None:
    return None if type(value) is int and 0 <= value <= MAX_INT else "is not an integer from 0 to 2^63-1"


def _check_positive(value: object) -> str | None:
    return None if type(value) is int and 1 <= value <= MAX_INT else "is not an integer from 1 to 2^63-1"


def _check_digest(value: object) -> str | None:
    return None if type(value) is bytes and len(value) == DIGEST_BYTES else "is not a byte string of 32"


def _check_identifier(value: object) -> str | None:
    return None if type(value) is str and is_identifier(value) else "is not an identifier"


def _check_ledger(value: object) -> str | None:
    return None if type(value) is str and is_ledger_id(value) else "is not a ledger id (steward/stream)"


def _check_grade(value: object) -> str | None:
    return None if value in GRADES else f"is not one of {', '.join(GRADES)}"


def _check_text(value: object) -> str | None:
    if type(value) is str and 0 < len(value) <= MAX_TEXT and not _UNSEALABLE(value):
        return None
    return f"is not text of 1 to {MAX_TEXT} characters without control characters"


def _check_list(check: Callable[[object], str | None], least: int) -> Callable[[object], str | None]:
    def check_list(value: object) -> str | None:
        if not isinstance(value, (list, tuple)) or not least <= len(value) <= MAX_LIST:
            return f"is not a list of {least} to {MAX_LIST}"
        found = (check(item) for item in value)
        return next((f"holds an item that {why}" for why in found if why), None)

    return check_list


def _read_uint(raw: bytes) -> int:
    return raw[0] if len(raw) == 1 else int.from_bytes(raw[1:], "big")


def _read_identifier(raw: bytes) -> str:
    # One group holds head and characters: a head of one byte carries the length, 0x78 is followed by it.
    size, start = (raw[0] - 0x60, 1) if raw[0] != 0x78 else (raw[1], 2)
    if len(raw) - start != size:
        raise Mismatch
    return raw[start:].decode("ascii")


def _read_grade(raw: bytes) -> str:
    return _GRADE_BY_BYTES[raw]


_GRADE_BY_BYTES = {encode_text(grade): grade for grade in GRADES}
_UINT_PATTERN = (
    rb"([\x00-\x17]|\x18[\x18-\xff]|\x19(?!\x00)[\x00-\xff]{2}|\x1a(?!\x00\x00)[\x00-\xff]{4}"
    rb"|\x1b(?!\x00{4})[\x00-\x7f][\x00-\xff]{7})"
)
_POSITIVE_PATTERN = _UINT_PATTERN.replace(rb"[\x00-\x17]", rb"[\x01-\x17]", 1)
_IDENTIFIER_PATTERN = rb"((?:[\x61-\x77]|\x78[\x18-\x%02x])[A-Za-z0-9][A-Za-z0-9._:\-]{0,%d})" % (
    MAX_IDENTIFIER,
    MAX_IDENTIFIER - 1,
)
_GRADE_PATTERN = b"(" + b"|".join(_GRADE_BY_BYTES) + b")"

UINT = Kind(encode_uint, _check_uint, _UINT_PATTERN, _read_uint)
POSITIVE = Kind(encode_uint, _check_positive, _POSITIVE_PATTERN, _read_uint)
DIGEST = Kind(encode_bytes, _check_digest, rb"\x58\x20([\x00-\xff]{32})", bytes)
IDENTIFIER = Kind(encode_text, _check_identifier, _IDENTIFIER_PATTERN, _read_identifier)
GRADE = Kind(encode_text, _check_grade, _GRADE_PATTERN, _read_grade)
LEDGER = Kind(encode_text, _check_ledger)
TEXT = Kind(encode_text, _check_text)
TEXTS = Kind(encode, _check_list(_check_text, 1))
DIGESTS = Kind(encode, _check_list(_check_digest, 0))
