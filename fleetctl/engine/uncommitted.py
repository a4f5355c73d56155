"""What a fleet's live values owe to files that no commit held, by the journal: for the danger `revert` (plan-apply.md, "Dangers")."""

from __future__ import annotations

from dataclasses import replace

from fleetctl.engine.context import Engine
from fleetctl.engine.journals import journal_history
from fleetctl.engine.records import records
from fleetctl.ledger.entries import Applied
from fleetctl.model.live import DIRTY, WHOLE, ObjectKey, Snapshot, Uncommitted
from fleetctl.model.operation import Operation
from fleetctl.plan.compare import changed_paths
from fleetctl.ports import Reader


def with_uncommitted(engine: Engine, reader: Reader, snapshot: Snapshot, fleet: str) -> Snapshot:
    """The snapshot with what this fleet applied since its last apply of committed files, where its last one was of others.

    Raises Tampered for a document that is missing.
    """
    record = snapshot.fleets.get(fleet)
    if record is None or record.commit is None or not record.commit.endswith(DIRTY):
        return snapshot
    settled: str | None = None
    since: list[tuple[int, Applied]] = []
    for place, event in journal_history(engine, reader):
        if isinstance(event, Applied) and event.fleet == fleet:
            if event.commit is None or event.commit.endswith(DIRTY):
                since.append((place, event))
            else:
                settled, since = event.commit, []
    fields: dict[ObjectKey, frozenset[str]] = {}
    for found in records(since, reader.document):
        for item in found.operations:
            key = (item.kind, item.id)
            fields[key] = fields.get(key, frozenset()) | _set_by(item)
    return replace(snapshot, uncommitted={fleet: Uncommitted(settled=settled, fields=fields)})


def settled_commit(snapshot: Snapshot, fleet: str) -> str | None:
    """The commit of the fleet's last apply of committed files, where a later one was of others."""
    found = snapshot.uncommitted.get(fleet)
    return None if found is None else found.settled


def _set_by(item: Operation) -> frozenset[str]:
    """The fields that an operation gave their values: what is made or taken over is all of its apply."""
    if item.verb in ("create", "adopt"):
        return frozenset({WHOLE})
    return frozenset(path for path, _, _ in changed_paths(item.before or {}, item.after or {}))
