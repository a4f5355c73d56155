"""Drift of a fleet: read-only, with who did it from the journal, and the ledgers verified on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from fleetctl.canonical import canonical_bytes, sha256_hex
from fleetctl.diagnostics import Diagnostic
from fleetctl.engine.context import Engine, check_identity, check_open, journal_stream
from fleetctl.engine.culprits import culprits
from fleetctl.engine.indexes import INDEX_TAMPERED, check_quotas
from fleetctl.engine.journal import keep_document, write_journal
from fleetctl.engine.journals import journal_history
from fleetctl.engine.planning import Source, provenance
from fleetctl.engine.rebuild import differences
from fleetctl.engine.receipts import check_receipts
from fleetctl.engine.records import check_kept
from fleetctl.engine.state import check_state, digests_of, load_snapshot
from fleetctl.engine.streams import Usages, read_usages, verify_stream
from fleetctl.engine.windows import check_closed, check_succession, rotation_due, window_state
from fleetctl.engine.witnessing import refuse_rollback
from fleetctl.errors import NotVerified, Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Reported
from fleetctl.ledger.verify import Verification
from fleetctl.model.declared import Fleet
from fleetctl.model.live import ObjectKey
from fleetctl.plan.context import Culprit, Moved
from fleetctl.plan.drift import Drift, DriftItem, find_drift
from fleetctl.plan.planner import draft_plan
from fleetctl.ports import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """The answer of `drift`. `tampered` says what does not verify; nothing else is reported then."""

    result: Literal["none", "drift", "tampered"]
    drift: Drift
    culprits: Mapping[Moved, Culprit]
    warnings: tuple[Diagnostic, ...] = ()
    tampered: tuple[Diagnostic, ...] = ()


def drift_fleet(engine: Engine, fleet: Fleet, source: Source, *, full: bool = False) -> DriftReport:
    """Compare a fleet with what is live.

    `full` verifies both ledgers from genesis, folds the journal's documents and compares every row of the index tables.
    """
    with engine.store.read() as reader:
        check_identity(engine, reader)
        try:
            usages = read_usages(engine, reader)
            journal = verify_stream(engine, reader, journal_stream(reader))
            snapshot = load_snapshot(engine, reader, usages)
            check_state(engine, reader, digests_of(snapshot.objects))
            check_quotas(snapshot)
            check_receipts(engine, reader, (journal, *_ledgers(engine, reader, usages, full)), full=full)
            if full:
                _check_tables(engine, reader)
        except (Tampered, NotVerified) as error:
            return DriftReport(result="tampered", drift=_NO_DRIFT, culprits={}, tampered=error.diagnostics)
        now = engine.clock.now_ms()
        due = rotation_due(window_state(engine, reader, snapshot.objects.values()), now)
        plan, problems = draft_plan(fleet, snapshot, now=now, provenance=provenance(fleet, snapshot, source))
        drift = find_drift(fleet, snapshot, plan, now)
        who = culprits(engine, reader, _moved(drift.items))
    return DriftReport(
        result="drift" if drift.items else "none",
        drift=drift,
        culprits=who,
        warnings=(*plan.warnings, *map(_not_planned, problems), *((due,) if due is not None else ())),
    )


def _not_planned(problem: Diagnostic) -> Diagnostic:
    """What a plan would be refused for is said and is no error of `drift`, whose exit code does not know it."""
    return replace(problem, severity="warning")


def seal_report(engine: Engine, report: dict[str, object], result: str, wait_ms: int = 60_000) -> int:
    """Keep a drift report under its digest and journal it as `reported`: nulls are left out. Returns the entry.

    Raises SafetyRefused where a witness knows more than this state.
    """
    refuse_rollback(engine)
    kept = canonical_bytes(_without_nulls(report))
    with engine.store.write(wait_ms) as tx:
        check_identity(engine, tx)
        check_open(tx)
        snapshot = load_snapshot(engine, tx, read_usages(engine, tx))
        state = check_state(engine, tx, digests_of(snapshot.objects))
        keep_document(tx, kept)
        entry = write_journal(
            engine,
            tx,
            Reported,
            state_before=state,
            state_after=state,
            report=bytes.fromhex(sha256_hex(kept)),
            result=result,
        )
    return entry


def _without_nulls(value: object) -> Any:
    """A JSON value as canonical JSON holds it: there null is absent (pins, canonical JSON of an object)."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_without_nulls(item) for item in value]
    return value


def _ledgers(engine: Engine, reader: Reader, usages: Usages, full: bool) -> Iterable[Verification]:
    """Every window of the entitlement ledger from genesis when all of it is asked for, else the one in force as far back as its
    checkpoint, and the ends of the others.
    """
    if full:
        return check_succession(engine, reader)
    check_closed(engine, reader)
    return (usages.verification,)


def _check_tables(engine: Engine, reader: Reader) -> None:
    check_kept(journal_history(engine, reader), reader.document)
    off = differences(engine, reader)
    if off:
        named = ", ".join(off[:5])
        raise Tampered(
            INDEX_TAMPERED.at(
                f"{len(off)} row(s) of the index tables are not what ledgers and documents stand for: {named}; restore a "
                "backup, or run `fleetctl state rebuild`"
            )
        )


_NO_DRIFT = Drift(items=(), ignored=(), pending=())


def _moved(items: Iterable[DriftItem]) -> dict[ObjectKey, tuple[str, list[tuple[str | None, Any]]]]:
    found: dict[ObjectKey, tuple[str, list[tuple[str | None, Any]]]] = {}
    for item in items:
        found.setdefault((item.kind, item.id), (item.key, []))[1].append((item.field, item.live))
    return found
