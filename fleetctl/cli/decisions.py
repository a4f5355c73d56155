"""Admissions of an exported bundle, decided again: what an auditor re-runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.cli.audits import Known, audit_path
from fleetctl.cli.bundles import Bundle, read_bundle
from fleetctl.cli.output import write
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.units import shown

CLAIM_NOT_ADMITTED = code(
    "claim-not-admitted",
    "No entry admits the claim",
    trigger="`ledger decisions --claim ID` where no ledger of the bundle admits ID: refused claims are in none",
)
_NAMED = 8  # claims that a message names

if TYPE_CHECKING:
    from fleetctl.engine.redeciding import Redecided
    from fleetctl.ledger.entries import Event
    from fleetctl.ledger.report import Report


def bundle_decisions(
    folder: Path, known: Known, claims: Sequence[str], now_ms: int
) -> tuple[str, Iterator[Redecided], dict[str, str]]:
    """The ledger in force, all admissions (or those of the named claims), and names, from a bundle that is verified first.

    Raises NotVerified, and as `audit_path`; Tampered and BadInput while admissions are made.
    """
    report = audit_path(folder, known, now_ms).require()
    bundle, ledger = read_bundle(folder), report.verification.ledger
    return str(ledger), _wanted(_redecided(report, bundle), claims), bundle.names()


def _wanted(found: Iterable[Redecided], claims: Sequence[str]) -> Iterator[Redecided]:
    """Those of the named claims, or all. Raises BadInput at their end for names that no entry admits."""
    missing = dict.fromkeys(claims)
    for item in found:
        if not claims or item.sealed.claim in claims:
            missing.pop(item.sealed.claim, None)
            yield item
    if missing:
        names = ", ".join(shown(name) for name in list(missing)[:_NAMED])
        raise BadInput(
            CLAIM_NOT_ADMITTED.at(
                f"no entry of the bundle admits {names}; a claim has the id that it was admitted under"
            )
        )


def _redecided(report: Report, bundle: Bundle) -> Iterator[Redecided]:
    from fleetctl.engine.records import records
    from fleetctl.engine.redeciding import Exported, first_objects, redecided
    from fleetctl.ledger.audit import journal_events
    from fleetctl.ledger.windows import succession

    ledger, beside = report.verification.ledger, report.journal
    assert beside is not None, "a bundle has a journal"
    parts = [*(bundle.earlier_journal(number) or b"" for number in range(len(beside.windows))), bundle.journal]
    events = [event for data in parts for _, event in journal_events(data)]
    journal = list(records(enumerate(events), bundle.document))
    closed = [item for item in succession(journal_events(bundle.journal)) if item != ledger]
    held = [(item, bundle.window(number, item) or b"") for number, item in enumerate(closed)]
    windows = [(item, data) for item, data in (*held, (ledger, bundle.entitlements)) if data]
    if windows:
        first = first_objects(journal, _documents(bundle))
        streams = [(item, _events(data)) for item, data in windows]
        yield from redecided(Exported(windows=streams, journal=journal, first=first))


def _documents(bundle: Bundle) -> Iterator[bytes]:
    """Every document whose content has the digest that its name says, by name."""
    for path in sorted((bundle.folder / "documents").glob("*.json")):
        content = bundle.document(path.stem)
        if content is not None:
            yield content


def _events(data: bytes) -> Iterator[tuple[int, Event]]:
    """The events of an entitlement ledger that was verified."""
    from fleetctl.ledger import cose
    from fleetctl.ledger.entries import decode_core

    offset = index = 0
    while offset < len(data):
        envelope = cose.read(data, offset)
        yield index, decode_core(envelope.payload, "entitlements").event
        offset, index = envelope.end, index + 1


def write_inputs(found: Iterable[Redecided]) -> None:
    """One line for each, as `pool1 decide --lines` takes them."""
    for item in found:
        if not write(json.dumps(item.given(), separators=(",", ":")) + "\n"):
            break
