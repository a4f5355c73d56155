"""Deterministic CBOR (RFC 8949 §4.2.1) restricted to unsigned integers up to 2^63-1, byte strings, text, arrays and maps with text keys.

The reader accepts exactly what the writer writes. It does not recurse and never allocates what a head merely declares.
`skip` walks any well-formed item, to find where a frame ends when its content is not ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

Value = int | bytes | str | list["Value"] | dict[str, "Value"]

MAX_INT = 2**63 - 1
MAX_DEPTH = 16
MAX_KEYS = 64
MAX_ITEMS = 4096
"""Items in one core: far above any entry, and small enough to be read at once."""
MAX_SKIPPED_ITEMS = 1024

CoreCode = Literal["non-canonical", "bad-schema"]

_UINT, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(8)
_INDEFINITE = 31
_NAMES = ("integer", "negative integer", "byte string", "text", "array", "map", "tag", "simple value or float")


class Unreadable(ValueError):
    """Bytes that this reader refuses. `code` is the verdict on the core's canonicity axis, `offset` the byte it was found at."""

    def __init__(self, code: CoreCode, offset: int, why: str) -> None:
        self.code: CoreCode = code
        self.offset = offset
        self.why = why
        super().__init__(f"{code} at byte {offset}: {why}")


class TooManyItems(Unreadable):
    """More items than the caller is ready to read."""


class IllFormed(ValueError):
    """No whole CBOR item starts here, or it is nested too deeply to be followed."""


_SHORT_HEADS = [
    [bytes((major << 5 | size,)) if size < 24 else bytes((major << 5 | 24, size)) for size in range(0x100)]
    for major in range(8)
]


def head(major: int, argument: int) -> bytes:
    """The shortest head of `major` with `argument`."""
    if argument < 0x100:
        return _SHORT_HEADS[major][argument]
    lead = major << 5
    if argument < 0x10000:
        return bytes((lead | 25,)) + argument.to_bytes(2, "big")
    if argument < 0x1_0000_0000:
        return bytes((lead | 26,)) + argument.to_bytes(4, "big")
    return bytes((lead | 27,)) + argument.to_bytes(8, "big")


def encode_uint(value: int) -> bytes:
    """An integer from 0 to 2^63-1; raises ValueError beyond."""
    if type(value) is not int or not 0 <= value <= MAX_INT:
        raise ValueError(f"integers run from 0 to 2^63-1 here, not {value!r}")
    return head(_UINT, value)


def encode_bytes(value: bytes) -> bytes:
    """A byte string."""
    return head(_BYTES, len(value)) + value


def encode_text(value: str) -> bytes:
    """Text; raises ValueError for lone surrogates."""
    data = value.encode()
    return head(_TEXT, len(data)) + data


def key_order(key: str) -> tuple[int, bytes]:
    """Sorts text keys as their encodings sort, which is also length first."""
    data = key.encode()
    return (len(data), data)


def encode(value: object) -> bytes:
    """The one encoding of `value`. Raises ValueError for what has none here (floats, bools, None, negative integers, other keys)."""
    if type(value) is int:
        return encode_uint(value)
    if isinstance(value, bytes):
        return encode_bytes(value)
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("map keys are text here")
        pairs = (encode_text(key) + encode(value[key]) for key in sorted(value, key=key_order))
        return head(_MAP, len(value)) + b"".join(pairs)
    if isinstance(value, Sequence):
        return head(_ARRAY, len(value)) + b"".join(map(encode, value))
    raise ValueError(f"a {type(value).__name__} has no encoding here")


class _Open:
    """A container that still waits for items. `left` counts items; for a map, keys and values alternate."""

    __slots__ = ("key", "left", "raw_key", "value")

    def __init__(self, value: list[Value] | dict[str, Value], left: int) -> None:
        self.value = value
        self.left = left
        self.key: str | None = None
        self.raw_key: tuple[int, bytes] = (-1, b"")


def decode(data: bytes, *, max_items: int = MAX_ITEMS) -> Value:
    """The value whose encoding is exactly `data`. Raises Unreadable at the first byte that does not fit."""
    value, end = _decode_first(data, max_items)
    if end != len(data):
        raise Unreadable("non-canonical", end, f"{len(data) - end} bytes follow the item")
    return value


def _decode_first(data: bytes, max_items: int) -> tuple[Value, int]:
    stack: list[_Open] = []
    offset = 0
    value: Value
    for _ in range(max_items):
        at = offset
        major, argument, offset = _strict_head(data, offset)
        top = stack[-1] if stack else None
        if top is not None and type(top.value) is dict and top.key is None and major != _TEXT:
            raise Unreadable("bad-schema", at, f"a map's key is a {_NAMES[major]}; keys are text")
        if major == _UINT:
            if argument > MAX_INT:
                raise Unreadable("bad-schema", at, "an integer is beyond 2^63-1")
            value = argument
        elif major == _NEGATIVE:
            raise Unreadable("bad-schema", at, "an integer is negative")
        elif major == _BYTES or major == _TEXT:
            end = offset + argument
            if end > len(data):
                raise Unreadable("non-canonical", at, f"a {_NAMES[major]} runs past the end")
            raw = data[offset:end]
            offset = end
            value = raw if major == _BYTES else _text(raw, at)
        else:
            if len(stack) == MAX_DEPTH:
                raise Unreadable("non-canonical", at, f"nested deeper than {MAX_DEPTH}")
            opened = _opened(major, argument, data, at, offset)
            if opened.left:
                stack.append(opened)
                continue
            value = opened.value
        while stack:
            top = stack[-1]
            _place(top, value, at)
            if top.left:
                break
            value = top.value
            stack.pop()
        else:
            return value, offset
    raise TooManyItems("bad-schema", offset, f"more than {max_items} items")


def _opened(major: int, argument: int, data: bytes, at: int, offset: int) -> _Open:
    if major == _MAP:
        if argument > MAX_KEYS:
            raise Unreadable("bad-schema", at, f"a map has more than {MAX_KEYS} keys")
        return _Open({}, 2 * argument)
    if argument > len(data) - offset:
        raise Unreadable("non-canonical", at, "an array declares more items than there are bytes")
    return _Open([], argument)


def _place(top: _Open, value: Value, at: int) -> None:
    """Put a finished value into its container. Keys must ascend strictly, which also refuses duplicates."""
    top.left -= 1
    if type(top.value) is list:
        top.value.append(value)
        return
    assert type(top.value) is dict
    if top.key is None:
        assert type(value) is str
        raw_key = key_order(value)
        if raw_key <= top.raw_key:
            raise Unreadable("non-canonical", at, f"key {value[:40]!r} is out of order or given twice")
        top.key, top.raw_key = value, raw_key
        return
    top.value[top.key] = value
    top.key = None


def _text(raw: bytes, at: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Unreadable("non-canonical", at, "text is not valid UTF-8") from None


def _strict_head(data: bytes, offset: int) -> tuple[int, int, int]:
    """(major, argument, offset behind the head), for the shortest form of an allowed major type only."""
    if offset >= len(data):
        raise Unreadable("non-canonical", offset, "the bytes end where an item should start")
    lead = data[offset]
    major, info = lead >> 5, lead & 31
    if major >= _TAG:
        raise Unreadable("non-canonical", offset, f"a {_NAMES[major]} is not allowed")
    if info < 24:
        return major, info, offset + 1
    if info > 27:
        what = "an indefinite length" if info == _INDEFINITE else "a reserved length"
        raise Unreadable("non-canonical", offset, f"{what} is not allowed")
    size = 1 << (info - 24)
    end = offset + 1 + size
    if end > len(data):
        raise Unreadable("non-canonical", offset, "the bytes end inside a head")
    argument = int.from_bytes(data[offset + 1 : end], "big")
    if argument < (24 if size == 1 else 1 << (4 * size)):
        raise Unreadable("non-canonical", offset, "a head is longer than it needs to be")
    return major, argument, end


def loose_head(data: bytes, offset: int, limit: int) -> tuple[int, int, int]:
    """(major, argument, offset behind the head) of any well-formed head; the argument is -1 for an indefinite length or a break.

    Raises IllFormed when the head is cut at `limit` or reserved.
    """
    if offset >= limit:
        raise IllFormed("the bytes end where an item should start")
    lead = data[offset]
    major, info = lead >> 5, lead & 31
    if info < 24:
        return major, info, offset + 1
    if info == _INDEFINITE and major not in (_UINT, _NEGATIVE, _TAG):
        return major, -1, offset + 1
    if info > 27:
        raise IllFormed("a reserved length")
    end = offset + 1 + (1 << (info - 24))
    if end > limit:
        raise IllFormed("the bytes end inside a head")
    argument = int.from_bytes(data[offset + 1 : end], "big")
    if major == _SIMPLE and info == 24 and argument < 32:
        raise IllFormed("a simple value in two bytes that needs one")
    return major, argument, end


def skip(data: bytes, offset: int, limit: int) -> int:
    """Where the well-formed item that starts at `offset` ends, at most `limit`. Raises IllFormed.

    Any CBOR is followed, nested up to MAX_DEPTH and up to MAX_SKIPPED_ITEMS items.
    """
    stack: list[tuple[int, int]] = []  # (items left or -1 until a break, major of an open indefinite string or -1)
    for _ in range(MAX_SKIPPED_ITEMS):
        major, argument, offset = loose_head(data, offset, limit)
        is_break = major == _SIMPLE and argument == -1
        if stack and stack[-1][1] >= 0 and not is_break and (major != stack[-1][1] or argument < 0):
            raise IllFormed("a chunk of another kind inside a string")
        pending = 0
        if is_break:
            if not stack or stack[-1][0] != -1:
                raise IllFormed("a break outside an indefinite item")
            stack.pop()
        elif major in (_BYTES, _TEXT) and argument >= 0:
            offset += argument
            if offset > limit:
                raise IllFormed("a string runs past the end")
        elif major in (_BYTES, _TEXT, _ARRAY, _MAP, _TAG):
            pending = -1 if argument < 0 else 1 if major == _TAG else argument * (2 if major == _MAP else 1)
        if pending:
            if len(stack) == MAX_DEPTH:
                raise IllFormed(f"nested deeper than {MAX_DEPTH}")
            stack.append((pending, major if pending < 0 and major in (_BYTES, _TEXT) else -1))
            continue
        while stack and stack[-1][0] > 0:
            left, chunks = stack.pop()
            if left > 1:
                stack.append((left - 1, chunks))
                break
        if not stack:
            return offset
    raise IllFormed(f"more than {MAX_SKIPPED_ITEMS} items")
