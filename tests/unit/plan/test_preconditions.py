"""What a plan was made against (plan-apply: "precondition"; fleet-files: "References"), and what moves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fleetctl.engine import builders
from fleetctl.errors import Stale
from fleetctl.model.ids import derive_id
from fleetctl.plan.planfile import PlanFile
from tests.support.worlds import World, fleet

Objects = Mapping[str, Mapping[str, Any]]
OWN: Objects = {"tenant/acme": {}, "site/fra1": {}, "pool/p1": {}, "entitlement/top": {}, "market-pool/m": {}}
OFFER: Objects = {"offer/p1/acme": {"pool": "eu/p1"}}


def _world() -> World:
    world = World()
    world.converge(fleet(OWN))
    return world


def _without(label: str) -> Objects:
    return {name: fields for name, fields in OWN.items() if name != label}


def _file(world: World, objects: Objects, name: str = "second") -> PlanFile:
    wanted = fleet(objects, name=name)
    return world.file(world.plan(wanted), wanted)


@pytest.mark.parametrize(
    ("objects", "target"),
    [
        (OFFER, "pool/p1"),
        ({"pool/x": {"site": "eu/fra1"}}, "site/fra1"),
        ({"entitlement/x": {"parent": "eu/top"}}, "entitlement/top"),
        ({"order/x": {"pool": "eu/m"}}, "market-pool/m"),
    ],
)
def test_a_reference_to_another_fleet_requires_its_object(objects: Objects, target: str) -> None:
    world = _world()
    (operation,) = _file(world, objects).body.operations
    assert operation.precondition.requires == (world.live(target).id,)
    assert operation.precondition.to_json()["requires"] == [world.live(target).id]


def test_two_references_are_required_in_order_of_their_ids() -> None:
    world = _world()
    world.converge(fleet({**OWN, "market-pool/n": {}}))
    (operation,) = _file(world, {"transfer/x": {"from": "eu/m", "to": "eu/n"}}).body.operations
    assert list(operation.precondition.requires) == sorted(
        [world.live("market-pool/m").id, world.live("market-pool/n").id]
    )


def test_a_reference_within_the_fleet_requires_nothing() -> None:
    world = World()
    wanted = fleet({**OWN, "offer/p1/acme": {}})
    assert all(item.precondition.requires == () for item in world.plan(wanted).operations)


def test_an_update_requires_it_too() -> None:
    world = _world()
    world.converge(fleet(OFFER, name="second"))
    (operation,) = _file(world, {"offer/p1/acme": {"pool": "eu/p1", "priority": 5}}).body.operations
    assert operation.precondition.version == 1
    assert operation.precondition.requires == (world.live("pool/p1").id,)


MOVES: Mapping[str, Callable[[World], Any]] = {
    "changed": lambda world: world.call(builders.flag("pool", world.live("pool/p1").id, protect=True)),
    "archived": lambda world: world.call(builders.removal("pool", world.live("pool/p1").id)),
    "applied by its fleet": lambda world: world.converge(fleet({**OWN, "pool/p1": {"gpuModel": "B200"}})),
    "adopted by another fleet": lambda world: world.converge(
        fleet({"pool/x": {"adopt": world.live("pool/p1").id, "site": "eu/fra1"}}, name="third")
    ),
}


@pytest.mark.parametrize("move", MOVES)
def test_an_object_that_moved_makes_a_plan_stale(move: str) -> None:
    world = _world()
    file = _file(world, {**OWN, "pool/p1": {"gpuModel": "H200"}}, "eu")
    MOVES[move](world)
    with pytest.raises(Stale) as stale:
        world.apply(file)
    assert stale.value.exit_code == 4
    assert stale.value.diagnostics[0].subject == "pool/p1"


@pytest.mark.parametrize("move", ["archived"])
def test_a_required_object_that_left_makes_a_plan_stale(move: str) -> None:
    world = _world()
    file = _file(world, OFFER)
    MOVES[move](world)
    with pytest.raises(Stale):
        world.apply(file)


def test_a_required_object_that_changed_does_not() -> None:
    """Only its presence is required: somebody else's merge does not make this plan stale."""
    world = _world()
    file = _file(world, OFFER)
    MOVES["applied by its fleet"](world)
    world.apply(file)
    assert world.has("offer/p1/acme")


def test_what_this_plan_does_not_touch_may_move() -> None:
    """The digest changes when what will be done changes, and not when somebody else merges."""
    world = _world()
    wanted = {**OWN, "pool/p1": {"gpuModel": "H200"}}
    file = _file(world, wanted, "eu")
    world.converge(fleet({"market-pool/theirs": {}}, name="second"))
    world.use(inventory={"pool/p1": 8})
    assert _file(world, wanted, "eu").digest == file.digest
    assert _file(world, wanted, "eu").context_digest != file.context_digest
    world.apply(file)


def test_two_creations_are_never_confused() -> None:
    """Made, removed and made again: a plan made before all that is not the plan for now."""
    world = _world()
    make = fleet({**OWN, "offer/p1/acme": {}})
    file = _file(world, {**OWN, "offer/p1/acme": {}}, "eu")
    world.converge(make)
    with pytest.raises(Stale):
        world.apply(file)
    world.converge(fleet(OWN))
    with pytest.raises(Stale):
        world.apply(file)
    (operation,) = world.plan(make).operations
    assert operation.precondition.absent == 1
    assert operation.id == derive_id("offer", "root", "fleet/eu", "p1/acme")
