"""Trees, usage, claims and their figures, beyond the case files (pool/1 §2, §6.2)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from fleetctl.errors import BadInput
from fleetctl.pool1.admission import apply, decide
from fleetctl.pool1.attribution import Occupant
from fleetctl.pool1.claim import Claim, Figure, summed
from fleetctl.pool1.estimates import Estimate, Observation, derive, in_scope
from fleetctl.pool1.grade import Grade, divided, weakest
from fleetctl.pool1.idle import IdlePolicy, Observed, mean_uw
from fleetctl.pool1.preemption import Workload, candidates, rank, victims
from fleetctl.pool1.tree import Entitlement, Tree, TreeState, Usage
from tests.support.pool1_notation import read_claim, read_state

HW, MB, ES = Grade.HW_SHUNT, Grade.MODEL_BASED, Grade.ESTIMATOR


def _node(name: str, parent: str | None = None) -> Entitlement:
    return Entitlement(id=name, parent=parent, guarantee_uj=1, guarantee_devices=1, over_quota_weight=1)


def _codes(nodes: list[Entitlement]) -> list[str]:
    with pytest.raises(BadInput) as caught:
        Tree(nodes)
    return [item.code.name for item in caught.value.diagnostics]


def test_all_faults_of_a_tree_are_told_at_once() -> None:
    """A70."""
    nodes = [
        _node("A", "A"),
        _node("B", "Z"),
        _node("C", "D"),
        _node("D", "E"),
        _node("E", "C"),
        _node("F", "C"),
        _node("F"),
    ]
    assert sorted(_codes(nodes)) == ["tree-cycle", "tree-duplicate-id", "tree-self-parent", "tree-unknown-parent"]


def test_a_long_chain_is_no_cycle_and_costs_no_recursion() -> None:
    nodes = [_node("n0")] + [_node(f"n{i}", f"n{i - 1}") for i in range(1, 20_000)]
    assert len(Tree(reversed(nodes)).nodes) == 20_000


def test_two_cycles_are_two_faults() -> None:
    nodes = [_node("A", "B"), _node("B", "A"), _node("C", "D"), _node("D", "C"), _node("E", "A")]
    assert _codes(nodes) == ["tree-cycle", "tree-cycle"]


_WRONG: list[Callable[[int], object]] = [
    lambda value: Claim(entitlement="A", gang_size=value, devices_per_member=1, estimate_uj=1, grade=MB),
    lambda value: Claim(entitlement="A", gang_size=1, devices_per_member=value, estimate_uj=1, grade=MB),
    lambda value: Claim(entitlement="A", gang_size=1, devices_per_member=1, estimate_uj=value, grade=MB),
    lambda value: Entitlement(id="A", parent=None, guarantee_uj=value, guarantee_devices=0, over_quota_weight=0),
    lambda value: Entitlement(id="A", parent=None, guarantee_uj=0, guarantee_devices=value, over_quota_weight=0),
    lambda value: Entitlement(id="A", parent=None, guarantee_uj=0, guarantee_devices=0, over_quota_weight=value),
    lambda value: Entitlement(
        id="A", parent=None, guarantee_uj=0, guarantee_devices=0, over_quota_weight=0, limit_uj=value
    ),
    lambda value: Figure(energy_uj=value, grade=HW),
    lambda value: Occupant(id="a", weight=value),
    lambda value: Observation(claim_class="x", energy_uj=value, grade=HW),
    lambda value: IdlePolicy(window_ms=value),
    lambda value: IdlePolicy(threshold_uw=value),
    lambda value: Observed(id="a", devices=1, observed_ms=value, energy_uj=0, grade=HW),
]


@pytest.mark.parametrize("value", [-1, 2**63, True, 1.0, "1"])
@pytest.mark.parametrize("make", _WRONG)
def test_figures_are_bounded_integers(make: Callable[[int], object], value: int) -> None:
    """A29: 0..2^63-1, and `true` is not 1."""
    with pytest.raises(ValueError, match="must be an integer"):
        make(value)
    make(2**63 - 1)


@pytest.mark.parametrize("priority", [2**63, -(2**63), True])
def test_priorities_are_bounded(priority: int) -> None:
    with pytest.raises(ValueError, match="priority"):
        Entitlement(id="A", parent=None, guarantee_uj=0, guarantee_devices=0, over_quota_weight=0, priority=priority)
    with pytest.raises(ValueError, match="priority"):
        _workload("w", priority=priority)


def test_a_release_of_what_was_never_reserved_is_refused() -> None:
    """§6.4: a history that did not happen."""
    state = read_state("A G100 R10 H1 <-")
    with pytest.raises(ValueError, match="negative"):
        state.release("A", reserved_uj=11, devices=1, actual_uj=5)
    with pytest.raises(ValueError, match="negative"):
        state.release("gone", reserved_uj=0, devices=1, actual_uj=5)
    assert state.usage("A") == Usage(reserved_uj=10, devices=1)


def test_only_an_admission_reserves() -> None:
    """§6.2: a Queue or a Deny reserves nothing."""
    state = read_state("A G100 S100 <-")
    with pytest.raises(ValueError, match="Queue reserves nothing"):
        apply(state, decide(state, read_claim("A 1 HW")))


def test_the_explicit_choice_of_grades() -> None:
    """§2.3, A55, A72."""
    assert weakest([HW, MB]) is MB
    assert weakest([HW, ES, MB]) is ES
    assert summed([Figure(energy_uj=10, grade=HW), Figure(energy_uj=1, grade=ES)]) == (11, ES)
    assert [divided(grade, 2) for grade in (HW, MB, ES)] == [MB, MB, ES]
    assert [divided(grade, 1) for grade in (HW, MB, ES)] == [HW, MB, ES]
    with pytest.raises(ValueError, match="empty"):
        weakest([])


def test_evidence_is_an_entitlements_own_unless_the_policy_pools() -> None:
    """A57: a tenant earns an estimate by being measured."""
    history = [Observation(claim_class="x", energy_uj=7, grade=HW, entitlement="B") for _ in range(3)]
    history.append(Observation(claim_class="y", energy_uj=9, grade=HW, entitlement="A"))
    assert in_scope(history, entitlement="A", claim_class="x") == []
    pooled = in_scope(history, entitlement="A", claim_class="x", across_entitlements=True)
    assert derive("x", pooled) == Estimate(energy_uj=7, spread_uj=(7, 7), seen=3, evidence=3)


def _workload(name: str, *, entitlement: str = "A", devices: int = 1, priority: int = 0, **figures: int) -> Workload:
    return Workload(
        id=name,
        entitlement=entitlement,
        priority=priority,
        spent_uj=figures.get("spent", 0),
        grade=HW,
        completed_units=figures.get("units", 0),
        devices=devices,
        reserved_uj=figures.get("reserved", 0),
    )


def test_only_borrowers_under_the_same_parent_are_candidates() -> None:
    """A41, ours: W1 in its guarantee at cost 500, W2 borrowed at cost 100; the raw order is W1, W2."""
    state = read_state("A G100 w1; B G100 S90 w1; C G100 S150 w1; X <-; D @X G1 S2 w1; R G1 S2 <-")
    workloads = [
        _workload("W1", entitlement="B", spent=500, units=1),
        _workload("W2", entitlement="C", spent=100, units=1),
        _workload("W3", entitlement="D"),
        _workload("W4", entitlement="R"),
        _workload("W5", entitlement="gone"),
    ]
    assert [item.id for item in rank(workloads).order[:2]] == ["W1", "W2"]
    assert [item.id for item in candidates(state, "A", workloads)] == ["W2"]
    assert [item.id for item in candidates(state, "R", workloads)] == ["W4"]


def test_the_shortest_prefix_that_frees_the_need() -> None:
    """A47: need 4 devices, victims hold 2, 8, 1."""
    order = [_workload("a", devices=2), _workload("b", devices=8), _workload("c", devices=1)]
    assert victims(order, devices=4, energy_uj=0) == order[:2]
    assert victims(order, devices=0, energy_uj=0) == []
    assert victims(order, devices=12, energy_uj=0) is None


def test_freed_energy_is_what_is_left_of_the_reservation() -> None:
    """A47: the reservation less what was spent, floored at 0."""
    order = [_workload("a", reserved=100, spent=130), _workload("b", reserved=100, spent=40)]
    assert [item.freed_uj for item in order] == [0, 60]
    assert victims(order, devices=1, energy_uj=60) == order
    assert victims(order, devices=1, energy_uj=61) is None


@pytest.mark.clause("pool/1 §7.26")
def test_an_empty_window_has_no_rate() -> None:
    """§2.7: no rate, not a rate of 0."""
    assert mean_uw(Observed(id="a", devices=1, observed_ms=0, energy_uj=0, grade=HW)) is None
    assert mean_uw(Observed(id="a", devices=1, observed_ms=2000, energy_uj=3, grade=HW)) == 1.5


def _steps(state: TreeState, claim: Claim) -> int:
    """How many bytecodes of Python a decision, its reservation and a release take."""
    steps = 0

    def count(frame: FrameType, event: str, _: object) -> Callable[..., object]:
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        verdict = decide(state, claim)
        apply(state, verdict)
        state.release(claim.entitlement, reserved_uj=verdict.reserved_uj, devices=verdict.devices, actual_uj=1)
    finally:
        sys.settrace(before)
    assert verdict.borrowed_uj > 0
    return steps


def test_deciding_costs_the_same_in_a_tree_of_any_size() -> None:
    """Sibling sums are kept, not recomputed: the very same steps among 2 siblings and among 20,000, and at any depth."""
    claim = read_claim("A 150 HW 2x2")
    sizes = []
    for siblings, depth in ((2, 1), (20_000, 1), (2, 500)):
        top = "; ".join(["P <-", *(f"P{n} @P{n - 1 or ''} G5" for n in range(1, depth))]).replace("@P0", "@P")
        above = f"P{depth - 1}" if depth > 1 else "P"
        others = "; ".join(f"B{n} @{above} G1000 S10 w1" for n in range(siblings))
        state = read_state(f"{top}; A @{above} G100 w{10 * siblings}; {others}")
        _steps(state, claim)  # what is made once, at first use, is made before it is counted
        sizes.append(_steps(state, claim))
    assert sizes[0] > 100
    assert sizes == [sizes[0]] * 3


def test_usage_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        Usage(devices=-1)


def test_an_empty_tree_denies_everything() -> None:
    verdict = decide(TreeState(Tree([])), read_claim("A 0 ES"))
    assert [reason.value for reason in verdict.reasons] == ["unknown-entitlement"]


def test_messages_stay_short_and_printable_whatever_the_ids_hold() -> None:
    """Rule 10: hostile ids reach a terminal escaped and cut."""
    names = [f"\x1b[31m\n{'n' * 10_000}{index}" for index in range(500)]
    ring = [_node(name, names[index - 1]) for index, name in enumerate(names)]
    with pytest.raises(BadInput) as caught:
        Tree([*ring, _node("x", "\u202e")])
    for item in caught.value.diagnostics:
        assert item.detail.isprintable()
        assert len(item.detail) < 1_000
