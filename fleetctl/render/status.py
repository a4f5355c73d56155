"""An engine at a glance, and its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fleetctl.diagnostics import Diagnostic
from fleetctl.model.live import FleetRecord
from fleetctl.model.operation import Operation
from fleetctl.render.actors import actor_words, is_self_declared
from fleetctl.render.attestation import (
    WitnessedView,
    attestation_facts,
    attestation_json,
    attestation_notes,
)
from fleetctl.render.document import Block, Column, Document, Facts, Heading, Items, Paragraph, Table, Verdict
from fleetctl.render.ledger import head_json
from fleetctl.render.plan import operation_blocks
from fleetctl.render.words import Names, counted
from fleetctl.units import format_ms

if TYPE_CHECKING:
    from fleetctl.ledger.chain import Head


class FleetView(Protocol):
    """A fleet as the engine knows it."""

    @property
    def name(self) -> str: ...
    @property
    def record(self) -> FleetRecord: ...
    @property
    def at_ms(self) -> int: ...
    @property
    def objects(self) -> int: ...


class SpanView(Protocol):
    """One window of the entitlement ledger."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> str: ...
    @property
    def began_ms(self) -> int: ...


class WindowsView(Protocol):
    """The windows of the entitlement ledger, the last in force, and when its rotation is due."""

    @property
    def spans(self) -> Sequence[SpanView]: ...
    @property
    def in_force(self) -> SpanView: ...
    @property
    def due_ms(self) -> int | None: ...


class StatusView(Protocol):
    """What the engine answers to `status`."""

    @property
    def engine(self) -> str: ...
    @property
    def steward(self) -> str: ...
    @property
    def state(self) -> bytes: ...
    @property
    def journal(self) -> Head: ...
    @property
    def usage(self) -> Head: ...
    @property
    def windows(self) -> WindowsView: ...
    @property
    def due(self) -> Diagnostic | None: ...
    @property
    def witnessed(self) -> WitnessedView: ...
    @property
    def fleets(self) -> Sequence[FleetView]: ...
    @property
    def counts(self) -> Mapping[str, int]: ...
    @property
    def test_clock(self) -> bool: ...
    @property
    def closed(self) -> str | None: ...


class HistoryEntryView(Protocol):
    """One journal entry as the engine tells it."""

    @property
    def entry(self) -> int: ...
    @property
    def event(self) -> str: ...
    @property
    def at_ms(self) -> int: ...
    @property
    def actor(self) -> str: ...
    @property
    def witnessed(self) -> bool: ...
    @property
    def fleet(self) -> str | None: ...
    @property
    def commit(self) -> str | None: ...
    @property
    def plan(self) -> str | None: ...
    @property
    def method(self) -> str | None: ...
    @property
    def closed(self) -> str | None: ...
    @property
    def opened(self) -> str | None: ...
    @property
    def operations(self) -> Sequence[Operation]: ...
    @property
    def accepted(self) -> Sequence[str]: ...
    @property
    def approved_by(self) -> Sequence[str]: ...
    @property
    def lost(self) -> Sequence[str]: ...


class HistoryView(Protocol):
    """The newest entries, oldest first, and how many are before them."""

    @property
    def entries(self) -> Sequence[HistoryEntryView]: ...
    @property
    def earlier(self) -> int: ...


def status_json(status: StatusView) -> dict[str, Any]:
    out: dict[str, Any] = {
        "result": "ok",
        "engine": status.engine,
        "steward": status.steward,
        "state": status.state.hex(),
        "journal": head_json(status.journal),
        "entitlements": head_json(status.usage),
        "window": _window_json(status.windows),
        "objects": dict(status.counts),
        "fleets": [_fleet_json(item) for item in status.fleets],
        "test_clock": status.test_clock,
    }
    if status.closed is not None:
        out["moved_to"] = status.closed
    if status.due is not None:
        out["diagnostics"] = [status.due.to_json()]
    return out | attestation_json(status.witnessed)


def status_document(status: StatusView) -> Document:
    found = ", ".join(counted(number, kind) for kind, number in status.counts.items())
    facts = [
        ("steward", status.steward),
        ("state", status.state.hex()),
        ("journal", f"{counted(status.journal.length, 'entry', 'entries')}, head {status.journal.address.hex()}"),
        ("entitlements", f"{counted(status.usage.length, 'entry', 'entries')}, head {status.usage.address.hex()}"),
        ("window", _window_words(status.windows)),
        *attestation_facts(status.witnessed),
    ]
    if status.test_clock:
        facts.append(("clock", "a test clock: its times prove nothing"))
    blocks: list[Block] = [Verdict(f"Engine {status.engine}: {found or 'empty'}"), Facts(facts)]
    if status.closed is not None:
        blocks.append(Paragraph(f"This state was moved to {status.closed} and is sealed closed.", "bad"))
    if status.fleets:
        columns = (
            Column("fleet"),
            Column("objects", right=True),
            Column("entry", right=True),
            Column("at"),
            Column("commit"),
        )
        rows = [
            (item.name, str(item.objects), str(item.record.entry), format_ms(item.at_ms), item.record.commit or "-")
            for item in status.fleets
        ]
        blocks += [Heading("Fleets, as last applied"), Table(columns, rows)]
    if status.due is not None:
        blocks.append(Items([(f"{status.due.code.name}: {status.due.detail}", "warn")]))
    return [*blocks, *attestation_notes(status.witnessed)]


def history_json(history: HistoryView) -> dict[str, Any]:
    return {"result": "ok", "earlier": history.earlier, "entries": [_entry_json(item) for item in history.entries]}


def history_document(history: HistoryView, names: Names, subject: str | None = None) -> Document:
    """`subject` is the `kind/key` that was asked for; absent: everything."""
    if not history.entries:
        if subject is None:
            return [Paragraph("The journal has no entries.")]
        how = "" if "/" in subject else ". An object is written kind/key, such as pool/pool-fra1-h100"
        return [Paragraph(f"The journal has nothing about {subject}{how}.")]
    blocks: list[Block] = []
    if history.earlier:
        there = counted(history.earlier, "earlier entry is", "earlier entries are")
        blocks.append(
            Paragraph(f"{there} not shown; `--limit {history.earlier + len(history.entries)}` shows all.", "dim")
        )
    for item in history.entries:
        about = [item.event if item.method is None else item.method]
        about += [f"fleet {item.fleet}"] if item.fleet else []
        facts = [
            ("by", actor_words(item.actor)),
            ("witnessed", "yes" if item.witnessed else "no: the steward's word only"),
        ]
        moved = (("closed", item.closed), ("opened", item.opened))
        for name, value in (("commit", item.commit), ("plan", item.plan), *moved):
            if value is not None:
                facts.append((name, value))
        for name, values in (("accepted", item.accepted), ("approved by", item.approved_by)):
            if values:
                facts.append((name, ", ".join(values)))
        facts += [("lost", text) for text in item.lost]
        blocks += [Verdict(f"Entry {item.entry}, {format_ms(item.at_ms)}: {', '.join(about)}"), Facts(facts)]
        blocks += operation_blocks(item.operations, names)
    return blocks


def _window_json(windows: WindowsView) -> dict[str, Any]:
    """The window in force; `due` only where a root entitlement has a period; `earlier` are the closed ones, oldest first."""
    span = windows.in_force
    out: dict[str, Any] = {"name": span.name, "began": format_ms(span.began_ms)}
    if windows.due_ms is not None:
        out["due"] = format_ms(windows.due_ms)
    return out | {"earlier": [item.name for item in windows.spans[:-1]]}


def _window_words(windows: WindowsView) -> str:
    span = windows.in_force
    due = "" if windows.due_ms is None else f", due {format_ms(windows.due_ms)}"
    earlier = len(windows.spans) - 1
    return f"{span.name} since {format_ms(span.began_ms)}{due}{f', {earlier} before it' if earlier else ''}"


def _fleet_json(item: FleetView) -> dict[str, Any]:
    out: dict[str, Any] = {
        "fleet": item.name,
        "objects": item.objects,
        "entry": item.record.entry,
        "at": format_ms(item.at_ms),
    }
    if item.record.commit is not None:
        out["commit"] = item.record.commit
    if item.record.origin is not None:
        out["origin"] = {"root": item.record.origin[0], "path": item.record.origin[1]}
    return out


def _entry_json(item: HistoryEntryView) -> dict[str, Any]:
    out: dict[str, Any] = {
        "entry": item.entry,
        "event": item.event,
        "at": format_ms(item.at_ms),
        "actor": item.actor,
        "self_declared": is_self_declared(item.actor),
        "witnessed": item.witnessed,
    }
    moved = (("closed", item.closed), ("opened", item.opened))
    made = (("fleet", item.fleet), ("commit", item.commit), ("plan", item.plan), ("method", item.method))
    for name, value in (*made, *moved):
        if value is not None:
            out[name] = value
    for name, values in (("accepted", item.accepted), ("approved_by", item.approved_by), ("lost", item.lost)):
        if values:
            out[name] = list(values)
    return out | {"operations": [operation.to_json() for operation in item.operations]}
