"""After any history the tables are what ledgers and documents fold to, and usage is the same from anywhere (architecture.md, rule 8).

issue: "tables equal the fold of the journal's documents", "plan after apply is empty; applying twice is a no-op".
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from fleetctl.capacity.refusals import NOT_FOUND, refuse
from fleetctl.engine import builders, calls, claims, deletion, drifting, rebuild, reservations
from fleetctl.engine.apply import apply_plan
from fleetctl.engine.context import Engine, usage_stream
from fleetctl.engine.moving import copy_into
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.engine.receipts import read_settings
from fleetctl.engine.streams import read_usages, verify_stream
from fleetctl.errors import EngineRefused, SafetyRefused
from fleetctl.ledger.chain import genesis
from fleetctl.ledger.checkpoint import open_checkpoint, seal_checkpoint
from fleetctl.ledger.usage import Fold
from fleetctl.ledger.verify import Start, Verification, examine_from
from fleetctl.model.bodies import MarketPoolBody, OfferBody, PoolBody, SiteBody, TenantBody
from fleetctl.model.declared import Declared, Fleet
from fleetctl.model.live import LiveObject
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.store.sqlite import SqliteStore
from tests.support import engines as te
from tests.support import inprocess as tw

POOLS = ("p0", "p1", "p2")
TENANTS = ("acme", "beta")


# ------------------------------------------------------------------------------------------- histories, by chance


def pool_objects(key: str, chance: random.Random) -> list[Declared]:
    """A pool and its offers."""
    name = chance.choice([key, key, f"{key}-new"])
    objects = [te.pool(key, name=name, protect=chance.random() < 0.1, owner_quota={"gpu": chance.randint(1, 9)})]
    for tenant in (*TENANTS, "root"):
        if chance.random() < (0.1 if tenant == "root" else 0.6):
            resources = chance.choice([["gpu"], ["gpu", "gpu.mig"], ["gpu.mig"]])
            quota = {resource: chance.randint(0, 16) for resource in resources}
            objects.append(te.offer(key, tenant, quota=quota, priority=chance.randint(-1, 1)))
    return objects


def some_fleet(engine: Engine, chance: random.Random) -> Fleet:
    """A small fleet whose objects come, change and go; a retired pool's key is not used again."""
    name = chance.choice(["eu", "eu", "us"])
    with engine.store.read() as reader:
        retired = {item.key for item in reader.objects() if item.archived}
    objects: list[Declared] = [te.tenant("beta")]
    for stem in POOLS:
        key = next(
            key
            for key in itertools.chain([f"{name}-{stem}"], (f"{name}-{stem}-{n}" for n in itertools.count(2)))
            if key not in retired
        )
        if chance.random() < 0.8:
            objects += pool_objects(key, chance)
    for key in ("e0", "e1"):
        if chance.random() < 0.8:
            energy, devices = chance.randint(2_000, 9_000), chance.randint(8, 24)
            whose = chance.choice(["acme", "any", "any"])
            objects.append(te.entitlement(f"{name}-{key}", energy_uj=energy, devices=devices, tenant=whose))
    if chance.random() < 0.5:
        explicit = chance.random() < 0.5
        objects.append(
            Declared(kind="market-pool", key=f"{name}-mkt", name="mkt", body=MarketPoolBody(), explicit_only=explicit)
        )
    return te.fleet(*objects, name=name)


def apply_something(engine: Engine, chance: random.Random) -> None:
    """Plan, accept every danger by name, apply; then the plan is empty, and the same file again changes nothing."""
    declared = some_fleet(engine, chance)
    source = chance.choice(
        [Source(), Source(commit="a" * 40, origin=("root", "f")), Source(commit="b" * 40 + "+dirty")]
    )
    dangers = plan_fleet(engine, declared, source, host="h").plan.dangers
    data = te.planned(engine, declared, accept=[item.id for item in dangers], source=source)
    receipt = apply_plan(engine, data)
    length = te.lengths(engine)[0]
    assert plan_fleet(engine, declared, source, host="h").plan.operations == ()
    assert apply_plan(engine, data).result == ("nothing-to-do" if receipt.entry is None else "already-applied")
    assert te.lengths(engine)[0] == length


def live(engine: Engine, kind: str, chance: random.Random) -> LiveObject:
    """One of the live objects of a kind; EngineRefused when there is none, as the engine would."""
    with engine.store.read() as reader:
        found = [item for item in reader.objects() if item.kind == kind and not item.archived]
    if not found:
        refuse(NOT_FOUND, f"there is no {kind}", kind)
    return chance.choice(found)


def call_something(engine: Engine, chance: random.Random) -> None:
    """One of the commands that move configuration."""
    kind = chance.choice(["offer", "unoffer", "archive", "quota", "protect", "region", "settings", "tenant"])
    build: calls.Build
    if kind in ("offer", "unoffer", "archive", "quota", "protect"):
        pool = live(engine, "pool", chance)
        tenant = chance.choice([*TENANTS, "root"])
        if kind == "offer":
            quota = {resource: chance.randint(0, 9) for resource in chance.choice([[], ["gpu"], ["gpu.mig"]])}
            build = builders.offering(OfferBody(pool=pool.id, to=tenant, quota=quota), "")
        elif kind == "unoffer":
            build = builders.unoffering(pool.id, tenant)
        elif kind == "archive":
            build = builders.removal("pool", pool.id)
        elif kind == "quota":
            maximum = chance.randint(0, 9)
            build = builders.change(
                "pool", pool.id, lambda _, item: replace(cast(PoolBody, item.body()), owner_quota={"gpu": maximum})
            )
        else:
            build = builders.flag("pool", pool.id, protect=chance.random() < 0.5)
    elif kind == "region":
        name = chance.choice(["eu", "us", "ap"])
        build = builders.change(
            "site", live(engine, "site", chance).id, lambda _, item: replace(cast(SiteBody, item.body()), region=name)
        )
    elif kind == "tenant":
        body = TenantBody(parent="root", description=chance.choice(["a", "b"]))
        build = builders.creation(
            engine, "tenant", body, tenant="root", key=chance.choice(["gamma", "delta"]), name="t"
        )
    else:
        percent = chance.randint(1, 100)
        build = builders.settings_change(lambda body: replace(body, share_threshold_percent=percent))
    calls.call(engine, kind, tenant="root", request={"operation": "a word"}, build=build)


def own_something(engine: Engine, chance: random.Random) -> None:
    """A tenant makes a site of its own, or a pool there, or offers that."""
    owner = chance.choice(["acme", "beta", "gamma"])
    with engine.store.read() as reader:
        mine = [item for item in reader.objects() if item.tenant == owner and item.fleet is None and not item.archived]
    sites = [item.id for item in mine if item.kind == "site"]
    pools = [item.id for item in mine if item.kind == "pool"]
    build: calls.Build
    if pools and chance.random() < 0.6:
        quota = {"gpu": chance.randint(1, 9)}
        body = OfferBody(pool=chance.choice(pools), to=chance.choice([*TENANTS, "root"]), quota=quota)
        build = builders.offering(body, "")
    elif sites:
        pool = PoolBody(site=sites[0], pool_class="metal-host", gpu_model="H100", owner_quota={"gpu": 9})
        key = f"{owner}-{chance.randint(0, 9)}"
        build = builders.creation(engine, "pool", pool, tenant=owner, key=key, name=key)
    else:
        site = SiteBody(kind="custom", region="eu", tenant=owner)
        build = builders.creation(engine, "site", site, tenant=owner, key="home", name="home")
    calls.call(engine, "own", tenant=owner, request={}, build=build)


def delete_something(engine: Engine, chance: random.Random) -> None:
    """A tenant with all that it has. What it leaves is nobody's, and no row of it grants anything."""
    key = chance.choice(["acme", "beta", "beta", "gamma", "delta"])
    deletion.delete_tenant(engine, key, tenant="root", accept=[f"remove:tenant/{key}"])
    with engine.store.read() as reader:
        assert {row.maximum for row in reader.quotas() if row.tenant == key} <= {0}
        assert not [row for row in reader.authz() if row.tenant == key]
        assert not [
            item for item in reader.reservations() if item.tenant == key and item.state in ("pending", "active")
        ]


def admit_something(engine: Engine, chance: random.Random) -> None:
    claims.admit(
        engine,
        claim=f"c{chance.randint(0, 40)}",
        entitlement=live(engine, "entitlement", chance).id,
        gang_size=chance.randint(1, 2),
        devices_per_member=chance.randint(1, 4),
        estimate_uj=chance.randint(0, 900),
        grade=chance.choice(list(Grade)),
        workload_class=chance.choice([None, "train"]),
    )


def release_something(engine: Engine, chance: random.Random) -> None:
    with engine.store.read() as reader:
        opened = sorted(read_usages(engine, reader).fold.open_claims)
    if opened:
        reading = Figure(energy_uj=chance.randint(0, 1_500), grade=chance.choice(list(Grade)))
        claims.release(engine, claim=chance.choice(opened), reading=chance.choice([None, reading]))


def reserve_something(engine: Engine, chance: random.Random) -> None:
    estimate = None
    if chance.random() < 0.6:
        entitlement = live(engine, "entitlement", chance).id
        estimate = reservations.Estimate(entitlement=entitlement, energy_uj=100, grade=Grade.ESTIMATOR)
    pool, gpus = live(engine, "pool", chance), chance.randint(1, 6)
    tenant = chance.choice([*TENANTS, "root", pool.tenant])
    if chance.random() < 0.5:
        reservations.join_node(engine, pool=pool.id, name=f"n{chance.randint(0, 2)}", gpus=8)
    reservations.create(engine, tenant=tenant, pool=pool.id, gpus=gpus, estimate=estimate)


def reserve_offered(engine: Engine, chance: random.Random) -> None:
    """A tenant runs in a pool that it is offered."""
    body = cast(OfferBody, live(engine, "offer", chance).body())
    reservations.join_node(engine, pool=body.pool, name=f"m{chance.randint(0, 1)}", gpus=8)
    entitlement = live(engine, "entitlement", chance).id
    estimate = reservations.Estimate(entitlement=entitlement, energy_uj=100, grade=Grade.MODEL_BASED)
    reservations.create(engine, tenant=body.to, pool=body.pool, gpus=chance.randint(1, 3), estimate=estimate)


def end_something(engine: Engine, chance: random.Random) -> None:
    with engine.store.read() as reader:
        found = [item.id for item in reader.reservations()]
    if found:
        reservations.end(engine, chance.choice(found))


def seal_something(engine: Engine, chance: random.Random) -> None:
    drifting.seal_report(engine, {"chance": chance.randint(0, 9)}, "none")


STEPS: dict[Callable[[Engine, random.Random], None], int] = {
    apply_something: 5,
    call_something: 6,
    admit_something: 4,
    release_something: 3,
    reserve_something: 4,
    reserve_offered: 4,
    end_something: 2,
    seal_something: 1,
    own_something: 5,
    delete_something: 3,
}


@pytest.mark.parametrize("seed", range(12))
def test_after_any_history_the_tables_are_the_fold(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    clock = te.ToldClock(step_ms=1)
    folder = tmp_path / "engine"
    engine = te.new_engine(folder, checkpoint_every=4, clock=clock)
    apply_something(engine, chance)
    done = 0
    for _ in range(40):
        if chance.random() < 0.2:
            clock.at_ms -= 100_000  # the machine's clock is set back
        (step,) = chance.choices(list(STEPS), list(STEPS.values()))
        before = te.lengths(engine)
        try:
            step(engine, chance)
            done += 1
        except EngineRefused:
            assert te.lengths(engine) == before
        except SafetyRefused as error:
            assert error.code == "protected", error
        check_resumes(engine)
    assert done > 12
    te.check_whole(engine)
    check_times(engine)
    engine.store.close()
    check_rebuild(folder)


def check_times(engine: Engine) -> None:
    """`at_ms` never falls within a stream, though the clock does (ledger.md, "The journal")."""
    times = [event.at_ms for event in te.journal(engine)]
    assert times == sorted(times)
    with engine.store.read() as reader:
        times = [event.at_ms for _, event in te.usage_events(engine, reader)]
    assert times == sorted(times)


def check_resumes(engine: Engine) -> None:
    """Usage from the checkpoint that is kept is usage from genesis (P8: replay equals live)."""
    with engine.store.read() as reader:
        resumed = read_usages(engine, reader)
        whole = verify_stream(engine, reader, usage_stream(reader)).fold
        assert whole is not None
        assert (resumed.fold.usage, resumed.fold.open_claims) == (whole.usage, whole.open_claims)
        assert (resumed.fold.evidence, resumed.fold.claims_digest) == (whole.evidence, whole.claims_digest)
        counted = {name: (use.spent_uj, use.reserved_uj, use.devices) for name, use in resumed.entitlements.items()}
        assert counted == {name: (use.spent_uj, use.reserved_uj, use.devices) for name, use in whole.usage.items()}


def check_rebuild(folder: Path) -> None:
    """Rebuilding writes the very rows that are there; only checkpoints, which are caches, are not made again."""
    before = te.dump(folder)
    engine = te.open_engine(folder)
    rebuild.rebuild(engine)
    te.check_whole(engine)
    engine.store.close()
    after = te.dump(folder)
    assert after.pop("checkpoints") == []
    del before["checkpoints"]
    assert after == before


# ------------------------------------------------------------------------------------------------ single properties


def admitting(number: int, entitlement: str, devices: int, energy: int, grade: Grade) -> Callable[[Engine], Any]:
    return lambda engine: claims.admit(
        engine,
        claim=f"c{number}",
        entitlement=entitlement,
        gang_size=1,
        devices_per_member=devices,
        estimate_uj=energy,
        grade=grade,
        workload_class="train",
    )


def unoffer(engine: Engine) -> None:
    build = builders.unoffering(te.POOL_A, "acme")
    calls.call(engine, "pools.unoffer", tenant="root", request={}, build=build)


def set_attestors(engine: Engine, *names: str) -> None:
    build = builders.settings_change(lambda body: replace(body, attestors=names))
    calls.call(engine, "settings.set", tenant="root", request={}, build=build)


def ground(tmp_path: Path, **how: Any) -> Engine:
    engine = te.new_engine(tmp_path / "engine", **how)
    te.applied(engine, te.one_pool())
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=8)
    return engine


@pytest.mark.clause("pool/1 §7.10", "pool/1 §6.1")
def test_usage_resumed_from_a_checkpoint_equals_usage_from_genesis_at_every_prefix(tmp_path: Path) -> None:
    """ledger.md: "a test proves replay-from-genesis equal to resume at every prefix"."""
    engine = ground(tmp_path)
    for number in range(8):
        admitting(number, "ent", 1 + number % 3, 100 * number, list(Grade)[number % 3])(engine)
        if number % 2:
            claims.release(engine, claim=f"c{number}", reading=Figure(energy_uj=50 * number, grade=Grade.MODEL_BASED))
    with engine.store.read() as reader:
        stream = usage_stream(reader)
        entries = list(reader.entries(stream))
        ledger = engine.ledger(stream)
        admitted_at = {row.claim: row.admitted_at for row in reader.claims(stream)}

    def walk(start: Start, data: bytes) -> tuple[Verification, Fold]:
        found = examine_from(start, data, key=engine.steward_key).require()
        assert found.fold is not None
        return found, found.fold

    def from_genesis(count: int) -> tuple[Verification, Fold]:
        start = Start(ledger=ledger, length=0, address=genesis(ledger), fold=Fold(ledger))
        return walk(start, b"".join(entries[:count]))

    whole, expected = from_genesis(len(entries))
    for cut in range(len(entries) + 1):
        prefix, _ = from_genesis(cut)
        point = open_checkpoint(seal_checkpoint(prefix, engine.sealing()), ledger=ledger, key=engine.steward_key)

        def was_used(claim: str, cut: int = cut) -> bool:
            return admitted_at.get(claim, cut) < cut

        start = Start(ledger=ledger, length=cut, address=point.head, fold=point.fold(was_used))
        found, fold = walk(start, b"".join(entries[cut:]))
        assert found.tip == whole.tip
        assert (fold.usage, fold.open_claims) == (expected.usage, expected.open_claims)
        assert (fold.evidence, fold.claims_digest) == (expected.evidence, expected.claims_digest)


def test_queue_and_deny_leave_everything_as_it_is(tmp_path: Path) -> None:
    """P11: nothing is written, so that a refusal cannot be told from silence in the ledger (pool/1 §6.2)."""
    engine = ground(tmp_path, checkpoint_every=1)
    admitting(0, "ent", 60, 10**12, Grade.ESTIMATOR)(engine)
    folder = tmp_path / "engine"
    before = te.dump(folder)
    for devices, energy, expected in ((5, 0, "Queue"), (1, 1, "Queue"), (65, 0, "Deny"), (1, 10**13, "Deny")):
        found = admitting(1, "ent", devices, energy, Grade.ESTIMATOR)(engine)
        assert (found.verdict.outcome.value, found.entry) == (expected, None)
        assert te.dump(folder) == before
    unknown = admitting(1, "nobody", 1, 1, Grade.ESTIMATOR)(engine)
    assert unknown.verdict.outcome.value == "Deny"
    assert te.dump(folder) == before


def test_sums_too_large_to_seal_stop_no_command(tmp_path: Path) -> None:
    """A checkpoint is a cache: where it cannot be sealed the ledger is read from further back (pool/1 readings A29)."""
    engine = te.new_engine(tmp_path / "engine", checkpoint_every=2)
    te.applied(engine, te.fleet(te.entitlement(energy_uj=2**63 - 1)))
    for number in range(3):
        admitting(number, "ent", 1, 0, Grade.HW_SHUNT)(engine)
    for number in range(3):
        claims.release(engine, claim=f"c{number}", reading=Figure(energy_uj=2**62, grade=Grade.HW_SHUNT))
    with engine.store.read() as reader:
        (use,) = read_usages(engine, reader).entitlements.values()
    assert use.spent_uj == 3 * 2**62
    assert te.applied(engine, te.fleet(te.entitlement(energy_uj=2**63 - 1), te.pool("pool-a"))).result == "applied"
    te.check_whole(engine)


def test_a_quota_that_a_withdrawn_offer_left_stays_as_it_was_left(tmp_path: Path) -> None:
    """readings B02, B03: lowered to what was in use then; what that was is in no document, so a rebuild keeps the row."""
    engine = ground(tmp_path)
    booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=6)
    unoffer(engine)
    reservations.end(engine, booked.reservation.id)
    engine.store.close()
    folder = tmp_path / "engine"
    check_rebuild(folder)
    assert (te.POOL_A, "acme", "gpu", 6) in te.dump(folder)["quotas"]
    te.edit(folder, "UPDATE quotas SET maximum = 33 WHERE tenant = 'acme'")  # more than was ever offered
    engine = te.open_engine(folder)
    assert drifting.drift_fleet(engine, te.fleet(te.pool("pool-a"), te.entitlement()), Source(), full=True).result == (
        "tampered"
    )
    rebuild.rebuild(engine)
    assert (te.POOL_A, "acme", "gpu", 0) in te.dump(folder)["quotas"]


def test_an_engine_that_was_copied_folds_from_its_own_first_state(tmp_path: Path) -> None:
    """`state copy`: new ids and ledgers; quota and authorization rows follow from the copied objects."""
    source = ground(tmp_path)
    reservations.create(source, tenant="acme", pool="pool-a", gpus=4)
    folder = tmp_path / "copy"
    folder.mkdir(mode=0o700)
    target = te.over(SqliteStore.create(folder / "state.db"), id="eng_copy")
    assert copy_into(source, target, {"witness-c": tw.WITNESSES["witness-c"].public_key.hex()}) == 5 + 1
    te.check_whole(target)
    with target.store.read() as reader:
        assert list(read_settings(reader).witnesses) == ["witness-c"]  # those of the source do not know this steward
    assert te.dump(folder)["quotas"] == te.dump(tmp_path / "engine")["quotas"]
    assert te.applied(target, te.one_pool()).result == "nothing-to-do"
    booked = reservations.create(target, tenant="acme", pool="pool-a", gpus=8)
    assert booked.reservation.state == "active"
    te.applied(target, te.one_pool(4), accept=["shrink-below-use:offer/pool-a/acme"])
    te.check_whole(target)
    target.store.close()
    before = te.dump(folder)
    target = te.over(SqliteStore.open(folder / "state.db"), id="eng_copy")
    rebuild.rebuild(target)
    assert te.dump(folder) == before


def test_a_policy_that_settings_allow_later_is_folded_with_the_settings_of_its_time(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine")
    wanted = te.fleet(te.pool("pool-a", policy={"joinAttestors": ["tpm"]}))
    with pytest.raises(EngineRefused):
        te.applied(engine, wanted)
    set_attestors(engine, "tpm")
    te.applied(engine, wanted)
    set_attestors(engine)
    te.check_whole(engine)


@pytest.mark.parametrize("words", [{"operation": {}}, {"tenant": "acme"}, {"method": "x"}, {"a": "b"}])
def test_no_word_of_a_request_stands_in_the_place_of_what_is_folded(tmp_path: Path, words: dict[str, Any]) -> None:
    engine = ground(tmp_path)
    calls.call(engine, "m", tenant="root", request=words, build=builders.unoffering(te.POOL_A, "acme"))
    te.check_whole(engine)
