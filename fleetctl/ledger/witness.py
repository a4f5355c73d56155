"""The witness's whole decision, as a function from bytes to bytes (ledger.md "The witness").

`advance` answers `POST /v1/witness`. The caller keeps the state: it asks for what is known through `known`, moves it by
compare-and-set from `Outcome.before` to `Outcome.after`, with the entries, in one durable transaction, and only then sends
`Outcome.body`; when the compare fails it answers `BUSY`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from fleetctl.diagnostics import code
from fleetctl.errors import SafetyRefused
from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.cbor import TooManyItems, Unreadable, Value, decode, encode
from fleetctl.ledger.chain import Head, empty
from fleetctl.ledger.fields import DIGEST, LEDGER, UINT
from fleetctl.ledger.identifiers import LedgerId, steward_of
from fleetctl.ledger.keys import PublicKey, Signer, verifies
from fleetctl.ledger.receipts import issue
from fleetctl.ledger.usage import Fold
from fleetctl.ledger.verify import Start, Verification, examine_from

MAX_BODY = 1024 * 1024
MAX_ENTRIES = 1_000
_MAX_ITEMS = 20_000

OWN_KEY = code(
    "witness-holds-own-key",
    "A witness may not countersign with a steward's key",
    trigger="a witness roster in which a steward's key is the witness's own",
    exit_code=3,
)

Stewards = Mapping[str, Sequence[PublicKey]]
"""The roster: the keys of every steward that this witness trusts, by identifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the witness last signed for a ledger. `key` is the steward's key that the ledger is held to."""

    length: int
    head: bytes
    receipt: bytes
    at_ms: int
    key: PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A parsed request: the sealed entries after (`old_length`, `old_head`)."""

    ledger: LedgerId
    old_length: int
    old_head: bytes
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An HTTP status and body. `code` is `receipt` or the refusal's.

    With 200, `after` replaces `before` (None: nothing known) before the body is sent, and `entries`, the first of which has the
    index `start`, are kept with it. `evidence` is to be kept whatever happens next.
    """

    status: int
    code: str
    body: bytes
    ledger: LedgerId | None = None
    before: Known | None = None
    after: Known | None = None
    start: int = 0
    entries: tuple[bytes, ...] = ()
    evidence: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal's body as a client reads it. `index` is an entry's; `length`, `head` and `receipt` are what the witness knows."""

    error: str
    detail: str
    index: int | None = None
    length: int | None = None
    head: bytes | None = None
    receipt: bytes | None = None


def build_request(head: Head, entries: Sequence[bytes]) -> bytes:
    """The body that asks to move from `head` over `entries`; the caller sends at most MAX_ENTRIES and MAX_BODY at once."""
    return encode(
        {"ledger": head.ledger, "old_length": head.length, "old_head": head.address, "entries": list(entries)}
    )


def chunks(entries: Sequence[bytes]) -> list[list[bytes]]:
    """`entries` in runs that each fit one request; every run is a legal advance. One empty run when there is nothing to send."""
    runs: list[list[bytes]] = [[]]
    room = MAX_BODY - 1_024
    for entry in entries:
        if runs[-1] and (len(runs[-1]) == MAX_ENTRIES or room < len(entry) + 8):
            runs.append([])
            room = MAX_BODY - 1_024
        runs[-1].append(entry)
        room -= len(entry) + 8
    return runs


def parse_refusal(body: bytes) -> Refusal:
    """A refusal from its body. Raises ValueError for anything else."""
    core = decode(body)
    if not isinstance(core, dict) or core.keys() - set(Refusal.__slots__):
        raise ValueError("the answer is not a refusal")
    types = {"index": int, "length": int, "head": bytes, "receipt": bytes, "error": str, "detail": str}
    if not {"error", "detail"} <= core.keys() or any(not isinstance(core[key], types[key]) for key in core):
        raise ValueError("the answer is not a refusal")
    return Refusal(**cast("dict[str, Any]", core))


def check_roster(stewards: Stewards, own: PublicKey) -> None:
    """Raises SafetyRefused when the witness's own key is any steward's (pool/1 §6.7): its word would establish nothing."""
    for steward, keys in stewards.items():
        if own in keys:
            raise SafetyRefused(
                OWN_KEY.at(f"the key of {steward} is this witness's own; give the witness a key that no steward holds")
            )


BUSY = Outcome(
    status=429,
    code="busy",
    body=encode({"error": "busy", "detail": "another request moved this ledger first; send it again"}),
)


class _Refused(Exception):
    def __init__(self, status: int, name: str, detail: str, **more: Value) -> None:
        self.status, self.name = status, name
        self.body = encode({"error": name, "detail": detail, **more})
        super().__init__(detail)


def advance(
    body: bytes,
    *,
    stewards: Stewards,
    known: Callable[[LedgerId], Known | None],
    signer: Signer,
    now_ms: int,
) -> Outcome:
    """What the witness answers to `body`. Never raises for anything in it.

    The checks run in this order: 400 unreadable, 413 too large · 404 ledger unknown · 403 an entry is not authentically the steward's ·
    422 the entries do not link · 200 what was already signed · 422 same length, other head · 409 not from what is known · 200.
    """
    try:
        request = read_request(body)
        return _decide(request, stewards, known(request.ledger), signer, now_ms)
    except _Refused as refused:
        return Outcome(status=refused.status, code=refused.name, body=refused.body)


def read_request(body: bytes) -> Request:
    """The request in `body`. Raises the 400 or 413 that `advance` answers with."""
    if len(body) > MAX_BODY:
        raise _Refused(413, "too-large", f"the body is over {MAX_BODY} bytes; send fewer entries at once")
    try:
        core = decode(body, max_items=_MAX_ITEMS)
    except TooManyItems:
        raise _Refused(413, "too-large", f"over {MAX_ENTRIES} entries; send fewer at once") from None
    except Unreadable as error:
        raise _Refused(400, "unreadable", str(error)) from None
    if not isinstance(core, dict) or core.keys() != {"ledger", "old_length", "old_head", "entries"}:
        raise _Refused(400, "unreadable", "the body is not a map of ledger, old_length, old_head, entries")
    entries = core["entries"]
    for name, kind in (("ledger", LEDGER), ("old_length", UINT), ("old_head", DIGEST)):
        why = kind.check(core[name])
        if why:
            raise _Refused(400, "unreadable", f"`{name}` {why}")
    if not isinstance(entries, list) or not all(isinstance(entry, bytes) for entry in entries):
        raise _Refused(400, "unreadable", "`entries` is not an array of byte strings")
    if len(entries) > MAX_ENTRIES:
        raise _Refused(413, "too-large", f"over {MAX_ENTRIES} entries; send fewer at once")
    return Request(
        ledger=LedgerId(cast(str, core["ledger"])),
        old_length=cast(int, core["old_length"]),
        old_head=cast(bytes, core["old_head"]),
        entries=tuple(cast("list[bytes]", entries)),
    )


def _decide(request: Request, stewards: Stewards, before: Known | None, signer: Signer, now_ms: int) -> Outcome:
    keys = stewards.get(steward_of(request.ledger), ())
    if not keys:
        raise _Refused(404, "unknown-ledger", f"no key of the steward of {request.ledger} was given to this witness")
    key = before.key if before else _key_for(request, keys)
    walk = _checked(request, key)
    start = empty(request.ledger)
    at = (before.length, before.head) if before else (start.length, start.address)
    result = (walk.length, walk.head)
    if before and result != at and walk.length == before.length:
        return _contradiction(request, before)
    if result != at and (request.old_length, request.old_head) != at:
        detail = f"this witness knows the ledger at length {at[0]}, the request starts from {request.old_length}"
        receipt: dict[str, Value] = {"receipt": before.receipt} if before else {}
        raise _Refused(409, "not-from-known", detail, length=at[0], head=at[1], **receipt)
    at_ms = max(now_ms, before.at_ms if before else 0)
    head = Head(ledger=request.ledger, length=walk.length, address=walk.head)
    signed = issue(head, at_ms=at_ms, signer=signer)
    after = Known(length=head.length, head=head.address, receipt=signed, at_ms=at_ms, key=key)
    return Outcome(
        status=200,
        code="receipt",
        body=signed,
        ledger=request.ledger,
        before=before,
        after=after,
        start=request.old_length,
        entries=request.entries,
    )


def _key_for(request: Request, keys: Sequence[PublicKey]) -> PublicKey:
    """The one of the steward's keys that a ledger not seen before is sealed with."""
    kid = steward_of(request.ledger)
    if len(keys) > 1 and request.entries:
        try:
            envelope = cose.read(request.entries[0], 0)
        except cose.BadEnvelope:
            return keys[0]
        message = cose.to_be_signed(kid, envelope.payload)
        return next((key for key in keys if verifies(key, message, envelope.signature)), keys[0])
    return keys[0]


def _checked(request: Request, key: PublicKey) -> Verification:
    """The entries, authentic and linked. Claims are not the witness's matter: it attests the sequence, not the decisions (pool/1 §8)."""
    for index, entry in enumerate(request.entries):
        try:
            whole = cose.read(entry, 0).end == len(entry)
        except cose.BadEnvelope:
            whole = False
        if not whole:
            at = request.old_length + index
            raise _Refused(403, "not-authentic", f"entry {at} is not one sealed entry", index=at)
    start = Start(ledger=request.ledger, length=request.old_length, address=request.old_head, fold=Fold(request.ledger))
    walk = examine_from(start, b"".join(request.entries), key=key, processes=1)
    fault = walk.first.get("authenticity")
    if fault:
        raise _Refused(403, "not-authentic", f"{fault.code}: {fault.detail}", index=fault.index)
    fault = walk.first.get("canonicity") or walk.first.get("sequence")
    if fault:
        raise _Refused(422, "not-linked", f"{fault.code}: {fault.detail}", index=fault.index)
    return walk


def _contradiction(request: Request, before: Known) -> Outcome:
    """Two heads of one length. With entries the steward has signed both, and the evidence is kept."""
    known: dict[str, Value] = {"length": before.length, "head": before.head, "receipt": before.receipt}
    detail = "this witness has signed another head at this length: one of the two histories was rewritten"
    evidence = None
    if request.entries:
        evidence = encode({"ledger": request.ledger, "entries": list(request.entries), **known})
    body = encode({"error": "contradiction", "detail": detail, **known})
    return Outcome(status=422, code="contradiction", body=body, ledger=request.ledger, before=before, evidence=evidence)
