"""The ledgers as they stand: heads, journal events, and usage resumed from the newest checkpoint.

Nothing here is believed: what is read is verified under the configured key before anything is derived from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from fleetctl.diagnostics import code
from fleetctl.engine.context import ENTITLEMENTS, JOURNAL, Engine, journal_stream, usage_stream
from fleetctl.errors import BadInput, NotVerified, Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.cbor import encode_text
from fleetctl.ledger.chain import Head, address_of, empty, genesis
from fleetctl.ledger.checkpoint import open_checkpoint, seal_checkpoint
from fleetctl.ledger.entries import Admitted, BadCore, Event, JournalEvent, Recovered, Released, Rotated, decode_core
from fleetctl.ledger.identifiers import LedgerId, kind_of, stream_of
from fleetctl.ledger.keys import verifies
from fleetctl.ledger.usage import Fold, claims_digest
from fleetctl.ledger.verify import Start, Verification, examine_from
from fleetctl.ledger.windows import carried_count
from fleetctl.model.operational import ClaimRow
from fleetctl.model.usage import EntitlementUse
from fleetctl.ports import Reader, Writer

LEDGER_TAMPERED = code(
    "ledger-tampered",
    "A stored ledger is not what was sealed",
    trigger="stored entries do not verify, or end at another head than the store says",
    exit_code=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usages:
    """The fold of the entitlement stream in force: figures by entitlement, and the fold itself to go on from."""

    stream: str
    head: Head
    fold: Fold
    entitlements: Mapping[str, EntitlementUse]
    verification: Verification
    opened_by: Rotated | None = None
    """The rotation that the window began with; None for the first."""

    @property
    def carried(self) -> int:
        """How many of its first entries re-admit what went on from the window before."""
        return 0 if self.opened_by is None else carried_count(self.opened_by)


def head_of(engine: Engine, reader: Reader, stream: str) -> Head:
    """Where a stream stands by the store's own word. Raises Tampered when it is not there."""
    found = reader.stream(stream)
    if found is None:
        mend = "restore a backup with `fleetctl state restore`, then run `fleetctl ledger recover`"
        raise Tampered(
            LEDGER_TAMPERED.at(f"the stream {stream} of engine {engine.id} is missing from its state; {mend}")
        )
    return Head(ledger=engine.ledger(stream), length=found.length, address=found.head)


def verify_stream(engine: Engine, reader: Reader, stream: str, start: Start | None = None) -> Verification:
    """Verify a stream from genesis, or from `start`, up to the head that the store states. Raises Tampered."""
    head = head_of(engine, reader, stream)
    begin = start or beginning(head.ledger, opened_by(engine, reader, stream))
    data = b"".join(reader.entries(stream, begin.length))
    try:
        found = examine_from(begin, data, key=engine.steward_key).require()
    except NotVerified as error:
        raise Tampered(LEDGER_TAMPERED.at(item.detail) for item in error.diagnostics) from None
    if found.tip != head:
        raise Tampered(
            LEDGER_TAMPERED.at(
                f"{head.ledger} ends at entry {found.length} with the head {found.head.hex()[:16]}…, the state says "
                f"{head.length} and {head.address.hex()[:16]}…"
            )
        )
    return found


def read_usages(engine: Engine, reader: Reader) -> Usages:
    """Usage of the entitlement stream in force, verified from its checkpoint or from genesis.

    Raises Tampered, also when the journal pins another stream or more of this one.
    """
    stream = usage_stream(reader)
    check_pinned(engine, reader, stream)
    rotated = opened_by(engine, reader, stream)
    start = _checkpointed(engine, reader, stream, 0 if rotated is None else carried_count(rotated))
    found = verify_stream(engine, reader, stream, start or beginning(engine.ledger(stream), rotated))
    return usages_at(stream, found, rotated)


def read_window(engine: Engine, reader: Reader, stream: str) -> Usages:
    """As `read_usages`, of any window, verified from genesis. Raises Tampered."""
    return usages_at(stream, verify_stream(engine, reader, stream), opened_by(engine, reader, stream))


def usages_at(stream: str, found: Verification, rotated: Rotated | None) -> Usages:
    """The usage that a verified entitlement stream ended in. `rotated` is the rotation that it began with."""
    fold = cast(Fold, found.fold)
    opened: dict[str, int] = {}
    for claim in fold.open_claims.values():
        opened[claim.entitlement] = opened.get(claim.entitlement, 0) + 1
    return Usages(
        stream=stream,
        head=found.tip,
        fold=fold,
        entitlements={
            name: EntitlementUse(
                spent_uj=use.spent_uj,
                reserved_uj=use.reserved_uj,
                devices=use.devices,
                open_claims=opened.get(name, 0),
            )
            for name, use in fold.usage.items()
        },
        verification=found,
        opened_by=rotated,
    )


def beginning(ledger: LedgerId, rotated: Rotated | None) -> Start:
    """The genesis of an entitlement stream that a rotation opened; None for any other stream."""
    fold = Fold(ledger, 0 if rotated is None else carried_count(rotated))
    return Start(ledger=ledger, length=0, address=genesis(ledger), fold=fold)


def keep_checkpoint(engine: Engine, tx: Writer, usages: Usages) -> None:
    """Seal a checkpoint at what was just verified, when the last one lies far enough behind and it can be sealed.

    Raises Tampered when the index of claims is not the one of the ledger: the next start would trust it.
    """
    found = usages.verification
    if found.length - found.start < engine.checkpoint_every or engine.signer is None:
        return
    used = (row.claim for row in tx.claims(usages.stream) if row.admitted_at < found.length)
    if claims_digest(found.ledger, used) != usages.fold.claims_digest:
        raise Tampered(
            LEDGER_TAMPERED.at(
                f"the index of claims of {found.ledger} is not the one of its entries; run `fleetctl state rebuild`"
            )
        )
    try:
        sealed = seal_checkpoint(found, engine.sealing())
    except BadInput:  # sums that cannot be sealed: the ledger is read from further back
        return
    tx.put_checkpoint(usages.stream, found.length, sealed)


def check_pinned(engine: Engine, reader: Reader, stream: str) -> None:
    """The entitlement stream in force is the one that the journal's last entry pins, and has all that it pins.

    Raises Tampered: a shorter or another stream would set usage back.
    """
    last = last_journal_event(engine, reader)
    if last is None:
        pinned = empty(engine.ledger(ENTITLEMENTS))
    elif isinstance(last, Rotated):
        pinned = empty(last.to_ledger)
    else:
        pinned = Head(ledger=last.ledger, length=last.ledger_length, address=last.ledger_head)
    head = head_of(engine, reader, stream)
    if pinned.ledger != head.ledger:
        raise Tampered(
            LEDGER_TAMPERED.at(f"the journal speaks of {pinned.ledger}, the state says that {head.ledger} is in force")
        )
    if isinstance(last, Rotated) and head.length < carried_count(last):
        raise Tampered(
            LEDGER_TAMPERED.at(
                f"{head.ledger} began with {carried_count(last)} claims of the window before it, and has {head.length} entries: "
                "it was cut"
            )
        )
    if pinned.length > head.length or address_at(reader, head, pinned.length) != pinned.address:
        raise Tampered(
            LEDGER_TAMPERED.at(
                f"the journal pins {pinned.ledger} at entry {pinned.length} with the head {pinned.address.hex()[:16]}…, "
                f"which the stored ledger of {head.length} entries does not have: it was cut or rewritten"
            )
        )


def _checkpointed(engine: Engine, reader: Reader, stream: str, carried: int) -> Start | None:
    """Where to start: the newest checkpoint that holds. It is a cache: one that does not hold costs time and nothing else."""
    sealed = reader.checkpoint(stream)
    if sealed is None:
        return None
    head = head_of(engine, reader, stream)
    try:
        point = open_checkpoint(sealed, ledger=head.ledger, key=engine.steward_key)
    except NotVerified:
        return None
    if point.length > head.length or address_at(reader, head, point.length) != point.head:
        return None

    def was_used(claim: str) -> bool:
        row = reader.claim(stream, claim)
        return row is not None and row.admitted_at < point.length

    return Start(ledger=head.ledger, length=point.length, address=point.head, fold=point.fold(was_used, carried))


def address_at(reader: Reader, head: Head, length: int) -> bytes | None:
    """The head that the stored stream had at `length`; None when the entry is not there or not an entry."""
    if length == 0:
        return genesis(head.ledger)
    stream = head.ledger.partition("/")[2]
    data = b"".join(reader.entries(stream, length - 1, length))
    try:
        return address_of(cose.read(data, 0).payload)
    except (cose.BadEnvelope, IndexError):
        return None


def last_event(engine: Engine, reader: Reader, stream: str) -> Event | None:
    """The newest event of a stream, its entry verified by itself. None for an empty stream. Raises Tampered."""
    head = head_of(engine, reader, stream)
    if head.length == 0:
        if head.address != genesis(head.ledger):
            raise Tampered(LEDGER_TAMPERED.at(f"{head.ledger} has no entry and a head that is not its genesis"))
        return None
    event, address = entry_at(engine, reader, stream, head.length - 1)
    if address != head.address:
        raise Tampered(LEDGER_TAMPERED.at(f"entry {head.length - 1} of {head.ledger} is not the head that is stored"))
    return event


def entry_at(engine: Engine, reader: Reader, stream: str, index: int) -> tuple[Event, bytes]:
    """One event with its entry's address, verified by itself: the steward sealed it at this place. Raises Tampered."""
    ledger = engine.ledger(stream)
    data = b"".join(reader.entries(stream, index, index + 1))
    try:
        envelope = cose.read(data, 0)
        core = decode_core(envelope.payload, kind_of(ledger))
    except (cose.BadEnvelope, BadCore, IndexError) as error:
        raise Tampered(LEDGER_TAMPERED.at(f"entry {index} of {ledger} cannot be read: {error}")) from None
    sealed = (
        envelope.end == len(data)
        and envelope.unprotected_empty
        and envelope.protected == cose.protected_header(engine.steward)
        and verifies(engine.steward_key, cose.to_be_signed(engine.steward, envelope.payload), envelope.signature)
    )
    if not sealed or core.seq != index:
        raise Tampered(LEDGER_TAMPERED.at(f"entry {index} of {ledger} is not the one that the steward sealed there"))
    return core.event, address_of(envelope.payload)


def last_journal_event(engine: Engine, reader: Reader) -> JournalEvent | None:
    """The newest journal event. Raises Tampered, also for a second journal that no recovery opened."""
    stream = journal_stream(reader)
    if stream != JOURNAL and not isinstance(entry_at(engine, reader, stream, 0)[0], Recovered):
        raise Tampered(LEDGER_TAMPERED.at(f"{engine.ledger(stream)} is no journal that a recovery opened"))
    return cast("JournalEvent | None", last_event(engine, reader, stream))


_OPENING = tuple(encode_text("event") + encode_text(kind.EVENT) for kind in (Rotated, Recovered))
"""One of them is in every entry that may open an entitlement stream; one that has it may still be another."""


def openings(engine: Engine, reader: Reader) -> Iterator[tuple[str, int, Rotated | Recovered]]:
    """(stream, index, event) of every journal entry that may have opened an entitlement stream, in every journal, in order, parsed but
    not verified. Raises Tampered.
    """
    if usage_stream(reader) == ENTITLEMENTS:  # no name is used twice, so the first window was never left
        return
    for item in reader.streams():
        if kind_of(engine.ledger(item.stream)) == "journal":
            for index, data in enumerate(reader.entries(item.stream)):
                if any(mark in data for mark in _OPENING):
                    event = _parsed(item.stream, index, data)
                    if isinstance(event, Rotated | Recovered):
                        yield item.stream, index, event


def rotations(engine: Engine, reader: Reader) -> Iterator[Rotated]:
    """Every rotation, in order, parsed but not verified. Raises Tampered."""
    return (event for _, _, event in openings(engine, reader) if isinstance(event, Rotated))


def closed_windows(engine: Engine, reader: Reader) -> list[str]:
    """The entitlement streams that rotations have closed, oldest first. Raises Tampered."""
    return [stream_of(event.from_ledger) for event in rotations(engine, reader)]


def opened_by(engine: Engine, reader: Reader, stream: str) -> Rotated | None:
    """The rotation that an entitlement stream began with, its entry verified by itself; None for the first window. Raises Tampered."""
    if stream == ENTITLEMENTS or kind_of(engine.ledger(stream)) == "journal":
        return None
    noted = (reader.meta(opening_note(stream)) or "").rpartition("/")
    if (
        noted[0] and noted[2].isdecimal() and reader.stream(noted[0]) is not None
    ):  # a note: what it names must say so itself
        found = _rotation_at(engine, reader, noted[0], int(noted[2]), stream)
        if found is not None:
            return found
    for journal, index, event in openings(engine, reader):
        if isinstance(event, Rotated) and event.to_ledger == engine.ledger(stream):
            return _rotation_at(engine, reader, journal, index, stream)
    return None


def opening_note(stream: str) -> str:
    """Under which name the state notes where the rotation is that opened a stream."""
    return f"opened/{stream}"


def _rotation_at(engine: Engine, reader: Reader, journal: str, index: int, stream: str) -> Rotated | None:
    try:
        event, _ = entry_at(engine, reader, journal, index)
    except Tampered:
        return None
    return event if isinstance(event, Rotated) and event.to_ledger == engine.ledger(stream) else None


def last_at_ms(engine: Engine, reader: Reader, stream: str) -> int:
    """The time of the newest entry, 0 for an empty stream: time never falls within a stream."""
    event = last_event(engine, reader, stream)
    return 0 if event is None else event.at_ms


def last_usage_at_ms(engine: Engine, reader: Reader, usages: Usages) -> int:
    """As `last_at_ms`, of the entitlement stream in force."""
    return last_at_ms(engine, reader, usages.stream)


def journal_events(engine: Engine, reader: Reader, stream: str, start: int = 0) -> Iterator[tuple[int, JournalEvent]]:
    """(index, event) of every journal entry from `start` on, parsed but not verified: verify the stream before believing them."""
    for index, event in events(engine, reader, stream, start):
        yield index, cast(JournalEvent, event)


def events(engine: Engine, reader: Reader, stream: str, start: int = 0) -> Iterator[tuple[int, Event]]:
    """(index, event) of every entry from `start` on. Raises Tampered for one that cannot be read."""
    for index, data in enumerate(reader.entries(stream, start), start):
        yield index, _parsed(stream, index, data)


def _parsed(stream: str, index: int, data: bytes) -> Event:
    try:
        return decode_core(cose.read(data, 0).payload, kind_of(LedgerId(f"steward/{stream}"))).event
    except (cose.BadEnvelope, BadCore, IndexError) as error:
        raise Tampered(LEDGER_TAMPERED.at(f"entry {index} of {stream} cannot be read: {error}")) from None


def usage_claims(engine: Engine, reader: Reader, stream: str) -> Iterator[ClaimRow]:
    """The index rows of every claim of a stream, open ones and ended ones."""
    rows: dict[str, ClaimRow] = {}
    for index, event in events(engine, reader, stream):
        if isinstance(event, Admitted):
            rows[event.claim] = ClaimRow(
                stream=stream, claim=event.claim, entitlement=event.entitlement, admitted_at=index
            )
        elif isinstance(event, Released):
            found = rows[event.claim]
            rows[event.claim] = ClaimRow(
                stream=stream,
                claim=found.claim,
                entitlement=found.entitlement,
                admitted_at=found.admitted_at,
                released_at=index,
            )
    yield from rows.values()
