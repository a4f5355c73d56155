"""Single commands that move configuration: decided by the same rules as a plan, journalled as `called`.

Every call is one transaction: verify the ground, decide, write, one journal entry, the request kept under its digest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fleetctl.canonical import canonical_bytes
from fleetctl.capacity.decide import Actor, decide
from fleetctl.capacity.working import Working
from fleetctl.engine.context import Engine, check_identity, check_open
from fleetctl.engine.indexes import check_absences, check_quotas
from fleetctl.engine.journal import keep_document, sealing_time, write_journal
from fleetctl.engine.state import check_state, digests_of, load_snapshot, moved
from fleetctl.engine.streams import read_usages
from fleetctl.engine.witnessing import Witnessed, refuse_rollback, witness_heads
from fleetctl.engine.writing import write_changes
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Called
from fleetctl.model.ids import ObjectId, cli_caller
from fleetctl.model.live import LiveObject, Snapshot, state_digest
from fleetctl.model.operation import Operation

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
    """There is nothing to do: the object is as the command wants it, or is not there at all."""

    object: LiveObject | None


Build = Callable[[Snapshot], Operation | Nothing]
"""Makes the operation from the snapshot under the lock."""


def call(
    engine: Engine, method: str, *, tenant: str, request: Mapping[str, Any], build: Build, wait_ms: int = WAIT_MS
) -> CallReceipt:
    """Run one command as `tenant`. `request` is what was asked, canonical JSON; `build` turns it into an operation.

    Raises EngineRefused in the seed's codes, SafetyRefused, Busy.
    """
    with engine.store.read() as reader:
        check_identity(engine, reader)
    refuse_rollback(engine)
    with engine.store.write(wait_ms) as tx:
        check_open(tx)
        snapshot = load_snapshot(engine, tx, read_usages(engine, tx))
        digests = digests_of(snapshot.objects)
        before = check_state(engine, tx, digests)
        check_quotas(snapshot)
        operation = build(snapshot)
        if isinstance(operation, Nothing):
            return _unchanged(method, operation.object)
        check_absences(engine, tx, [operation], snapshot)
        now = sealing_time(engine, tx)
        changes = decide(Working(snapshot), operation, Actor(tenant=tenant, caller=cli_caller(tenant)), now)
        touched = write_changes(tx, [changes], now)
        # What is folded later comes last, so that no word of the request can stand in its place.
        asked = {**request, "method": method, "tenant": tenant, "operation": operation.to_json()}
        kept = keep_document(tx, canonical_bytes(asked))
        entry = write_journal(
            engine,
            tx,
            Called,
            state_before=before,
            state_after=state_digest(moved(digests, touched).items()),
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


def _unchanged(method: str, found: LiveObject | None) -> CallReceipt:
    return CallReceipt(
        method=method,
        label=found.label if found else None,
        id=found.id if found else None,
        object=found,
        entry=None,
        witnessed=Witnessed(grade="self-attested"),
    )
