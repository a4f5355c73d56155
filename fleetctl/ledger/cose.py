"""The one envelope of this format: a COSE_Sign1 (RFC 9052) with tag 18, `{1: -8, 4: kid}` protected, `{}` unprotected, nothing else.

An envelope is `d2 84 | bstr(protected) | a0 | bstr(payload) | 58 40 signature`; every other encoding of it is refused.
"""

from __future__ import annotations

import functools
from typing import Literal

from fleetctl.frozen import dataclass
from fleetctl.ledger.cbor import IllFormed, encode_bytes, encode_text, loose_head, skip

EnvelopeCode = Literal["bad-frame", "bad-envelope", "bad-header"]

MAX_FRAME = 4 * 1024 * 1024
"""Bytes of one sealed entry."""

HEAD = b"\xd2\x84"  # tag 18, array of four
SIGNATURE_HEAD = b"\x58\x40"
EMPTY_MAP = b"\xa0"
_BYTES, _MAP = 2, 5
_FRAME_MAJORS = (4, 5, 6)  # an array, a map or a tag may be somebody's envelope; nothing else starts a frame


class BadEnvelope(ValueError):
    """A frame that is not the pinned envelope. `end` is where the next frame starts, -1 when that cannot be known."""

    def __init__(self, code: EnvelopeCode, why: str, end: int) -> None:
        self.code: EnvelopeCode = code
        self.why = why
        self.end = end
        super().__init__(f"{code}: {why}")


@dataclass(frozen=True, slots=True)
class Envelope:
    """The parts of one well-formed envelope. `unprotected_empty` is False when the unprotected header is anything but `{}`."""

    protected: bytes
    unprotected_empty: bool
    payload: bytes
    signature: bytes
    end: int


@functools.cache
def protected_header(kid: str) -> bytes:
    """The bytes of `{1: -8, 4: kid}`, kid as its UTF-8."""
    return b"\xa2\x01\x27\x04" + encode_bytes(kid.encode())


@functools.cache
def envelope_prefix(kid: str) -> bytes:
    """The bytes that every envelope of `kid` starts with, up to its payload."""
    return HEAD + encode_bytes(protected_header(kid)) + EMPTY_MAP


@functools.cache
def signing_prefix(kid: str) -> bytes:
    """The start of the Sig_structure (RFC 9052 §4.4), up to the payload: context, protected header, empty external AAD."""
    return b"\x84" + encode_text("Signature1") + encode_bytes(protected_header(kid)) + b"\x40"


def to_be_signed(kid: str, payload: bytes) -> bytes:
    """What is signed for `payload`."""
    return signing_prefix(kid) + encode_bytes(payload)


def build(kid: str, payload: bytes, signature: bytes) -> bytes:
    """The sealed bytes."""
    return b"".join((envelope_prefix(kid), encode_bytes(payload), SIGNATURE_HEAD, signature))


def kid_of(protected: bytes) -> str | None:
    """The kid of a protected header in the pinned form, else None."""
    try:
        major, size, start = loose_head(protected, 4, len(protected))
        kid = protected[start:].decode("ascii")
    except (IllFormed, UnicodeDecodeError):
        return None
    return kid if major == _BYTES and size == len(kid) and protected == protected_header(kid) else None


def read(data: bytes, offset: int, *, max_frame: int = MAX_FRAME) -> Envelope:
    """The envelope that starts at `offset`. Raises BadEnvelope; the header's content is left to the caller."""
    limit = min(len(data), offset + max_frame)
    if offset >= limit or data[offset] >> 5 not in _FRAME_MAJORS:
        raise BadEnvelope("bad-frame", "no envelope starts with this byte", -1)
    try:
        end = skip(data, offset, limit)
    except IllFormed as error:
        raise BadEnvelope("bad-frame", f"the frame is not whole within {max_frame} bytes: {error}", -1) from None
    if data[offset : offset + 2] != HEAD:
        raise BadEnvelope("bad-envelope", "it does not start as tag 18 over an array of four", end)
    try:
        return _parts(data, offset + 2, end)
    except _NotPinned as error:
        if end < len(data) and data[end] >> 5 not in _FRAME_MAJORS:
            # Its lengths led to a place where no frame starts, so they are what is wrong (a text-mode copy does this).
            raise BadEnvelope("bad-frame", f"{error}, and no frame follows it", -1) from None
        raise BadEnvelope("bad-envelope", str(error), end) from None


class _NotPinned(ValueError):
    """A part is not encoded as pinned."""


def _parts(data: bytes, offset: int, end: int) -> Envelope:
    protected, offset = _byte_string(data, offset, end, "protected header")
    after = skip(data, offset, end)
    unprotected_empty = data[offset:after] == EMPTY_MAP
    if not unprotected_empty and _is_loose_empty_map(data[offset:after]):
        raise _NotPinned("the empty unprotected header is not one byte")
    payload, offset = _byte_string(data, after, end, "payload")
    if data[offset : offset + 2] != SIGNATURE_HEAD or end - offset != 2 + 64:
        raise _NotPinned("the signature is not a byte string of 64")
    return Envelope(protected, unprotected_empty, payload, data[offset + 2 : end], end)


def _is_loose_empty_map(item: bytes) -> bool:
    major, argument, start = loose_head(item, 0, len(item))
    return major == _MAP and (argument == 0 or (argument == -1 and start == len(item) - 1))


def _byte_string(data: bytes, offset: int, end: int, what: str) -> tuple[bytes, int]:
    major, size, start = loose_head(data, offset, end)
    value = data[start : start + size] if size >= 0 else b""
    if major != _BYTES or encode_bytes(value) != data[offset : start + max(size, 0)]:
        raise _NotPinned(f"the {what} is not a byte string in its shortest form")
    return value, start + size
