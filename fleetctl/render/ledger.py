"""Ledgers: where they stand, what is in them, and what a verification found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from fleetctl.render.attestation import WitnessedView, attestation_facts, attestation_json, attestation_notes
from fleetctl.render.document import Block, Column, Document, Facts, Heading, Items, Paragraph, Table, Tone, Verdict
from fleetctl.render.words import counted
from fleetctl.units import format_energy, format_ms

if TYPE_CHECKING:
    from fleetctl.ledger.audit import Report
    from fleetctl.ledger.chain import Head
    from fleetctl.ledger.entries import Event
    from fleetctl.ledger.receipts import Receipt

_AXES = ("authenticity", "canonicity", "sequence", "claims")
_COMMON = ("actor", "state_before", "state_after", "ledger", "ledger_head", "ledger_length", "at_ms")
_MAX_FAULTS = 20


def heads_json(heads: Sequence[Head], found: WitnessedView) -> dict[str, Any]:
    """The answer of `ledger head`."""
    rows = [{"ledger": head.ledger, "length": head.length, "head": head.address.hex()} for head in heads]
    return {"result": "ok", "heads": rows} | attestation_json(found)


def heads_document(heads: Sequence[Head], found: WitnessedView) -> Document:
    rows = [(head.ledger, str(head.length), head.address.hex()) for head in heads]
    table = Table((Column("ledger"), Column("length", right=True), Column("head")), rows)
    return [table, Facts(attestation_facts(found)), *attestation_notes(found)]


def entries_json(ledger: str, entries: Iterable[tuple[int, Event]]) -> dict[str, Any]:
    """The answer of `ledger show`: each entry's fields, digests in hex."""
    return {"result": "ok", "ledger": ledger, "entries": [_entry_json(index, event) for index, event in entries]}


def entries_document(ledger: str, entries: Iterable[tuple[int, Event]]) -> Document:
    blocks: list[Block] = [Verdict(ledger)]
    for index, event in entries:
        about = _fields(event)
        facts = [(name, str(value)) for name, value in about.items() if name not in _COMMON or name == "actor"]
        blocks += [Heading(f"Entry {index}, {format_ms(event.at_ms)}: {event.EVENT}"), Facts(facts)]
    return blocks if len(blocks) > 1 else [Paragraph(f"{ledger} has no entries there.")]


def report_document(report: Report) -> Document:
    """A verification for people; the journal's, where there is one, follows."""
    blocks = [*_report(report)]
    if report.journal is not None:
        blocks += [Heading("Journal"), *_report(report.journal)]
    return blocks


def witness_heads_json(witness: str, receipts: Iterable[Receipt]) -> dict[str, Any]:
    """The answer of `witness head`."""
    rows = [
        {"ledger": item.ledger, "length": item.length, "head": item.head.hex(), "at": format_ms(item.at_ms)}
        for item in receipts
    ]
    return {"result": "ok", "witness": witness, "heads": rows}


def witness_heads_document(witness: str, receipts: Sequence[Receipt]) -> Document:
    if not receipts:
        return [Paragraph(f"Witness {witness} has signed nothing for it.")]
    rows = [(item.ledger, str(item.length), item.head.hex(), format_ms(item.at_ms)) for item in receipts]
    return [Table((Column("ledger"), Column("length", right=True), Column("head"), Column("signed")), rows)]


def _report(report: Report) -> list[Block]:
    seen, grade = report.verification, report.grading
    words = "verifies" if report.ok else "FAILS verification"
    blocks: list[Block] = [
        Verdict(f"{seen.ledger} {words}: {counted(seen.length, 'entry', 'entries')}", "good" if report.ok else "bad")
    ]
    upto = f" to {grade.witnessed_length}" if grade.grade == "witnessed-to" else ""
    facts = [
        ("head", seen.head.hex()),
        ("grade", f"{grade.grade}{upto}{' (the witness is co-located)' if grade.co_located else ''}"),
    ]
    if report.resumed_from is not None:
        facts.append(("resumed from", f"length {report.resumed_from} of an earlier verification"))
    for axis in _AXES:
        fault = next((item for name, item in seen.first.items() if name == axis), None)
        facts.append((axis, f"{fault.code} at entry {fault.index}" if fault else "ok"))
    facts += [
        (f"receipt {number}", f"{item.verdict}{_by(item.receipt)}") for number, item in enumerate(report.receipts, 1)
    ]
    blocks.append(Facts(facts))
    points: list[tuple[str, Tone | None]] = [(f"{item.code}: {item.detail}", "bad") for item in report.reasons]
    points += [
        (f"entry {item.index}, {item.axis}, step {item.step}: {item.code}: {item.detail}", "bad")
        for item in seen.faults[:_MAX_FAULTS]
    ]
    if seen.fault_count > _MAX_FAULTS:
        points.append((f"and {seen.fault_count - _MAX_FAULTS} more faults", "bad"))
    points += [(note, "warn") for note in report.notes]
    if points:
        blocks.append(Items(points))
    if report.ok and seen.usage:
        columns = (
            Column("entitlement"),
            Column("spent", right=True),
            Column("reserved", right=True),
            Column("devices", right=True),
            Column("grade"),
        )
        rows = [
            (name, format_energy(use.spent_uj), format_energy(use.reserved_uj), str(use.devices), use.grade)
            for name, use in sorted(seen.usage.items())
        ]
        blocks.append(Table(columns, rows))
    return blocks


def _by(receipt: Receipt | None) -> str:
    return "" if receipt is None else f" at {receipt.length} by {receipt.witness}"


def _entry_json(index: int, event: Event) -> dict[str, Any]:
    return {"entry": index, "event": event.EVENT, "at": format_ms(event.at_ms)} | _fields(event)


def _fields(event: Event) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for item in fields(event):
        value = getattr(event, item.name)
        if value is not None:
            out[item.name] = _plain(value)
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
