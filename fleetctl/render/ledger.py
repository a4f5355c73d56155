"""Ledgers: where they stand, what is in them, and what a verification found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from fleetctl.render.attestation import WitnessedView, attestation_facts, attestation_json, attestation_notes
from fleetctl.render.document import Block, Column, Document, Facts, Heading, Items, Paragraph, Table, Tone, Verdict
from fleetctl.render.words import counted
from fleetctl.units import format_energy, format_ms

if TYPE_CHECKING:
    from fleetctl.ledger.chain import Head
    from fleetctl.ledger.entries import Event
    from fleetctl.ledger.receipts import Judged, Receipt
    from fleetctl.ledger.report import Report
    from fleetctl.ledger.verify import Verification

_AXES = ("authenticity", "canonicity", "sequence", "claims")
_COMMON = ("actor", "state_before", "state_after", "ledger", "ledger_head", "ledger_length", "at_ms")
_MAX_FAULTS = 20


def head_json(head: Head) -> dict[str, Any]:
    """Where a ledger stands."""
    return {"ledger": head.ledger, "length": head.length, "head": head.address.hex()}


def heads_json(heads: Sequence[Head], found: WitnessedView, closed: Sequence[Head] = ()) -> dict[str, Any]:
    """The answer of `ledger head`: the ledgers in force, then closed windows, oldest first."""
    rows = [*map(head_json, heads), *(head_json(head) | {"closed": True} for head in closed)]
    return {"result": "ok", "heads": rows} | attestation_json(found)


def heads_document(heads: Sequence[Head], found: WitnessedView, closed: Sequence[Head] = ()) -> Document:
    rows = [(str(head.ledger), str(head.length), head.address.hex()) for head in heads]
    rows += [(f"{head.ledger} (closed)", str(head.length), head.address.hex()) for head in closed]
    table = Table((Column("ledger"), Column("length", right=True), Column("head")), rows)
    return [table, Facts(attestation_facts(found)), *attestation_notes(found)]


def entries_json(ledger: str, entries: Iterable[tuple[int, Event]]) -> dict[str, Any]:
    """The answer of `ledger show`: each entry's fields, digests in hex."""
    return {"result": "ok", "ledger": ledger, "entries": [_entry_json(index, event) for index, event in entries]}


def entries_document(ledger: str, entries: Iterable[tuple[int, Event]]) -> Document:
    blocks: list[Block] = [Verdict(ledger)]
    for index, event in entries:
        about = _fields(event)
        facts = [(name, _text(value)) for name, value in about.items() if name not in _COMMON or name == "actor"]
        blocks += [Heading(f"Entry {index}, {format_ms(event.at_ms)}: {event.EVENT}"), Facts(facts)]
    return blocks if len(blocks) > 1 else [Paragraph(f"{ledger} has no entries there.")]


def report_document(report: Report) -> Document:
    """A verification for people; those of the journal and of closed windows, where there are such, follow."""
    blocks = [*_report(report)]
    if report.journal is not None:
        blocks += [Heading("Journal"), *_report(report.journal)]
    if report.windows:
        blocks.append(Heading("Closed windows"))
        for item in report.windows:
            blocks += _report(item)
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
    own = seen.ok and not report.reasons
    words = "verifies" if report.ok else "verifies, and the journal beside it does not" if own else "FAILS verification"
    blocks: list[Block] = [
        Verdict(f"{seen.ledger} {words}: {counted(seen.length, 'entry', 'entries')}", "good" if report.ok else "bad")
    ]
    upto = f" {grade.witnessed_length}" if grade.grade == "witnessed-to" else ""
    facts = [
        ("head", seen.head.hex()),
        ("grade", f"{grade.grade}{upto}{' (the witness is co-located)' if grade.co_located else ''}"),
    ]
    if report.resumed_from is not None:
        facts.append(("resumed from", f"length {report.resumed_from} of an earlier verification"))
    for axis in _AXES:
        fault = next((item for name, item in seen.first.items() if name == axis), None)
        facts.append((axis, f"{fault.code} at entry {fault.index}" if fault else "ok"))
    lines = _receipt_lines(report.receipts)
    facts += zip(["receipts"] + [""] * len(lines), lines, strict=False)
    blocks.append(Facts(facts))
    points: list[tuple[str, Tone | None]] = [(text, "bad") for text in (*_reason_lines(report), *_fault_lines(seen))]
    points += [(text, "warn") for text in (*_unknown_lines(report.receipts), *report.notes)]
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


def _receipt_lines(receipts: Sequence[Judged]) -> list[str]:
    """For each verdict and witness the furthest receipt, and how many more there are; what counts for most comes first."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for item in sorted(receipts, key=lambda item: _VERDICTS.get(item.verdict, 0)):
        groups.setdefault((item.verdict, item.receipt.witness if item.receipt else ""), []).append(item)
    lines = []
    for (verdict, witness), items in groups.items():
        lengths = [item.receipt.length for item in items if item.receipt is not None]
        where = f" at {max(lengths)} by {witness}" if lengths else ""
        lines.append(f"{verdict}{where}{f', and {len(items) - 1} more' if len(items) > 1 else ''}")
    return lines


_VERDICTS = {"witnessed": -2, "prefix": -1}


def _reason_lines(report: Report) -> list[str]:
    """Reasons in words; receipts that fail alike are counted."""
    alike: dict[tuple[str, str], list[str]] = {}
    for item in report.reasons:
        alike.setdefault((item.code, _RECEIPT.sub("", item.detail)), []).append(item.detail)
    return [
        f"{code}: {found[0]}{f' ({len(found) - 1} more alike)' if len(found) > 1 else ''}"
        for (code, _), found in alike.items()
    ]


_RECEIPT = re.compile(r"receipt [0-9]+")


def _fault_lines(seen: Verification) -> list[str]:
    """Faults in words; entries that fail alike are counted."""
    alike: dict[tuple[str, int, str, str], list[int]] = {}
    for item in seen.faults:
        alike.setdefault((item.axis, item.step, item.code, item.detail), []).append(item.index)
    lines = [
        f"entry {found[0]}{f' and {len(found) - 1} more' if len(found) > 1 else ''}, {axis}, step {step}: {code}: {detail}"
        for (axis, step, code, detail), found in alike.items()
    ]
    if any(item.code == "bad-signature" and item.index == 0 for item in seen.faults):
        lines.append("not even entry 0 is signed with the key that was given: see that it is this steward's")
    more = seen.fault_count - len(seen.faults)
    hidden = len(lines) - _MAX_FAULTS
    lines = lines[:_MAX_FAULTS]
    if more > 0 or hidden > 0:
        lines.append(f"and {max(more, 0) + max(hidden, 0)} more faults")
    return lines


def _unknown_lines(receipts: Sequence[Judged]) -> list[str]:
    witnesses = {item.receipt.witness for item in receipts if item.verdict == "unknown-witness" and item.receipt}
    return [
        f"receipts of {witness} count for nothing here: no key of that id is known; give --witness-key {witness}=PUB"
        for witness in sorted(witnesses)
    ]


def _entry_json(index: int, event: Event) -> dict[str, Any]:
    return {"entry": index, "event": event.EVENT, "at": format_ms(event.at_ms)} | _fields(event)


def _fields(event: Event) -> dict[str, Any]:
    """An event's values under the names that they have on the wire."""
    names = {item.attr: item.name for item in event.FIELDS}
    out: dict[str, Any] = {}
    for item in fields(event):
        value = getattr(event, item.name)
        if value is not None:
            out[names.get(item.name, item.name)] = _plain(value)
    return out


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
