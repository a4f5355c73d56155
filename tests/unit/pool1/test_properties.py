"""pool/1 readings 3.4: what holds of every tree, claim and division. Seeded trees in number, Hypothesis for its shrinking."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetctl.ledger.entries import Admitted, Released
from fleetctl.ledger.identifiers import ledger_id
from fleetctl.ledger.usage import Fold as Ledger
from fleetctl.pool1.admission import Outcome, Reason, Verdict, apply, basis_of, decide
from fleetctl.pool1.attribution import Occupant, attribute
from fleetctl.pool1.claim import Claim
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.idle import IdlePolicy, IdleVerdict, Observed, judge, reclamation_order
from fleetctl.pool1.preemption import Workload, rank, realised_cost
from fleetctl.pool1.tree import Entitlement, Tree, TreeState, Usage
from tests.support.pool1_oracle import (
    Answer,
    Asked,
    Owed,
    Running,
    Used,
    check_division,
    decided,
    idleness,
    yields_before,
)

Pick = Callable[[int, int], int]
"""An integer from low to high: of a seeded generator, or drawn by Hypothesis."""


def _tree(pick: Pick) -> TreeState:
    """Figures in proportion to each other, so that every rule decides some of the claims."""
    scale = (10, 1000, 2**61)[pick(0, 2)]
    nodes: list[Entitlement] = []
    usage: dict[str, Usage] = {}
    for index in range(pick(1, 9)):
        guarantee = pick(0, scale)
        above = -1 if index == 0 or pick(0, 7) == 0 else pick(0, index - 1)
        devices = pick(2, 16)
        nodes.append(
            Entitlement(
                id=f"n{index}",
                parent=None if above < 0 else f"n{above if index > 5 else 0}",
                guarantee_uj=guarantee,
                guarantee_devices=devices,
                over_quota_weight=pick(0, 3),
                limit_uj=guarantee + pick(0, scale) // 2 if pick(0, 2) == 0 else None,
                priority=pick(-2, 2),
            )
        )
        usage[f"n{index}"] = Usage(
            spent_uj=pick(0, (guarantee // 2, guarantee, guarantee, scale)[pick(0, 3)]),
            reserved_uj=pick(0, scale) // 8,
            devices=pick(0, (devices // 2, devices + 1)[pick(0, 1)]),
        )
    return TreeState(Tree(nodes), usage)


def _claim(pick: Pick, state: TreeState) -> Claim:
    node = state.nodes[f"n{pick(0, len(state.nodes) - 1)}"]
    grade = list(Grade)[pick(0, 2)]
    basis = basis_of(node)
    share = node.guarantee_uj + basis.share_uj - node.used_uj
    edges = [node.guarantee_uj, basis.ceiling_uj(grade), node.unspent_uj, share, share]
    edges += [pick(0, max(0, share)), pick(0, 2 * node.guarantee_uj + 20)]
    if node.limit_uj is not None:
        edges += [node.limit_uj, node.limit_uj - node.used_uj]
    # the edges of the rules and their neighbours, where a wrong comparison shows
    estimate = edges[pick(0, len(edges) - 1)] + pick(-1, 1)
    return Claim(
        entitlement=node.entitlement.id,
        gang_size=pick(1, 2) if pick(0, 19) else 0,
        devices_per_member=pick(1, 3) if pick(0, 19) else 0,
        estimate_uj=min(max(0, estimate), 2**63 - 1),
        grade=grade,
    )


def _usages(state: TreeState) -> dict[str, Usage]:
    return {name: state.usage(name) for name in state.nodes}


def _decided(state: TreeState, claim: Claim) -> Answer:
    """The decision by the oracle, which knows none of our code and sums over the whole tree."""
    tree = {
        node.id: Owed(
            parent=node.parent,
            energy=node.guarantee_uj,
            devices=node.guarantee_devices,
            weight=node.over_quota_weight,
            limit=node.limit_uj,
        )
        for node in state.tree
    }
    asked = Asked(
        node=claim.entitlement,
        gang=claim.gang_size,
        each=claim.devices_per_member,
        energy=claim.estimate_uj,
        observed=claim.grade.value != "Estimator",
    )
    return decided(tree, {name: _used(use) for name, use in _usages(state).items()}, asked)


def _used(use: Usage) -> Used:
    return Used(spent=use.spent_uj, reserved=use.reserved_uj, devices=use.devices)


def _check_all(pick: Pick) -> tuple[str, ...]:
    """P1 to P12 on one tree; the verdict and its reasons, for whoever counts them."""
    state = _tree(pick)
    claim = _claim(pick, state)
    verdict = decide(state, claim)
    reasons = tuple(reason.value for reason in verdict.reasons)
    assert (verdict.outcome.value, reasons, verdict.borrowed_uj) == _decided(state, claim)
    assert bool(reasons) != verdict.admitted
    _check_deny_is_state_free(state, claim, verdict, pick)
    _check_more_use_admits_no_more(state, claim, verdict, pick)
    _check_bounds_of_an_admission(state, claim, verdict)
    _check_shares(state, pick)
    _check_weights_are_relative(state, claim, verdict, pick(2, 5))
    _check_kept_sums(state, pick)
    _check_division(pick)
    _check_victims(pick)
    _check_idleness(pick)
    return verdict.outcome.value, *reasons, *(("borrowed",) if verdict.borrowed_uj else ())


def _check_deny_is_state_free(state: TreeState, claim: Claim, verdict: Verdict, pick: Pick) -> None:
    """P1, and A13's other half: what is not denied fits some state, the empty one."""
    other = decide(TreeState(state.tree, {name: Usage(spent_uj=pick(0, 50)) for name in state.nodes}), claim)
    empty = decide(TreeState(state.tree), claim)
    denied = verdict.outcome is Outcome.DENY
    assert (other.outcome is Outcome.DENY) == denied
    assert empty.outcome is (Outcome.DENY if denied else Outcome.ADMIT)
    if denied:
        assert verdict.reasons == other.reasons == empty.reasons


def _check_more_use_admits_no_more(state: TreeState, claim: Claim, verdict: Verdict, pick: Pick) -> None:
    """P2: raising S or H of any node never turns Queue or Deny into Admit."""
    usage = _usages(state)
    name = f"n{pick(0, len(usage) - 1)}"
    usage[name] = replace(
        usage[name], spent_uj=usage[name].spent_uj + pick(0, 40), devices=usage[name].devices + pick(0, 2)
    )
    if not verdict.admitted:
        assert not decide(TreeState(state.tree, usage), claim).admitted


def _check_bounds_of_an_admission(state: TreeState, claim: Claim, verdict: Verdict) -> None:
    """P3 and P4."""
    if claim.grade is Grade.ESTIMATOR:
        assert verdict.borrowed_uj == 0
    if not verdict.admitted:
        return
    node = state.nodes[claim.entitlement]
    used, held = node.used_uj + claim.estimate_uj, node.held + claim.devices
    assert node.limit_uj is None or used <= node.limit_uj
    assert held <= node.guarantee_devices
    assert used <= max(node.guarantee_uj, node.guarantee_uj + basis_of(node).share_uj)
    assert verdict.borrowed_uj <= claim.estimate_uj


def _check_shares(state: TreeState, pick: Pick) -> None:
    """P5: others' borrowing leaves a share alone. P6: shares of one parent's children never exceed what they have unspent."""
    by_parent: dict[str, list[str]] = {}
    for node in state.tree:
        if node.parent is not None:
            by_parent.setdefault(node.parent, []).append(node.id)
    shares = {name: basis_of(node).share_uj for name, node in state.nodes.items()}
    for children in by_parent.values():
        assert sum(shares[name] for name in children) <= sum(state.nodes[name].unspent_uj for name in children)
    usage = _usages(state)
    for name, live in state.nodes.items():
        if live.used_uj >= live.guarantee_uj:
            usage[name] = replace(usage[name], spent_uj=usage[name].spent_uj + pick(0, 100))
    grown = TreeState(state.tree, usage)
    assert {name: basis_of(node).share_uj for name, node in grown.nodes.items()} == shares


def _check_weights_are_relative(state: TreeState, claim: Claim, verdict: Verdict, factor: int) -> None:
    """P7."""
    scaled = [replace(node, over_quota_weight=node.over_quota_weight * factor) for node in state.tree]
    other = decide(TreeState(Tree(scaled), _usages(state)), claim)
    assert (other.outcome, other.reasons, other.borrowed_uj) == (verdict.outcome, verdict.reasons, verdict.borrowed_uj)


def _check_kept_sums(state: TreeState, pick: Pick) -> None:
    """Sums kept through any run of events are the sums of a state made afresh; what is in use is what it was before and the
    ledger's fold, after every prefix (P8); deciding moves nothing, and writes nothing (P11)."""
    running: dict[str, Verdict] = {}
    before, ledger, claims = _usages(state), Ledger(ledger_id("root-steward", "entitlements")), 0
    for seq in range(pick(0, 5)):
        if running and pick(0, 1):
            name = list(running)[pick(0, len(running) - 1)]
            ended, actual = running.pop(name), pick(0, 2**61)
            state.release(
                ended.claim.entitlement, reserved_uj=ended.reserved_uj, devices=ended.devices, actual_uj=actual
            )
            assert ledger.apply(Released(at_ms=0, claim=name, spent_uj=actual, grade="HwShunt"), seq) is None
        else:
            standing = _usages(state)
            verdict = decide(state, _claim(pick, state))
            assert _usages(state) == standing
            if verdict.admitted:
                apply(state, verdict)
                claims += 1
                running[f"c{claims}"] = verdict
                assert ledger.apply(_admitted(f"c{claims}", verdict), seq) is None
        _check_replayed(state, before, ledger)
    afresh = TreeState(state.tree, _usages(state))
    assert {name: basis_of(node) for name, node in state.nodes.items()} == {
        name: basis_of(node) for name, node in afresh.nodes.items()
    }


def _admitted(claim: str, verdict: Verdict) -> Admitted:
    return Admitted(
        at_ms=0,
        claim=claim,
        entitlement=verdict.claim.entitlement,
        reserved_uj=verdict.reserved_uj,
        borrowed_uj=verdict.borrowed_uj,
        devices=verdict.devices,
        grade=verdict.grade.value,
    )


def _check_replayed(state: TreeState, before: Mapping[str, Usage], ledger: Ledger) -> None:
    moved = ledger.usage
    for name, now in _usages(state).items():
        use = moved.get(name)
        held = (use.spent_uj, use.reserved_uj, use.devices) if use else (0, 0, 0)
        was = (before[name].spent_uj, before[name].reserved_uj, before[name].devices)
        assert (now.spent_uj, now.reserved_uj, now.devices) == tuple(map(sum, zip(was, held, strict=True)))


def _check_division(pick: Pick) -> None:
    """P9, and that the order of occupants is of no account."""
    names = [f"o{number}" for number in range(pick(1, 5))]
    weights = {name: pick(0, (2, 9, 2**63 - 1)[pick(0, 2)]) for name in names}
    weights[names[pick(0, len(names) - 1)]] += 1
    weights = {name: min(weight, 2**63 - 1) for name, weight in weights.items()}
    total, grade = pick(0, (20, 2**63 - 1)[pick(0, 1)]), list(Grade)[pick(0, 2)]
    occupants = [Occupant(id=name, weight=weight) for name, weight in weights.items()]
    shares = attribute(total, grade, occupants)
    check_division(total, weights, {share.id: share.energy_uj for share in shares})
    alone, guessed = len(names) == 1, grade is Grade.ESTIMATOR
    expected = grade if alone or guessed else Grade.MODEL_BASED
    assert {share.grade for share in shares} == {expected}
    assert attribute(total, grade, occupants[::-1]) == shares


def _check_victims(pick: Pick) -> None:
    """P10: every pair is in its order, so the order is total; and it is that of the workloads, not of the list."""
    large = (3, 2**62)[pick(0, 1)]
    running = [
        Running(
            id=f"{'wé'[pick(0, 1)]}{number}",
            spent=large + pick(0, 3),
            units=pick(0, 3),
            observed=pick(0, 2) > 0,
            priority=pick(-1, 1),
        )
        for number in range(pick(0, 6))
    ]
    workloads = [
        Workload(
            id=item.id,
            entitlement="A",
            priority=item.priority,
            spent_uj=item.spent,
            grade=Grade.HW_SHUNT if item.observed else Grade.ESTIMATOR,
            completed_units=item.units,
            devices=1,
            reserved_uj=0,
        )
        for item in running
    ]
    ranking = rank(workloads)
    by_id = {item.id: item for item in running}
    order = [by_id[item.id] for item in ranking.order]
    assert len(order) == len(running)
    assert all(yields_before(one, other) for index, one in enumerate(order) for other in order[index + 1 :])
    assert [item.id for item in ranking.undefined] == [item.id for item in order if not item.known]
    assert rank(workloads[::-1]) == ranking


def _check_idleness(pick: Pick) -> None:
    """P12: each verdict is the oracle's, so no threshold makes a guess idle; only the idle are in the order, lowest rate first."""
    window = (None, pick(0, 3))[pick(0, 3) > 0]
    threshold = (None, 1_000 * pick(0, 4), pick(0, 4_000), 2**63 - 1)[pick(0, 3)]
    watched = [
        Observed(
            id=f"w{number}",
            devices=pick(0, 2),
            observed_ms=pick(0, 4),
            energy_uj=pick(0, 4),
            grade=list(Grade)[pick(0, 2)],
            weight_zero=pick(0, 5) == 0,
        )
        for number in range(pick(0, 5))
    ]
    policy = IdlePolicy(window_ms=window, threshold_uw=threshold)
    for item in watched:
        verdict, why = judge(policy, item)
        assert (verdict.value, why.value) == idleness(
            window,
            threshold,
            devices=item.devices,
            watched_ms=item.observed_ms,
            uj=item.energy_uj,
            observed=item.grade.value != "Estimator",
            share_of_0=item.weight_zero,
        )
    order = reclamation_order(policy, watched)
    assert {item.id for item in order} == {item.id for item in watched if judge(policy, item)[0] is IdleVerdict.IDLE}
    assert not any(item.grade is Grade.ESTIMATOR for item in order)
    for one, other in zip(order, order[1:], strict=False):
        here, there = one.energy_uj * other.observed_ms, other.energy_uj * one.observed_ms
        assert here < there or (here == there and one.id < other.id)
    assert reclamation_order(policy, watched[::-1]) == order


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.clause(
    "pool/1 §7.1",
    "pool/1 §7.2",
    "pool/1 §7.4",
    "pool/1 §7.5",
    "pool/1 §2.1",
    "pool/1 §2.2 (1)",
    "pool/1 §2.2 (2)",
    "pool/1 §4",
    "pool/1 §4.4",
    "pool/1 §4.5",
)
def test_decisions_on_seeded_trees(seed: int) -> None:
    """P1 to P12, on a thousand trees a seed."""
    generator = random.Random(seed)
    seen = Counter(word for _ in range(1_000) for word in _check_all(generator.randint))
    assert set(seen) == {"Admit", "borrowed", "Queue", "Deny", *(item.value for item in Reason)} - {
        "unknown-entitlement"
    }
    assert min(seen.values()) >= 10 and min(seen["Admit"], seen["Queue"], seen["Deny"]) >= 100


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_decisions_on_drawn_trees(data: st.DataObject) -> None:
    """P1 to P12, shrinking."""
    _check_all(lambda low, high: data.draw(st.integers(low, high)))


_occupants = st.dictionaries(st.text(min_size=1, max_size=3), st.integers(0, 2**63 - 1), min_size=1, max_size=6).filter(
    lambda weights: any(weights.values())
)


@given(st.integers(0, 2**63 - 1), st.sampled_from(Grade), _occupants, st.randoms())
@pytest.mark.clause("pool/1 §7.3", "pool/1 §7.18", "pool/1 §7.19", "pool/1 §2.5 (1)", "pool/1 §2.5 (2)")
def test_attribution_conserves_and_ignores_order(
    total: int, grade: Grade, weights: Mapping[str, int], shuffler: random.Random
) -> None:
    """P9."""
    occupants = [Occupant(id=name, weight=weight) for name, weight in weights.items()]
    shares = attribute(total, grade, occupants)
    assert sum(share.energy_uj for share in shares) == total
    whole = sum(weights.values())
    for share in shares:
        exact = Fraction(total * weights[share.id], whole)
        assert exact - 1 < share.energy_uj < exact + 1
        assert share.weight_zero == (weights[share.id] == 0)
        assert share.energy_uj == 0 or not share.weight_zero
        assert len(shares) == 1 or share.grade is not Grade.HW_SHUNT
        assert share.grade is Grade.ESTIMATOR or grade is not Grade.ESTIMATOR
    shuffler.shuffle(occupants)
    assert attribute(total, grade, occupants) == shares


_workloads = st.lists(
    st.builds(
        Workload,
        id=st.text(min_size=1, max_size=2),
        entitlement=st.just("A"),
        priority=st.integers(-2, 2),
        spent_uj=st.integers(0, 6) | st.integers(2**62, 2**62 + 2),
        grade=st.sampled_from(Grade),
        completed_units=st.integers(0, 3),
        devices=st.integers(0, 3),
        reserved_uj=st.integers(0, 9),
    ),
    max_size=8,
    unique_by=lambda workload: workload.id,
)


@given(_workloads, st.randoms())
@pytest.mark.clause("pool/1 §7.9", "pool/1 §5.2 (1)", "pool/1 §5.2 (2)")
def test_the_order_of_victims_is_total(workloads: list[Workload], shuffler: random.Random) -> None:
    """P10: insertion order does not matter, and every adjacent pair is in the order of §5.2."""
    ranking = rank(workloads)
    assert sorted(item.id for item in ranking.order) == sorted(item.id for item in workloads)
    known = len(ranking.order) - len(ranking.undefined)
    assert ranking.order[known:] == ranking.undefined
    for one, other in zip(ranking.order, ranking.order[1:], strict=False):
        cost, next_cost = realised_cost(one), realised_cost(other)
        if cost is None:
            assert next_cost is None
            assert (one.priority, one.id.encode()) < (other.priority, other.id.encode())
        elif next_cost is not None:
            assert cost > next_cost or (cost == next_cost and one.id.encode() < other.id.encode())
    shuffler.shuffle(workloads)
    assert rank(workloads) == ranking


_observed = st.lists(
    st.builds(
        Observed,
        id=st.text(min_size=1, max_size=2),
        devices=st.integers(0, 2),
        observed_ms=st.integers(0, 3),
        energy_uj=st.integers(0, 4),
        grade=st.sampled_from(Grade),
        weight_zero=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda workload: workload.id,
)
_policies = st.builds(
    IdlePolicy,
    window_ms=st.none() | st.integers(0, 3),
    threshold_uw=st.none() | st.integers(0, 5_000) | st.just(2**63 - 1),
)


@given(_policies, _observed, st.randoms())
@pytest.mark.clause(
    "pool/1 §7.25",
    "pool/1 §7.26",
    "pool/1 §7.27",
    "pool/1 §7.28",
    "pool/1 §2.7 (1)",
    "pool/1 §2.7 (2)",
    "pool/1 §2.7 (3)",
    "pool/1 §2.7 (4)",
)
def test_no_threshold_makes_a_guess_idle(
    policy: IdlePolicy, workloads: list[Observed], shuffler: random.Random
) -> None:
    """P12: only evidence over a whole configured window, below the threshold, reclaims; everybody else is absent."""
    order = reclamation_order(policy, workloads)
    for workload in order:
        assert workload.grade is not Grade.ESTIMATOR
        assert not workload.weight_zero
        assert workload.devices > 0
        assert policy.window_ms
        assert workload.observed_ms >= policy.window_ms
        assert policy.threshold_uw is not None
        assert workload.energy_uj * 1_000 < policy.threshold_uw * workload.observed_ms
    idle = {item.id for item in workloads if judge(policy, item)[0] is IdleVerdict.IDLE}
    assert {item.id for item in order} == idle
    shuffler.shuffle(workloads)
    assert reclamation_order(policy, workloads) == order
