"""Who loses or gains what (plan-apply: "Impact"), and what the context tells readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fleetctl.model.usage import EntitlementUse
from fleetctl.plan.impact import impact, oversubscription
from tests.support.worlds import World, fleet

Objects = Mapping[str, Mapping[str, Any]]
BASE: Objects = {"tenant/acme": {}, "tenant/beta": {}, "site/fra1": {}, "pool/p1": {}}
J = 10**6


def _world(objects: Objects, **use: Any) -> World:
    world = World()
    world.converge(fleet({**BASE, **objects}))
    world.use(**use)
    return world


def _rows(world: World, objects: Objects, **how: Any) -> list[tuple[str, str, str, int, int, int]]:
    plan = world.plan(fleet({**BASE, **objects}, **how))
    return [
        (row.tenant, row.subject, row.resource, row.before, row.after, row.in_use)
        for row in impact(plan.operations, world.snapshot)
    ]


def _offer(gpu: int, tenant: str = "acme") -> Objects:
    return {f"offer/p1/{tenant}": {"quota": {"gpu": gpu}}}


@pytest.mark.parametrize(
    ("before", "after", "row"),
    [
        ({}, _offer(8), ("acme", "offer/p1/acme", "gpu", 0, 8, 0)),
        (_offer(32), _offer(16), ("acme", "offer/p1/acme", "gpu", 32, 16, 24)),
        (_offer(32), {}, ("acme", "offer/p1/acme", "gpu", 32, 0, 24)),
    ],
)
def test_an_offer(before: Objects, after: Objects, row: tuple[str, str, str, int, int, int]) -> None:
    use: dict[str, Any] = {"booked": {("pool/p1", "acme"): {"gpu": 24}}} if before else {}
    assert _rows(_world(before, **use), after) == [row]


def test_what_does_not_move_a_figure_has_no_row() -> None:
    world = _world(_offer(32))
    assert _rows(world, {"offer/p1/acme": {"quota": {"gpu": 32}, "priority": 5}}) == []
    assert _rows(world, {}, release=["offer/p1/acme"]) == []


def test_losers_come_first() -> None:
    world = _world({**_offer(32), **_offer(8, "beta")})
    rows = _rows(world, {**_offer(64), **_offer(4, "beta")})
    assert [(row[0], row[3], row[4]) for row in rows] == [("beta", 8, 4), ("acme", 32, 64)]


def test_an_archived_pool_takes_other_fleets_offers() -> None:
    world = _world({})
    world.converge(fleet({"offer/p1/acme": {"pool": "eu/p1", "quota": {"gpu": 8}}}, name="second"))
    plan = world.plan(fleet({name: fields for name, fields in BASE.items() if name != "pool/p1"}))
    (row,) = impact(plan.operations, world.snapshot)
    assert (row.tenant, row.subject, row.before, row.after) == ("acme", "offer/p1/acme", 8, 0)


def _entitlement(energy: int, tenant: str = "acme") -> Objects:
    return {"entitlement/e": {"tenant": tenant, "guarantee": {"energyUj": energy, "devices": 2}}}


def test_an_entitlement() -> None:
    world = _world(_entitlement(100 * J), entitlements={"entitlement/e": EntitlementUse(spent_uj=70 * J, devices=1)})
    assert _rows(world, _entitlement(50 * J)) == [
        ("acme", "entitlement/e", "guarantee.energy", 100 * J, 50 * J, 70 * J)
    ]


def test_an_entitlement_that_moves_to_another_tenant() -> None:
    world = _world(_entitlement(100 * J), entitlements={"entitlement/e": EntitlementUse(spent_uj=70 * J, devices=1)})
    assert _rows(world, _entitlement(100 * J, "beta")) == [
        ("acme", "entitlement/e", "guarantee.devices", 2, 0, 1),
        ("acme", "entitlement/e", "guarantee.energy", 100 * J, 0, 70 * J),
        ("beta", "entitlement/e", "guarantee.devices", 0, 2, 0),
        ("beta", "entitlement/e", "guarantee.energy", 0, 100 * J, 0),
    ]


def test_effects_in_words() -> None:
    world = _world({**_offer(32), **_offer(8, "beta")}, booked={("pool/p1", "acme"): {"gpu": 24}})
    plan = world.plan(fleet({**BASE, **_offer(16), **_offer(9, "beta")}))
    assert [row.effect for row in impact(plan.operations, world.snapshot)] == [
        "loses; what runs keeps running, new work queues until use falls by 8",
        "gains",
    ]
    plan = world.plan(fleet({**BASE, **_offer(24), **_offer(8, "beta")}))
    assert [row.effect for row in impact(plan.operations, world.snapshot)] == ["loses; what is in use still fits"]


@pytest.mark.parametrize(
    ("wanted", "effects"),
    [
        ({}, ["nothing new starts"] * 3),
        (
            _entitlement(50 * J),
            ["nothing new starts", "new work queues until use falls by 20 J or a new window begins"],
        ),
    ],
)
def test_what_queues_and_until_when(wanted: Objects, effects: list[str]) -> None:
    """plan-apply.md, Impact: what keeps running, what will queue, and until when; nothing queues for what is gone."""
    world = _world(
        {**_offer(32), **_entitlement(100 * J)},
        booked={("pool/p1", "acme"): {"gpu": 24}},
        entitlements={"entitlement/e": EntitlementUse(spent_uj=70 * J, devices=1)},
    )
    rows = impact(world.plan(fleet({**BASE, **wanted})).operations, world.snapshot)
    assert sorted(row.effect for row in rows) == sorted(
        f"loses; what runs keeps running, {effect}" for effect in effects
    )


def test_oversubscription() -> None:
    """better-compute B26: 8 GPUs, offers of 32 and 32; the owner's own offer is not given away."""
    world = _world({**_offer(32), **_offer(8, "root")}, inventory={"pool/p1": 8})
    wanted = fleet({**BASE, **_offer(32), **_offer(64, "root"), **_offer(32, "beta")})
    plan = world.plan(wanted)
    assert [row.to_json() for row in oversubscription(plan.operations, world.snapshot)] == [
        {"pool": "pool/p1", "inventoryGpus": 8, "offeredBefore": 32, "offeredAfter": 64}
    ]
    context: Any = world.file(plan, wanted).context
    assert context["oversubscription"][0]["offeredAfter"] == 64


def test_no_oversubscription_without_inventory_or_change() -> None:
    world = _world(_offer(32))
    assert oversubscription(world.plan(fleet({**BASE, **_offer(64)})).operations, world.snapshot) == []
    world.use(inventory={"pool/p1": 8})
    same = fleet({**BASE, "offer/p1/acme": {"quota": {"gpu": 32}, "priority": 1}})
    assert oversubscription(world.plan(same).operations, world.snapshot) == []


def test_the_context_names_what_ids_mean() -> None:
    world = _world({})
    wanted = fleet({**BASE, **_offer(8), "pool/p2": {}, "offer/p2/acme": {}})
    context: Any = world.file(world.plan(wanted), wanted).context
    labels = set(context["names"].values())
    assert {"pool/p1", "pool/p2", "site/fra1"} <= labels
    assert context["config"] == wanted.digest()
    assert (context["owned"], context["unowned"]) == (4, 0)
