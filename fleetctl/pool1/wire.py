"""The pure commands: one JSON object in, one out, no state (`pool1 decide · preempt · attribute · derive · idle`).

What an auditor re-runs. Figures are integers or decimal text on input and integers on output; malformed input raises BadInput
with a stable code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fleetctl.pool1.admission import Outcome, Verdict
from fleetctl.pool1.admission import decide as decide_claim
from fleetctl.pool1.attribution import Occupant
from fleetctl.pool1.attribution import attribute as attribute_energy
from fleetctl.pool1.claim import Claim
from fleetctl.pool1.estimates import DEFAULT_REQUIRED, Declined, Observation, check_class
from fleetctl.pool1.estimates import derive as derive_estimate
from fleetctl.pool1.explain import explain
from fleetctl.pool1.idle import IdlePolicy, Observed, judge, reclamation_order
from fleetctl.pool1.lints import Remark, claim_remarks, tree_remarks
from fleetctl.pool1.preemption import Workload, rank
from fleetctl.pool1.tree import Entitlement, Tree, TreeState, Usage
from fleetctl.pool1.wire_reader import Reader


def decide(data: object) -> dict[str, object]:
    """`{"tree", "usage"?, "claim"}` → the verdict (§4), with its explain and our remarks on tree and claim."""
    top = Reader(data, "")
    tree = Tree([_entitlement(item) for item in top.objects("tree")])
    usage = {name: _usage(item) for name, item in top.keyed("usage")}
    claim = _claim(top.nested("claim"))
    top.end()
    verdict = decide_claim(TreeState(tree, usage), claim)
    return verdict_json(verdict, [*tree_remarks(tree), *claim_remarks(claim)])


def verdict_json(verdict: Verdict, remarks: Iterable[Remark]) -> dict[str, object]:
    """A verdict as `pool1 decide` and `claims admit` answer it; reservation figures only for Admit, the share where the node is known."""
    out: dict[str, object] = {
        "verdict": verdict.outcome.value,
        "reasons": [reason.value for reason in verdict.reasons],
        "grade": verdict.grade.value,
    }
    if verdict.outcome is Outcome.ADMIT:
        out |= {
            "reserved_uj": verdict.reserved_uj,
            "devices": verdict.devices,
            "borrowed_uj": verdict.borrowed_uj,
        }
    if verdict.basis is not None:
        out["share_uj"] = verdict.basis.share_uj
    lints = [{"lint": remark.lint.value, "entitlement": remark.entitlement} for remark in remarks]
    return {**out, "explain": {**explain(verdict), "lints": lints}}


def decide_json(state: TreeState, claim: Claim) -> dict[str, object]:
    """What `decide` takes for a claim on a tree with its usage. The claim comes as it is: a ledger
    keeps devices and no gang, so a claim read from one is a gang of one, which is the same to §4."""
    used = {name: use for name in (*state.nodes, *state.orphans) if (use := state.usage(name)) != Usage()}
    asked: dict[str, object] = {
        "entitlement": claim.entitlement,
        "gang_size": claim.gang_size,
        "devices_per_member": claim.devices_per_member,
        "estimate_uj": claim.estimate_uj,
        "grade": claim.grade.value,
    }
    if claim.claim_class is not None:
        asked["class"] = claim.claim_class
    return {
        "tree": [_declared(node) for node in state.tree],
        "usage": {
            name: {"spent_uj": use.spent_uj, "reserved_uj": use.reserved_uj, "devices": use.devices}
            for name, use in used.items()
        },
        "claim": asked,
    }


def _declared(node: Entitlement) -> dict[str, object]:
    out: dict[str, object] = {
        "id": node.id,
        "guarantee_uj": node.guarantee_uj,
        "guarantee_devices": node.guarantee_devices,
        "over_quota_weight": node.over_quota_weight,
        "priority": node.priority,
    }
    more = {"parent": node.parent, "limit_uj": node.limit_uj}
    return out | {name: value for name, value in more.items() if value is not None}


def preempt(data: object) -> dict[str, object]:
    """`{"workloads"}` → `{"order", "undefined"}` (§5.2). It ranks what it is given."""
    top = Reader(data, "")
    ranking = rank([_workload(item) for item in top.objects("workloads")])
    top.end()
    return {
        "order": [item.id for item in ranking.order],
        "undefined": [item.id for item in ranking.undefined],
    }


def attribute(data: object) -> dict[str, object]:
    """`{"total_uj", "grade", "basis"?, "occupants"}` → `{"shares", "basis"?}`, shares by id ascending (§2.5)."""
    top = Reader(data, "")
    total, grade = top.figure("total_uj"), top.grade()
    basis = {"basis": top.text("basis")} if top.has("basis") else {}
    occupants = [_occupant(item) for item in top.objects("occupants")]
    top.end()
    shares = attribute_energy(total, grade, occupants)
    return {
        "shares": [{"id": item.id, "energy_uj": item.energy_uj, "grade": item.grade.value} for item in shares],
        **basis,
    }


def derive(data: object) -> dict[str, object]:
    """`{"class", "required"?, "observations"}` → an estimate, or that there is too little evidence for one (§2.6)."""
    top = Reader(data, "")
    claim_class, required = top.text("class", empty=True), top.figure("required", DEFAULT_REQUIRED)
    observations = [_observation(item) for item in top.objects("observations")]
    top.end()
    derived = derive_estimate(claim_class, observations, required=required)
    counts = {"seen": derived.seen, "evidence": derived.evidence}
    if isinstance(derived, Declined):
        return {"declined": "too-little-evidence", **counts}
    return {
        "estimate_uj": derived.energy_uj,
        "grade": derived.grade.value,
        "spread": list(derived.spread_uj),
        **counts,
    }


def idle(data: object) -> dict[str, object]:
    """`{"policy", "workloads"}` → each workload's verdict, why, and the order of reclamation (§2.7).

    `window_ms` is the window that verdicts rest on, null when the policy states none.
    """
    top = Reader(data, "")
    given = top.nested("policy")
    policy = IdlePolicy(
        window_ms=given.optional_figure("window_ms"), threshold_uw=given.optional_figure("threshold_uw")
    )
    given.end()
    workloads = [_observed(item) for item in top.objects("workloads")]
    top.end()
    order = reclamation_order(policy, workloads)
    verdicts = {item.id: judge(policy, item) for item in workloads}
    return {
        "window_ms": policy.window_ms,
        "verdicts": {name: verdict.value for name, (verdict, _) in verdicts.items()},
        "why": {name: why.value for name, (_, why) in verdicts.items()},
        "reclamation_order": [item.id for item in order],
    }


COMMANDS: Mapping[str, Callable[[object], dict[str, object]]] = {
    "decide": decide,
    "preempt": preempt,
    "attribute": attribute,
    "derive": derive,
    "idle": idle,
}


def _entitlement(item: Reader) -> Entitlement:
    found = Entitlement(
        id=item.text("id"),
        parent=item.text("parent") if item.has("parent") else None,
        guarantee_uj=item.figure("guarantee_uj"),
        guarantee_devices=item.figure("guarantee_devices"),
        over_quota_weight=item.figure("over_quota_weight"),
        limit_uj=item.optional_figure("limit_uj"),
        priority=item.signed("priority", 0),
    )
    item.end()
    return found


def _usage(item: Reader) -> Usage:
    found = Usage(
        spent_uj=item.figure("spent_uj", 0),
        reserved_uj=item.figure("reserved_uj", 0),
        devices=item.figure("devices", 0),
    )
    item.end()
    return found


def _claim(item: Reader) -> Claim:
    found = Claim(
        entitlement=item.text("entitlement"),
        gang_size=item.figure("gang_size"),
        devices_per_member=item.figure("devices_per_member"),
        estimate_uj=item.figure("estimate_uj"),
        grade=item.grade(),
        claim_class=item.text("class", empty=True) if item.has("class") else None,
    )
    item.end()
    if found.claim_class is not None:
        check_class(found.claim_class)
    return found


def _workload(item: Reader) -> Workload:
    found = Workload(
        id=item.text("id"),
        entitlement=item.text("entitlement"),
        priority=item.signed("priority"),
        spent_uj=item.figure("spent_uj"),
        grade=item.grade(),
        completed_units=item.figure("completed_units"),
        devices=item.figure("devices"),
        reserved_uj=item.figure("reserved_uj"),
    )
    item.end()
    return found


def _occupant(item: Reader) -> Occupant:
    found = Occupant(id=item.text("id"), weight=item.figure("weight"))
    item.end()
    return found


def _observation(item: Reader) -> Observation:
    found = Observation(
        claim_class=item.text("class", empty=True), energy_uj=item.figure("energy_uj"), grade=item.grade()
    )
    item.end()
    return found


def _observed(item: Reader) -> Observed:
    found = Observed(
        id=item.text("id"),
        devices=item.figure("devices"),
        observed_ms=item.figure("observed_ms"),
        energy_uj=item.figure("energy_uj"),
        grade=item.grade(),
        weight_zero=item.boolean("weight_zero", False),
    )
    item.end()
    return found
