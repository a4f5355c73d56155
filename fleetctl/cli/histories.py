"""History from an engine or from a bundle alone, with the names that people know objects by."""

from __future__ import annotations

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
    from fleetctl.ledger.audit import journal_events

    journal = audit_path(folder, known, now_ms).require().journal
    assert journal is not None, "a bundle has a journal"
    bundle = read_bundle(folder)
    earlier = [bundle.earlier_journal(number) or b"" for number in range(len(journal.windows))]
    events: list[tuple[int, JournalEvent]] = []
    covered: list[range] = []
    for report, data in zip((*journal.windows, journal), (*earlier, bundle.journal), strict=True):
        start = len(events)
        covered.append(range(start, start + (report.grading.witnessed_length or 0)))
        events += [(start + index, event) for index, event in journal_events(data)]
    entries = history(records(events, bundle.document), subject, covered)
    return newest_of(entries, limit), bundle.names()
