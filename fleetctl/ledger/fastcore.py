"""The common cores, read by one pattern each: a seventh of the careful reader's time.

A pattern matches acceptable cores only. What it does not match is not thereby bad: `entries.decode_core` decides, and a test holds
the two to one answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from fleetctl.ledger.cbor import encode_text
from fleetctl.ledger.entries import LAYOUTS, Admitted, Released
from fleetctl.ledger.fields import Mismatch
from fleetctl.ledger.usage import ClaimCode, Fold, OpenClaim


class FastCore(NamedTuple):
    """What verification needs of a usage core. `opened` for an admission; `spent_uj` and `grade` for a release."""

    seq: int
    prev: bytes
    claim: str
    opened: OpenClaim | None
    spent_uj: int
    grade: Any

    def move(self, fold: Fold) -> ClaimCode | None:
        """Apply it to the fold."""
        if self.opened is not None:
            return fold.admit(self.claim, self.opened)
        return fold.release(self.claim, self.spent_uj, self.grade)


@functools.cache
def reader(steward: str) -> Callable[[bytes], FastCore | None]:
    """A function from a core of this steward to its parts, or None when the careful reader must look."""
    classed_head, classed, classed_readers = _pattern(Admitted, steward, 0)
    plain_head, plain, plain_readers = _pattern(Admitted, steward, 1)
    released_head, released, released_readers = _pattern(Released, steward, 0)

    def read(core: bytes) -> FastCore | None:
        first = core[:1]
        try:
            if first == released_head and (match := released(core)):
                seq, prev, _at, claim, grade, spent = [
                    read_one(raw) for read_one, raw in zip(released_readers, match.groups(), strict=True)
                ]
                return FastCore(seq, prev, claim, None, spent, grade)
            if first == classed_head and (match := classed(core)):
                seq, prev, at, claim, named, grade, devices, borrowed, entitlement, reserved = [
                    read_one(raw) for read_one, raw in zip(classed_readers, match.groups(), strict=True)
                ]
                opened = OpenClaim(entitlement, named, reserved, borrowed, devices, grade, seq, at)
                return FastCore(seq, prev, claim, opened, 0, None)
            if first == plain_head and (match := plain(core)):
                seq, prev, at, claim, grade, devices, borrowed, entitlement, reserved = [
                    read_one(raw) for read_one, raw in zip(plain_readers, match.groups(), strict=True)
                ]
                opened = OpenClaim(entitlement, None, reserved, borrowed, devices, grade, seq, at)
                return FastCore(seq, prev, claim, opened, 0, None)
        except Mismatch:
            pass
        return None

    return read


def _pattern(
    cls: type[Admitted] | type[Released], steward: str, left_out: int
) -> tuple[bytes, Callable[[bytes], re.Match[bytes] | None], list[Callable[[bytes], Any]]]:
    """(first byte, matcher, readers of its groups) of the core with (`left_out` 0) or without its optional fields."""
    steps = [step for step in LAYOUTS[cls].steps if not (left_out and step[1] is not None and step[1].optional)]
    first = bytes((0xA0 | len(steps),))
    pattern = re.escape(first)
    readers: list[Callable[[bytes], Any]] = []
    for key, item, constant in steps:
        pattern += re.escape(key)
        if item is None:
            pattern += re.escape(constant)
        elif item.name == "steward":
            pattern += re.escape(encode_text(steward))
        else:
            assert item.kind.pattern is not None
            pattern += item.kind.pattern
            readers.append(item.kind.read)
    return first, re.compile(pattern, re.DOTALL).fullmatch, readers
