"""What apply, check and single commands did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fleetctl.model.live import LiveObject
from fleetctl.plan.planfile import PlanFile
from fleetctl.render.attestation import (
    WitnessedView,
    attestation_facts,
    attestation_json,
    attestation_notes,
)
from fleetctl.render.document import Document, Facts, Verdict
from fleetctl.render.objects import object_facts, object_json
from fleetctl.render.plan import counts
from fleetctl.render.words import Names, counted


class ApplyView(Protocol):
    """What the engine answers to an apply."""

    @property
    def result(self) -> str: ...
    @property
    def plan(self) -> str: ...
    @property
    def entry(self) -> int | None: ...
    @property
    def operations(self) -> int: ...
    @property
    def accepted(self) -> Sequence[str]: ...
    @property
    def witnessed(self) -> WitnessedView: ...


class CallView(Protocol):
    """What the engine answers to a command that moves configuration."""

    @property
    def method(self) -> str: ...
    @property
    def label(self) -> str | None: ...
    @property
    def id(self) -> str | None: ...
    @property
    def object(self) -> LiveObject | None: ...
    @property
    def entry(self) -> int | None: ...
    @property
    def witnessed(self) -> WitnessedView: ...


def apply_json(receipt: ApplyView) -> dict[str, Any]:
    """The answer of `apply`, and its receipt file."""
    out: dict[str, Any] = {
        "result": receipt.result,
        "plan": receipt.plan,
        "entry": receipt.entry,
        "operations": receipt.operations,
    }
    if receipt.accepted:
        out["accepted"] = list(receipt.accepted)
    return out | attestation_json(receipt.witnessed)


def apply_document(receipt: ApplyView) -> Document:
    if receipt.result == "nothing-to-do":
        return [Verdict("Nothing to do: what is live is what the files declare", "good")]
    words = "Already applied" if receipt.result == "already-applied" else "Applied"
    facts = [
        ("plan", receipt.plan),
        ("entry", f"{receipt.entry} of the journal"),
        *([("accepted", ", ".join(receipt.accepted))] if receipt.accepted else []),
        *attestation_facts(receipt.witnessed),
    ]
    return [
        Verdict(f"{words}: {counted(receipt.operations, 'operation')}, in one transaction", "good"),
        Facts(facts),
        *attestation_notes(receipt.witnessed),
    ]


def check_json(file: PlanFile, applied_as: int | None) -> dict[str, Any]:
    """The answer of `check` for a plan that apply would take now, or took before."""
    out = {"plan": file.digest, "operations": len(file.body.operations)}
    if applied_as is not None:
        return {"result": "already-applied", **out, "entry": applied_as}
    return {"result": "applicable", **out}


def check_document(file: PlanFile, applied_as: int | None) -> Document:
    facts = [("plan", file.digest), ("engine", str(file.body.engine)), ("fleet", str(file.body.fleet))]
    if applied_as is not None:
        return [Verdict(f"Already applied as journal entry {applied_as}: apply would do nothing", "good"), Facts(facts)]
    return [Verdict(f"Applicable now: {counts(file.body.operations)}", "good"), Facts(facts)]


def call_json(receipt: CallView) -> dict[str, Any]:
    """The answer of a command that moves configuration: `done`, or `nothing-to-do` when it changed nothing."""
    out: dict[str, Any] = {
        "result": "nothing-to-do" if receipt.entry is None else "done",
        "method": receipt.method,
        "entry": receipt.entry,
    }
    if receipt.method == "pools.unoffer":
        out["removed"] = receipt.entry is not None  # the seed's own answer ("Offerings")
    if receipt.label is not None:
        out |= {"label": receipt.label, "id": receipt.id}
    if receipt.object is not None:
        out["object"] = object_json(receipt.object)
    return out if receipt.entry is None else out | attestation_json(receipt.witnessed)


def call_document(receipt: CallView, names: Names) -> Document:
    what = receipt.label or receipt.method
    if receipt.entry is None:
        return [Verdict(f"{what}: nothing to do", "good")]
    facts = [("entry", f"{receipt.entry} of the journal"), *attestation_facts(receipt.witnessed)]
    shown = [Facts(object_facts(receipt.object, names))] if receipt.object is not None else []
    return [
        Verdict(f"{what}: {receipt.method} done", "good"),
        *shown,
        Facts(facts),
        *attestation_notes(receipt.witnessed),
    ]
