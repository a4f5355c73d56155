"""History from an engine or from a bundle alone, with the names that people know objects by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.cli.audits import Known, audit_path
from fleetctl.cli.bundles import read_bundle

if TYPE_CHECKING:
    from fleetctl.engine.context import Engine
    from fleetctl.engine.history import History
    from fleetctl.ledger.entries import JournalEvent

Found = tuple["History", dict[str, str]]


def engine_history(engine: Engine, subject: str | None, limit: int) -> Found:
    """The newest entries that touched `kind/key`, or of all. Raises Tampered."""
    from fleetctl.engine import history
    from fleetctl.render.objects import names_of

    found = history.engine_history(engine, subject, limit)
    with engine.store.read() as reader:
        return found, names_of(reader.objects())


def bundle_history(folder: Path, known: Known, subject: str | None, now_ms: int, limit: int) -> Found:
    """The same from a bundle, verified first. Raises NotVerified, and as `audit_path`."""
    from fleetctl.engine.history import history, newest_of
    from fleetctl.engine.records import records

    report = audit_path(folder, known, now_ms)
    journal = report.require().journal
    assert journal is not None, "a bundle has a journal"
    bundle = read_bundle(folder)
    found = records(_events(bundle.journal), bundle.document)
    entries = history(found, subject, [range(journal.grading.witnessed_length or 0)])
    return newest_of(entries, limit), bundle.names()


def _events(data: bytes) -> Iterator[tuple[int, JournalEvent]]:
    """The events of a journal that was verified."""
    from fleetctl.ledger import cose
    from fleetctl.ledger.entries import JournalEvent, decode_core

    offset = index = 0
    while offset < len(data):
        envelope = cose.read(data, offset)
        event = decode_core(envelope.payload, "journal").event
        assert isinstance(event, JournalEvent)
        yield index, event
        offset, index = envelope.end, index + 1
