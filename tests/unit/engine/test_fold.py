"""After any history the tables are what ledgers and documents fold to, and usage is the same from anywhere (architecture.md, rule 8).

issue: "tables equal the fold of the journal's documents", "plan after apply is empty; applying twice is a no-op".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetctl.engine import builders, calls, claims, drifting, rebuild, reservations
from fleetctl.engine.apply import apply_plan
from fleetctl.engine.context import Engine, usage_stream
from fleetctl.engine.moving import copy_into
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.engine.streams import read_usages, verify_stream
from fleetctl.errors import EngineRefused, SafetyRefused
from fleetctl.ledger.chain import genesis
from fleetctl.ledger.checkpoint import open_checkpoint, seal_checkpoint
from fleetctl.ledger.usage import Fold
from fleetctl.ledger.verify import Start, Verification, examine_from
from fleetctl.model.bodies import MarketPoolBody, OfferBody, PoolBody, SiteBody
from fleetctl.model.declared import Declared, Fleet
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.store.sqlite import SqliteStore
from tests.support import engines as te

POOLS = ("p0", "p1", "p2")
TENANTS = ("acme", "beta")


# ------------------------------------------------------------------------------------------- histories, by chance


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """A small fleet: pools that come and go, offers, entitlements, a market pool; keys carry a generation."""
    generation = draw(st.integers(0, 2))
    pools = draw(st.lists(st.sampled_from(POOLS), unique=True, max_size=3))
    objects: list[Declared] = [te.tenant("beta")]
    for name in pools:
        key = f"{name}-g{generation}" if generation else name
        objects.append(
            te.pool(
                key, name=draw(st.sampled_from([name, f"{name}-new"])), owner_quota={"gpu": draw(st.integers(1, 9))}
            )
        )
        for tenant in draw(st.lists(st.sampled_from(TENANTS), unique=True, max_size=2)):
            quota = draw(st.dictionaries(st.sampled_from(["gpu", "gpu.mig"]), st.integers(0, 16), min_size=1))
            objects.append(te.offer(key, tenant, quota=quota, priority=draw(st.integers(-2, 2))))
    for key in draw(st.lists(st.sampled_from(["e0", "e1"]), unique=True, max_size=2)):
        objects.append(te.entitlement(key, energy_uj=draw(st.integers(500, 5_000)), devices=draw(st.integers(1, 12))))
    if draw(st.booleans()):
        objects.append(Declared(kind="market-pool", key="mkt", name="mkt", body=MarketPoolBody()))
    name = draw(st.sampled_from(["eu", "us"]))
    return te.fleet(*objects, name=name)


Step = Callable[[Engine], object]


def applying(fleet: Fleet, source: Source) -> Step:
    """Plan, accept every danger by name, apply; then the plan is empty, and the same file again changes nothing."""

    def run(engine: Engine) -> None:
        dangers = plan_fleet(engine, fleet, source, host="h").plan.dangers
        data = te.planned(engine, fleet, accept=[item.id for item in dangers], source=source)
        receipt = apply_plan(engine, data)
        length = te.lengths(engine)[0]
        assert plan_fleet(engine, fleet, source, host="h").plan.operations == ()
        again = apply_plan(engine, data).result
        assert again == ("already-applied" if receipt.entry is not None else "nothing-to-do")
        assert te.lengths(engine)[0] == length

    return run


def calling(build: calls.Build) -> Step:
    return lambda engine: calls.call(engine, "test", tenant="root", request={"operation": "a word"}, build=build)


def admitting(number: int, entitlement: str, devices: int, energy: int, grade: Grade) -> Step:
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


def releasing(which: int, energy: int | None) -> Step:
    """Release the open claim at this place, if it is one that a command may release."""

    def run(engine: Engine) -> None:
        with engine.store.read() as reader:
            opened = sorted(read_usages(engine, reader).fold.open_claims)
        if opened:
            reading = None if energy is None else Figure(energy_uj=energy, grade=Grade.MODEL_BASED)
            claims.release(engine, claim=opened[which % len(opened)], reading=reading)

    return run


def reserving(pool: str, tenant: str, gpus: int, entitlement: str | None) -> Step:
    estimate = None
    if entitlement is not None:
        estimate = reservations.Estimate(entitlement=entitlement, energy_uj=100, grade=Grade.ESTIMATOR)
    return lambda engine: reservations.create(engine, tenant=tenant, pool=pool, gpus=gpus, estimate=estimate)


def ending(which: int) -> Step:
    def run(engine: Engine) -> None:
        with engine.store.read() as reader:
            found = [item.id for item in reader.reservations()]
        if found:
            reservations.end(engine, found[which % len(found)])

    return run


def region(key: str, name: str) -> Step:
    def edit(_snapshot: Any, live: Any) -> SiteBody:
        body: SiteBody = replace(live.body(), region=name)
        return body

    return calling(builders.change("site", key, edit))


def fewer(key: str, gpus: int) -> Step:
    def edit(_snapshot: Any, live: Any) -> PoolBody:
        body: PoolBody = replace(live.body(), owner_quota={"gpu": gpus})
        return body

    return calling(builders.change("pool", key, edit))


def offering(pool: str, tenant: str, quota: dict[str, int]) -> Step:
    def build(snapshot: Any) -> Any:
        live = builders.find(snapshot, "pool", pool)
        return builders.offering(OfferBody(pool=live.id, to=tenant, quota=quota), "")(snapshot)

    return calling(build)


def unoffering(pool: str, tenant: str) -> Step:
    return calling(lambda snapshot: builders.unoffering(builders.find(snapshot, "pool", pool).id, tenant)(snapshot))


def setting(percent: int, attestors: tuple[str, ...]) -> Step:
    return calling(
        builders.settings_change(lambda body: replace(body, share_threshold_percent=percent, attestors=attestors))
    )


KEYS = st.sampled_from(POOLS)
SOURCES = st.sampled_from(
    [
        Source(),
        Source(commit="a" * 40, origin=("root", "fleet")),
        Source(commit="b" * 40 + "+dirty", origin=("root", "f")),
    ]
)
STEPS = st.one_of(
    st.builds(applying, fleets(), SOURCES),
    st.builds(applying, fleets(), SOURCES),
    st.builds(admitting, st.integers(0, 30), st.sampled_from(["e0", "e1"]), st.integers(1, 8), st.integers(0, 900), st.sampled_from(Grade)),
    st.builds(releasing, st.integers(0, 5), st.none() | st.integers(0, 1_500)),
    st.builds(reserving, KEYS, st.sampled_from([*TENANTS, "root"]), st.integers(1, 9), st.none() | st.sampled_from(["e0", "e1"])),
    st.builds(ending, st.integers(0, 5)),
    st.builds(offering, KEYS, st.sampled_from([*TENANTS, "root"]), st.dictionaries(st.sampled_from(["gpu", "gpu.mig"]), st.integers(0, 9))),
    st.builds(unoffering, KEYS, st.sampled_from(TENANTS)),
    st.builds(lambda key: calling(builders.removal("pool", key)), KEYS),
    st.builds(fewer, KEYS, st.integers(0, 9)),
    st.builds(lambda key, on: calling(builders.flag("pool", key, protect=on)), KEYS, st.booleans()),
    st.builds(region, st.just("fra1"), st.sampled_from(["eu", "us"])),
    st.builds(setting, st.integers(1, 100), st.sampled_from([(), ("tpm",)])),
    st.just(lambda engine: [reservations.join_node(engine, pool=key, name=f"n-{key}", gpus=8) for key in POOLS]),
    st.just(lambda engine: drifting.seal_report(engine, {"result": "none"}, "none")),
)  # fmt: skip

_numbers = itertools.count()


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=st.lists(STEPS, min_size=4, max_size=16))
def test_after_any_history_the_tables_are_the_fold(tmp_path: Path, history: list[Step]) -> None:
    folder = tmp_path / str(next(_numbers))
    clock = te.ToldClock(step_ms=1)
    engine = te.new_engine(folder, checkpoint_every=3, clock=clock)
    for number, step in enumerate(history):
        if number % 3 == 2:
            clock.at_ms -= 100_000  # the machine's clock is set back
        before = te.lengths(engine)
        try:
            step(engine)
        except EngineRefused:
            assert te.lengths(engine) == before
        except SafetyRefused as error:
            assert error.code == "protected", error
        check_resumes(engine)
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
    """Usage from the checkpoint that is kept equals usage from genesis, and that of every prefix goes on to the same (P8)."""
    with engine.store.read() as reader:
        resumed = read_usages(engine, reader)
        whole = verify_stream(engine, reader, usage_stream(reader)).fold
        assert whole is not None
        assert (resumed.fold.usage, resumed.fold.open_claims) == (whole.usage, whole.open_claims)
        assert (resumed.fold.evidence, resumed.fold.claims_digest) == (whole.evidence, whole.claims_digest)
        moving = Fold(resumed.head.ledger)
        for index, event in te.usage_events(engine, reader):
            assert moving.apply(event, index) is None
        assert moving.usage == whole.usage


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


def ground(tmp_path: Path, **how: Any) -> Engine:
    engine = te.new_engine(tmp_path / "engine", **how)
    te.applied(engine, te.one_pool())
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=8)
    return engine


def test_usage_resumed_from_a_checkpoint_equals_usage_from_genesis_at_every_prefix(tmp_path: Path) -> None:
    """ledger.md: "a test proves replay-from-genesis equal to resume at every prefix"."""
    engine = ground(tmp_path)
    for number in range(8):
        admitting(number, "ent", 1 + number % 3, 100 * number, list(Grade)[number % 3])(engine)
        if number % 2:
            releasing(number, 50 * number)(engine)
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
        assert isinstance(found, claims.Admission)
        assert (found.verdict.outcome.value, found.entry) == (expected, None)
        assert te.dump(folder) == before
    unknown = admitting(1, "nobody", 1, 1, Grade.ESTIMATOR)(engine)
    assert isinstance(unknown, claims.Admission) and unknown.verdict.outcome.value == "Deny"
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
    unoffering("pool-a", "acme")(engine)
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
    assert copy_into(source, target) == 5 + 1
    te.check_whole(target)
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
    setting(10, ("tpm",))(engine)
    te.applied(engine, wanted)
    setting(10, ())(engine)
    te.check_whole(engine)


@pytest.mark.parametrize("words", [{"operation": {}}, {"tenant": "acme"}, {"method": "x"}, {"a": "b"}])
def test_no_word_of_a_request_stands_in_the_place_of_what_is_folded(tmp_path: Path, words: dict[str, Any]) -> None:
    engine = ground(tmp_path)
    calls.call(engine, "m", tenant="root", request=words, build=builders.unoffering(te.POOL_A, "acme"))
    te.check_whole(engine)
