"""`tenants delete`: one transaction that ends configuration, reservations and claims, and nothing without its danger accepted.

readings better-compute B30 and 4D; the configuration's own rules are `cases/decide/tenant-deletion.json`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetctl.engine import builders, calls, claims, drifting, rebuild, reports, reservations, rotating
from fleetctl.engine.apply import apply_plan
from fleetctl.engine.context import Engine, usage_stream
from fleetctl.engine.deletion import NotAccepted, delete_tenant, survey_deletion
from fleetctl.engine.history import HistoryEntry, engine_history
from fleetctl.engine.initial import initial_rows
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.engine.streams import read_usages, read_window
from fleetctl.errors import EngineRefused, FleetctlError, SafetyRefused, Stale, Unreachable
from fleetctl.ledger.entries import Called, Released
from fleetctl.model.bodies import OfferBody, PoolBody, SiteBody, TenantBody
from fleetctl.model.declared import Declared
from fleetctl.model.ids import ObjectId
from fleetctl.model.operational import Reservation
from fleetctl.pool1.grade import Grade
from tests.support import engines as te
from tests.support import inprocess as tw

ACCEPTED = ("remove:tenant/acme",)
BASE = te.fleet(
    te.tenant("beta"), te.pool("pool-a"), te.offer("pool-a"), te.offer("pool-a", "beta"), te.entitlement(tenant="any")
)


def as_acme(engine: Engine, method: str, build: calls.Build) -> calls.CallReceipt:
    return calls.call(engine, method, tenant="acme", request={}, build=build)


def own_pool(engine: Engine, key: str = "own") -> ObjectId:
    """A pool of acme's on a site of its own, offered to beta."""
    site = SiteBody(kind="custom", region="eu", tenant="acme")
    made = as_acme(
        engine, "sites.create", builders.creation(engine, "site", site, tenant="acme", key="par1", name="par1")
    )
    assert made.id is not None
    body = PoolBody(site=made.id, pool_class="metal-host", gpu_model="H100")
    pool = as_acme(engine, "pools.create", builders.creation(engine, "pool", body, tenant="acme", key=key, name=key)).id
    assert pool is not None
    as_acme(engine, "pools.offer", builders.offering(OfferBody(pool=pool, to="beta", quota={"gpu": 4}), ""))
    return pool


def reserve(engine: Engine, tenant: str, pool: str, gpus: int, *, paid: bool = False) -> Reservation:
    estimate = reservations.Estimate(entitlement="ent", energy_uj=5_000, grade=Grade.HW_SHUNT) if paid else None
    return reservations.create(engine, tenant=tenant, pool=pool, gpus=gpus, estimate=estimate).reservation


def running(engine: Engine) -> dict[str, str]:
    """States of all reservations, by id."""
    with engine.store.read() as reader:
        return {item.id: item.state for item in reader.reservations()}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """acme runs in its own pool and in root's, twice on an entitlement; beta runs in acme's."""
    engine = te.new_engine(tmp_path / "engine")
    furnish(engine)
    return engine


def furnish(engine: Engine) -> None:
    te.applied(engine, BASE)
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=16)
    reservations.join_node(engine, pool=own_pool(engine), name="n2", gpus=8)
    reserve(engine, "beta", "own", 2)
    reserve(engine, "beta", "pool-a", 1, paid=True)
    for paid in (True, True, False):
        reserve(engine, "acme", "pool-a", 3, paid=paid)
    reserve(engine, "acme", "own", 4)
    reserve(engine, "acme", "own", 4)  # waits: 2 are free


def test_everything_ends_in_one_transaction(engine: Engine, tmp_path: Path) -> None:
    before = running(engine)
    assert sorted(before.values()) == ["active"] * 6 + ["pending"]
    done = delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    assert done.teardown is not None and len(done.teardown.reservations) == 5
    assert (done.teardown.pools, done.teardown.sites) == (("pool/own",), ("site/par1",))
    assert (done.teardown.others, done.teardown.other_gpus, done.teardown.nodes) == (1, 2, 1)
    with engine.store.read() as reader:
        ended = {item.id for item in reader.reservations() if item.state == "ended"}
        assert {item.tenant for item in reader.reservations() if item.id in ended} == {"acme"}
        assert {item.reason for item in reader.reservations() if item.id in ended} == {"tenant deleted"}
        assert sorted(item.tenant for item in reader.reservations() if item.state == "active") == ["beta", "beta"]
        quotas = {(row.pool, row.tenant): row.maximum for row in reader.quotas() if row.pool != te.POOL_A}
        assert set(quotas.values()) == {0}
        used = dict(reader.booked())
    assert {(tenant, use.resources["gpu"]) for (_, tenant), use in used.items()} == {("beta", 2), ("beta", 1)}
    te.check_whole(engine)
    check_rebuild(engine, tmp_path / "engine")


def check_rebuild(engine: Engine, folder: Path) -> None:
    """Rebuilding writes the rows that are there, to the last one."""
    engine.store.close()
    before = te.dump(folder)
    again = te.open_engine(folder)
    rebuild.rebuild(again)
    te.check_whole(again)
    assert te.dump(folder) == before


@pytest.mark.clause("pool/1 §6.1")
def test_claims_are_charged_as_reserved_before_the_journal_pins_the_ledger(engine: Engine) -> None:
    """readings A38: nobody has read a meter. The entry of the deletion already stands on the releases."""
    opened = te.lengths(engine)[1]
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    with engine.store.read() as reader:
        released = [event for _, event in te.usage_events(engine, reader)][opened:]
        usages = read_usages(engine, reader)
    assert [(event.spent_uj, event.grade) for event in released if isinstance(event, Released)] == [
        (5_000, "Estimator")
    ] * 2
    assert [item.devices for item in usages.fold.open_claims.values()] == [1]
    last = te.journal(engine)[-1]
    assert isinstance(last, Called) and (last.method, last.object) == ("tenants.delete", "tenant/acme")
    assert (last.ledger_length, last.ledger_head) == (usages.head.length, usages.head.address)


def test_nothing_happens_before_it_is_accepted(engine: Engine, tmp_path: Path) -> None:
    before = te.dump(tmp_path / "engine")
    for given in ((), ("remove:tenant/beta",), ("share:fleet/eu",)):
        with pytest.raises(NotAccepted) as caught:
            delete_tenant(engine, "acme", tenant="root", accept=given)
        assert (caught.value.code, caught.value.exit_code) == ("unaccepted-danger", 3)
        assert all(f"`{name}` is no danger" in str(caught.value) for name in given)
    surveyed = survey_deletion(engine, "acme", tenant="root")
    assert surveyed is not None and surveyed == caught.value.teardown
    assert surveyed.danger().figures == {"pools": 1, "sites": 1, "offers": 2, "reservations": 5, "gpus": 13}
    assert te.dump(tmp_path / "engine") == before


@pytest.mark.parametrize("accept", [(), ACCEPTED])
def test_what_stands_in_the_way_comes_before_the_danger(
    engine: Engine, tmp_path: Path, accept: tuple[str, ...]
) -> None:
    lab = TenantBody(parent="acme")
    as_acme(engine, "tenants.create", builders.creation(engine, "tenant", lab, tenant="acme", key="lab", name="lab"))
    before = te.dump(tmp_path / "engine")
    with pytest.raises(EngineRefused) as caught:
        delete_tenant(engine, "acme", tenant="root", accept=accept)
    assert caught.value.code == "tenant-in-use"
    with pytest.raises(EngineRefused):
        survey_deletion(engine, "acme", tenant="root")
    assert te.dump(tmp_path / "engine") == before
    delete_tenant(engine, "lab", tenant="acme", accept=["remove:tenant/lab"])
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)


@pytest.mark.parametrize(
    ("key", "code", "says"),
    [("root", "invalid-state", "root tenant"), ("nobody", "not-found", "`fleetctl tenants list`")],
)
def test_who_cannot_be_deleted(engine: Engine, key: str, code: str, says: str) -> None:
    with pytest.raises(EngineRefused) as caught:
        delete_tenant(engine, key, tenant="root", accept=[f"remove:tenant/{key}"])
    assert caught.value.code == code and says in str(caught.value)


def test_without_the_private_key_nothing_is_done(engine: Engine, tmp_path: Path) -> None:
    before = te.dump(tmp_path / "engine")
    with pytest.raises(Unreachable):
        delete_tenant(replace(engine, signer=None), "acme", tenant="root", accept=ACCEPTED)
    assert te.dump(tmp_path / "engine") == before


def test_deleting_again_is_nothing(engine: Engine, tmp_path: Path) -> None:
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    before = te.dump(tmp_path / "engine")
    again = delete_tenant(engine, "acme", tenant="root")
    assert (again.receipt.entry, again.teardown, again.accepted) == (None, None, ())
    assert survey_deletion(engine, "acme", tenant="root") is None
    assert te.dump(tmp_path / "engine") == before


def test_what_is_left_in_its_pools_runs_out(engine: Engine, tmp_path: Path) -> None:
    """B30: live bookings of others run to their end, nothing starts, and the row never grants anything again."""
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    for tenant in ("beta", "acme"):
        with pytest.raises(EngineRefused) as caught:
            reserve(engine, tenant, "own", 1)
        assert caught.value.code == "not-found"
    with pytest.raises(EngineRefused, match="archived"):
        reservations.join_node(engine, pool="own", name="n3", gpus=8)
    with pytest.raises(EngineRefused, match="booked"):
        reservations.leave_node(engine, "n2")
    with engine.store.read() as reader:
        held = [item.id for item in reader.reservations() if item.state == "active" and item.pool != te.POOL_A]
    for id in held:
        reservations.end(engine, id)
    reservations.leave_node(engine, "n2")
    te.check_whole(engine)
    check_rebuild(engine, tmp_path / "engine")


def test_a_row_that_it_left_is_nothing_but_zero(engine: Engine, tmp_path: Path) -> None:
    """The rows of an ended offer are anything up to what they were; these are not."""
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    engine.store.close()
    te.edit(tmp_path / "engine", "UPDATE quotas SET maximum = 1 WHERE tenant = 'beta' AND pool <> ?", [te.POOL_A])
    engine = te.open_engine(tmp_path / "engine")
    report = drifting.drift_fleet(engine, BASE, Source(), full=True)
    assert report.result == "tampered" and "quota" in report.tampered[0].detail
    rebuild.rebuild(engine)
    te.check_whole(engine)


def test_a_tenant_of_the_same_name_is_another_one(engine: Engine) -> None:
    """Versions go on after a removal, so that no plan takes the one for the other; nothing of the old one comes back."""
    te.applied(engine, te.fleet(te.tenant("gamma"), *BASE.objects[2:]))
    stale = te.planned(
        engine, te.fleet(te.offer("pool-a", "acme", gpus=9), *(x for x in BASE.objects[2:] if x.key != "pool-a/acme"))
    )
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    with pytest.raises(Stale, match="offer/pool-a/acme"):
        apply_plan(engine, stale)
    planned = plan_fleet(engine, BASE, Source(), host="h")
    assert [item.code.name for item in planned.plan.warnings if item.subject == "tenant/acme"] == ["tenant-made-anew"]
    te.applied(engine, BASE)
    with engine.store.read() as reader:
        made = reader.object("tenant", "acme")
        booked = {tenant for _, tenant in dict(reader.booked())}
    assert made is not None and (made.version, made.fleet) == (2, "eu")
    assert booked == {"beta"}
    with pytest.raises(EngineRefused, match="no pool"):
        reserve(engine, "acme", "own", 1)
    assert reserve(engine, "acme", "pool-a", 1).state == "active"
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    te.check_whole(engine)


def test_a_plan_that_was_made_before_finds_nobody(engine: Engine) -> None:
    """plan-apply: an apply can fail only because the ground moved."""
    wanted = te.fleet(*BASE.objects[2:], te.pool("pool-b"), te.offer("pool-b"))
    stale = te.planned(engine, replace(wanted, objects=wanted.objects[1:]))
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    with pytest.raises(Stale):
        apply_plan(engine, stale)


def test_who_did_it_and_what_ended_with_it(engine: Engine) -> None:
    """`history` of what had no operation of its own answers too; drift names who it was."""
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)

    def last(subject: str | None) -> HistoryEntry:
        return engine_history(engine, subject).entries[-1]

    entry = last(None)
    assert (entry.method, entry.accepted) == ("tenants.delete", ACCEPTED)
    assert [f"{item.verb} {item.label}" for item in entry.operations] == ["remove tenant/acme"]
    held = next(iter(id for id, state in running(engine).items() if state == "ended"))
    for subject in (
        "tenant/acme",
        "pool/own",
        "offer/own/beta",
        "offer/pool-a/acme",
        "site/par1",
        f"reservation/{held}",
    ):
        assert last(subject).entry == entry.entry, subject
    (gone,) = last("offer/own/beta").operations
    assert (gone.verb, gone.reason, gone.precondition.version) == ("remove", "tenant/acme was deleted", 1)
    assert last(f"reservation/{held}").operations == entry.operations
    assert last("pool/pool-a").entry != entry.entry
    report = drifting.drift_fleet(engine, BASE, Source())
    assert {item.label for item in report.drift.items} == {"tenant/acme", "offer/pool-a/acme"}
    assert {item.entry for item in report.culprits.values()} == {entry.entry}


def test_reports_of_what_ended_go_with_it(engine: Engine) -> None:
    with engine.store.read() as reader:
        claim = next(item.claim for item in reader.reservations() if item.tenant == "acme" and item.claim)
    reports.report(engine, claim=claim, completed_units=1, spent_uj=10, grade=Grade.HW_SHUNT)
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    with engine.store.read() as reader:
        assert list(reader.reports(usage_stream(reader))) == []


@pytest.mark.parametrize("every", [1, 2, 256])
def test_many_reservations_and_a_checkpoint(tmp_path: Path, every: int) -> None:
    engine = te.new_engine(tmp_path / "engine", checkpoint_every=every)
    te.applied(engine, BASE)
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=32)
    for _ in range(16):
        assert reserve(engine, "acme", "pool-a", 2, paid=True).state == "active"
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    te.check_whole(engine)
    assert claims.admit(
        engine,
        claim="c",
        entitlement="ent",
        gang_size=1,
        devices_per_member=64,
        estimate_uj=1,
        grade=Grade.HW_SHUNT,
    ).verdict.admitted


def test_claims_that_went_on_into_a_new_window(engine: Engine) -> None:
    """A reservation's claim has another id after a rotation; that one ends, and the closed window stays as it was."""
    rotating.rotate(engine, accept=["reset-usage:ledger"])
    with engine.store.read() as reader:
        closed = read_window(engine, reader, "entitlements").head
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    with engine.store.read() as reader:
        usages = read_usages(engine, reader)
        assert read_window(engine, reader, "entitlements").head == closed
    assert usages.stream != "entitlements"
    assert [item.devices for item in usages.fold.open_claims.values()] == [1]
    te.check_whole(engine)


def test_both_heads_are_witnessed(tmp_path: Path) -> None:
    witnesses = tuple(tw.InProcess(signer=key) for key in tw.WITNESSES.values())
    engine = te.new_engine(
        tmp_path / "engine", tw.witnessed_by(*tw.WITNESSES.values(), required=3), witnesses=witnesses
    )
    furnish(engine)
    done = delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    assert done.receipt.witnessed.grade == "witnessed" and done.receipt.witnessed.enough()
    for stream, length in zip(("journal", "entitlements"), te.lengths(engine), strict=True):
        known = witnesses[0].state.known(engine.ledger(stream))
        assert known is not None and known.length == length


def test_rows_that_follow_from_objects_alone_know_nobody_who_was_deleted(engine: Engine) -> None:
    """A copy of an engine begins with them."""
    delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    with engine.store.read() as reader:
        rows = initial_rows(engine.id, reader.objects())
    assert {row.tenant for row in rows.quotas} == {row.tenant for row in rows.authz} == {"root", "beta"}


def test_a_tenant_that_was_under_the_actor_once_is_not_for_ever() -> None:
    """What was learnt of a tenant ends with it, also in a fold, which decides every entry over one working snapshot."""
    from fleetctl.capacity.decide import Actor, decide
    from fleetctl.capacity.working import Working
    from fleetctl.model.operation import Operation
    from tests.support.worlds import NOW, World, fleet

    world = World()
    world.converge(fleet({"tenant/acme": {}, "tenant/lab": {"parent": "acme"}}))
    world.converge(fleet({"tenant/acme": {}}))
    working = Working(world.snapshot)

    def run(tenant: str, build: calls.Build) -> Operation:
        snapshot = replace(
            world.snapshot,
            objects={(item.kind, item.id): item for kind in ("tenant", "settings") for item in working.objects(kind)},
        )
        operation = build(snapshot)
        assert not isinstance(operation, calls.Nothing)
        working.apply(decide(working, operation, Actor(tenant=tenant, caller=f"cli/{tenant}"), NOW))
        return operation

    def making(key: str, parent: str) -> calls.Build:
        nobody: Any = None  # only ids without a key need a clock
        body = TenantBody(parent=parent)
        return builders.creation(nobody, "tenant", body, tenant="root", key=key, name=key)

    run("acme", making("rig", "lab"))
    for key in ("rig", "lab"):
        run("acme", builders.removal("tenant", key))
    run("root", making("lab", "root"))
    with pytest.raises(FleetctlError, match="not under the acting tenant"):
        run("acme", making("rig", "lab"))


def test_no_plan_deletes_a_tenant() -> None:
    """pins: a tenant that leaves the files is released; a forged plan cannot say otherwise."""
    from tests.support.worlds import World, fleet

    world = World()
    world.converge(fleet({"tenant/acme": {}}))
    operation = builders.removal("tenant", "acme")(world.snapshot)
    assert not isinstance(operation, calls.Nothing)
    with pytest.raises(EngineRefused, match="`fleetctl tenants delete acme`"):
        world.decide(operation)


def test_a_protected_pool_is_a_safety_rule(engine: Engine) -> None:
    with engine.store.read() as reader:
        pool = next(item.id for item in reader.objects() if item.key == "own")
    as_acme(engine, "pools.protect", builders.flag("pool", pool, protect=True))
    with pytest.raises(SafetyRefused) as caught:
        delete_tenant(engine, "acme", tenant="root", accept=ACCEPTED)
    assert caught.value.code == "protected"


def test_what_a_fleet_declares_is_named(engine: Engine) -> None:
    own = te.fleet(name="west").objects
    west = te.fleet(te.pool("pool-w", site="west"), te.offer("pool-w"), name="west")
    site = Declared(kind="site", key="west", name="west", body=SiteBody(kind="shared", region="us", tenant="root"))
    te.applied(engine, replace(west, objects=(own[0], site, *west.objects[2:])))
    surveyed = survey_deletion(engine, "acme", tenant="root")
    assert surveyed is not None and surveyed.fleets == ("eu", "west")
    assert surveyed.offers == ("offer/own/beta", "offer/pool-a/acme", "offer/pool-w/acme")
