"""What running work has spent and completed: reports, who yields first, and who is idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fleetctl.model.operational import WorkReport
from fleetctl.pool1.idle import IdlePolicy, IdleVerdict
from fleetctl.render.document import Block, Column, Document, Facts, Paragraph, Table, Tone, Verdict
from fleetctl.render.words import Names, counted
from fleetctl.units import format_duration, format_energy, format_ms, format_power

_TONES: dict[IdleVerdict, Tone] = {IdleVerdict.IDLE: "warn", IdleVerdict.WORKING: "good"}
_UNREPORTED = "no report"
_ORDERS = {
    True: "Every running claim, in the raw order of pool/1 section 5.2",
    False: "Claims of entitlements past their guarantee, in the order of pool/1 section 5.2",
}


class ReportedView(Protocol):
    """What the engine answers to a report."""

    @property
    def entitlement(self) -> str: ...
    @property
    def report(self) -> WorkReport: ...
    @property
    def changed(self) -> bool: ...


class VictimView(Protocol):
    """A running claim in the order in which work yields."""

    @property
    def claim(self) -> str: ...
    @property
    def entitlement(self) -> str: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def devices(self) -> int: ...
    @property
    def reserved_uj(self) -> int: ...
    @property
    def freed_uj(self) -> int | None: ...
    @property
    def priority(self) -> int: ...
    @property
    def report(self) -> WorkReport | None: ...
    @property
    def undefined(self) -> bool: ...


class VictimsView(Protocol):
    """The order, and which one it is."""

    @property
    def raw(self) -> bool: ...
    @property
    def beneficiary(self) -> str | None: ...
    @property
    def order(self) -> Sequence[VictimView]: ...


class IdleClaimView(Protocol):
    """The verdict on one running claim."""

    @property
    def claim(self) -> str: ...
    @property
    def entitlement(self) -> str: ...
    @property
    def devices(self) -> int: ...
    @property
    def verdict(self) -> IdleVerdict: ...
    @property
    def why(self) -> str: ...
    @property
    def report(self) -> WorkReport | None: ...


class IdlenessView(Protocol):
    """Verdicts, and the order of reclamation."""

    @property
    def policy(self) -> IdlePolicy: ...
    @property
    def claims(self) -> Sequence[IdleClaimView]: ...
    @property
    def reclamation_order(self) -> Sequence[str]: ...


def reported_json(found: ReportedView, names: Names) -> dict[str, Any]:
    """`nothing-to-do`: the last report said the same; only its time is new."""
    return {
        "result": "done" if found.changed else "nothing-to-do",
        "claim": found.report.claim,
        "entitlement": names.get(found.entitlement, found.entitlement),
        "report": report_json(found.report),
    }


def reported_document(found: ReportedView, names: Names) -> Document:
    said = found.report
    again = "" if found.changed else ", as before"
    facts = [
        ("completed", f"{said.completed_units} units"),
        ("spent", f"{format_energy(said.spent_uj)}, {said.grade}"),
        ("observed", _observed_text(said)),
        ("at", format_ms(said.at_ms)),
    ]
    where = names.get(found.entitlement, found.entitlement)
    return [Verdict(f"Reported on {said.claim} of {where}{again}", "good"), Facts(facts)]


def report_json(said: WorkReport) -> dict[str, Any]:
    """A report as it is kept; the observed stretch only where somebody watched."""
    out: dict[str, Any] = {
        "completed_units": said.completed_units,
        "spent_uj": said.spent_uj,
        "grade": said.grade,
        "at": format_ms(said.at_ms),
    }
    if said.observation is None:
        return out
    seen = said.observation
    return out | {"observed_ms": seen.observed_ms, "observed_uj": seen.energy_uj, "weight_zero": seen.weight_zero}


def victims_json(found: VictimsView, names: Names) -> dict[str, Any]:
    """`order` and `undefined` as `pool1 preempt` answers them; `ranked` says over which claims."""
    out: dict[str, Any] = {"result": "ok", "ranked": "all" if found.raw else "past-guarantee"}
    if found.beneficiary is not None:
        out["for"] = names.get(found.beneficiary, found.beneficiary)
    return out | {
        "order": [item.claim for item in found.order],
        "undefined": [item.claim for item in found.order if item.undefined],
        "items": [_victim_json(item, names) for item in found.order],
    }


def _victim_json(item: VictimView, names: Names) -> dict[str, Any]:
    more = {
        "parent": None if item.parent is None else names.get(item.parent, item.parent),
        "report": None if item.report is None else report_json(item.report),
        "freed_uj": item.freed_uj,
    }
    return {
        "claim": item.claim,
        "entitlement": names.get(item.entitlement, item.entitlement),
        "devices": item.devices,
        "reserved_uj": item.reserved_uj,
        "priority": item.priority,
        "cost": "undefined" if item.undefined else "defined",
    } | {name: value for name, value in more.items() if value is not None}


def victims_document(found: VictimsView, names: Names) -> Document:
    where = "" if found.beneficiary is None else f", under the parent of {names.get(found.beneficiary)}"
    blocks: list[Block] = [Verdict(f"{_ORDERS[found.raw]}{where}: {counted(len(found.order), 'claim')}")]
    titles = (
        Column("claim"),
        Column("entitlement"),
        Column("per unit", right=True),
        Column("spent", right=True),
        Column("units", right=True),
        Column("devices", right=True),
        Column("frees", right=True),
        Column("priority", right=True),
    )
    if found.order:
        tones: list[Tone | None] = ["dim" if item.undefined else None for item in found.order]
        blocks.append(Table(titles, [_victim_row(item, names) for item in found.order], tones))
    if not found.raw:
        blocks.append(
            Paragraph(
                "Only these are ranked by fleetctl's own rule: the standard exempts nobody, and --raw ranks every running "
                "claim. Ending one makes room under its own parent alone.",
                "dim",
            )
        )
    if any(item.undefined for item in found.order):
        blocks.append(
            Paragraph("undefined: nothing completed, or nobody measured; such claims yield last, by priority.", "dim")
        )
    return blocks


def _victim_row(item: VictimView, names: Names) -> tuple[str, ...]:
    said = item.report
    return (
        item.claim,
        names.get(item.entitlement, item.entitlement).removeprefix("entitlement/"),
        "undefined" if item.undefined or said is None else _per_unit(said),
        _UNREPORTED if said is None else f"{format_energy(said.spent_uj)} {said.grade}",
        "-" if said is None else str(said.completed_units),
        str(item.devices),
        "unknown" if item.freed_uj is None else format_energy(item.freed_uj),
        str(item.priority),
    )


def _per_unit(said: WorkReport) -> str:
    """Energy for each completed unit to four digits or more, rounded down for people: the order is made from exact costs."""
    whole, rest = divmod(said.spent_uj, said.completed_units)
    coarse = whole - whole % 10 ** max(0, (len(str(whole)) - 1) // 3 * 3 - 3)
    return f"{'~' if rest or coarse != whole else ''}{format_energy(coarse)}"


def idleness_json(found: IdlenessView, names: Names) -> dict[str, Any]:
    """`window_ms`, `verdicts`, `why` and `reclamation_order` as `pool1 idle` answers them, with the readings beside."""
    return {
        "result": "ok",
        "window_ms": found.policy.window_ms,
        "threshold_uw": found.policy.threshold_uw,
        "verdicts": {item.claim: item.verdict.value for item in found.claims},
        "why": {item.claim: item.why for item in found.claims},
        "reclamation_order": list(found.reclamation_order),
        "items": [_idle_json(item, names) for item in found.claims],
    }


def _idle_json(item: IdleClaimView, names: Names) -> dict[str, Any]:
    out: dict[str, Any] = {
        "claim": item.claim,
        "entitlement": names.get(item.entitlement, item.entitlement),
        "devices": item.devices,
        "verdict": item.verdict.value,
        "why": item.why,
    }
    return out if item.report is None else out | {"report": report_json(item.report)}


def idleness_document(found: IdlenessView, names: Names) -> Document:
    blocks: list[Block] = [Verdict(_idle_line(found), "warn" if found.reclamation_order else "good")]
    if found.claims:
        titles = ("claim", "entitlement", "verdict", "why", "observed", "reported")
        rows = [
            (
                item.claim,
                names.get(item.entitlement, item.entitlement).removeprefix("entitlement/"),
                item.verdict.value,
                item.why,
                "-" if item.report is None else _observed_text(item.report),
                _UNREPORTED if item.report is None else format_ms(item.report.at_ms),
            )
            for item in found.claims
        ]
        tones = [_TONES.get(item.verdict, "dim") for item in found.claims]
        blocks.append(Table([Column(title) for title in titles], rows, tones))
    if found.reclamation_order:
        blocks.append(Paragraph(f"Reclaim in this order: {', '.join(found.reclamation_order)}"))
    return blocks


def _idle_line(found: IdlenessView) -> str:
    policy = found.policy
    if not policy.window_ms or policy.threshold_uw is None:
        return "No window and threshold are given, so nothing is reclaimed: give --window and --threshold"
    rule = f"below {format_power(policy.threshold_uw)} over {format_duration(policy.window_ms)}"
    return f"{counted(len(found.reclamation_order), 'claim')} of {len(found.claims)} idle: {rule}"


def _observed_text(said: WorkReport) -> str:
    seen = said.observation
    if seen is None:
        return "-"
    share = ", a share of weight 0" if seen.weight_zero else ""
    return f"{format_energy(seen.energy_uj)} in {format_duration(seen.observed_ms)}, {said.grade}{share}"
