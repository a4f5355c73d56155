"""Who moved what, and when, by the journal: of plans and of drift (plan-apply.md, "Inputs and output", "Drift")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fleetctl.engine.context import Engine
from fleetctl.engine.journals import journal_event_at
from fleetctl.engine.records import Record, records
from fleetctl.model.ids import object_name
from fleetctl.model.live import ObjectKey
from fleetctl.plan.compare import at_path, same
from fleetctl.plan.context import Culprit, Moved
from fleetctl.ports import Reader


def culprits(
    engine: Engine, reader: Reader, moved: Mapping[ObjectKey, tuple[str, Iterable[tuple[str | None, Any]]]]
) -> dict[Moved, Culprit]:
    """Who last moved each field to its live value. `moved` names by object its key, and its fields with their live values.

    The field None is the whole object: who touched it last. What nobody moved through the engine is left out.
    Raises Tampered for an entry or a document that is not there.
    """
    journal = _Journal(engine, reader)
    found: dict[Moved, Culprit] = {}
    for (kind, id), (key, fields) in moved.items():
        label = object_name(kind, key)
        open_fields = dict(fields)
        for entry in reversed(reader.journal_touching(kind, id)):
            if not open_fields:
                break
            record = journal.record(entry)
            for field in _moved_by(record, (kind, id), open_fields):
                live = open_fields.pop(field)
                if field is None or same(live, _after(record, (kind, id), field)):
                    event = record.event
                    found[label, field] = Culprit(actor=event.actor, at_ms=event.at_ms, entry=entry)
    return found


def _moved_by(record: Record, key: ObjectKey, fields: Iterable[str | None]) -> list[str | None]:
    """Those of the fields that an entry set; the whole object is moved by every entry that touched it."""
    states = [(item.before, item.after) for item in record.operations if (item.kind, item.id) == key]
    return [
        field
        for field in fields
        if field is None
        or any(before is None or not same(at_path(before, field), at_path(after, field)) for before, after in states)
    ]


def _after(record: Record, key: ObjectKey, field: str) -> Any:
    states = [item.after for item in record.operations if (item.kind, item.id) == key]
    return at_path(states[-1], field) if states else None


class _Journal:
    """Entries with their operations, each read once."""

    def __init__(self, engine: Engine, reader: Reader) -> None:
        self._engine, self._reader = engine, reader
        self._read: dict[int, Record] = {}

    def record(self, entry: int) -> Record:
        if entry not in self._read:
            event = journal_event_at(self._engine, self._reader, entry)
            (self._read[entry],) = records([(entry, event)], self._reader.document)
        return self._read[entry]
