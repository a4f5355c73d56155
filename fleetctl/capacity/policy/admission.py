"""Who may join the pool and what is checked before work is admitted: acceptance, joinAttestors, admission, timers."""

from __future__ import annotations

from collections.abc import Iterator

from fleetctl.capacity.policy.problems import Policy, PolicyProblem, PoolContext, one_of, problem, rule
from fleetctl.model.policy_fields import Path
from fleetctl.units import decimal_ratio, shown

KNOWN_ACCEPTANCE = ("diag.nvml",)
"""What the engine runs on adoption (seed: "v0.1 runs diag.nvml")."""

JOIN_TOKEN = "join-token"
MAX_ATTESTORS = 16
BUDGET_CHECKS = ("none", "meter")

ACCEPTANCE_KIND = rule(
    "policy-acceptance-kind",
    "An acceptance check has no kind",
    trigger="acceptance: [{with: {}}]",
)
ACCEPTANCE_UNKNOWN = rule(
    "policy-acceptance-unknown",
    "An acceptance check is of a kind that the engine does not run",
    trigger="acceptance: [{kind: diag.dcgm}]: it would never run",
    severity="warning",
)
JOIN_ATTESTORS = rule(
    "policy-join-attestors",
    "joinAttestors is not a list of 1 to 16 different attestors that the engine runs",
    trigger="joinAttestors: [], [tpm, tpm], an id that no attestor has",
)
DISRUPTION_BUDGET = rule(
    "policy-disruption-budget",
    "disruptionBudget is not a share from 0 to 1",
    trigger="disruptionBudget: 1.01",
)
BUDGET_CHECK = rule(
    "policy-budget-check",
    "admission.budgetCheck is neither none nor meter",
    trigger="admission: {budgetCheck: on}",
)
NO_BILLING = rule(
    "policy-no-billing",
    "admission.budgetCheck is meter and the engine has no billing endpoint to ask",
    trigger="admission: {budgetCheck: meter} on an engine without one",
)
HARDWARE_PROFILE = rule(
    "policy-hardware-profile",
    "hardwareProfile names nothing",
    trigger='hardwareProfile: ""',
)


def check(policy: Policy, pool: PoolContext) -> Iterator[PolicyProblem]:
    """The rules of better-compute 4B for acceptance, joinAttestors, disruptionBudget, admission and hardwareProfile."""
    yield from _acceptance(policy)
    yield from _attestors(policy, pool)
    yield from _budgets(policy, pool)
    if policy.get("hardwareProfile") == "":
        yield problem(HARDWARE_PROFILE, ("hardwareProfile",), "name a profile or leave the field out")


def _acceptance(policy: Policy) -> Iterator[PolicyProblem]:
    checks = policy.get("acceptance", [])
    assert isinstance(checks, list)
    for index, item in enumerate(checks):
        assert isinstance(item, dict)
        path: Path = ("acceptance", index)
        kind = item.get("kind", "")
        if kind == "":
            yield problem(ACCEPTANCE_KIND, path, "a check needs a kind; write {kind: diag.nvml}")
        elif kind not in KNOWN_ACCEPTANCE:
            yield problem(
                ACCEPTANCE_UNKNOWN,
                (*path, "kind"),
                f"no engine runs {shown(str(kind))}, so it would never be checked; known: {one_of(KNOWN_ACCEPTANCE)}",
            )


def _attestors(policy: Policy, pool: PoolContext) -> Iterator[PolicyProblem]:
    if "joinAttestors" not in policy:
        return
    path: Path = ("joinAttestors",)
    ids = policy["joinAttestors"]
    assert isinstance(ids, list)
    if not 1 <= len(ids) <= MAX_ATTESTORS:
        yield problem(
            JOIN_ATTESTORS,
            path,
            f"lists {len(ids)} attestors; list 1 to {MAX_ATTESTORS}, or leave the field out to allow any",
        )
    seen: set[str] = set()
    for index, item in enumerate(ids):
        name = str(item)
        if name in seen:
            yield problem(JOIN_ATTESTORS, (*path, index), f"{shown(name)} is listed twice; remove one")
        elif name == "" or not _is_run(name, pool):
            runs = one_of(sorted({JOIN_TOKEN, *(pool.attestors or ())}))
            yield problem(JOIN_ATTESTORS, (*path, index), f"the engine runs no attestor {shown(name)}; it runs {runs}")
        seen.add(name)


def _is_run(name: str, pool: PoolContext) -> bool:
    return pool.attestors is None or name == JOIN_TOKEN or name in pool.attestors


def _budgets(policy: Policy, pool: PoolContext) -> Iterator[PolicyProblem]:
    budget = policy.get("disruptionBudget")
    if isinstance(budget, str):
        numerator, denominator = decimal_ratio(budget)
        if not 0 <= numerator <= denominator:
            yield problem(DISRUPTION_BUDGET, ("disruptionBudget",), f"{budget} is no share; write a number from 0 to 1")
    admission = policy.get("admission", {})
    assert isinstance(admission, dict)
    checked = admission.get("budgetCheck", "none")
    path: Path = ("admission", "budgetCheck")
    if checked not in BUDGET_CHECKS:
        yield problem(BUDGET_CHECK, path, f"{shown(str(checked))} is not known; write {one_of(BUDGET_CHECKS)}")
    elif checked == "meter" and pool.billing_configured is False:
        yield problem(
            NO_BILLING, path, "this engine has no billing endpoint; configure one in its settings or write none"
        )
