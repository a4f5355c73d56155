"""Who changed what, when, and whether a witness has seen it: from an engine, or from a bundle alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fleetctl.engine.context import Engine, check_identity
from fleetctl.engine.journals import journal_history, parts
from fleetctl.engine.receipts import journal_covered
from fleetctl.engine.records import Record, records
from fleetctl.engine.streams import verify_stream
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Applied, Called, Rotated
from fleetctl.model.ids import ObjectId
from fleetctl.model.operation import Operation, Precondition


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
    lost: tuple[str, ...] = ()
    """What a recovery gave up, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The newest entries, oldest first; `earlier` is how many there are before them."""

    entries: tuple[HistoryEntry, ...]
    earlier: int = 0


def engine_history(engine: Engine, subject: str | None, limit: int | None = None) -> History:
    """The newest `limit` entries of an engine's journal, verified first. `subject` is `kind/key`; absent: everything.

    Raises Tampered.
    """
    with engine.store.read() as reader:
        check_identity(engine, reader)
        streams = parts(engine, reader)
        for part in streams:
            verify_stream(engine, reader, part.stream)
        # Without an object every entry counts, so the documents of those that are not shown need not be read.
        start = max(0, streams[-1].stop - limit) if subject is None and limit is not None else 0
        found = history(
            records(journal_history(engine, reader, start), reader.document), subject, journal_covered(engine)
        )
        newest = newest_of(found, limit)
    return replace(newest, earlier=newest.earlier + start)


def newest_of(entries: Iterable[HistoryEntry], limit: int | None) -> History:
    """The last `limit` of them, or all."""
    kept: deque[HistoryEntry] = deque(maxlen=limit)
    total = 0
    for item in entries:
        kept.append(item)
        total += 1
    return History(entries=tuple(kept), earlier=total - len(kept))


def history(found: Iterable[Record], subject: str | None, covered: Sequence[range]) -> Iterator[HistoryEntry]:
    """Entries that touched the object, or all. `covered` are the places that a witness vouches for."""
    followed = None if subject is None else _Followed(subject)
    for record in found:
        operations = record.operations if followed is None else followed.of(record)
        if followed is None or operations:
            yield _entry(record, operations, any(record.entry in places for places in covered))


class _Followed:
    """One object through the journal. What takes it away may be an operation on another: archiving a pool ends its offers,
    deleting a tenant whatever it has.
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._live: dict[ObjectId, Operation] = {}
        """What last happened to each live object of that name (an external pool may have the key of another)."""

    def of(self, record: Record) -> tuple[Operation, ...]:
        """What an entry did to it."""
        done = [done for item in record.operations for done in self._done(item)]
        ids = {id for label, id in record.ended if label == self._subject}
        if not ids:
            return tuple(done)
        ended = self._take(lambda last: last.id in ids)
        done += [_ended_with(item, last, "deleted") for item in record.operations for last in ended]
        return tuple(done) or record.operations  # a reservation has none of its own

    def _done(self, item: Operation) -> list[Operation]:
        if item.label == self._subject:
            self._live.pop(item.id, None)
            if item.verb != "remove":
                self._live[item.id] = item
            return [item]
        if item.kind != "pool" or item.verb != "remove":
            return []
        ended = self._take(lambda last: last.kind == "offer" and (last.after or {}).get("pool") == item.id)
        return [_ended_with(item, last, "archived") for last in ended]

    def _take(self, which: Callable[[Operation], bool]) -> list[Operation]:
        """Live no more."""
        ended = [last for last in self._live.values() if which(last)]
        for last in ended:
            del self._live[last.id]
        return ended


def _ended_with(other: Operation, last: Operation, how: str) -> Operation:
    version = last.precondition.version if last.precondition.version is not None else last.precondition.absent
    return Operation(
        verb="remove",
        kind=last.kind,
        key=last.key,
        id=last.id,
        before=last.after,
        precondition=Precondition(version=(version or 0) + 1),
        reversible=last.kind != "pool",
        reason=f"{other.label} was {how}",
    )


def _entry(record: Record, operations: tuple[Operation, ...], witnessed: bool) -> HistoryEntry:
    event = record.event
    more: dict[str, Any] = {}
    if isinstance(event, Applied):
        more = {
            "fleet": event.fleet,
            "commit": event.commit,
            "plan": event.plan.hex(),
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
        accepted=record.accepted,
        lost=record.lost,
        **more,
    )
