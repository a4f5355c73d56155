"""Dangers are computed again under the write lock, from the usage of that moment (plan-apply.md, "Dangers" and step 9).

issue: "Usage that rises between plan and apply turns a harmless shrink into an unaccepted danger."
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.engine import builders, calls, claims, reservations
from fleetctl.engine.apply import apply_plan, check_plan
from fleetctl.engine.context import Engine
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.errors import SafetyRefused, Stale
from fleetctl.model.declared import Acceptance, Fleet
from fleetctl.plan.planfile import write_plan
from fleetctl.pool1.grade import Grade
from fleetctl.units import end_of_date_ms
from tests.support import engines as te

SHRINK = "shrink-below-use:offer/pool-a/acme"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = te.new_engine(tmp_path / "engine")
    te.applied(made, te.fleet(te.pool("pool-a"), te.pool("pool-b"), te.offer("pool-a"), te.entitlement()))
    for pool in ("pool-a", "pool-b"):
        reservations.join_node(made, pool=pool, name=f"n-{pool}", gpus=8)
    return made


def wanted(gpus: int, *accept: str | Acceptance, **entitlement: int) -> Fleet:
    return te.fleet(
        te.pool("pool-a"),
        te.pool("pool-b"),
        te.offer("pool-a", gpus=gpus),
        te.entitlement(**entitlement),  # type: ignore[arg-type]  # energy_uj and devices, given by the tests below
        accept=accept,
    )


def book(engine: Engine, gpus: int, tenant: str = "acme", pool: str = "pool-a") -> None:
    assert reservations.create(engine, tenant=tenant, pool=pool, gpus=gpus).reservation.state == "active"


def claim(engine: Engine, devices: int, energy_uj: int = 0) -> None:
    verdict = claims.admit(
        engine,
        claim=f"c{te.lengths(engine)[1]}",
        entitlement="ent",
        gang_size=1,
        devices_per_member=devices,
        estimate_uj=energy_uj,
        grade=Grade.ESTIMATOR,
    ).verdict
    assert verdict.admitted


def refused(engine: Engine, data: bytes, *accept: str) -> str:
    """The refusal of an apply, which has changed nothing."""
    folder = te.state_of(engine).parent
    before = te.dump(folder)
    with pytest.raises(SafetyRefused) as caught:
        check_plan(engine, data, accept)
    with pytest.raises(SafetyRefused) as again:
        apply_plan(engine, data, accept=accept)
    assert str(again.value) == str(caught.value)
    assert (caught.value.code, caught.value.exit_code) == ("unaccepted-danger", 3)
    assert te.dump(folder) == before
    return str(caught.value)


RISES: dict[str, tuple[Fleet, Callable[[Engine], None], str]] = {
    "quota": (wanted(4), lambda engine: book(engine, 6), SHRINK),
    "owner quota": (
        te.fleet(te.pool("pool-a", owner_quota={"gpu": 2}), te.pool("pool-b"), te.offer("pool-a"), te.entitlement()),
        lambda engine: book(engine, 3, tenant="root"),
        "shrink-below-use:pool/pool-a",
    ),
    "devices": (wanted(32, devices=2), lambda engine: claim(engine, 3), "shrink-below-use:entitlement/ent"),
    "energy": (wanted(32, energy_uj=99), lambda engine: claim(engine, 1, 100), "shrink-below-use:entitlement/ent"),
    "withdrawal": (
        te.fleet(te.pool("pool-a"), te.pool("pool-b"), te.entitlement(), accept=["share:fleet/eu"]),
        lambda engine: book(engine, 1),
        "remove:offer/pool-a/acme",
    ),
    "retirement": (
        te.fleet(te.pool("pool-a"), te.offer("pool-a"), te.entitlement(), accept=["share:fleet/eu"]),
        lambda engine: book(engine, 1, tenant="root", pool="pool-b"),
        "remove:pool/pool-b",
    ),
}


@pytest.mark.parametrize("name", RISES)
def test_usage_that_rises_after_the_plan_makes_a_danger_that_nobody_accepted(engine: Engine, name: str) -> None:
    declared, rise, danger = RISES[name]
    planned = plan_fleet(engine, declared, Source(), host="host")
    assert {item.id for item in planned.plan.dangers} <= {"share:fleet/eu"}
    data = write_plan(planned.file)
    rise(engine)
    assert f"{danger}:" in refused(engine, data)
    # Accepting it now does not help: the plan that people saw did not have it.
    assert "arose after the plan was made" in refused(engine, data, danger)
    again = te.planned(engine, declared, accept=[danger])
    assert apply_plan(engine, again).accepted == tuple(sorted({danger, *(item.danger for item in declared.accept)}))
    te.check_whole(engine)


def test_a_danger_worse_than_the_figure_that_was_accepted_is_not_the_one_that_was_accepted(engine: Engine) -> None:
    book(engine, 4)
    data = te.planned(engine, wanted(2, SHRINK))
    book(engine, 1)
    assert "it is worse than what was accepted (gpu 2 → 3)" in refused(engine, data)
    assert "worse" in refused(engine, data, SHRINK)


def test_a_danger_that_became_smaller_is_accepted_still(engine: Engine) -> None:
    book(engine, 4)
    booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=2)
    data = te.planned(engine, wanted(2, SHRINK))
    reservations.end(engine, booked.reservation.id)
    assert apply_plan(engine, data).accepted == (SHRINK,)


def test_a_danger_that_went_away_needs_no_acceptance(engine: Engine) -> None:
    booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=2)
    data = te.planned(engine, wanted(1))
    refused(engine, data)
    reservations.end(engine, booked.reservation.id)
    assert apply_plan(engine, data).accepted == ()


def test_an_acceptance_holds_to_the_end_of_its_day_and_no_longer(engine: Engine) -> None:
    """pins.md: `until` is a date, to the end of that day in UTC, judged at apply."""
    book(engine, 4)
    last = end_of_date_ms("2026-12-24")
    until = Acceptance(danger=SHRINK, reason="holidays", until="2026-12-24")
    assert isinstance(engine.clock, te.ToldClock)
    engine.clock.at_ms = last - 1
    data = te.planned(engine, wanted(2, until))
    engine.clock.at_ms = last
    assert "past its `until`" in refused(engine, data)
    engine.clock.at_ms = last - 1
    assert apply_plan(engine, data).result == "applied"


def test_an_acceptance_by_flag_is_sealed_and_leaves_the_digest_alone(engine: Engine) -> None:
    """pins.md: "`apply PLAN --accept ID` is recorded in the sealed entry and leaves the digest alone"."""
    book(engine, 4)
    planned = plan_fleet(engine, wanted(2), Source(), host="host")
    receipt = apply_plan(engine, write_plan(planned.file), accept=[SHRINK])
    assert receipt.plan == planned.file.digest
    last = te.journal(engine)[-1]
    assert getattr(last, "accepted", None) == (SHRINK,)
    assert getattr(last, "plan", b"").hex() == planned.file.digest


def test_an_acceptance_of_something_else_accepts_nothing(engine: Engine) -> None:
    book(engine, 4)
    for other in ("shrink-below-use:offer/pool-b/acme", "remove:offer/pool-a/acme", SHRINK.upper(), f"{SHRINK} "):
        refused(engine, te.planned(engine, wanted(2, other)))


def test_a_threshold_that_was_tightened_after_the_plan_counts_at_apply(engine: Engine) -> None:
    """Settings are objects of the same state: the share is judged by those in force (plan-apply.md, "Dangers")."""
    _loosen(engine, 100)
    data = te.planned(engine, te.fleet(te.pool("pool-a"), te.offer("pool-a"), te.entitlement()))
    _loosen(engine, 10)
    assert "share:fleet/eu" in refused(engine, data)
    _loosen(engine, 100)
    assert apply_plan(engine, data).result == "applied"


def _loosen(engine: Engine, percent: int) -> None:
    build = builders.settings_change(lambda body: replace(body, share_threshold_percent=percent))
    calls.call(engine, "settings.set", tenant="root", request={}, build=build)


def test_required_approvals_stop_every_plan_until_it_can_be_signed(engine: Engine) -> None:
    """plan-apply.md, step 3: a plan without the signatures that the settings require is exit 3."""
    data = te.planned(engine, wanted(8))
    build = builders.settings_change(lambda body: replace(body, required_approvals=1))
    calls.call(engine, "settings.set", tenant="root", request={}, build=build)
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(engine, data)
    assert caught.value.code == "missing-signature"


def test_protection_set_after_the_plan_makes_the_plan_stale(engine: Engine) -> None:
    data = te.planned(
        engine, te.fleet(te.pool("pool-a"), te.offer("pool-a"), te.entitlement()), accept=["share:fleet/eu"]
    )
    build = builders.flag("pool", te.id_of("pool", "pool-b"), protect=True)
    calls.call(engine, "pools.update", tenant="root", request={}, build=build)
    with pytest.raises(Stale) as caught:
        apply_plan(engine, data)
    assert "moved by journal entry 1" in str(caught.value)


# ----------------------------------------------------------------------------------------------- revert and origin


def test_a_plan_from_before_another_apply_is_stale_even_where_no_object_moved(engine: Engine) -> None:
    """The body names the last applied commit; the engine checks that it still is the last one (pins.md)."""
    first = Source(commit="a" * 40, origin=("root", "fleet"), is_ancestor=lambda _: True)
    te.applied(engine, wanted(31), source=first)
    data = te.planned(engine, te.fleet(*wanted(31).objects[2:], te.pool("pool-c")), source=first)
    second = replace(first, commit="b" * 40)
    te.applied(engine, wanted(30), source=second)
    with pytest.raises(Stale) as caught:
        apply_plan(engine, data)
    assert caught.value.code == "stale-source"


@pytest.mark.parametrize(
    ("source", "danger"),
    [
        (Source(commit="c" * 40, origin=("root", "fleet"), is_ancestor=lambda _: False), "revert:fleet/eu"),
        (Source(commit="c" * 40, origin=("root", "other"), is_ancestor=lambda _: True), "origin:fleet/eu"),
    ],
)
def test_dangers_of_history_are_computed_again_too(engine: Engine, source: Source, danger: str) -> None:
    te.applied(engine, wanted(31), source=Source(commit="a" * 40, origin=("root", "fleet")))
    data = te.planned(engine, wanted(30), source=source)
    assert danger in refused(engine, data)
    assert apply_plan(engine, data, accept=[danger]).accepted == (danger,)


def test_more_dangers_than_one_entry_can_name_are_refused_before_anybody_accepts_them(tmp_path: Path) -> None:
    """ledger.md, `applied`: `accepted` is a list of at most 1,024 danger ids."""
    engine = te.new_engine(tmp_path / "engine")
    keys = [f"p{number}" for number in range(1_025)]
    te.applied(engine, te.fleet(*(te.pool(key, protect=True) for key in keys)))

    def unprotected(count: int) -> Fleet:
        return te.fleet(
            *(te.pool(key, protect=place >= count) for place, key in enumerate(keys)),
            accept=[f"unprotect:pool/{key}" for key in keys[:count]],
        )

    with pytest.raises(SafetyRefused, match=r"1025 dangers \(1025 unprotect\).* at most 1024 .* in parts") as caught:
        te.planned(engine, unprotected(1_025))
    assert (caught.value.code, caught.value.exit_code) == ("too-many-dangers", 3)
    assert len(te.applied(engine, unprotected(1_024)).accepted) == 1_024
    te.check_whole(engine)


def test_one_danger_too_many_that_arose_since_the_plan_is_refused_by_check_and_apply(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine")
    keys = [f"p{number}" for number in range(1_024)]
    te.applied(engine, te.fleet(te.pool("pool-a"), te.offer("pool-a"), *(te.pool(key, protect=True) for key in keys)))
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=8)
    plain = te.fleet(
        *(te.pool("pool-a"), te.offer("pool-a", gpus=4), *(te.pool(key) for key in keys)),
        accept=[f"unprotect:pool/{key}" for key in keys],
    )
    data = te.planned(engine, plain)
    book(engine, 6)
    for run in (check_plan, apply_plan):
        with pytest.raises(SafetyRefused, match=r"1 shrink-below-use, 1024 unprotect") as caught:
            run(engine, data)
        assert caught.value.code == "too-many-dangers"
