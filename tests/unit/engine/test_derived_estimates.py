"""Claims whose estimate the ledger's own history gives (pool/1 §2.6)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.engine import claims
from fleetctl.engine.context import Engine
from fleetctl.errors import BadInput, EngineRefused
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.estimates import Declined, Estimate, Observation, derive, derive_counted
from fleetctl.pool1.grade import Grade
from tests.support import engines as te


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = te.new_engine(tmp_path / "engine")
    te.applied(made, te.fleet(te.entitlement(energy_uj=10_000), te.entitlement("other", energy_uj=10_000)))
    return made


def ran(engine: Engine, claim: str, spent: int, grade: Grade, *, name: str = "train", entitlement: str = "ent") -> None:
    """A claim of the class that was admitted and has ended."""
    found = claims.admit(
        engine,
        claim=claim,
        entitlement=entitlement,
        gang_size=1,
        devices_per_member=1,
        estimate_uj=1,
        grade=Grade.ESTIMATOR,
        workload_class=name or None,
    )
    assert found.verdict.admitted
    claims.release(engine, claim=claim, reading=Figure(energy_uj=spent, grade=grade))


def derived(engine: Engine, claim: str = "next", **changes: object) -> claims.Admission | claims.Unestimated:
    values: dict[str, object] = {
        "entitlement": "ent",
        "gang_size": 1,
        "devices_per_member": 2,
        "workload_class": "train",
    }
    return claims.admit_derived(engine, claim=claim, **(values | changes))  # type: ignore[arg-type]  # its keywords


@pytest.mark.parametrize("every", [1, 256])
@pytest.mark.clause("pool/1 §7.7", "pool/1 §7.21", "pool/1 §7.22", "pool/1 §2.6 (1)", "pool/1 §2.6 (2)", "pool/1 §3")
def test_the_most_that_observed_runs_cost_is_reserved_as_a_model(engine: Engine, every: int) -> None:
    """readings A58: HW 90, ES 500, HW 110, MB 100 give 110, spread 90 to 110, from 3 of 4; also from a checkpoint."""
    engine = replace(engine, checkpoint_every=every)
    ran(engine, "r1", 90, Grade.HW_SHUNT)
    ran(engine, "r2", 500, Grade.ESTIMATOR)
    ran(engine, "r3", 110, Grade.HW_SHUNT)
    before = te.dump(te.state_of(engine).parent, ["entries", "streams"])
    found = derived(engine)
    assert isinstance(found, claims.Unestimated)
    assert (found.declined, found.required) == (Declined(seen=3, evidence=2), 3)
    assert te.dump(te.state_of(engine).parent, ["entries", "streams"]) == before
    ran(engine, "r4", 100, Grade.MODEL_BASED)
    admitted = derived(engine)
    assert isinstance(admitted, claims.Admission)
    assert admitted.estimate == Estimate(energy_uj=110, spread_uj=(90, 110), seen=4, evidence=3)
    assert (admitted.verdict.reserved_uj, admitted.verdict.grade) == (110, Grade.MODEL_BASED)
    with engine.store.read() as reader:
        *_, (_, sealed) = te.usage_events(engine, reader)
    assert (sealed.reserved_uj, sealed.grade, sealed.workload_class) == (110, "ModelBased", "train")  # type: ignore[union-attr]  # an Admitted


@pytest.mark.clause("pool/1 §7.24", "pool/1 §2.6 (3)")
def test_a_tenant_is_not_measured_by_being_like_another(engine: Engine) -> None:
    """readings A57, A59: the same class, to the byte, and the same entitlement."""
    for number in range(3):
        ran(engine, f"b{number}", 100, Grade.HW_SHUNT, entitlement="other")
        ran(engine, f"t{number}", 100, Grade.HW_SHUNT, name="Train")
        ran(engine, f"n{number}", 100, Grade.HW_SHUNT, name="")
    found = derived(engine)
    assert isinstance(found, claims.Unestimated) and found.declined == Declined(seen=0, evidence=0)
    assert isinstance(derived(engine, entitlement="other"), claims.Admission)


@pytest.mark.parametrize(("required", "runs"), [(0, 1), (1, 1), (2, 2), (5, 5)])
@pytest.mark.clause("pool/1 §7.23", "pool/1 §2.6 (2)")
def test_the_required_count_is_the_callers_and_0_is_1(engine: Engine, required: int, runs: int) -> None:
    for number in range(runs):
        found = derived(engine, required=required)
        assert isinstance(found, claims.Unestimated)
        assert (found.declined.seen, found.required) == (number, max(1, required))
        ran(engine, f"r{number}", 100, Grade.HW_SHUNT)
    assert isinstance(derived(engine, required=required), claims.Admission)


@pytest.mark.clause("pool/1 §7.24", "pool/1 §2.6 (3)")
def test_what_is_refused_before_any_estimate(engine: Engine) -> None:
    """§2.6, an empty class; a claim id used before; §4.1, an entitlement that is not there needs no estimate to be denied."""
    for name, code in (("", "empty-class"), ("  ", "empty-class"), ("a b", "bad-ledger-identifier")):
        with pytest.raises(BadInput) as bad:
            derived(engine, workload_class=name)
        assert bad.value.code == code
    ran(engine, "used", 1, Grade.HW_SHUNT)
    with pytest.raises(EngineRefused) as caught:
        derived(engine, "used")
    assert caught.value.code == "duplicate-claim"
    denied = derived(engine, entitlement="nobody")
    assert isinstance(denied, claims.Admission)
    assert [reason.value for reason in denied.verdict.reasons] == ["unknown-entitlement"] and denied.entry is None


@given(
    st.lists(st.tuples(st.integers(0, 2**63 - 1), st.sampled_from(Grade)), max_size=8),
    st.integers(0, 6),
)
def test_counting_first_changes_nothing(history: list[tuple[int, Grade]], required: int) -> None:
    """The ledger keeps counts and spread of each class; deriving from those is deriving from the runs themselves."""
    runs = [Observation(claim_class="c", energy_uj=energy, grade=grade) for energy, grade in history]
    evidence = [energy for energy, grade in history if grade.observed] or [0]
    counted = derive_counted(
        "c",
        seen=len(runs),
        evidence=sum(grade.observed for _, grade in history),
        spread_uj=(min(evidence), max(evidence)),
        required=required,
    )
    assert counted == derive("c", runs, required=required)
