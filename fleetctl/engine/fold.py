"""Configuration is the fold of the journal's documents. This folds them, from what `init` made to the last entry.

Operations are decided by the rules that decided them the first time, over no usage: what usage forbade was never
sealed. Each entry's `state_before` and `state_after` must come out, so a document or an entry that was changed is found
where it stands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import field

from fleetctl.capacity.decide import Actor, decide
from fleetctl.capacity.working import Working
from fleetctl.diagnostics import code
from fleetctl.engine.context import Engine, check_identity
from fleetctl.engine.indexes import stated_quota
from fleetctl.engine.initial import initial_objects, initial_rows
from fleetctl.engine.journals import journal_history, parts
from fleetctl.engine.records import Record, records
from fleetctl.engine.state import digests_of
from fleetctl.engine.streams import verify_stream
from fleetctl.errors import FleetctlError, Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Applied
from fleetctl.model.changes import AuthzRow, Changes, Event
from fleetctl.model.ids import EngineId, ObjectId, cli_caller, fleet_caller
from fleetctl.model.live import FleetRecord, LiveObject, ObjectKey, Snapshot, Tombstone, state_digest
from fleetctl.model.operation import Operation
from fleetctl.ports import Reader
from fleetctl.units import UnixMs

REPLAY_DIFFERS = code(
    "replay-differs",
    "The journal's documents do not fold to the state that was sealed",
    trigger="`state rebuild` or a full verification finds an entry whose `state_after` does not come out of its document",
    exit_code=3,
)

QuotaKey = tuple[ObjectId, str, str]
"""(pool, tenant, resource)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one journal entry moved."""

    entry: int
    plan: str | None
    at_ms: UnixMs
    touched: frozenset[ObjectKey]
    events: tuple[Event, ...]


@dataclasses.dataclass(slots=True, kw_only=True)
class Fold:
    """Every index table as the journal stands for it. `state` is the digest of the live objects.

    `left` are the rows that the end of an offer lowered to what was in use, with what they were before: how much that
    was is not in the journal, so such a row is anything from 0 to this.
    """

    working: Working
    digests: dict[ObjectKey, bytes]
    state: bytes
    quotas: dict[QuotaKey, int] = field(default_factory=dict)
    left: dict[QuotaKey, int] = field(default_factory=dict)
    authz: dict[tuple[ObjectId, str], AuthzRow] = field(default_factory=dict)
    tombstones: dict[ObjectKey, Tombstone] = field(default_factory=dict)
    fleets: dict[str, FleetRecord] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def objects(self) -> dict[ObjectKey, LiveObject]:
        """The live objects."""
        return {key: item for key in self.digests if (item := self.working.get(*key)) is not None}


def fold_journal(engine: Engine, reader: Reader) -> Fold:
    """Fold every journalled document. Raises Tampered at the first entry that does not come out."""
    check_identity(engine, reader)
    for part in parts(engine, reader):
        verify_stream(engine, reader, part.stream)
    fold = begin(engine.id, initial_objects(engine, reader))
    for record in records(journal_history(engine, reader), reader.document):
        advance(fold, record)
    return fold


def begin(engine: EngineId, made: Sequence[LiveObject]) -> Fold:
    """The fold of an empty journal over what `init` or `state copy` made."""
    objects = {(item.kind, item.id): item for item in made}
    digests = digests_of(objects)
    fold = Fold(
        working=Working(Snapshot(engine=engine, objects=objects)), digests=digests, state=state_digest(digests.items())
    )
    rows = initial_rows(engine, made)
    fold.working.apply(rows)
    fold.quotas = {(row.pool, row.tenant, row.resource): row.maximum for row in rows.quotas}
    fold.authz = {(row.pool, row.tenant): row for row in rows.authz}
    return fold


def advance(fold: Fold, record: Record) -> None:
    """Fold one entry more. Raises Tampered unless it leads from the state that it sealed to the state that it sealed."""
    before = fold.state
    _step(fold, record)
    fold.state = state_digest(fold.digests.items())
    if (before, fold.state) != (record.event.state_before, record.event.state_after):
        raise Tampered(
            REPLAY_DIFFERS.at(
                f"journal entry {record.entry} sealed the state {record.event.state_after.hex()[:16]}…, its document "
                f"folds to {fold.state.hex()[:16]}…"
            )
        )


def _step(fold: Fold, record: Record) -> None:
    event = record.event
    tenant = record.tenant or ""
    caller = fleet_caller(record.fleet) if record.fleet else cli_caller(tenant)
    actor = Actor(tenant=tenant, caller=caller, fleet=record.fleet)
    touched: set[ObjectKey] = set()
    events: list[Event] = []
    for item in record.operations:
        try:
            changes = decide(fold.working, item, actor, UnixMs(event.at_ms))
        except FleetctlError as error:
            raise Tampered(
                REPLAY_DIFFERS.at(f"journal entry {record.entry}: {item.label} could not have been applied: {error}")
            ) from None
        _take_in(fold, item, changes)
        touched.update((made.kind, made.id) for made in changes.put)
        touched.update((gone.kind, gone.id) for gone in changes.drop)
        events += changes.events
    fold.steps.append(
        Step(
            entry=record.entry,
            plan=event.plan.hex() if isinstance(event, Applied) else None,
            at_ms=UnixMs(event.at_ms),
            touched=frozenset(touched),
            events=tuple(events),
        )
    )
    if isinstance(event, Applied):
        fold.fleets[event.fleet] = FleetRecord(entry=record.entry, commit=event.commit, origin=record.origin)


def _take_in(fold: Fold, operation: Operation, changes: Changes) -> None:
    for row in changes.quotas if operation.verb == "remove" else ():
        key = (row.pool, row.tenant, row.resource)
        if operation.kind == "tenant":  # which leaves 0, whatever is in use
            fold.left.pop(key, None)
        else:
            fold.left.setdefault(key, fold.quotas[key])
    fold.working.apply(changes)
    fold.quotas.update({(row.pool, row.tenant, row.resource): row.maximum for row in changes.quotas})
    _state_rows(fold, changes.put)
    fold.authz.update({(row.pool, row.tenant): row for row in changes.authz})
    for gone in changes.authz_removed:
        fold.authz.pop(gone, None)
    for stone in changes.drop:
        fold.tombstones[stone.kind, stone.id] = stone
        fold.digests.pop((stone.kind, stone.id), None)
    for put in changes.put:
        fold.digests[put.kind, put.id] = put.digest()


def _state_rows(fold: Fold, objects: Iterable[LiveObject]) -> None:
    """The rows that an object names are what it says, whatever was left there before."""
    for item in objects:
        if item.kind in ("pool", "offer") and not item.archived:
            (pool, tenant), quota = stated_quota(item)
            for resource, maximum in quota.items():
                fold.quotas[pool, tenant, resource] = maximum
                fold.left.pop((pool, tenant, resource), None)
