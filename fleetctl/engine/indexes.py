"""Index tables that the state digest does not cover, held to what is sealed before anything rests on them.

Objects are covered by the state digest. Quota rows, tombstones, the index of applied plans and the records of fleets
follow from objects and journal; where one of them was edited, an apply would seal what no document folds to.
`drift --full` folds everything and compares every row; here only what a command is about to use is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from fleetctl.canonical import Digest
from fleetctl.diagnostics import code
from fleetctl.engine.context import Engine, journal_stream
from fleetctl.engine.journals import journal_event_at, journal_history
from fleetctl.engine.records import load_document, origin_of, records
from fleetctl.engine.streams import head_of
from fleetctl.errors import Tampered
from fleetctl.ledger.entries import Applied
from fleetctl.model.codec import unwide
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import LiveObject, ObjectKey, Snapshot
from fleetctl.model.operation import Operation
from fleetctl.ports import Reader

INDEX_TAMPERED = code(
    "index-tampered",
    "An index table is not what the journal stands for",
    trigger="a quota row, a tombstone, the index of applied plans or the record of a fleet was edited in the database",
    exit_code=3,
)
_MEND = "compare with `fleetctl drift --full`, then restore a backup or run `fleetctl state rebuild`"


def check_quotas(snapshot: Snapshot) -> None:
    """Each quota that a live pool or offer states is in force. Rows beyond are what ended offers and pools left behind.

    Raises Tampered. Check the state digest first: the bodies are believed here.
    """
    stated: dict[tuple[ObjectId, str], list[tuple[LiveObject, dict[str, int]]]] = {}
    for item in snapshot.objects.values():
        if item.kind in ("pool", "offer") and not item.archived:
            where, quota = stated_quota(item)
            stated.setdefault(where, []).append((item, quota))
    for where, said in stated.items():
        rows = snapshot.quotas.get(where, {})
        # A pool offered to its own owner has two that speak of the same rows: the later one has written them.
        if not any(all(rows.get(resource) == maximum for resource, maximum in quota.items()) for _, quota in said):
            item, quota = said[-1]
            raise Tampered(
                INDEX_TAMPERED.at(
                    f"{item.label} gives tenant {where[1]} {quota}, the quota rows in force say {dict(rows)}; {_MEND}",
                    subject=item.label,
                )
            )


def stated_quota(item: LiveObject) -> tuple[tuple[ObjectId, str], dict[str, int]]:
    """((pool, tenant), maxima by resource) that a pool says of its owner, or an offer of its tenant."""
    body = json.loads(item.body_json)
    if item.kind == "pool":
        where, quota = (item.id, item.tenant), body["ownerQuota"]
    else:
        where, quota = (ObjectId(body["pool"]), body["to"]), body["quota"]
    return where, {resource: unwide(maximum) for resource, maximum in quota.items()}


def applied_as(engine: Engine, reader: Reader, plan: Digest) -> int | None:
    """The journal entry that applied the plan of this digest, as that entry itself says. Raises Tampered."""
    entry = reader.applied_entry(plan)
    if entry is None:
        return None
    event = journal_event_at(engine, reader, entry)
    if not isinstance(event, Applied) or event.plan.hex() != plan:
        raise Tampered(
            INDEX_TAMPERED.at(f"plan {plan} is said to be applied by journal entry {entry}, which is another; {_MEND}")
        )
    return entry


def check_record(engine: Engine, reader: Reader, fleet: str, snapshot: Snapshot, *, origin: bool) -> None:
    """The record of a fleet's last apply is the last `applied` entry of it, `origin` included where it counts.

    Raises Tampered. Verify the journal first: the entries are only read here.
    """
    record = snapshot.fleets.get(fleet)
    start = 0 if record is None else record.entry
    found = [
        (index, event)
        for index, event in journal_history(engine, reader, start)
        if isinstance(event, Applied) and event.fleet == fleet
    ]
    same = [(index, event.commit) for index, event in found] == ([(record.entry, record.commit)] if record else [])
    if same and record is not None and origin:
        ((index, event),) = found
        same = origin_of(load_document(reader.document, event.plan.hex(), index)) == record.origin
    if not same:
        raise Tampered(
            INDEX_TAMPERED.at(
                f"the record of fleet {fleet} is not its last apply by the journal; {_MEND}", subject=f"fleet/{fleet}"
            )
        )


def check_absences(engine: Engine, reader: Reader, operations: Iterable[Operation], snapshot: Snapshot) -> None:
    """What is about to be created never was, or ended at the version that its tombstone says. Raises Tampered.

    A tombstone of another version would give a creation a version that no document folds to.
    """
    if head_of(engine, reader, journal_stream(reader)).length == 0:
        return
    versions: dict[int, dict[ObjectKey, int]] = {}
    for item in operations:
        if item.verb != "create" or (item.kind, item.id) in snapshot.objects:
            continue
        stone = snapshot.tombstones.get((item.kind, item.id))
        entries = reader.journal_touching(item.kind, item.id)
        if stone is None and not entries:
            continue
        known = next(_last_versions(engine, reader, (item.kind, item.id), entries, versions), None)
        if stone is None or not entries or (known is not None and known != stone.version):
            says = "has no tombstone" if stone is None else f"has a tombstone of version {stone.version}"
            raise Tampered(
                INDEX_TAMPERED.at(
                    f"{item.label} {says}, by the journal it ended at version {known or 'none'}; {_MEND}",
                    subject=item.label,
                )
            )


def _last_versions(
    engine: Engine, reader: Reader, key: ObjectKey, entries: Iterable[int], known: dict[int, dict[ObjectKey, int]]
) -> Iterator[int]:
    """The versions that journal entries gave to an object by operations of its own, newest first.

    An object that ended together with another one has no operation for that, and ended at the version before.
    """
    for entry in sorted(entries, reverse=True):
        if entry not in known:
            known[entry] = _versions(engine, reader, entry)
        if key in known[entry]:
            yield known[entry][key]


def _versions(engine: Engine, reader: Reader, entry: int) -> dict[ObjectKey, int]:
    event = journal_event_at(engine, reader, entry)
    (record,) = records([(entry, event)], reader.document)
    return {(item.kind, item.id): _version_after(item) for item in record.operations}


def _version_after(item: Operation) -> int:
    if item.precondition.version is None:
        return (item.precondition.absent or 0) + 1
    return item.precondition.version + (item.verb != "remove")
