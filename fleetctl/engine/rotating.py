"""Rotation of the entitlement ledger [ours, readings A05]: one window is closed and the next begins, in one transaction.

1 the witness, if it answers, is not ahead of us     2 open the write transaction: state, journal and ledger are what was sealed
3 the rotation is due, or its danger is accepted      4 a new ledger that no window ever had
5 release each open claim at its figure so far        6 append `rotated`; close the old ledger
7 open the new one with what is left of each claim    8 reservations and reports go with their claims
9 commit                                             10 witness both ledgers and the journal
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

from fleetctl.diagnostics import code
from fleetctl.engine.apply import UNACCEPTED_DANGER, WITNESS_MISSING
from fleetctl.engine.claims import tree_state
from fleetctl.engine.context import META_STREAM, Engine, check_identity, check_open, journal_stream
from fleetctl.engine.continuing import used_before
from fleetctl.engine.indexes import check_quotas
from fleetctl.engine.journal import append_sealed, sealing_time, write_journal
from fleetctl.engine.receipts import Witnessed
from fleetctl.engine.state import check_state, digests_of, load_snapshot
from fleetctl.engine.streams import Usages, last_usage_at_ms, opening_note, read_usages, verify_stream
from fleetctl.engine.windows import WindowState, early_rotation, window_state
from fleetctl.engine.witnessing import refuse_rollback, witness_heads
from fleetctl.errors import BadInput, EngineRefused, SafetyRefused, WitnessMissing
from fleetctl.frozen import dataclass
from fleetctl.ledger.chain import Head, Sealed, empty, genesis, seal
from fleetctl.ledger.checkpoint import seal_checkpoint
from fleetctl.ledger.entries import Admitted, Event, Released, Rotated
from fleetctl.ledger.identifiers import Grade, LedgerId, check_identifier
from fleetctl.ledger.usage import OpenClaim
from fleetctl.ledger.windows import numbered, readmitted, remainder, stream_name, successor, window_name
from fleetctl.model.operational import ClaimRow, WorkReport
from fleetctl.pool1.tree import TreeState
from fleetctl.ports import Reader, Writer
from fleetctl.units import UnixMs

WINDOW_USED = code(
    "window-used",
    "The ledger had a window of this name",
    trigger="`ledger rotate --window NAME` with the name of a window that there was before, since a closed ledger is never opened again, or by which another one is called",
    engine_code="CONFLICT",
)
WAIT_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """One claim that went on: what the old window was charged, and what is left of it in the new one."""

    claim: str
    successor: str
    entitlement: str
    spent_uj: int
    grade: Grade
    reserved_uj: int
    borrowed_uj: int
    devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """What a rotation did. `closed` is the old ledger's head, `opened` the new one's, `entry` the journal's; `early` was accepted."""

    closed: Head
    opened: Head
    entry: int
    at_ms: UnixMs
    early: bool
    claims: tuple[Carried, ...]
    witnessed: Witnessed = Witnessed(grade="self-attested")


class RotatedUnwitnessed(WitnessMissing):
    """Rotated and committed; `rotation` says what is and what is missing."""

    def __init__(self, rotation: Rotation) -> None:
        super().__init__(
            WITNESS_MISSING.at(
                f"{rotation.closed.ledger} is closed by journal entry {rotation.entry}, and the ledgers are "
                f"{rotation.witnessed.grade}; finish it with `fleetctl ledger witness` once the witness answers"
            )
        )
        self.rotation = rotation


def rotate(
    engine: Engine,
    *,
    window: str | None = None,
    accept: Iterable[str] = (),
    require_witness: bool = False,
    wait_ms: int = WAIT_MS,
) -> Rotation:
    """Close the window in force and begin the next, `window` or one named by its time.

    `accept` are ids of dangers. Raises SafetyRefused for an early rotation that is not accepted and where a witness knows more
    than this state, EngineRefused for a name that was used, BadInput for one that cannot be, Tampered, Busy; RotatedUnwitnessed
    after the commit, with the rotation.
    """
    if window is not None:
        check_identifier(window, "window")
        check_identifier(stream_name(window), "stream")
    with engine.store.read() as reader:
        check_identity(engine, reader)
    refuse_rollback(engine)  # step 1
    with engine.store.write(wait_ms) as tx:  # step 2
        done = _under_lock(engine, tx, window, tuple(accept))
    done = replace(done, witnessed=witness_heads(engine))  # step 10
    if not done.witnessed.enough(at_least=int(require_witness)):
        raise RotatedUnwitnessed(done)
    return done


def _under_lock(engine: Engine, tx: Writer, window: str | None, accept: tuple[str, ...]) -> Rotation:
    check_open(tx)
    verify_stream(engine, tx, journal_stream(tx))
    usages = read_usages(engine, tx)
    snapshot = load_snapshot(engine, tx, usages)
    state = check_state(engine, tx, digests_of(snapshot.objects))
    check_quotas(snapshot)
    now = UnixMs(max(sealing_time(engine, tx), last_usage_at_ms(engine, tx, usages)))
    windows = window_state(engine, tx, snapshot.objects.values())
    early = _check_due(windows, usages, accept, now)  # step 3
    stream = _new_stream(tx, windows, window, now)  # step 4
    ledger = engine.ledger(stream)
    _keep_evidence(engine, tx, usages)
    released, admitted, carried = _moves(engine, tx, usages, tree_state(snapshot.objects.values(), usages), ledger, now)
    closed = released[-1].head if released else usages.head
    entry = write_journal(  # step 6: the journal pins the old ledger as it stood before it was closed
        engine,
        tx,
        Rotated,
        state_before=state,
        state_after=state,
        at_ms=now,
        from_ledger=usages.head.ledger,
        from_length=closed.length,
        from_head=closed.address,
        to_ledger=ledger,
    )
    journal = journal_stream(tx)
    found = tx.stream(journal)
    assert found is not None, "the journal was just written"
    tx.set_meta(opening_note(stream), f"{journal}/{found.length - 1}")
    tx.set_meta(META_STREAM, stream)
    tx.open_stream(stream, ledger, genesis(ledger))
    if released:
        append_sealed(tx, usages.stream, *released)  # step 5
        append_sealed(tx, stream, *admitted)  # step 7
        tx.put_claims(_rows(usages, carried, released, admitted, stream))
    tx.close_stream(usages.stream)
    _take_along(tx, usages.stream, stream, carried)  # step 8
    return Rotation(
        closed=closed,
        opened=admitted[-1].head if admitted else empty(ledger),
        entry=entry,
        at_ms=now,
        early=early,
        claims=carried,
    )


def _check_due(windows: WindowState, usages: Usages, accept: tuple[str, ...], now: int) -> bool:
    """Step 3: whether the rotation is early. Raises SafetyRefused when nobody accepted that."""
    spent = sum(use.spent_uj for use in usages.entitlements.values())
    danger = early_rotation(windows, now, spent)
    if danger is None or danger.id in accept:
        return danger is not None
    slip = f" ({', '.join(f'`{id}`' for id in sorted(accept))} is no danger of it)" if accept else ""
    raise SafetyRefused(
        UNACCEPTED_DANGER.at(
            f"{danger.id}: {danger.detail}. Refused because nobody accepted it{slip}; wait, or accept it with "
            f"`--accept {danger.id}`",
            subject=danger.subject,
        )
    )


def _new_stream(reader: Reader, windows: WindowState, window: str | None, now: int) -> str:
    """Step 4. Raises EngineRefused for a name that was used."""
    used = {item.stream for item in reader.streams()} | {span.stream for span in windows.spans}
    called = used.union(span.name for span in windows.spans)
    if window is not None:
        stream = stream_name(window)
        if stream in used:
            _refuse_name(stream, f"{stream} was a window of this ledger, which is closed for good")
        if clash := called & {window, stream}:
            _refuse_name(stream, f"another window of this ledger is called {clash.pop()}, and no name stands for two")
        return stream
    shortest = min((item.period_ms for item in windows.periods), default=None)
    return numbered(stream_name(window_name(now, shortest)), called.__contains__)


def _refuse_name(stream: str, why: str) -> NoReturn:
    mend = "give another name, or none to have it named by its time"
    raise EngineRefused(WINDOW_USED.at(f"{why}; {mend}", subject=f"ledger/{stream}"))


def _keep_evidence(engine: Engine, tx: Writer, usages: Usages) -> None:
    """Keep a checkpoint of the window as it was before its claims were moved: estimates derive from it in later windows."""
    try:
        tx.put_checkpoint(usages.stream, usages.head.length, seal_checkpoint(usages.verification, engine.sealing()))
    except BadInput:  # sums that cannot be sealed: it is read from its entries
        return


def _moves(
    engine: Engine, tx: Writer, usages: Usages, state: TreeState, ledger: LedgerId, now: UnixMs
) -> tuple[list[Sealed], list[Sealed], tuple[Carried, ...]]:
    """Steps 5 and 7, sealed and not yet written: releases in the old ledger, admissions in the new one, in one order."""
    signer, old, new = engine.sealing(), usages.head, empty(ledger)
    released, admitted = list[Sealed](), list[Sealed]()
    carried = list[Carried]()
    reserved: dict[str, int] = {}
    taken: set[str] = set()
    reports = {item.claim: item for item in tx.reports(usages.stream)}

    def is_taken(id: str) -> bool:
        return id in taken or usages.fold.is_used(id) or used_before(tx, usages.stream, id) is not None

    def sealed(event: Event, onto: list[Sealed], start: Head) -> None:
        onto.append(seal(event, onto[-1].head if onto else start, signer))

    for claim, opened in sorted(usages.fold.open_claims.items(), key=lambda item: item[1].seq):
        spent, grade = _figure_so_far(reports.get(claim), usages)
        name = successor(claim, carried=usages.fold.is_carried(claim), is_taken=is_taken)
        taken.add(name)
        left, _ = remainder(opened, spent, grade)
        before = reserved.get(opened.entitlement, 0)
        reserved[opened.entitlement] = before + left
        above = _above(state, opened, before + left) - _above(state, opened, before)
        event = readmitted(name, opened, spent_uj=spent, grade=grade, above_guarantee_uj=above, at_ms=now)
        sealed(Released(at_ms=now, claim=claim, spent_uj=spent, grade=grade), released, old)
        sealed(event, admitted, new)
        carried.append(_carried(claim, event, spent, grade))
    return released, admitted, tuple(carried)


def _figure_so_far(said: WorkReport | None, usages: Usages) -> tuple[int, Grade]:
    """What was reported of a claim in this window. Of one that nobody reported on since it began nothing is known to be spent: it is
    charged nothing yet, as a guess, and keeps its whole reservation, so that what it spent is charged with its end.
    """
    began = -1 if usages.opened_by is None else usages.opened_by.at_ms
    if said is None or (said.at_ms <= began and not said.spent_uj and not said.completed_units):
        return 0, "Estimator"
    return said.spent_uj, said.grade


def _above(state: TreeState, opened: OpenClaim, used_uj: int) -> int:
    """What of a usage lies past the entitlement's guarantee; all of it when it left the tree."""
    node = state.nodes.get(opened.entitlement)
    return max(0, used_uj - (0 if node is None else node.guarantee_uj))


def _carried(claim: str, event: Admitted, spent_uj: int, grade: Grade) -> Carried:
    return Carried(
        claim=claim,
        successor=event.claim,
        entitlement=event.entitlement,
        spent_uj=spent_uj,
        grade=grade,
        reserved_uj=event.reserved_uj,
        borrowed_uj=event.borrowed_uj,
        devices=event.devices,
    )


def _rows(
    usages: Usages, carried: Iterable[Carried], released: list[Sealed], admitted: list[Sealed], stream: str
) -> Iterable[ClaimRow]:
    for item, gone, come in zip(carried, released, admitted, strict=True):
        yield ClaimRow(
            stream=usages.stream,
            claim=item.claim,
            entitlement=item.entitlement,
            admitted_at=usages.fold.open_claims[item.claim].seq,
            released_at=gone.seq,
        )
        yield ClaimRow(stream=stream, claim=item.successor, entitlement=item.entitlement, admitted_at=come.seq)


def _take_along(tx: Writer, old: str, new: str, carried: Iterable[Carried]) -> None:
    """Step 8. The old report stays, as what the closed window has of the claim; the new one starts from 0 and keeps what was last seen."""
    names = {item.claim: item.successor for item in carried}
    for held in list(tx.reservations()):
        if held.state == "active" and held.claim in names:
            tx.put_reservation(replace(held, claim=names[held.claim]))
    for said in list(tx.reports(old)):
        if said.claim in names:
            tx.put_report(replace(said, stream=new, claim=names[said.claim], completed_units=0, spent_uj=0))
