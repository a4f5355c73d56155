"""What accepts a danger, and up to which figure (plan-apply: "Dangers"; pins: "Plan file")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.errors import SafetyRefused
from fleetctl.model.declared import Acceptance
from fleetctl.model.usage import EntitlementUse
from fleetctl.plan.dangers import Danger, figures_from_json, unaccepted
from fleetctl.plan.planfile import PlanFile
from fleetctl.units import UnixMs, end_of_date_ms, parse_time
from tests.support.worlds import NOW, World, fleet

ID = "shrink-below-use:offer/p1/acme"
DANGER = Danger(kind="shrink-below-use", subject="offer/p1/acme", detail="", figures={"gpu": 8, "gpu.mig": 3})


def _why(
    *accepted: Acceptance,
    planned: Mapping[str, Mapping[str, int]] | None = None,
    now: int = NOW,
    danger: Danger = DANGER,
) -> str | None:
    as_planned = {danger.id: danger.figures} if planned is None else planned
    found = unaccepted([danger], accepted, as_planned, now)
    assert len(found) <= 1
    return found[0][1] if found else None


def test_nobody_accepted_it() -> None:
    assert _why() == "nobody accepted it"
    assert _why(Acceptance(danger="remove:offer/p1/acme"), Acceptance(danger="share:fleet/eu")) == "nobody accepted it"


def test_an_acceptance_is_of_one_danger_by_its_whole_id() -> None:
    for other in ("shrink-below-use:offer/p1", "shrink-below-use:offer/p1/acme2", "shrink-below-use:*", "", ID.upper()):
        assert _why(Acceptance(danger=other)) == "nobody accepted it"
    assert _why(Acceptance(danger=ID)) is None


def test_until_is_to_the_end_of_that_day_in_utc() -> None:
    accepted = Acceptance(danger=ID, until="2026-12-31")
    last = parse_time("2027-01-01T00:00Z") * 60_000 - 1
    assert _why(accepted, now=last) is None
    assert _why(accepted, now=last + 1) == "its acceptance is past its `until`"
    assert last + 1 == end_of_date_ms("2026-12-31")


def test_the_best_of_several_acceptances_counts() -> None:
    old, new = Acceptance(danger=ID, until="2026-01-01"), Acceptance(danger=ID, until="2027-01-01")
    for accepted in ((old, new), (new, old), (old, Acceptance(danger=ID)), (Acceptance(danger=ID), old)):
        assert _why(*accepted) is None
    assert _why(old, old) == "its acceptance is past its `until`"


def test_it_arose_after_the_plan_was_made() -> None:
    """A flag that accepts it does not help: nobody saw a figure."""
    assert _why(Acceptance(danger=ID), planned={}) == "it arose after the plan was made"


@pytest.mark.parametrize(
    ("planned", "worse"),
    [
        ({"gpu": 8, "gpu.mig": 3}, None),
        ({"gpu": 9, "gpu.mig": 99}, None),
        ({"gpu": 7, "gpu.mig": 3}, "gpu 7 → 8"),
        ({"gpu": 8}, "gpu.mig 0 → 3"),
        ({}, "gpu 0 → 8, gpu.mig 0 → 3"),
        ({"gpu": 7, "gpu.mig": 99}, "gpu 7 → 8"),
    ],
)
def test_worse_than_what_was_accepted(planned: Mapping[str, int], worse: str | None) -> None:
    """Figure by figure: one that got better makes up for none that got worse."""
    found = _why(Acceptance(danger=ID), planned={ID: planned})
    assert found == (None if worse is None else f"it is worse than what was accepted ({worse})")


@given(
    now=st.dictionaries(st.sampled_from("abc"), st.integers(0, 2**70)),
    planned=st.dictionaries(st.sampled_from("abc"), st.integers(0, 2**70)),
)
def test_accepted_if_and_only_if_no_figure_grew(now: Mapping[str, int], planned: Mapping[str, int]) -> None:
    danger = Danger(kind="share", subject="fleet/eu", detail="", figures=now)
    found = _why(Acceptance(danger=danger.id), planned={danger.id: planned}, danger=danger)
    assert (found is None) is all(value <= planned.get(name, 0) for name, value in now.items())
    assert figures_from_json(danger.to_json()["figures"]) == now  # type: ignore[arg-type]  # JSON of our own


# From the plan to the apply, with usage that moves in between


OFFER: Mapping[str, Mapping[str, Any]] = {
    "tenant/acme": {},
    "site/fra1": {},
    "pool/p1": {},
    "offer/p1/acme": {"quota": {"gpu": 32}},
}


def _planned(
    held: int, *, quota: int = 16, accept: Iterable[str | Mapping[str, Any]] = (), flags: Iterable[str] = ()
) -> tuple[World, PlanFile]:
    world = World()
    world.converge(fleet(OFFER))
    _hold(world, held)
    wanted = fleet({**OFFER, "offer/p1/acme": {"quota": {"gpu": quota}}}, accept=accept)
    return world, world.file(world.plan(wanted, accept=flags), wanted)


def _hold(world: World, gpus: int) -> None:
    world.use(booked={("pool/p1", "acme"): {"reservations": 1, "gpu": gpus}})


def _refused(world: World, file: PlanFile, accept: Iterable[str] = ()) -> str:
    before = world.snapshot
    with pytest.raises(SafetyRefused) as refused:
        world.apply(file, accept=accept)
    assert refused.value.exit_code == 3
    assert world.snapshot is before
    return refused.value.diagnostics[0].detail


def test_a_danger_in_the_plan_is_refused_until_somebody_accepts_it() -> None:
    world, file = _planned(24)
    assert _refused(world, file) == "nobody accepted it"
    world.apply(file, accept=[ID])
    assert world.quotas("pool/p1", "acme") == {"gpu": 16}


def test_accepted_in_the_files_and_accepted_by_a_flag_at_plan_time() -> None:
    for world, file in (_planned(24, accept=[ID]), _planned(24, flags=[ID])):
        world.apply(file)


def test_acceptances_are_part_of_what_is_approved() -> None:
    """In the body and its digest; `apply --accept` leaves the digest alone."""
    _, plain = _planned(24)
    _, in_files = _planned(24, accept=[{"danger": ID, "reason": "agreed", "until": "2026-12-31"}])
    _, by_flag = _planned(24, flags=[ID])
    assert len({plain.digest, in_files.digest, by_flag.digest}) == 3
    assert [item.danger for item in in_files.body.acceptances] == [ID]
    assert in_files.body.acceptances[0].until == "2026-12-31"


def test_all_entries_enter_the_body_also_those_of_no_danger() -> None:
    _, file = _planned(4, accept=["share:fleet/eu", "remove:pool/p1"])
    assert [item.danger for item in file.body.acceptances] == ["remove:pool/p1", "share:fleet/eu"]


def test_until_is_judged_at_apply() -> None:
    world, file = _planned(24, accept=[{"danger": ID, "until": "2026-11-30"}])
    world.now = UnixMs(end_of_date_ms("2026-11-30"))
    assert _refused(world, file) == "its acceptance is past its `until`"
    world.now = UnixMs(end_of_date_ms("2026-11-30") - 1)
    world.apply(file)


def test_usage_that_rises_between_plan_and_apply_makes_a_harmless_shrink_an_unaccepted_danger() -> None:
    world, file = _planned(8)
    assert file.planned_figures() == {}
    _hold(world, 24)
    assert _refused(world, file) == "nobody accepted it"
    assert _refused(world, file, [ID]) == "it arose after the plan was made"
    _hold(world, 16)
    world.apply(file)


def test_usage_that_rises_beyond_what_was_accepted() -> None:
    world, file = _planned(24, accept=[ID])
    _hold(world, 25)
    assert _refused(world, file) == "it is worse than what was accepted (gpu 8 → 9)"
    assert _refused(world, file, [ID]) == "it is worse than what was accepted (gpu 8 → 9)"
    _hold(world, 20)
    world.apply(file)  # better than what was accepted


def test_a_resource_that_was_not_short_when_it_was_accepted() -> None:
    world = World()
    both = {**OFFER, "offer/p1/acme": {"quota": {"gpu": 32, "gpu.mig": 8}}}
    world.converge(fleet(both))
    world.use(booked={("pool/p1", "acme"): {"gpu": 24, "gpu.mig": 1}})
    wanted = fleet({**OFFER, "offer/p1/acme": {"quota": {"gpu": 16, "gpu.mig": 2}}}, accept=[ID])
    file = world.file(world.plan(wanted), wanted)
    world.use(booked={("pool/p1", "acme"): {"gpu": 20, "gpu.mig": 3}})
    assert _refused(world, file) == "it is worse than what was accepted (gpu.mig 0 → 1)"


def test_every_danger_needs_its_own_acceptance() -> None:
    world = World()
    world.converge(fleet({**OFFER, "pool/p1": {"protect": True}}))
    _hold(world, 24)
    wanted = fleet({**OFFER, "offer/p1/acme": {"quota": {"gpu": 16}}}, accept=["unprotect:pool/p1"])
    plan = world.plan(wanted)
    assert [item.id for item in plan.dangers] == [ID, "unprotect:pool/p1"]
    assert _refused(world, world.file(plan, wanted)) == "nobody accepted it"
    world.apply(world.file(plan, wanted), accept=[ID])


def test_spent_energy_that_rises() -> None:
    objects = {"entitlement/e": {"guarantee": {"energyUj": 100, "devices": 0}}}
    world = World()
    world.converge(fleet(objects))
    world.use(entitlements={"entitlement/e": EntitlementUse(spent_uj=60)})
    wanted = fleet(
        {"entitlement/e": {"guarantee": {"energyUj": 50, "devices": 0}}}, accept=["shrink-below-use:entitlement/e"]
    )
    file = world.file(world.plan(wanted), wanted)
    world.use(entitlements={"entitlement/e": EntitlementUse(spent_uj=60, reserved_uj=1)})
    assert _refused(world, file) == "it is worse than what was accepted (guarantee.energyUj 10 → 11)"
