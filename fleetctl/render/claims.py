"""Claims, and reservations with their claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from fleetctl.model.operational import Reservation
from fleetctl.pool1.admission import Verdict as Decision
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.estimates import Declined, Estimate
from fleetctl.pool1.lints import Lint, claim_remarks
from fleetctl.pool1.wire import verdict_json
from fleetctl.render.capacity import reservation_facts, reservation_json
from fleetctl.render.document import Block, Column, Document, Facts, Items, Paragraph, Table, Tone, Verdict
from fleetctl.render.words import Names
from fleetctl.units import format_energy, format_ms

if TYPE_CHECKING:
    from fleetctl.ledger.usage import OpenClaim

Before = Mapping[str, tuple[str, int]]
"""Of open claims that went on from earlier windows: the id that each began with, and what those windows were charged in all."""
_NOTHING: Before = {}
_TONES: dict[str, Tone] = {"Admit": "good", "Queue": "warn", "Deny": "bad"}


class AdmissionView(Protocol):
    """What the engine answers to a claim."""

    @property
    def claim(self) -> str: ...
    @property
    def entitlement(self) -> str: ...
    @property
    def verdict(self) -> Decision: ...
    @property
    def entry(self) -> int | None: ...
    @property
    def estimate(self) -> Estimate | None: ...


class DeclinedView(Protocol):
    """What the engine answers when it cannot derive an estimate."""

    @property
    def claim(self) -> str: ...
    @property
    def entitlement(self) -> str: ...
    @property
    def workload_class(self) -> str: ...
    @property
    def declined(self) -> Declined: ...
    @property
    def required(self) -> int: ...


class ReleaseView(Protocol):
    """What the engine answers to a release."""

    @property
    def claim(self) -> str: ...
    @property
    def entitlement(self) -> str: ...
    @property
    def named(self) -> str: ...
    @property
    def settled_uj(self) -> int: ...
    @property
    def charged(self) -> Figure: ...
    @property
    def reserved_uj(self) -> int: ...
    @property
    def entry(self) -> int: ...


class BookedView(Protocol):
    """What the engine answers to a new reservation."""

    @property
    def reservation(self) -> Reservation: ...
    @property
    def admission(self) -> AdmissionView | None: ...
    @property
    def existing(self) -> bool: ...


class EndedView(Protocol):
    """What the engine answers to the end of one."""

    @property
    def reservation(self) -> Reservation: ...
    @property
    def release(self) -> ReleaseView | None: ...


def admission_json(found: AdmissionView, names: Names) -> dict[str, Any]:
    """The verdict as the pure command gives it, with the claim and its entry (null for Queue and Deny).

    `estimate` is what a derived one was made from.
    """
    out: dict[str, Any] = {
        "result": "ok",
        "claim": found.claim,
        "entitlement": names.get(found.entitlement, found.entitlement),
        "entry": found.entry,
    } | verdict_json(found.verdict, claim_remarks(found.verdict.claim))
    return out if found.estimate is None else out | {"estimate": _estimate_json(found.estimate)}


def admission_document(found: AdmissionView, names: Names) -> Document:
    decision = found.verdict
    where = names.get(found.entitlement, found.entitlement)
    outcome = decision.outcome.value
    why = f": {', '.join(reason.value for reason in decision.reasons)}" if decision.reasons else ""
    blocks: list[Block] = [Verdict(f"{outcome} {found.claim} on {where}{why}", _TONES[outcome])]
    if decision.admitted:
        blocks.append(
            Facts(
                [
                    ("reserved", f"{format_energy(decision.reserved_uj)}, {decision.grade.value}"),
                    ("borrowed", format_energy(decision.borrowed_uj)),
                    ("devices", str(decision.devices)),
                    ("entry", str(found.entry)),
                ]
            )
        )
    if found.estimate is not None:
        least, most = found.estimate.spread_uj
        runs = f"{found.estimate.evidence} observed of {found.estimate.seen} ended claims of its class"
        spread = f"{format_energy(least)} to {format_energy(most)}"
        blocks.append(Facts([("estimate", f"{format_energy(most)}, from {runs}"), ("spread", spread)]))
    blocks.append(Items(list(_tests(decision, names))))
    remarks = [_REMARKS[remark.lint] for remark in claim_remarks(decision.claim)]
    return [*blocks, Items([(text, "warn") for text in remarks])] if remarks else blocks


def declined_json(found: DeclinedView, names: Names) -> dict[str, Any]:
    """No estimate could be derived, and so nothing was decided: the counts as `pool1 derive` gives them."""
    return {
        "result": "ok",
        "claim": found.claim,
        "entitlement": names.get(found.entitlement, found.entitlement),
        "entry": None,
        "class": found.workload_class,
        "declined": "too-little-evidence",
        "seen": found.declined.seen,
        "evidence": found.declined.evidence,
        "required": found.required,
    }


def declined_document(found: DeclinedView, names: Names) -> Document:
    counts = found.declined
    where = names.get(found.entitlement, found.entitlement)
    wants = "time: more runs of it have to end" if counts.seen < found.required else "a meter: too many are guesses"
    return [
        Verdict(f"No estimate for {found.claim} on {where}: too little evidence", "warn"),
        Facts(
            [
                ("class", found.workload_class),
                ("ended claims of it", str(counts.seen)),
                ("observed ones", f"{counts.evidence}, {found.required} are required"),
            ]
        ),
        Paragraph(f"Nothing was decided and nothing recorded. This wants {wants}. Or give --energy and --grade."),
    ]


def release_json(found: ReleaseView, names: Names) -> dict[str, Any]:
    """`named` and `settled_uj` where the claim went on from an earlier window and was named as it was there."""
    out: dict[str, Any] = {
        "result": "done",
        "claim": found.claim,
        "entitlement": names.get(found.entitlement, found.entitlement),
        "spent_uj": found.charged.energy_uj,
        "grade": found.charged.grade.value,
        "reserved_uj": found.reserved_uj,
        "entry": found.entry,
    }
    return out if found.named == found.claim else out | {"named": found.named, "settled_uj": found.settled_uj}


def release_document(found: ReleaseView, names: Names) -> Document:
    charged = f"{format_energy(found.charged.energy_uj)}, {found.charged.grade.value}"
    before = [("before", f"{format_energy(found.settled_uj)}, charged to earlier windows since {found.named} began")]
    return [
        Verdict(f"Released {found.claim} on {names.get(found.entitlement, found.entitlement)}", "good"),
        Facts(
            [
                ("charged", charged),
                *(before if found.named != found.claim else []),
                ("reserved", format_energy(found.reserved_uj)),
                ("entry", str(found.entry)),
            ]
        ),
    ]


def booked_json(found: BookedView, names: Names) -> dict[str, Any]:
    """`existing`: the key was there before, and nothing was done."""
    out: dict[str, Any] = {
        "result": "done",
        "existing": found.existing,
        "reservation": reservation_json(found.reservation, names),
    }
    return out if found.admission is None else out | {"claim": admission_json(found.admission, names)}


def booked_document(found: BookedView, names: Names) -> Document:
    item = found.reservation
    tone: Tone = "good" if item.state == "active" else "bad" if item.state == "failed" else "warn"
    again = ", as before" if found.existing else ""
    blocks: list[Block] = [
        Verdict(f"Reservation {item.id}: {item.state}{again}", tone),
        Facts(reservation_facts(item, names)),
    ]
    if found.admission is not None:
        blocks += admission_document(found.admission, names)
    return blocks


def ended_json(found: EndedView, names: Names) -> dict[str, Any]:
    """`nothing-to-do` is not told apart: a reservation that had ended is as it was, without a release."""
    out: dict[str, Any] = {"result": "done", "reservation": reservation_json(found.reservation, names)}
    return out if found.release is None else out | {"release": release_json(found.release, names)}


def ended_document(found: EndedView, names: Names) -> Document:
    blocks: list[Block] = [
        Verdict(f"Reservation {found.reservation.id}: {found.reservation.state}", "good"),
    ]
    return blocks if found.release is None else [*blocks, *release_document(found.release, names)]


def claims_json(claims: Sequence[tuple[str, OpenClaim]], names: Names, before: Before = _NOTHING) -> dict[str, Any]:
    items = []
    for id, claim in claims:
        item: dict[str, Any] = {
            "claim": id,
            "entitlement": names.get(claim.entitlement, claim.entitlement),
            "reserved_uj": claim.reserved_uj,
            "borrowed_uj": claim.borrowed_uj,
            "devices": claim.devices,
            "grade": claim.grade,
            "entry": claim.seq,
            "at": format_ms(claim.at_ms),
        }
        if id in before:
            item |= {"began_as": before[id][0], "settled_uj": before[id][1]}
        items.append(item if claim.workload_class is None else item | {"class": claim.workload_class})
    return {"result": "ok", "items": items}


def claims_document(claims: Sequence[tuple[str, OpenClaim]], names: Names, before: Before = _NOTHING) -> Document:
    if not claims:
        return [Paragraph("There are no open claims.")]
    columns = (
        Column("claim"),
        Column("entitlement"),
        Column("reserved", right=True),
        Column("borrowed", right=True),
        Column("devices", right=True),
        Column("grade"),
        Column("since"),
    )
    rows = [
        (
            id,
            names.get(claim.entitlement, claim.entitlement),
            format_energy(claim.reserved_uj),
            format_energy(claim.borrowed_uj),
            str(claim.devices),
            claim.grade,
            format_ms(claim.at_ms),
        )
        for id, claim in claims
    ]
    blocks: list[Block] = [Table(columns, rows)]
    if before:
        went_on = [f"{id} began as {first}: {format_energy(uj)} charged before" for id, (first, uj) in before.items()]
        blocks.append(Items([(text, None) for text in went_on]))
    return blocks


def _estimate_json(found: Estimate) -> dict[str, Any]:
    return {
        "estimate_uj": found.energy_uj,
        "grade": found.grade.value,
        "spread": list(found.spread_uj),
        "seen": found.seen,
        "evidence": found.evidence,
    }


def _tests(decision: Decision, names: Names) -> Iterator[tuple[str, Tone | None]]:
    from fleetctl.pool1.explain import explain

    steps = cast("list[dict[str, Any]]", explain(decision)["tests"])
    for step in steps:
        yield (
            f"{step['clause']} {in_units(step['test'], names)}: {'yes' if step['passed'] else 'no'}",
            None if step["passed"] else "warn",
        )


def in_units(test: str, names: Names) -> str:
    """A test in the units that files use, and an id by the name that people know: `used 0 J + estimate 5 MJ ≤ …`."""
    if " uJ" not in test:
        return " ".join(names.get(word, word).removeprefix("entitlement/") for word in test.split(" "))
    # A formula has weights among its figures; elsewhere every figure of a test about energy is one.
    exact = "⌊" in test
    return (_ENERGY if exact else _FIGURE).sub(lambda found: format_energy(int(found[1])), test)


_REMARKS = {
    Lint.ZERO_GUESS: "the estimate is 0 and a guess: nobody measured or modelled it",
    Lint.ESTIMATE_GRADED_AS_READING: "no counter can have been read for work that has not run: an estimate is ModelBased",
}
"""What claims are remarked on (A26, A78): extensions of ours that change no verdict."""

_ENERGY = re.compile(r"([0-9]+) uJ")
_FIGURE = re.compile(r"\b([0-9]+)\b(?: uJ)?")
