"""Who changed what, when, and whether a witness has seen it: from an engine, or from a bundle alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fleetctl.engine.context import Engine, check_identity
from fleetctl.engine.journals import journal_history, parts
from fleetctl.engine.records import Record, records
from fleetctl.engine.streams import verify_stream
from fleetctl.engine.witnessing import journal_covered
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Applied, Called, Rotated
from fleetctl.model.operation import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One journal entry; with an object, only its operation there. `witnessed`: an independent receipt covers it."""

    entry: int
    event: str
    at_ms: int
    actor: str
    witnessed: bool
    fleet: str | None = None
    commit: str | None = None
    plan: str | None = None
    method: str | None = None
    closed: str | None = None
    """The ledger that a rotation closed."""
    opened: str | None = None
    """The one that it opened."""
    operations: tuple[Operation, ...] = ()
    accepted: tuple[str, ...] = ()
    approved_by: tuple[str, ...] = ()


def engine_history(engine: Engine, subject: str | None) -> list[HistoryEntry]:
    """The journal of an engine, verified first. `subject` is `kind/key`; absent: everything. Raises Tampered."""
    with engine.store.read() as reader:
        check_identity(engine, reader)
        for part in parts(engine, reader):
            verify_stream(engine, reader, part.stream)
        found = list(records(journal_history(engine, reader), reader.document))
    return list(history(found, subject, journal_covered(engine)))


def history(found: Iterable[Record], subject: str | None, covered: Sequence[range]) -> Iterator[HistoryEntry]:
    """Entries that touched the object, or all. `covered` are the places that a witness vouches for."""
    for record in found:
        operations = record.operations
        if subject is not None:
            operations = tuple(item for item in operations if item.label == subject)
            if not operations:
                continue
        yield _entry(record, operations, any(record.entry in places for places in covered))


def _entry(record: Record, operations: tuple[Operation, ...], witnessed: bool) -> HistoryEntry:
    event = record.event
    more: dict[str, Any] = {}
    if isinstance(event, Applied):
        more = {
            "fleet": event.fleet,
            "commit": event.commit,
            "plan": event.plan.hex(),
            "accepted": event.accepted or (),
            "approved_by": event.approved_by or (),
        }
    elif isinstance(event, Called):
        more = {"method": event.method}
    elif isinstance(event, Rotated):
        more = {"closed": event.from_ledger, "opened": event.to_ledger}
    return HistoryEntry(
        entry=record.entry,
        event=event.EVENT,
        at_ms=event.at_ms,
        actor=event.actor,
        witnessed=witnessed,
        operations=operations,
        **more,
    )
