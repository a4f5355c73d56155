"""Apply: one command that runs a saved plan and recomputes none of it. The steps are those of the design, numbered.

 1 read and check the file · 2 it is for this engine and this fleet · 3 required signatures · 4 the witness is not ahead of us
 5 open the write transaction · 6 the live state and the ledger are what was sealed · 7 already applied?
 8 every precondition holds · 9 dangers again · 10 decide and write · 11 append `applied`, keep the documents
12 commit · 13 witness both heads · 14 the receipt
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NoReturn

from fleetctl.canonical import Digest, canonical_bytes, is_digest
from fleetctl.capacity.decide import Actor, decide
from fleetctl.capacity.working import Working
from fleetctl.diagnostics import Diagnostic, code
from fleetctl.engine.context import Engine, check_identity, check_open, journal_stream
from fleetctl.engine.indexes import applied_as, check_absences, check_quotas, check_record
from fleetctl.engine.journal import keep_document, sealing_time, write_journal
from fleetctl.engine.preconditions import FOREIGN_PLAN, STALE_PLAN, check_operations, check_source
from fleetctl.engine.receipts import Witnessed
from fleetctl.engine.state import check_state, digests_of, load_snapshot, moved
from fleetctl.engine.streams import Usages, keep_checkpoint, read_usages, verify_stream
from fleetctl.engine.uncommitted import with_uncommitted
from fleetctl.engine.witnessing import refuse_rollback, witness_heads
from fleetctl.engine.writing import write_changes
from fleetctl.errors import BadInput, EngineRefused, SafetyRefused, Stale, WitnessMissing
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Applied
from fleetctl.model.changes import Changes
from fleetctl.model.declared import Acceptance
from fleetctl.model.ids import fleet_caller
from fleetctl.model.live import FleetRecord, LiveObject, ObjectKey, Snapshot, state_digest
from fleetctl.plan.dangers import NOBODY, PAST, Danger, check_sealable, find_dangers, unaccepted
from fleetctl.plan.planfile import UNREADABLE, PlanFile, body_bytes, read_plan
from fleetctl.ports import Reader, Writer
from fleetctl.units import UnixMs

MISSING_SIGNATURE = code(
    "missing-signature",
    "The plan lacks signatures that the engine's settings require",
    trigger="`requiredApprovals` is higher than the number of valid signatures on the plan",
    exit_code=3,
)
UNACCEPTED_DANGER = code(
    "unaccepted-danger",
    "There is a danger that nobody accepted as it is now",
    trigger="a danger, computed again under the write lock, has no acceptance in force or is worse than the accepted figure; `tenants delete` without its `--accept`",
    exit_code=3,
)
WITNESS_MISSING = code(
    "witness-missing",
    "Applied and committed, but a required witness has not countersigned",
    trigger="`--require-witness` or the settings ask for more receipts than arrived",
    exit_code=5,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyReceipt:
    """What an apply did. `entry` is the journal entry, absent when there was nothing to do."""

    result: Literal["applied", "already-applied", "nothing-to-do"]
    plan: Digest
    entry: int | None
    operations: int
    witnessed: Witnessed
    accepted: tuple[str, ...] = ()


class Unwitnessed(WitnessMissing):
    """Applied and committed; `receipt` says what is and what is missing."""

    def __init__(self, receipt: ApplyReceipt, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.receipt = receipt


def apply_plan(
    engine: Engine,
    data: bytes,
    *,
    accept: Iterable[str] = (),
    wait_ms: int = 60_000,
    require_witness: bool = False,
) -> ApplyReceipt:
    """Run a plan file's operations, all of them or none.

    `accept` are danger ids accepted now. Raises BadInput (1), SafetyRefused (3), Stale (4), Busy (4); Unwitnessed
    (5) after the commit, with the receipt.
    """
    file = read_plan(data)  # step 1
    check_target(engine, file)  # step 2
    with engine.store.read() as reader:
        check_identity(engine, reader)
    refuse_rollback(engine)  # step 4; step 3 needs the settings, which are read under the lock
    done = _commit_once(engine, file, tuple(accept), wait_ms)
    witnessed = witness_heads(engine)  # step 13
    receipt = replace(done, witnessed=witnessed)
    if require_witness and not witnessed.enough(at_least=1):
        _refuse_unwitnessed(receipt)
    if not witnessed.enough():
        _refuse_unwitnessed(receipt)
    return receipt  # step 14


def _commit_once(engine: Engine, file: PlanFile, accept: tuple[str, ...], wait_ms: int) -> ApplyReceipt:
    """Steps 5 to 12. An interrupt that lands as the commit returns is no interrupt any more: the journal decides."""
    done: ApplyReceipt | None = None
    try:
        with engine.store.write(wait_ms) as tx:  # step 5
            done = _under_lock(engine, tx, file, accept)
        return done  # step 12 was the end of the transaction
    except KeyboardInterrupt:
        if done is None:
            raise
        with engine.store.read() as reader:
            committed = reader.applied_entry(file.digest) == done.entry
        if not committed:
            raise
        return done


def check_plan(engine: Engine, data: bytes, accept: Iterable[str] = ()) -> PlanFile:
    """Whether a plan could be applied now: returns it, or raises what `apply` would. Changes nothing."""
    file = read_plan(data)
    check_target(engine, file)
    refuse_rollback(engine)
    with engine.store.read() as reader:
        check_identity(engine, reader)
        ground = _ground(engine, reader, file)
        if ground.applied_as is None:
            _check_ground(engine, ground, reader, file, tuple(accept), engine.clock.now_ms())
            _decide_all(ground.snapshot, file, engine.clock.now_ms())
    return file


def check_target(engine: Engine, file: PlanFile) -> None:
    """The plan is this engine's, and of the kind that fleets have. Raises SafetyRefused, BadInput."""
    if any(item.kind == "settings" for item in file.body.operations):
        raise BadInput(
            UNREADABLE.at(
                "a plan never changes the engine's settings, `fleetctl settings set` does; make the plan again with "
                "`fleetctl plan`",
                subject="settings/engine",
            )
        )
    if file.body.engine != engine.id:
        raise SafetyRefused(
            FOREIGN_PLAN.at(f"the plan is for engine {file.body.engine}, the engine that is open is {engine.id}")
        )
    _config(file)
    _commit(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What apply stands on: the verified snapshot, its digests, and whether this very plan is in the journal."""

    usages: Usages
    snapshot: Snapshot
    digests: dict[ObjectKey, bytes]
    state: bytes
    applied_as: int | None


def _ground(engine: Engine, reader: Reader, file: PlanFile) -> _Ground:
    check_open(reader)
    usages = read_usages(engine, reader)  # step 6: the ledger resumes from its checkpoint and verifies
    snapshot = load_snapshot(engine, reader, usages)
    digests = digests_of(snapshot.objects)
    state = check_state(engine, reader, digests)  # step 6: the state is the sealed one
    check_quotas(snapshot)
    return _Ground(
        usages=usages,
        snapshot=snapshot,
        digests=digests,
        state=state,
        applied_as=applied_as(engine, reader, file.digest),
    )


def _under_lock(engine: Engine, tx: Writer, file: PlanFile, accept: tuple[str, ...]) -> ApplyReceipt:
    verify_stream(engine, tx, journal_stream(tx))  # step 6: the journal verifies
    ground = _ground(engine, tx, file)
    keep_checkpoint(engine, tx, ground.usages)
    if ground.applied_as is not None:  # step 7
        return _receipt("already-applied", file, ground.applied_as)
    now = sealing_time(engine, tx)
    accepted = _check_ground(engine, ground, tx, file, accept, now)
    if not file.body.operations:
        return _receipt("nothing-to-do", file, None)
    changes = _decide_all(ground.snapshot, file, now)  # step 10
    touched = write_changes(tx, changes, now)
    entry = _append(engine, tx, ground, file, touched, accepted, now)  # step 11
    return replace(_receipt("applied", file, entry), accepted=accepted)


def _check_ground(
    engine: Engine, ground: _Ground, reader: Reader, file: PlanFile, accept: tuple[str, ...], now: int
) -> tuple[str, ...]:
    """Steps 3, 8 and 9. Returns the ids of the dangers that were there and accepted."""
    required = ground.snapshot.settings().required_approvals
    if required:  # step 3
        raise SafetyRefused(MISSING_SIGNATURE.at(f"approvals required: {required}; the plan carries none that counts"))
    origin = file.body.provenance.origin is not None
    check_record(engine, reader, file.body.fleet, ground.snapshot, origin=origin)
    snapshot = with_uncommitted(engine, reader, ground.snapshot, file.body.fleet)
    check_source(snapshot, file)  # step 8
    check_absences(engine, reader, file.body.operations, ground.snapshot)
    check_operations(ground.snapshot, reader, file)
    dangers = find_dangers(  # step 9
        file.body.operations, file.body.fleet, snapshot, file.body.provenance
    )
    check_sealable(dangers)
    acceptances = (*file.body.acceptances, *(Acceptance(danger=id) for id in accept))
    refused = unaccepted(dangers, acceptances, file.planned_figures(), now)
    if refused:
        strange = sorted(set(accept) - {danger.id for danger in dangers})
        raise SafetyRefused(_not_accepted(danger, why, strange) for danger, why in refused)
    return tuple(sorted({danger.id for danger in dangers}))


def _not_accepted(danger: Danger, why: str, strange: Sequence[str]) -> Diagnostic:
    """`strange` are accepted ids that no danger has: slips of the hand, most likely."""
    mend = (
        f"accept it in the fleet files under `accept` (`danger: {danger.id}`) and plan again, or with `--accept {danger.id}`"
        if why in (NOBODY, PAST)
        else f"plan again, look at it, and accept it then (under `accept`, or with `--accept {danger.id}`)"
    )
    slip = f" ({', '.join(f'`{id}`' for id in strange)} is no danger of this plan)" if strange else ""
    return UNACCEPTED_DANGER.at(
        f"{danger.id}: {danger.detail}. Refused because {why}{slip}; {mend}", subject=danger.subject
    )


def _decide_all(snapshot: Snapshot, file: PlanFile, now: int) -> list[Changes]:
    """Every operation's changes, in order. A refusal here means that the ground moved: the plan passed `decide`."""
    working = Working(snapshot)
    actor = Actor(tenant=file.body.tenant, caller=fleet_caller(file.body.fleet), fleet=file.body.fleet)
    out = []
    for item in file.body.operations:
        try:
            changes = decide(working, item, actor, UnixMs(now))
        except EngineRefused as error:
            raise Stale(
                STALE_PLAN.at(
                    f"{found.detail} (this was allowed when the plan was made); plan again", subject=item.label
                )
                for found in error.diagnostics
            ) from None
        working.apply(changes)
        out.append(changes)
    return out


def _append(
    engine: Engine,
    tx: Writer,
    ground: _Ground,
    file: PlanFile,
    touched: Mapping[ObjectKey, LiveObject | None],
    accepted: Sequence[str],
    now: UnixMs,
) -> int:
    commit = _commit(file)
    entry = write_journal(
        engine,
        tx,
        Applied,
        state_before=ground.state,
        state_after=state_digest(moved(ground.digests, touched).items()),
        touched=touched,
        index_plan=file.digest,
        at_ms=now,
        fleet=file.body.fleet,
        plan=bytes.fromhex(file.digest),
        context=bytes.fromhex(file.context_digest),
        config=bytes.fromhex(_config(file)),
        commit=commit,
        operations=len(file.body.operations),
        accepted=tuple(accepted) or None,
    )
    origin = file.body.provenance.origin
    tx.put_fleet(file.body.fleet, FleetRecord(entry=entry, commit=commit, origin=origin))
    keep_document(tx, body_bytes(file))
    keep_document(tx, canonical_bytes(file.context))
    if file.signatures:
        keep_document(tx, canonical_bytes(list(file.signatures)))
    return entry


def _config(file: PlanFile) -> str:
    config = file.context.get("config")
    if type(config) is not str or not is_digest(config):
        raise BadInput(UNREADABLE.at("`context.config` is not a digest; make the plan again"))
    return config


def _commit(file: PlanFile) -> str | None:
    commit = file.context.get("commit")
    if commit is not None and (type(commit) is not str or not 0 < len(commit) <= 80 or not commit.isprintable()):
        raise BadInput(UNREADABLE.at("`context.commit` is not a commit; make the plan again"))
    return commit


def _receipt(
    result: Literal["applied", "already-applied", "nothing-to-do"], file: PlanFile, entry: int | None
) -> ApplyReceipt:
    return ApplyReceipt(
        result=result,
        plan=file.digest,
        entry=entry,
        operations=len(file.body.operations),
        witnessed=Witnessed(grade="self-attested"),
    )


def _refuse_unwitnessed(receipt: ApplyReceipt) -> NoReturn:
    done = (
        "there was nothing to do" if receipt.entry is None else f"the plan is applied as journal entry {receipt.entry}"
    )
    raise Unwitnessed(
        receipt,
        WITNESS_MISSING.at(
            f"{done}, and the ledgers are {receipt.witnessed.grade}; finish it with `fleetctl ledger witness` once the "
            "witness answers"
        ),
    )
