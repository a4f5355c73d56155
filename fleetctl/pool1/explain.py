"""A verdict in the figures it rests on, for people and auditors. Built on demand: deciding does not pay for it."""

from __future__ import annotations

from collections.abc import Iterator

from fleetctl.pool1.admission import Basis, Outcome, Reason, Verdict

Step = dict[str, str | bool]
"""One test: its clause, what it compares in words and figures, and whether it passed."""


def explain(verdict: Verdict) -> dict[str, object]:
    """`{"tests": […], "figures": {…}}`: the tests made, in the order of §4, and the figures they used.

    Figures are integers in microjoules and devices; `limit_uj` is absent when there is none, all but the claim's own when the
    entitlement is unknown.
    """
    claim, basis = verdict.claim, verdict.basis
    figures: dict[str, object] = {"estimate_uj": claim.estimate_uj, "claim_devices": claim.devices}
    if basis is not None:
        figures |= _figures(basis, verdict)
    tests: list[Step] = []
    for step in _tests(verdict):
        tests.append(step)
        if step["passed"] is False and step["final"]:
            break
    return {
        "tests": [{name: value for name, value in step.items() if name != "final"} for step in tests],
        "figures": figures,
    }


def _figures(basis: Basis, verdict: Verdict) -> dict[str, object]:
    limit = {} if basis.limit_uj is None else {"limit_uj": basis.limit_uj}
    return {
        "guarantee_uj": basis.guarantee_uj,
        **limit,
        "used_uj": basis.used_uj,
        "guarantee_devices": basis.guarantee_devices,
        "held_devices": basis.held,
        "over_quota_weight": basis.weight,
        "siblings_weight": basis.sum_weight,
        "siblings_surplus_uj": basis.surplus_uj,
        "share_uj": basis.share_uj,
        "ceiling_uj": basis.ceiling_uj(verdict.grade),
    }


def _tests(verdict: Verdict) -> Iterator[Step]:
    """Every test of §4 in order; a failed `final` one ended the decision."""
    claim, basis = verdict.claim, verdict.basis
    known = basis is not None
    yield _step("4.1", f"the tree holds the entitlement {claim.entitlement}", known, final=True)
    if basis is None:
        return
    estimate, grade = claim.estimate_uj, claim.grade
    yield _step(
        "4.1",
        f"{claim.gang_size} members × {claim.devices_per_member} devices are at least 1",
        claim.devices > 0,
        final=True,
    )
    yield _step(
        "4.2",
        f"{claim.devices} devices ≤ guarantee {basis.guarantee_devices}",
        claim.devices <= basis.guarantee_devices,
        final=True,
    )
    if basis.limit_uj is not None:
        yield _step(
            "4.2", f"estimate {estimate} uJ ≤ limit {basis.limit_uj} uJ", estimate <= basis.limit_uj, final=True
        )
    ceiling = basis.ceiling_uj(grade)
    yield _step(
        "4.5",
        f"estimate {estimate} uJ ≤ {ceiling} uJ, the most it could ever have",
        verdict.reasons != (Reason.NEVER_FITS,),
        final=True,
    )
    yield _step(
        "4.3",
        f"used {basis.used_uj} + estimate {estimate} ≤ guarantee {basis.guarantee_uj} uJ",
        basis.used_uj + estimate <= basis.guarantee_uj,
    )
    yield _step(
        "4.3",
        f"held {basis.held} + claimed {claim.devices} ≤ guarantee {basis.guarantee_devices} devices",
        basis.held + claim.devices <= basis.guarantee_devices,
    )
    if basis.used_uj + estimate > basis.guarantee_uj and verdict.outcome is not Outcome.DENY:
        yield from _borrowing(basis, verdict)


def _borrowing(basis: Basis, verdict: Verdict) -> Iterator[Step]:
    total = basis.used_uj + verdict.claim.estimate_uj
    yield _step("4.4", f"the estimate's grade {verdict.grade.value} is observed", verdict.grade.observed)
    yield _step("4.4", f"the weight {basis.weight} is above 0", basis.weight > 0)
    yield _step("2.2", "the entitlement has a parent to borrow under", not basis.root)
    if basis.limit_uj is not None:
        yield _step("4.4", f"total {total} ≤ limit {basis.limit_uj} uJ", total <= basis.limit_uj)
    if not basis.root:
        yield _step(
            "4.4",
            f"{total - basis.guarantee_uj} uJ past the guarantee ≤ share {basis.share_uj} uJ "
            f"(⌊{basis.weight}·{basis.surplus_uj}/{basis.sum_weight}⌋)",
            total - basis.guarantee_uj <= basis.share_uj,
        )


def _step(clause: str, text: str, passed: bool, *, final: bool = False) -> Step:
    return {"clause": clause, "test": text, "passed": passed, "final": final}
