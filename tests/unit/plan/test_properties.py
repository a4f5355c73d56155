"""Properties of planning over random fleets: a plan leads where it says, and says the same however it is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings

from fleetctl.canonical import canonical_json, digest_of
from fleetctl.errors import EngineRefused, FleetctlError, SafetyRefused
from fleetctl.model.bodies import OfferBody, PoolBody
from fleetctl.model.codec import encode
from fleetctl.model.declared import Declared, Fleet
from fleetctl.model.live import Snapshot
from fleetctl.model.usage import EntitlementUse
from fleetctl.plan.drift import find_drift
from fleetctl.plan.planfile import write_plan
from fleetctl.plan.planner import Plan
from fleetctl.plan.resolve import resolve
from tests.support.random_fleets import (
    Choose,
    Objects,
    Seeded,
    choices,
    flag,
    one,
    random_objects,
    rekeyed,
    shuffled,
    some,
)
from tests.support.worlds import World, fleet, redeclared, steps

SEEDS = range(100)


@pytest.mark.parametrize("seed", range(20))
def test_texts_that_are_handed_on_are_those_of_the_bodies(seed: int) -> None:
    """Bodies with ids, operations and the plan are never encoded twice; what stands for the second time is the same."""
    choose = Seeded(seed)
    wanted = fleet(random_objects(choose))
    resolved, problems = resolve(wanted, World().snapshot)
    assert resolved and not problems
    for item in resolved:
        assert item.body_json() == canonical_json(encode(item.declared.kind, item.body()))
    try:
        file = World().file(World().plan(wanted), wanted)
    except FleetctlError:
        return
    assert file.digest == digest_of(file.body_json)


Property = Callable[[Choose], None]


def converges(choose: Choose) -> None:
    """From any fleet to any other in one plan, or in two where a protected object leaves or a key is archived."""
    world = World()
    objects = _follow(world, random_objects(choose))
    for _ in range(3):
        _use(choose, world)
        objects = _follow(world, random_objects(choose))
    _is_declared(world, objects)


def asks_the_same_whatever_the_order(choose: Choose) -> None:
    """The same files and state give the same bytes: order of objects, of fields and of the snapshot do not count."""
    world = World()
    _follow(world, random_objects(choose))
    objects = random_objects(choose)
    first = _try(world, fleet(objects))
    mixed = {label: dict(shuffled(choose, list(objects[label].items()))) for label in shuffled(choose, list(objects))}
    world.snapshot = _mixed(choose, world.snapshot)
    second = _try(world, fleet(mixed))
    if isinstance(first, Plan) and isinstance(second, Plan):
        assert write_plan(world.file(first, fleet(objects))) == write_plan(world.file(second, fleet(mixed)))
    else:
        assert isinstance(first, list) and isinstance(second, list)
        assert sorted(first) == sorted(second)


def leaves_others_alone(choose: Choose) -> None:
    """No operation touches what another fleet owns, adoption apart; what an archived pool takes along is a danger."""
    world = World()
    objects = _follow(world, random_objects(choose))
    other = _other_fleet(choose, objects)
    world.converge(other)
    before = world.outside("eu")
    plan = _try(world, fleet(random_objects(choose)))
    if not isinstance(plan, Plan):
        return
    assert all(world.snapshot.objects[item.kind, item.id].fleet == "eu" for item in plan.operations if item.before)
    wanted = fleet({})  # only its name counts for the context
    world.apply(world.file(plan, wanted), accept=[item.id for item in plan.dangers])
    after = world.outside("eu")
    lost = {item.label for key, item in before.items() if key not in after}
    withdrawn = {
        item.subject.removeprefix("pool/"): item.figures["offers"] for item in plan.dangers if item.kind == "withdraws"
    }
    assert sum(withdrawn.values()) == len(lost)
    assert all(label.startswith(tuple(f"offer/{key}/" for key in withdrawn)) for label in lost)
    released = {item.id for item in plan.operations if item.verb == "release"}
    for key, item in after.items():
        assert key[1] in released or before.get(key) == item


def changes_if_and_only_if_it_has_operations(choose: Choose) -> None:
    """`plan --detailed-exitcode`: changes present if and only if the list is not empty."""
    world = World()
    objects = _follow(world, random_objects(choose))
    changed = dict(objects)
    if flag(choose, 70) and changed:
        label = one(choose, sorted(changed))
        changed[label] = {**changed[label], "name": one(choose, ["a", "z"])}
    plan = _try(world, fleet(changed))
    assert isinstance(plan, Plan)
    before = world.snapshot.state_digest()
    world.apply(world.file(plan, fleet(changed)), accept=[item.id for item in plan.dangers])
    assert (world.snapshot.state_digest() != before) is bool(plan.operations)
    for item in plan.operations:
        live = world.snapshot.objects[item.kind, item.id]
        assert live.version == (item.precondition.version or 0) + 1


PROPERTIES: Mapping[str, Property] = {
    item.__name__: item
    for item in (
        converges,
        asks_the_same_whatever_the_order,
        leaves_others_alone,
        changes_if_and_only_if_it_has_operations,
    )
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_property_over_seeds(name: str) -> None:
    for seed in SEEDS:
        try:
            PROPERTIES[name](Seeded(seed))
        except (AssertionError, FleetctlError) as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize("name", PROPERTIES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(choose=choices())
def test_property_that_shrinks(name: str, choose: Choose) -> None:
    PROPERTIES[name](choose)


def test_the_generator_reaches_what_it_should() -> None:
    """Refusals for protection and archived keys, every verb but adopt, every kind."""
    verbs: set[str] = set()
    refusals: set[str] = set()
    for seed in range(40):
        choose, world = Seeded(seed), World()
        for _ in range(4):
            objects = random_objects(choose)
            found = _try(world, fleet(objects))
            if isinstance(found, Plan):
                verbs |= {f"{item.verb} {item.kind}" for item in found.operations}
            else:
                refusals |= {code for code, _, _ in found}
            _follow(world, objects)
    assert refusals == {"protected", "key-archived"}
    kinds = ["tenant", "site", "pool", "offer", "entitlement", "market-pool", "procurement", "order", "transfer"]
    assert {f"create {kind}" for kind in kinds} <= verbs
    assert {f"remove {kind}" for kind in kinds[2:]} <= verbs
    assert {"release tenant", "release site", "adopt tenant", "adopt site", "update offer"} <= verbs
    assert any(verb.startswith("rename ") for verb in verbs)


def _try(world: World, wanted: Fleet) -> Plan | list[tuple[str, str | None, str]]:
    try:
        return world.plan(wanted)
    except (EngineRefused, SafetyRefused) as error:
        return [(item.code.name, item.subject, item.detail) for item in error.diagnostics]


def _follow(world: World, objects: Objects) -> Objects:
    """Bring the world to what the objects say and return them as they were applied: archived keys get the next one."""
    owned = [item for item in world.snapshot.objects.values() if item.fleet == "eu" and not item.archived]
    for _ in range(3):
        found = _try(world, fleet(objects))
        if isinstance(found, Plan):
            break
        for code, subject, detail in found:
            assert code in ("key-archived", "protected"), f"{code}: {detail}"
            if code == "key-archived":
                key = str(subject).removeprefix("pool/")
                named = re.search(r"the next key, `([^`]+)`", detail)
                assert named is not None
                objects = rekeyed(objects, key, named[1])
        kept = [subject for code, subject, _ in found if code == "protected"]
        if kept:
            _unprotect(world, [str(label) for label in kept])
    world.converge(fleet(objects))
    assert steps(world.plan(fleet(objects))) == []
    drift = find_drift(fleet(objects), world.snapshot, world.plan(fleet(objects)), world.now)
    assert (drift.items, drift.pending) == ((), ())
    for item in owned:
        live = world.snapshot.objects.get((item.kind, item.id))
        assert live is None or live.version >= item.version
    return objects


def _unprotect(world: World, labels: list[str]) -> None:
    """The first of two plans: what is live, as the files would say it, with `protect` off."""
    declared = []
    for live in world.snapshot.objects.values():
        if live.fleet == "eu" and not live.archived:
            item = _as_declared(world, live.label)
            declared.append(redeclared(item, protect=item.protect and live.label not in labels))
    plan = world.converge(replace(fleet({}), objects=tuple(declared)))
    assert {*steps(plan)} == {f"update {label}" for label in labels}
    assert {item.kind for item in plan.dangers} == {"unprotect"}


def _as_declared(world: World, label: str) -> Any:
    live = world.live(label)
    body: Any = live.body()
    names: dict[str, Any] = {}
    for field in ("site", "pool", "parent", "market_pool", "from_pool", "to_pool"):
        value = getattr(body, field, None)
        if live.kind != "tenant" and value is not None:
            names[field] = next(item.key for item in world.snapshot.objects.values() if item.id == value)
    return Declared(
        kind=live.kind,
        key=live.key,
        name=live.name,
        body=replace(body, **names),
        protect=live.protect,
        explicit_only=live.explicit_only,
    )


def _is_declared(world: World, objects: Objects) -> None:
    """What the fleet owns is what the files declare; quota and authorization rows are those of its offers."""
    owned = {item.label for item in world.snapshot.objects.values() if item.fleet == "eu" and not item.archived}
    assert owned == set(objects)
    offers = [cast(OfferBody, item.body()) for item in world.snapshot.objects.values() if item.kind == "offer"]
    for offer in offers:
        rows = world.snapshot.quotas.get((cast(Any, offer.pool), offer.to), {})
        assert {name: value for name, value in rows.items() if value} == {
            name: value for name, value in offer.quota.items() if value
        }
    pools = [item for item in world.snapshot.objects.values() if item.kind == "pool"]
    for pool in pools:
        body = cast(PoolBody, pool.body())
        if not pool.archived:
            rows = world.snapshot.quotas.get((pool.id, "root"), {})
            assert {n: v for n, v in rows.items() if v} == {n: v for n, v in body.owner_quota.items() if v}
    visible = {(pool.id, pool.tenant) for pool in pools} | {(offer.pool, offer.to) for offer in offers}
    assert set(world.authz) == visible
    regions = {
        item.id: cast(Any, item.body()).region for item in world.snapshot.objects.values() if item.kind == "site"
    }
    for pool in pools:
        body = cast(PoolBody, pool.body())
        for (id, tenant), row in world.authz.items():
            if id == pool.id and not pool.archived:
                assert (row.gpu_model, row.sharing, row.region, row.owned) == (
                    body.gpu_model,
                    body.sharing,
                    regions[cast(Any, body.site)],
                    tenant == "root",
                )


def _use(choose: Choose, world: World) -> None:
    """Reservations on some offers and owners' rows, energy spent on some entitlements."""
    pools = [item for item in world.snapshot.objects.values() if item.kind == "pool" and not item.archived]
    booked = {}
    for pool in some(choose, pools, 40):
        body = cast(PoolBody, pool.body())
        if body.policy.get("singleTenant") is not True and pool.key not in ("p1", "p2"):
            booked[pool.label, one(choose, ["root", "t0"])] = {"reservations": 1, "gpu": choose.integer(1, 9)}
    entitlements = [item for item in world.snapshot.objects.values() if item.kind == "entitlement"]
    world.use(
        booked={key: value for key, value in booked.items() if _single(world, key[0])},
        inventory={pool.label: 8 for pool in pools if _single(world, pool.label)},
        entitlements={
            item.label: EntitlementUse(spent_uj=choose.integer(0, 3) * 10**6) for item in some(choose, entitlements)
        },
    )


def _single(world: World, label: str) -> bool:
    return sum(1 for item in world.snapshot.objects.values() if item.label == label) == 1


def _mixed(choose: Choose, snapshot: Snapshot) -> Snapshot:
    def mixed(items: Mapping[Any, Any]) -> dict[Any, Any]:
        return dict(shuffled(choose, list(items.items())))

    return replace(
        snapshot,
        objects=mixed(snapshot.objects),
        tombstones=mixed(snapshot.tombstones),
        quotas={key: mixed(rows) for key, rows in mixed(snapshot.quotas).items()},
    )


def _other_fleet(choose: Choose, objects: Objects) -> Fleet:
    """A fleet that offers pools of the first one, hangs under its entitlements and buys into its market pools."""
    out: Objects = {"tenant/u0": {}, "tenant/u1": {}}
    for label in objects:
        kind, _, key = label.partition("/")
        if kind == "pool" and flag(choose, 50) and objects[label]["sharing"] in ("exclusive", "mig"):
            if "singleTenant" not in objects[label]["policy"]:
                out[f"offer/{key}/{one(choose, ['u0', 'u1'])}"] = {"pool": f"eu/{key}"}
        if kind == "entitlement" and flag(choose, 15):
            out[f"entitlement/under-{key}"] = {"parent": f"eu/{key}"}
        if kind == "market-pool" and flag(choose, 15):
            out[f"order/of-{key}"] = {"pool": f"eu/{key}"}
    return fleet(out, name="second")
