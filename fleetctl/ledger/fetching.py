"""What a witness gives back of the entries it was shown, as a function from bytes to bytes.

Who asks proves to be the steward: entries name tenants and people, and a witness is open to whoever reaches it. The request is a
statement by the steward's key (`kid` = steward) over `{witness_fetch: "1", ledger, steward, witness, start, at_ms}`; the answer is
a CBOR sequence of the sealed entries from `start` on, as many as one answer holds, none when there are none. The asker verifies
them as anybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.cbor import encode
from fleetctl.ledger.fields import IDENTIFIER, LEDGER, UINT
from fleetctl.ledger.identifiers import LedgerId, steward_of
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.ledger.receipts import SKEW_MS
from fleetctl.ledger.statement import BadStatement, Statement, read_statement, seal_statement
from fleetctl.ledger.witness import MAX_BODY, MAX_ENTRIES, Outcome, Stewards

MAX_FETCH = 4 * 1024
"""Bytes of one request."""
MAX_FETCHED = MAX_BODY + cose.MAX_FRAME
"""Bytes of one answer: entries until MAX_BODY is passed."""

FIELDS = {"ledger": LEDGER, "steward": IDENTIFIER, "witness": IDENTIFIER, "start": UINT, "at_ms": UINT}

Kept = Callable[[LedgerId, int, int], Sequence[bytes]]
"""The entries of a ledger that a witness keeps: `kept(ledger, start, most)`, without a gap from `start` on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    ledger: LedgerId
    steward: str
    witness: str
    start: int
    at_ms: int


def seal_fetch(ledger: LedgerId, *, start: int, witness: str, at_ms: int, signer: Signer) -> bytes:
    """The request for the entries of `ledger` from `start` on, by its steward."""
    core = {
        "witness_fetch": "1",
        "ledger": ledger,
        "steward": signer.kid,
        "witness": witness,
        "start": start,
        "at_ms": at_ms,
    }
    return seal_statement(core, signer)


def fetched(body: bytes, *, witness: str, stewards: Stewards, kept: Kept, now_ms: int) -> Outcome:
    """What the witness of this id answers. Never raises for anything in `body`.

    400 unreadable · 404 ledger unknown · 403 not signed by the ledger's steward, for this witness, within SKEW_MS of now · 200.
    """
    try:
        asked, statement = _read(body)
    except BadStatement as error:
        return _refused(400, "unreadable", str(error))
    keys: Sequence[PublicKey] = stewards.get(steward_of(asked.ledger), ())
    if not keys:
        return _refused(404, "unknown-ledger", "no key of this ledger's steward was given to this witness")
    if (asked.steward, asked.witness) != (steward_of(asked.ledger), witness) or statement.kid != asked.steward:
        return _refused(403, "not-authentic", "the request is another steward's, or for another witness")
    if not any(map(statement.signed_by, keys)):
        return _refused(403, "not-authentic", "the request is not signed with a key of the ledger's steward")
    if abs(asked.at_ms - now_ms) > SKEW_MS:
        return _refused(403, "not-authentic", f"the request's time is more than {SKEW_MS // 1_000} s from this clock's")
    return Outcome(status=200, code="entries", body=_within_bounds(kept(asked.ledger, asked.start, MAX_ENTRIES)))


def split(data: bytes) -> list[bytes]:
    """The sealed entries of a CBOR sequence. Raises `cose.BadEnvelope` for anything that is none."""
    entries, offset = [], 0
    while offset < len(data):
        end = cose.read(data, offset).end
        entries.append(data[offset:end])
        offset = end
    return entries


def _within_bounds(entries: Sequence[bytes]) -> bytes:
    taken, size = [], 0
    for entry in entries:
        taken.append(entry)
        size += len(entry)
        if size >= MAX_BODY:
            break
    return b"".join(taken)


def _read(body: bytes) -> tuple[_Asked, Statement]:
    statement = read_statement(body, max_bytes=MAX_FETCH)
    core = statement.core
    if core.keys() != {"witness_fetch", *FIELDS} or core["witness_fetch"] != "1":
        raise BadStatement("its core is not that of a request for entries")
    for name, kind in FIELDS.items():
        if why := kind.check(core[name]):
            raise BadStatement(f"`{name}` {why}")
    return _Asked(
        ledger=LedgerId(cast(str, core["ledger"])),
        steward=cast(str, core["steward"]),
        witness=cast(str, core["witness"]),
        start=cast(int, core["start"]),
        at_ms=cast(int, core["at_ms"]),
    ), statement


def _refused(status: int, name: str, detail: str) -> Outcome:
    return Outcome(status=status, code=name, body=encode({"error": name, "detail": detail}))
