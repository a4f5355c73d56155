"""Recovery of an engine whose ledgers are behind what a witness signed (ledger.md, "The witness").

What can be had is verified, appended and folded in one transaction. What nobody has is given up by name: the old stream is closed as
it is, and a new one begins, with the lost head and the receipts as evidence in a `recovered` entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Literal

from fleetctl.diagnostics import code
from fleetctl.engine.context import META_JOURNAL, META_STREAM, Engine, check_identity, journal_stream, usage_stream
from fleetctl.engine.journal import keep_document
from fleetctl.engine.journals import parts
from fleetctl.engine.rebuild import rebuild_in
from fleetctl.engine.receipts import Witnessed, stored_receipt
from fleetctl.engine.reopening import reopen
from fleetctl.engine.settling import settle, unheld
from fleetctl.engine.stands import KINDS, Kind, Replica, Stand, Survey
from fleetctl.engine.streams import read_usages, verify_stream
from fleetctl.engine.survey import survey
from fleetctl.engine.witnessing import witness_heads
from fleetctl.errors import SafetyRefused, Stale, Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.chain import genesis
from fleetctl.ledger.documents import DOCUMENT_MISSING
from fleetctl.ports import Writer

UNACCEPTED_LOSS = code(
    "unaccepted-loss",
    "A recovery would give up entries of a ledger, and nobody accepted that",
    trigger="`ledger recover` where a witness signed entries that no source has, or another history, without `--accept` of the danger",
    exit_code=3,
)
RECOVERY_OVERTAKEN = code(
    "recovery-overtaken",
    "The ledgers moved while a recovery looked at them",
    trigger="another command appended to the engine between the survey of `ledger recover` and its transaction",
    exit_code=4,
)
WAIT_MS = 60_000
LOSE_ENTRIES = "lose-entries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something that a recovery gives up. `id` is what accepts it: `lose-entries:ledger/journal`."""

    id: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Regained:
    """Entries that a stream got back. `length` is what it had and `whole` what it has; `sources` are those that handed them over."""

    ledger: str
    length: int
    whole: int
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a recovery did. `place` is the journal entry `recovered`, absent where nothing was given up."""

    result: Literal["nothing-to-do", "recovered", "reopened"]
    regained: tuple[Regained, ...] = ()
    documents: int = 0
    given_up: tuple[Loss, ...] = ()
    opened: tuple[str, ...] = ()
    """Ids of the new ledgers."""
    place: int | None = None
    ended: tuple[str, ...] = ()
    """Reservations that ended because the ledger says that their claim did."""
    unheld: tuple[str, ...] = ()
    """Open claims of reservations that this state does not know any more: they are released by hand."""
    notes: tuple[str, ...] = ()
    witnessed: Witnessed = field(default_factory=lambda: Witnessed(grade="self-attested"))


def recover(
    engine: Engine, replicas: Sequence[Replica] = (), *, accept: Iterable[str] = (), wait_ms: int = WAIT_MS
) -> Recovery:
    """Bring the ledgers to what witnesses and replicas say, all of it or nothing. `accept` are ids of losses that are agreed to.

    Raises SafetyRefused for a loss that nobody accepted, NotVerified for a replica that holds another history, Tampered when what was
    found does not fold to what was sealed, Stale when the ledgers moved meanwhile, Busy.
    """
    found = survey(engine, replicas)
    if found.nothing:
        return Recovery(result="nothing-to-do", notes=found.notes)
    losses = tuple(_loss(kind, found.lost(kind)) for kind in KINDS if found.lost(kind))
    _check_accepted(losses, set(accept), found.notes)
    if found.undocumented:
        raise Tampered(
            DOCUMENT_MISSING.at(
                f"entries of this state name {len(found.undocumented)} document(s) that are not here, such as "
                f"{found.undocumented[0]}; give a replica that has them with --from"
            )
        )
    with engine.store.write(wait_ms) as tx:
        check_identity(engine, tx)
        if tuple(tx.streams()) != found.heads:
            raise Stale(
                RECOVERY_OVERTAKEN.at("another command appended something; run `fleetctl ledger recover` again")
            )
        done = _under_lock(engine, tx, found, losses)
    return replace(done, notes=found.notes, witnessed=witness_heads(engine))


def _check_accepted(losses: Sequence[Loss], accepted: set[str], notes: Sequence[str]) -> None:
    refused = [item for item in losses if item.id not in accepted]
    if refused:
        also = f". Said on the way: {'; '.join(notes)}" if notes else ""
        raise SafetyRefused(
            UNACCEPTED_LOSS.at(
                f"{item.id}: {item.detail}{also}. Give a replica that has the entries with --from (an exported bundle, or an exported "
                f"ledger), or give them up for good with `--accept {item.id}`"
            )
            for item in refused
        )


def _loss(kind: Kind, stands: Sequence[Stand]) -> Loss:
    said = [
        f"{item.who} has {item.head.ledger} at {item.head.length}: {item.why}"
        for stand in stands
        for item in stand.missing
    ]
    whole = ", ".join(f"{stand.whole.ledger} at {stand.whole.length}" for stand in stands)
    after = {
        "journal": "A new journal goes on from there: what was applied behind it is lost, and live objects are as they were then",
        "entitlements": "A new ledger begins with the claims that are open there, and what was spent does not count any more",
    }[kind]
    return Loss(
        id=f"{LOSE_ENTRIES}:ledger/{kind}",
        detail=f"{'; '.join(dict.fromkeys(said))}. What can be had is {whole}. {after}",
    )


# ------------------------------------------------------------------------------------------- in the transaction


def _under_lock(engine: Engine, tx: Writer, found: Survey, losses: tuple[Loss, ...]) -> Recovery:
    new_from = parts(engine, tx)[-1].start + found.stands[0].kept.length
    for content in found.documents.values():
        keep_document(tx, content)
    regained = tuple(item for stand in found.stands if (item := _append(engine, tx, stand)) is not None)
    _put_in_force(tx, found)
    rebuild_in(engine, tx, new_from)
    opened: tuple[str, ...] = ()
    place = None
    if losses:
        opened, place = reopen(engine, tx, found, [item.id for item in losses])
        rebuild_in(engine, tx)
    usages = read_usages(engine, tx)
    ended = settle(engine, tx, usages.fold)
    return Recovery(
        result="reopened" if losses else "recovered",
        regained=regained,
        documents=len(found.documents),
        given_up=losses,
        opened=opened,
        place=place,
        ended=ended,
        unheld=unheld(tx, usages.fold),
    )


def _append(engine: Engine, tx: Writer, stand: Stand) -> Regained | None:
    """Make a stream what it is with all that was found, and verify it from genesis. None when it was so already."""
    ledger, stored = engine.ledger(stand.stream), tx.stream(stand.stream)
    if stored is None:
        tx.open_stream(stand.stream, ledger, genesis(ledger))
    elif (stored.length, stored.head) != (stand.kept.length, stand.kept.address):
        tx.rewind(stand.stream, stand.kept.length, stand.kept.address)
    elif not stand.added:
        if stand.closed and not stored.closed:
            tx.close_stream(stand.stream)
        return None
    elif stored.closed:
        tx.rewind(stand.stream, stored.length, stored.head)
    if stand.added:
        tx.append(
            stand.stream,
            expected_length=stand.kept.length,
            expected_head=stand.kept.address,
            entries=[(piece.sealed, piece.address) for piece in stand.added],
        )
    assert verify_stream(engine, tx, stand.stream).tip == stand.whole, "what is appended is what was surveyed"
    for sealed in stand.receipts:
        tx.put_receipt(stored_receipt(stand.stream, sealed))
    if stand.closed:
        tx.close_stream(stand.stream)
    return Regained(
        ledger=ledger,
        length=stand.kept.length,
        whole=stand.whole.length,
        sources=tuple(sorted({piece.whose for piece in stand.added})),
    )


def _put_in_force(tx: Writer, found: Survey) -> None:
    """The last journal, and the last stream of usage that it speaks of."""
    in_force = found.stands[-1].stream
    if usage_stream(tx) != in_force:
        tx.set_meta(META_STREAM, in_force)
    if journal_stream(tx) != found.journal_in_force:
        tx.set_meta(META_JOURNAL, found.journal_in_force)
