"""What an engine holds and how far it is witnessed, at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from fleetctl.diagnostics import Diagnostic
from fleetctl.engine.context import META_CLOSED, META_TEST_CLOCK, Engine, check_identity, journal_stream, usage_stream
from fleetctl.engine.indexes import INDEX_TAMPERED
from fleetctl.engine.journals import journal_history
from fleetctl.engine.receipts import Witnessed, witnessed
from fleetctl.engine.state import check_state, digests_of, load_objects
from fleetctl.engine.streams import head_of
from fleetctl.engine.windows import WindowState, rotation_due, window_state
from fleetctl.errors import Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.chain import Head
from fleetctl.model.live import FleetRecord
from fleetctl.ports import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """A fleet: its last apply and how many live objects it owns. `at_ms` is of that apply."""

    name: str
    record: FleetRecord
    at_ms: int
    objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """An engine at a glance. `state` is the verified state digest; `due` says that a rotation of the entitlement ledger is due."""

    engine: str
    steward: str
    state: bytes
    journal: Head
    usage: Head
    windows: WindowState
    closed_windows: tuple[Head, ...]
    witnessed: Witnessed
    fleets: tuple[FleetStatus, ...]
    counts: Mapping[str, int]
    """Live objects by kind."""
    test_clock: bool
    closed: str | None
    due: Diagnostic | None = None


def read_status(engine: Engine) -> Status:
    """Raises Tampered when the live state is not the sealed one."""
    with engine.store.read() as reader:
        check_identity(engine, reader)
        objects = load_objects(reader)
        state = check_state(engine, reader, digests_of(objects))
        journal = head_of(engine, reader, journal_stream(reader))
        usage = head_of(engine, reader, usage_stream(reader))
        windows = window_state(engine, reader, objects.values())
        closed_windows = tuple(head_of(engine, reader, span.stream) for span in windows.spans[:-1])
        records = dict(reader.fleets())
        times = {name: _applied_at(engine, reader, name, record.entry) for name, record in records.items()}
        test_clock, closed = reader.meta(META_TEST_CLOCK) == "1", reader.meta(META_CLOSED) or None
    live = [item for item in objects.values() if item.kind != "settings" and not item.archived]
    owned = Counter(item.fleet for item in live)
    return Status(
        engine=engine.id,
        steward=engine.steward,
        state=state,
        journal=journal,
        usage=usage,
        windows=windows,
        closed_windows=closed_windows,
        witnessed=witnessed(engine),
        fleets=tuple(
            FleetStatus(name=name, record=record, at_ms=times[name], objects=owned[name])
            for name, record in sorted(records.items())
        ),
        counts=dict(sorted(Counter(item.kind for item in live).items())),
        test_clock=test_clock,
        closed=closed,
        due=rotation_due(windows, engine.clock.now_ms()),
    )


def _applied_at(engine: Engine, reader: Reader, fleet: str, entry: int) -> int:
    for _, event in journal_history(engine, reader, entry):
        return event.at_ms
    raise Tampered(
        INDEX_TAMPERED.at(
            f"fleet {fleet} is said to be last applied by journal entry {entry}, which does not exist; compare with "
            "`fleetctl drift --full`, then restore a backup or run `fleetctl state rebuild`",
            subject=f"fleet/{fleet}",
        )
    )
