"""The journal as one history: the stream in force and, after recoveries that opened new ones, those before it.

A `recovered` entry that opens a journal names by its first evidence the account of the loss, and that the stream it goes on from,
with length and head. Places in the journal count through all of them: index tables, `history` and messages use places, ledgers
and witnesses the index within one stream. Until something was lost the two are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fleetctl.engine.context import JOURNAL, Engine, journal_stream
from fleetctl.engine.records import load_document
from fleetctl.engine.streams import LEDGER_TAMPERED, entry_at, head_of, journal_events
from fleetctl.errors import Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import JournalEvent, Recovered
from fleetctl.ledger.identifiers import stream_of
from fleetctl.ports import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One stream of the journal. `start` is the place of its first entry."""

    stream: str
    start: int
    length: int

    @property
    def stop(self) -> int:
        return self.start + self.length


def parts(engine: Engine, reader: Reader) -> list[Part]:
    """The streams of the journal, oldest first. Raises Tampered when one is not what the next says that it goes on from."""
    stream = journal_stream(reader)
    found = [(stream, head_of(engine, reader, stream).length)]
    while stream != JOURNAL:
        stream, length = _before(engine, reader, stream)
        if stream in dict(found):
            raise Tampered(LEDGER_TAMPERED.at(f"{engine.ledger(stream)} is said to go on from itself"))
        found.append((stream, length))
    out: list[Part] = []
    for name, length in reversed(found):
        out.append(Part(stream=name, start=out[-1].stop if out else 0, length=length))
    return out


def place_in_force(engine: Engine, reader: Reader) -> int:
    """The place of the first entry of the journal in force."""
    return 0 if journal_stream(reader) == JOURNAL else parts(engine, reader)[-1].start


def journal_history(engine: Engine, reader: Reader, start: int = 0) -> Iterator[tuple[int, JournalEvent]]:
    """(place, event) of every journal entry from `start` on, parsed but not verified: verify before believing them."""
    for part in parts(engine, reader):
        if start < part.stop:
            for index, event in journal_events(engine, reader, part.stream, max(0, start - part.start)):
                yield part.start + index, event


def journal_event_at(engine: Engine, reader: Reader, place: int) -> JournalEvent:
    """One event, its entry verified by itself. Raises Tampered, also for a place that the journal does not have."""
    for part in parts(engine, reader):
        if part.start <= place < part.stop:
            event, _ = entry_at(engine, reader, part.stream, place - part.start)
            assert isinstance(event, JournalEvent)
            return event
    raise Tampered(LEDGER_TAMPERED.at(f"the journal of engine {engine.id} has no entry {place}"))


def account_of(event: Recovered, reader: Reader, place: int) -> dict[str, Any]:
    """What a `recovered` entry says was kept and lost. Raises Tampered when it is not kept, or no such account."""
    account = load_document(reader.document, event.evidence[0].hex(), place) if event.evidence else None
    if not isinstance(account, dict) or account.get("recovery") != "1":
        raise Tampered(LEDGER_TAMPERED.at(f"journal entry {place} names no account of what was lost"))
    return account


def _before(engine: Engine, reader: Reader, stream: str) -> tuple[str, int]:
    """The stream that a later one goes on from, and how many of its entries were kept."""
    event, _ = entry_at(engine, reader, stream, 0)
    if not isinstance(event, Recovered):
        raise Tampered(LEDGER_TAMPERED.at(f"{engine.ledger(stream)} is no journal that a recovery opened"))
    kept = account_of(event, reader, 0).get("journal", {})
    before = stream_of(kept["ledger"])
    head = head_of(engine, reader, before)
    if (head.ledger, head.length, head.address.hex()) != (kept["ledger"], kept["length"], kept["head"]):
        raise Tampered(
            LEDGER_TAMPERED.at(
                f"{engine.ledger(stream)} goes on from {kept['ledger']} at {kept['length']}, the state has {head.length} entries "
                "of it with another head: it was cut or rewritten"
            )
        )
    return before, head.length
