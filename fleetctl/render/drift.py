"""Drift: what moved on the live side, who moved it, and what waits in git."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fleetctl.diagnostics import Diagnostic
from fleetctl.plan.context import Culprit, Moved
from fleetctl.plan.drift import Drift, DriftItem
from fleetctl.render.actors import NOBODY_DID, mover_words
from fleetctl.render.document import Block, Document, Heading, Items, Paragraph, Tone, Verdict
from fleetctl.render.words import counted, shown_field, shown_value
from fleetctl.units import UnixMs, format_ms

_ANSWERS = (
    "To put back what the files say: `fleetctl plan`, then apply. To keep what is live: `fleetctl import --refresh KIND/KEY` "
    "brings an entry of the files to it. To leave a field alone for a while: `ignoreDrift` in the files."
)


class DriftView(Protocol):
    """What the engine answers to `drift`."""

    @property
    def result(self) -> str: ...
    @property
    def drift(self) -> Drift: ...
    @property
    def culprits(self) -> Mapping[Moved, Culprit]: ...
    @property
    def warnings(self) -> Sequence[Diagnostic]: ...
    @property
    def tampered(self) -> Sequence[Diagnostic]: ...


def drift_json(report: DriftView) -> dict[str, Any]:
    """The answer of `drift`; `diagnostics` says what does not verify when `result` is `tampered`."""
    out: dict[str, Any] = {
        "result": report.result,
        "items": [_item_json(item, report.culprits.get((item.label, item.field))) for item in report.drift.items],
        "pending": [{"verb": verb, "object": label} for verb, label in report.drift.pending],
        "ignored": [
            _item_json(item, None)
            | {"owner": entry.owner, "reason": entry.reason}
            | ({"until": entry.until} if entry.until else {})
            for item, entry in report.drift.ignored
        ],
    }
    found = [*report.tampered, *report.warnings]
    if found:
        out["diagnostics"] = [item.to_json() for item in found]
    return out


def drift_document(report: DriftView) -> Document:
    if report.result == "tampered":
        points: list[tuple[str, Tone | None]] = [
            (f"{item.code.name}: {item.detail}", "bad") for item in report.tampered
        ]
        return [Verdict("Tampered: what is live is not what was sealed; do not apply", "bad"), Items(points)]
    items = report.drift.items
    blocks: list[Block] = [
        Verdict(f"Drift: {counted(len(items), 'difference')} from what was last applied", "bad")
        if items
        else Verdict("No drift: what is live is what was last applied, or what the files say", "good")
    ]
    if items:
        blocks.append(Items([(_line(item, report.culprits.get((item.label, item.field))), None) for item in items]))
        blocks.append(Paragraph(_ANSWERS, "dim"))
    if report.drift.ignored:
        blocks.append(Heading("Ignored (ignoreDrift)"))
        blocks.append(
            Items([(f"{_moved(item)} ({entry.owner}: {entry.reason})", None) for item, entry in report.drift.ignored])
        )
    if report.drift.pending:
        blocks.append(Heading("Pending in git, not applied yet"))
        blocks.append(Items([(f"{verb} {label}", None) for verb, label in report.drift.pending]))
    return blocks


def _line(item: DriftItem, culprit: Culprit | None) -> str:
    if culprit is None:
        return f"{_moved(item)}; {NOBODY_DID}"
    return f"{_moved(item)}; moved by {mover_words(culprit.actor, format_ms(UnixMs(culprit.at_ms)), culprit.entry)}"


def _moved(item: DriftItem) -> str:
    if item.field is None:
        return f"{item.label} ({item.name}) is gone"
    was, now = shown_value(item.field, item.last_applied, {}), shown_value(item.field, item.live, {})
    declared = shown_value(item.field, item.declared, {})
    noted = "" if declared == was else f", declared {declared}"
    return f"{item.label} {shown_field(item.field)}: applied {was}, live {now}{noted}"


def _item_json(item: DriftItem, culprit: Culprit | None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "kind": item.kind,
        "key": item.key,
        "name": item.name,
        "field": item.field,
        "declared": item.declared,
        "last_applied": item.last_applied,
        "live": item.live,
    }
    if culprit is not None:
        out |= culprit.to_json()
    return out
