"""Single commands that move configuration: decided by the same rules as a plan, journalled as `called`.

Every call is one transaction: verify the ground, decide, write, one journal entry, the request kept under its digest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fleetctl.canonical import canonical_bytes
from fleetctl.capacity.decide import Actor, decide
from fleetctl.capacity.refusals import NOT_FOUND, refuse
from fleetctl.capacity.working import Working
from fleetctl.engine.context import Engine, check_identity, check_open
from fleetctl.engine.indexes import check_absences, check_quotas
from fleetctl.engine.journal import keep_document, sealing_time, write_journal
from fleetctl.engine.receipts import Witnessed
from fleetctl.engine.state import check_state, digests_of, load_snapshot, moved
from fleetctl.engine.streams import Usages, read_usages
from fleetctl.engine.witnessing import refuse_rollback, witness_heads
from fleetctl.engine.writing import write_changes
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Called
from fleetctl.model.changes import Changes
from fleetctl.model.ids import ObjectId, cli_caller
from fleetctl.model.live import LiveObject, ObjectKey, Snapshot, state_digest
from fleetctl.model.operation import Operation
from fleetctl.ports import Reader, Writer
from fleetctl.units import UnixMs

WAIT_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReceipt:
    """What a command did: the object as it now is (absent: it is gone) and the journal entry (absent: nothing changed)."""

    method: str
    label: str | None
    id: ObjectId | None
    object: LiveObject | None
    entry: int | None
    witnessed: Witnessed


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to do: the object is as the command wants it, or is not there at all, and would be a part of `of`."""

    object: LiveObject | None
    of: LiveObject | None = None


Build = Callable[[Snapshot], Operation | Nothing]
"""Makes the operation from the snapshot under the lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A command that is allowed, over what it was decided on. `before` is the state digest."""

    snapshot: Snapshot
    usages: Usages
    digests: dict[ObjectKey, bytes]
    before: bytes
    operation: Operation
    changes: Changes
    now: UnixMs


Also = Callable[[Writer, Decided], Mapping[str, Any]]
"""What a command does beside its configuration, in the same transaction and before its journal entry. Returns what the
kept request says beside what was asked, canonical JSON; what it raises stops the command.
"""


def call(
    engine: Engine,
    method: str,
    *,
    tenant: str,
    request: Mapping[str, Any],
    build: Build,
    wait_ms: int = WAIT_MS,
    also: Also = lambda _tx, _decided: {},
) -> CallReceipt:
    """Run one command as `tenant`. `request` is what was asked, canonical JSON; `build` turns it into an operation.

    Raises EngineRefused in the seed's codes, SafetyRefused, Busy.
    """
    with engine.store.read() as reader:
        check_identity(engine, reader)
    refuse_rollback(engine)
    with engine.store.write(wait_ms) as tx:
        decided = decided_call(engine, tx, tenant, build)
        if isinstance(decided, Nothing):
            return _unchanged(method, decided.object)
        beside = also(tx, decided)
        operation, now = decided.operation, decided.now
        touched = write_changes(tx, [decided.changes], now)
        # What is folded later comes last, so that no word of the request can stand in its place.
        asked = {**request, **beside, "method": method, "tenant": tenant, "operation": operation.to_json()}
        kept = keep_document(tx, canonical_bytes(asked))
        entry = write_journal(
            engine,
            tx,
            Called,
            state_before=decided.before,
            state_after=state_digest(moved(decided.digests, touched).items()),
            touched=touched,
            at_ms=now,
            method=method,
            object=operation.label,
            request=bytes.fromhex(kept),
        )
        found = touched.get((operation.kind, operation.id))
    return CallReceipt(
        method=method,
        label=operation.label,
        id=operation.id,
        object=found,
        entry=entry,
        witnessed=witness_heads(engine),
    )


def decided_call(engine: Engine, reader: Reader, tenant: str, build: Build) -> Decided | Nothing:
    """What a command would do as of one verified reading. Writes nothing, and raises what `call` would."""
    check_open(reader)
    usages = read_usages(engine, reader)
    snapshot = load_snapshot(engine, reader, usages)
    digests = digests_of(snapshot.objects)
    before = check_state(engine, reader, digests)
    check_quotas(snapshot)
    operation = build(snapshot)
    if isinstance(operation, Nothing):
        _check_own(operation.of or operation.object, tenant)
        return operation
    check_absences(engine, reader, [operation], snapshot)
    now = sealing_time(engine, reader)
    return Decided(
        snapshot=snapshot,
        usages=usages,
        digests=digests,
        before=before,
        operation=operation,
        changes=decide(Working(snapshot), operation, Actor(tenant=tenant, caller=cli_caller(tenant)), now),
        now=now,
    )


def _check_own(found: LiveObject | None, tenant: str) -> None:
    """What there is nothing to do to is told to its owner alone, as what is done is (seed: "Offerings")."""
    if found is not None and found.kind not in ("tenant", "settings") and found.tenant != tenant:
        refuse(NOT_FOUND, f"{found.label} does not exist for tenant {tenant}", found.label)


def _unchanged(method: str, found: LiveObject | None) -> CallReceipt:
    return CallReceipt(
        method=method,
        label=found.label if found else None,
        id=found.id if found else None,
        object=found,
        entry=None,
        witnessed=Witnessed(grade="self-attested"),
    )
