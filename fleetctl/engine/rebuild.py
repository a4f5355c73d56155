"""Configuration is the fold of the journal's documents. This folds them again, from what `init` made to the last entry.

Operations are decided by the rules that decided them the first time, over no usage: what usage forbade was never
sealed. Each entry's `state_after` must come out, so a document or an entry that was changed is found where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fleetctl.capacity.decide import Actor, decide
from fleetctl.capacity.working import Working
from fleetctl.diagnostics import code
from fleetctl.engine.context import (
    Engine,
    check_identity,
    journal_stream,
    usage_stream,
)
from fleetctl.engine.initial import initial_objects
from fleetctl.engine.records import Record, records
from fleetctl.engine.state import digests_of
from fleetctl.engine.streams import journal_events, usage_claims, verify_stream
from fleetctl.engine.writing import write_changes
from fleetctl.errors import EngineRefused, Tampered
from fleetctl.ledger.entries import Applied, JournalEvent
from fleetctl.model.changes import Changes
from fleetctl.model.ids import cli_caller, fleet_caller
from fleetctl.model.live import FleetRecord, ObjectKey, Snapshot, state_digest
from fleetctl.ports import Reader
from fleetctl.units import UnixMs

REPLAY_DIFFERS = code(
    "replay-differs",
    "The journal's documents do not fold to the state that was sealed",
    trigger="`state rebuild` or a full verification finds an entry whose `state_after` does not come out of its document",
    exit_code=3,
)


@dataclass(slots=True)
class Replay:
    """The fold: the working state, the changes of each entry, and each fleet's last apply."""

    working: Working
    digests: dict[ObjectKey, bytes]
    fleets: dict[str, FleetRecord] = field(default_factory=dict)
    steps: list[tuple[int, str | None, UnixMs, list[Changes]]] = field(default_factory=list)
    """(entry, plan digest, time, changes)."""


def replay(engine: Engine, reader: Reader) -> Replay:
    """Fold every journalled document. Raises Tampered at the first entry that does not come out."""
    check_identity(engine, reader)
    stream = journal_stream(reader)
    verify_stream(engine, reader, stream)
    fold = _begin(engine, reader)
    for record in records(journal_events(engine, reader, stream), reader.document):
        _step(fold, record)
        after = state_digest(fold.digests.items())
        if after != record.event.state_after:
            raise Tampered(
                REPLAY_DIFFERS.at(
                    f"journal entry {record.entry} sealed the state {record.event.state_after.hex()[:16]}…, its document "
                    f"folds to {after.hex()[:16]}…"
                )
            )
    return fold


def rebuild(engine: Engine, wait_ms: int = 60_000) -> int:
    """Write the index tables again from ledgers and documents. Returns the number of journal entries folded.

    Quota rows that a withdrawn offer left behind are lowered to what is in use now.
    """
    with engine.store.write(wait_ms) as tx:
        fold = replay(engine, tx)
        claims = list(usage_claims(engine, tx, usage_stream(tx)))
        kept_events = tx.events(0, 1)
        tx.clear_index()
        tx.put_objects(initial_objects(engine, tx))
        for entry, plan, at, changes in fold.steps:
            silent = [replace(item, events=()) for item in changes] if kept_events else changes
            touched = write_changes(tx, silent, at)
            tx.index_journal(entry, touched, plan)
        for fleet, record in fold.fleets.items():
            tx.put_fleet(fleet, record)
        for row in claims:
            tx.put_claim(row)
    return len(fold.steps)


def differences(engine: Engine, reader: Reader) -> list[str]:
    """`kind/key` of every stored object that the fold does not give, and the other way round."""
    fold = replay(engine, reader)
    stored = {(item.kind, item.id): item for item in reader.objects()}
    folded = {key: item for key in fold.digests if (item := fold.working.get(*key)) is not None}
    off = [key for key in stored.keys() | folded.keys() if stored.get(key) != folded.get(key)]
    return sorted((stored.get(key) or folded[key]).label for key in off)


def _begin(engine: Engine, reader: Reader) -> Replay:
    objects = {(item.kind, item.id): item for item in initial_objects(engine, reader)}
    return Replay(working=Working(Snapshot(engine=engine.id, objects=objects)), digests=digests_of(objects))


def _step(fold: Replay, record: Record) -> None:
    event: JournalEvent = record.event
    tenant = record.tenant or ""
    caller = fleet_caller(record.fleet) if record.fleet else cli_caller(tenant)
    actor = Actor(tenant=tenant, caller=caller, fleet=record.fleet)
    made: list[Changes] = []
    for item in record.operations:
        try:
            changes = decide(fold.working, item, actor, UnixMs(event.at_ms))
        except EngineRefused as error:
            raise Tampered(
                REPLAY_DIFFERS.at(f"journal entry {record.entry}: {item.label} could not have been applied: {error}")
            ) from None
        fold.working.apply(changes)
        made.append(changes)
        for stone in changes.drop:
            fold.digests.pop((stone.kind, stone.id), None)
        for put in changes.put:
            fold.digests[put.kind, put.id] = put.digest()
    plan = event.plan.hex() if isinstance(event, Applied) else None
    fold.steps.append((record.entry, plan, UnixMs(event.at_ms), made))
    if isinstance(event, Applied):
        fold.fleets[event.fleet] = FleetRecord(entry=record.entry, commit=event.commit, origin=record.origin)
