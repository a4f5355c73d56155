"""`decide` and its working snapshot where a case file cannot reach: commands, indexes, settings, keys."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from fleetctl.capacity.decide import Actor, decide
from fleetctl.capacity.identity import next_key
from fleetctl.capacity.working import Working, references_of
from fleetctl.engine import builders
from fleetctl.errors import EngineRefused
from fleetctl.model.bodies import SettingsBody
from fleetctl.model.ids import KINDS, SETTINGS_ID, Kind, ObjectId, cli_caller, derive_id
from fleetctl.model.live import LiveObject, Snapshot, state_of
from fleetctl.model.operation import Operation, Precondition, Verb
from tests.support.random_fleets import Seeded, random_objects
from tests.support.worlds import ENGINE, NOW, World, declared, fleet, settings_object

ROOT = Path(__file__).parents[3]
BASE: Mapping[str, Mapping[str, Any]] = {"tenant/acme": {}, "site/fra1": {}, "pool/p1": {}, "offer/p1/acme": {}}


@pytest.mark.parametrize(
    ("key", "following"),
    [
        ("p", "p-2"),
        ("p-1", "p-1-2"),
        ("p-2", "p-3"),
        ("p-9", "p-10"),
        ("p-02", "p-02-2"),
        ("p-", "p--2"),
        ("2", "2-2"),
        ("fra1-h100", "fra1-h100-2"),
        ("p-9999", "p-10000"),
        ("p-10000", "p-10000-2"),
    ],
)
def test_the_next_key(key: str, following: str) -> None:
    """A generation counts on; `h100` is none."""
    assert next_key(key) == following


def _create(kind: Kind, key: str, state: Mapping[str, Any], id: str | None = None) -> Operation:
    return Operation(
        verb="create",
        kind=kind,
        key=key,
        id=ObjectId(id or derive_id(kind, "root", cli_caller("root"), key)),
        after=dict(state),
        precondition=Precondition(absent=0),
    )


def test_a_command_names_objects_as_it_likes_and_keys_them_as_files_do() -> None:
    world = World()
    body = declared("market-pool/dev", {}).body
    made = world.decide(_create("market-pool", "dev", state_of("market-pool", body, name="Dev pool")), fleet=None)
    assert made.put[0].name == "Dev pool"
    assert made.put[0].fleet is None
    assert made.put[0].last_applied_json is None
    for key in ("a b", "", "x\n", "-a"):
        with pytest.raises(EngineRefused, match="no key of a market-pool"):
            world.decide(_create("market-pool", key, state_of("market-pool", body, name="dev")), fleet=None)


def test_a_command_changes_what_a_fleet_owns_and_the_fleet_keeps_it() -> None:
    """That is drift: the last applied state stays as it was."""
    world = World()
    world.converge(fleet(BASE))
    before = world.live("pool/p1")
    world.call(builders.flag("pool", before.id, protect=True))
    after = world.live("pool/p1")
    assert (after.fleet, after.version, after.protect) == ("eu", 2, True)
    assert after.last_applied_json == before.last_applied_json


def test_a_command_may_not_adopt_or_release() -> None:
    world = World()
    world.converge(fleet(BASE))
    live = world.live("pool/p1")
    verbs: tuple[Verb, ...] = ("adopt", "release")
    for verb in verbs:
        operation = Operation(
            verb=verb,
            kind="pool",
            key=live.key,
            id=live.id,
            before=live.state(),
            after=live.state(),
            precondition=Precondition(version=1),
        )
        with pytest.raises(EngineRefused):
            world.decide(operation, fleet=None)


def test_a_command_of_another_tenant_finds_nothing() -> None:
    """better-compute B21 and the guide: anyone but the owner gets NOT_FOUND."""
    world = World()
    world.converge(fleet(BASE))
    with pytest.raises(EngineRefused) as refused:
        world.call(builders.removal("pool", world.live("pool/p1").id), tenant="acme")
    assert refused.value.engine_code == "NOT_FOUND"


def test_one_key_of_two_callers_makes_two_pools() -> None:
    """better-compute B16."""
    ids = {derive_id("pool", "root", caller, "p1") for caller in ("ci-1", "ci-2", "fleet/eu", "cli/root")}
    assert len(ids) == 4


def _settings(world: World, **values: Any) -> None:
    world.call(builders.settings_change(lambda body: replace(body, **values)))


def test_settings_change_by_command_and_only_by_the_root_tenant() -> None:
    world = World()
    world.converge(fleet({"tenant/acme": {}}))
    _settings(world, required_approvals=2)
    assert world.snapshot.settings().required_approvals == 2
    with pytest.raises(EngineRefused, match="root tenant"):
        world.call(builders.settings_change(lambda body: replace(body, required_approvals=0)), tenant="acme")
    live = world.snapshot.objects["settings", SETTINGS_ID]
    removal = Operation(
        verb="remove",
        kind="settings",
        key=live.key,
        id=live.id,
        before=live.state(),
        precondition=Precondition(version=live.version),
    )
    with pytest.raises(EngineRefused, match="cannot be removed"):
        world.decide(removal, fleet=None)


def test_policies_are_judged_by_the_settings_of_the_moment() -> None:
    """Also where both change over one working snapshot, as a replay of the journal folds them."""
    world = World()
    world.converge(fleet({"site/fra1": {}}))
    operations = []
    actors = []
    wanted = fleet({"site/fra1": {}, "pool/p1": {"policy": {"joinAttestors": ["tpm"]}}})
    start = world.snapshot
    with pytest.raises(EngineRefused, match="tpm"):
        world.plan(wanted)
    made = world.call(builders.settings_change(lambda body: replace(body, attestors=("tpm",))))
    assert made is not None
    operations.append(made)
    actors.append(Actor(tenant="root", caller="cli/root"))
    operations += world.plan(wanted).operations
    actors.append(Actor(tenant="root", caller="fleet/eu", fleet="eu"))
    working = Working(start)
    assert working.settings().attestors == ()
    for operation, actor in zip(operations, actors, strict=True):
        working.apply(decide(working, operation, actor, NOW))
    assert working.settings().attestors == ("tpm",)


def test_settings_have_defaults_without_an_object() -> None:
    assert Working(Snapshot(engine=ENGINE)).settings() == SettingsBody()


def test_who_refers_to_an_object_is_what_all_bodies_say() -> None:
    """The index that changes keep equals the one built anew, over plans that make, move and drop references."""
    for seed in range(15):
        choose, world = Seeded(seed), World()
        for _ in range(3):
            objects = {
                label: {**fields, "protect": False}
                if label.partition("/")[0] in ("pool", "entitlement", "market-pool")
                else fields
                for label, fields in random_objects(choose).items()
            }
            try:
                plan = world.plan(fleet(objects))
            except EngineRefused:
                continue
            working = Working(world.snapshot)
            for kind in KINDS:
                working.referring_to("pool", "", kind)  # builds the index of the kind
            actor = Actor(tenant="root", caller="fleet/eu", fleet="eu")
            for operation in plan.operations:
                working.apply(decide(working, operation, actor, NOW))
            world.converge(fleet(objects))
            for target in world.snapshot.objects:
                for kind in KINDS:
                    found = [item.id for item in working.referring_to(*target, kind)]
                    assert found == _referring(world.snapshot, target, kind)


def _referring(snapshot: Snapshot, target: tuple[Kind, ObjectId], kind: Kind) -> list[str]:
    return sorted(
        item.id for item in snapshot.objects.values() if item.kind == kind and target in references_of(item.body())
    )


def test_a_working_snapshot_leaves_the_snapshot_alone() -> None:
    world = World()
    world.converge(fleet(BASE))
    objects, quotas = dict(world.snapshot.objects), {key: dict(rows) for key, rows in world.snapshot.quotas.items()}
    world.plan(fleet({"site/fra1": {"region": "x"}, "pool/p1": {"ownerQuota": {"gpu": 1}}}))
    assert world.snapshot.objects == objects
    assert world.snapshot.quotas == quotas


def test_a_removed_object_leaves_its_version_and_a_new_one_counts_on() -> None:
    world = World()
    world.converge(fleet(BASE))
    without = fleet({name: fields for name, fields in BASE.items() if not name.startswith("offer")})
    for version in (1, 2, 3):
        assert world.live("offer/p1/acme").version == version
        world.converge(without)
        stone = world.snapshot.tombstones["offer", derive_id("offer", "root", "fleet/eu", "p1/acme")]
        assert (stone.version, stone.fleet, stone.last_applied_json) == (version, "eu", None)
        world.converge(fleet(BASE))


def test_what_somebody_else_removed_keeps_what_was_applied() -> None:
    world = World()
    world.converge(fleet(BASE))
    offer = world.live("offer/p1/acme")
    world.call(builders.removal("offer", offer.id))
    stone = world.snapshot.tombstones["offer", offer.id]
    assert stone.last_applied_json == offer.last_applied_json


def test_a_body_that_is_handed_in_is_the_one_that_counts() -> None:
    """The planner spares decoding; what it hands in is the body of `after`."""
    world = World()
    item = declared("market-pool/dev", {})
    operation = _create("market-pool", "dev", state_of("market-pool", item.body, name="dev"))
    actor = Actor(tenant="root", caller="cli/root")
    working = Working(world.snapshot)
    assert decide(working, operation, actor, NOW, item.body) == decide(working, operation, actor, NOW)


def test_an_operation_that_says_nothing_of_what_it_shall_be() -> None:
    """A command's operation has no reader that checked it before."""
    world = World()
    with pytest.raises(EngineRefused, match="says nothing"):
        world.decide(replace(_create("market-pool", "dev", {}), after=None), fleet=None)
    with pytest.raises(EngineRefused, match="flags"):
        world.decide(_create("market-pool", "dev", {"name": "dev"}), fleet=None)


def test_the_archived_pool_of_a_deleted_owner_is_not_asked_for_here() -> None:
    """Archived pools stay, owned by their fleet, seen by their owner alone, and nothing of it is offered."""
    world = World()
    world.converge(fleet(BASE))
    world.converge(fleet({"tenant/acme": {}, "site/fra1": {}}))
    pool = world.live("pool/p1", archived=True)
    assert (pool.archived, pool.fleet, pool.protect, pool.last_applied_json) == (True, "eu", False, None)
    assert [tenant for id, tenant in world.authz if id == pool.id] == ["root"]


def test_settings_object_is_the_one_of_init() -> None:
    made: LiveObject = settings_object()
    assert (made.kind, made.id, made.key) == ("settings", "settings", "engine")
    assert cast(Any, made.body()) == SettingsBody()


@pytest.mark.parametrize("kind", ["tenant", "entitlement"])
def test_a_deep_tree_costs_what_a_flat_one_costs(kind: str) -> None:
    """Some seconds of CPU would not do for time that grows with the square of the depth."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
from tests.support.worlds import World, fleet
deep = {{f"{kind}/n{{i:05d}}": {{"parent": f"n{{i - 1:05d}}"}} if i else {{}} for i in range(8_000)}}
print(len(World().plan(fleet(deep)).operations))
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "8000"
