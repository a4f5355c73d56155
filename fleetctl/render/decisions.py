"""Admissions decided again from exported data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fleetctl.pool1.admission import Verdict as Decision
from fleetctl.render.document import Column, Document, Paragraph, Table, Verdict
from fleetctl.render.words import Names, counted
from fleetctl.units import format_energy


class SealedView(Protocol):
    """An admission as its entry holds it."""

    @property
    def claim(self) -> str: ...
    @property
    def entitlement(self) -> str: ...
    @property
    def reserved_uj(self) -> int: ...
    @property
    def borrowed_uj(self) -> int: ...
    @property
    def devices(self) -> int: ...
    @property
    def grade(self) -> str: ...


class RedecidedView(Protocol):
    """It, and what pool/1 says of it."""

    @property
    def ledger(self) -> str: ...
    @property
    def entry(self) -> int: ...
    @property
    def sealed(self) -> SealedView: ...
    @property
    def verdict(self) -> Decision: ...
    @property
    def carried(self) -> bool: ...
    @property
    def agrees(self) -> bool: ...


def decisions_json(ledger: str, found: Sequence[RedecidedView]) -> dict[str, Any]:
    """The answer of `ledger decisions`; `ledger` is the one in force, `result` is failed when an entry holds another decision than pool/1's."""
    return {
        "result": "ok" if all(item.agrees for item in found) else "failed",
        "ledger": ledger,
        "decisions": [_decision_json(item) for item in found],
    }


def decisions_document(ledger: str, found: Sequence[RedecidedView], names: Names) -> Document:
    decided = [item for item in found if not item.carried]
    differing = [item for item in decided if not item.agrees]
    if not found:
        return [Paragraph(f"{ledger} admits no claim.")]
    total = counted(len(decided), "admission")
    if differing:
        title = Verdict(f"{len(differing)} of {total} would not be what was sealed", "bad")
    else:
        title = Verdict(f"Decided again, all as sealed: {total}", "good")
    titles = ("reserved", "borrowed", "devices")
    columns = (
        Column("ledger"),
        Column("entry", right=True),
        Column("claim"),
        Column("entitlement"),
        *(Column(title, right=True) for title in titles),
        Column("grade"),
        Column("again"),
    )
    rows = [
        (
            item.ledger.partition("/")[2],
            str(item.entry),
            item.sealed.claim,
            names.get(item.sealed.entitlement, item.sealed.entitlement).removeprefix("entitlement/"),
            format_energy(item.sealed.reserved_uj),
            format_energy(item.sealed.borrowed_uj),
            str(item.sealed.devices),
            item.sealed.grade,
            _again(item),
        )
        for item in found
    ]
    return [title, Table(columns, rows, [None if item.agrees else "bad" for item in found])]


def _again(item: RedecidedView) -> str:
    if item.carried:
        return "carried over"
    if item.agrees:
        return "as sealed"
    if item.verdict.admitted:
        return f"borrows {format_energy(item.verdict.borrowed_uj)}"
    return f"{item.verdict.outcome.value} {', '.join(reason.value for reason in item.verdict.reasons)}"


def _decision_json(item: RedecidedView) -> dict[str, Any]:
    sealed, verdict = item.sealed, item.verdict
    return {
        "ledger": item.ledger,
        "entry": item.entry,
        "claim": sealed.claim,
        "entitlement": sealed.entitlement,
        "agrees": item.agrees,
        "carried": item.carried,
        "sealed": {
            "reserved_uj": sealed.reserved_uj,
            "borrowed_uj": sealed.borrowed_uj,
            "devices": sealed.devices,
            "grade": sealed.grade,
        },
        "verdict": verdict.outcome.value,
        "reasons": [reason.value for reason in verdict.reasons],
        "borrowed_uj": verdict.borrowed_uj,
    }
