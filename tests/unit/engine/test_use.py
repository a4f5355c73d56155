"""Claims and reservations: one command each, decided on verified usage, and both ends of a reservation together.

pool/1 §4 and §6; architecture.md, rule 8: "A reservation and its claim are written by one command."
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.engine import builders, calls, claims, reservations
from fleetctl.engine.context import Engine
from fleetctl.engine.reservations import Estimate
from fleetctl.engine.streams import read_usages
from fleetctl.errors import BadInput, EngineRefused
from fleetctl.ledger.entries import Admitted, Released
from fleetctl.model.usage import EntitlementUse
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from tests.support import engines as te

MICRO = Estimate(entitlement="ent", energy_uj=500, grade=Grade.MODEL_BASED, workload_class="train")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = te.new_engine(tmp_path / "engine")
    shared = te.pool("pool-s", sharing="timeslice", policy={"sharing": {"replicas": 2}})
    te.applied(
        made,
        te.fleet(te.tenant("beta"), te.pool("pool-a"), te.offer("pool-a", gpus=12), te.entitlement(devices=8), shared),
    )
    for name in ("n1", "n2"):
        reservations.join_node(made, pool="pool-a", name=name, gpus=8)
    return made


def admit(engine: Engine, claim: str, **changes: object) -> claims.Admission:
    values: dict[str, object] = {
        "entitlement": "ent",
        "gang_size": 2,
        "devices_per_member": 2,
        "estimate_uj": 1_000,
        "grade": Grade.MODEL_BASED,
    }
    return claims.admit(engine, claim=claim, **(values | changes))  # type: ignore[arg-type]  # keywords of admit


def usage(engine: Engine) -> EntitlementUse:
    with engine.store.read() as reader:
        return read_usages(engine, reader).entitlements.get(te.ENT, EntitlementUse())


def refusal(engine: Engine, work: object) -> str:
    """The code of a refusal, which has changed nothing."""
    assert callable(work)
    folder = te.state_of(engine).parent
    before = te.dump(folder)
    with pytest.raises((EngineRefused, BadInput)) as caught:
        work()
    assert te.dump(folder) == before
    return caught.value.code


# ------------------------------------------------------------------------------------------------------- claims


@pytest.mark.clause("pool/1 §7.11")
def test_an_admission_reserves_and_a_release_charges_in_its_place(engine: Engine) -> None:
    found = admit(engine, "c1", workload_class="train")
    assert (found.verdict.outcome.value, found.entry, found.stream) == ("Admit", 0, "entitlements")
    assert usage(engine) == EntitlementUse(reserved_uj=1_000, devices=4, open_claims=1)
    ended = claims.release(engine, claim="c1", reading=Figure(energy_uj=1_700, grade=Grade.HW_SHUNT))
    assert (ended.entry, ended.charged.energy_uj, ended.reserved_uj) == (1, 1_700, 1_000)
    assert usage(engine) == EntitlementUse(spent_uj=1_700)
    with engine.store.read() as reader:
        (_, first), (_, second) = te.usage_events(engine, reader)
        row = reader.claim("entitlements", "c1")
    assert isinstance(first, Admitted) and (first.workload_class, first.entitlement) == ("train", te.ENT)
    assert isinstance(second, Released) and (second.claim, second.spent_uj) == ("c1", 1_700)
    assert row is not None and (row.admitted_at, row.released_at) == (0, 1)


def test_a_release_without_a_reading_charges_the_reservation_as_a_guess(engine: Engine) -> None:
    """readings A38."""
    admit(engine, "c1")
    ended = claims.release(engine, claim="c1")
    assert ended.charged == Figure(energy_uj=1_000, grade=Grade.ESTIMATOR)


@pytest.mark.parametrize("every", [1, 256])
def test_a_claim_id_is_used_once_for_ever(engine: Engine, every: int) -> None:
    """readings A62, also after a checkpoint, when the index is what remembers it."""
    engine = replace(engine, checkpoint_every=every)
    admit(engine, "c1")
    admit(engine, "c2", gang_size=1)
    assert refusal(engine, lambda: admit(engine, "c1")) == "duplicate-claim"
    claims.release(engine, claim="c1")
    assert refusal(engine, lambda: admit(engine, "c1")) == "duplicate-claim"
    assert refusal(engine, lambda: claims.release(engine, claim="c1")) == "claim-not-open"
    assert refusal(engine, lambda: claims.release(engine, claim="never")) == "claim-not-open"


@pytest.mark.parametrize("claim", ["", "a b", "ü", "x" * 129, "-x", "a/b", "a\nb"])
def test_an_id_outside_the_ledgers_alphabet_is_refused(engine: Engine, claim: str) -> None:
    assert refusal(engine, lambda: admit(engine, claim)) == "bad-ledger-identifier"
    assert refusal(engine, lambda: claims.release(engine, claim=claim)) == "bad-ledger-identifier"


def test_an_entitlement_is_named_by_id_or_by_a_key_that_one_has(engine: Engine) -> None:
    te.applied(engine, te.fleet(te.entitlement("other"), name="us"))
    assert admit(engine, "c1", entitlement=te.ENT).entitlement == te.ENT
    te.applied(engine, te.fleet(te.entitlement("ent"), te.entitlement("other"), name="us"))
    assert refusal(engine, lambda: admit(engine, "c2")) == "entitlement-not-found"
    denied = admit(engine, "c2", entitlement="nobody")
    assert (denied.verdict.outcome.value, denied.entry) == ("Deny", None)


def test_an_entitlement_that_left_keeps_its_usage_and_lends_nothing(engine: Engine) -> None:
    """readings A69; removal waits until its claims are released."""
    admit(engine, "c1")
    claims.release(engine, claim="c1")
    smaller = te.fleet(te.tenant("beta"), te.pool("pool-a"), te.offer("pool-a", gpus=12))
    te.applied(engine, smaller, accept=["share:fleet/eu", "remove:pool/pool-s"])
    assert usage(engine).spent_uj == 1_000
    assert admit(engine, "c2").verdict.outcome.value == "Deny"


# -------------------------------------------------------------------------------------------------- reservations


def test_a_reservation_and_its_claim_begin_and_end_together(engine: Engine) -> None:
    booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=6, estimate=MICRO, key="job")
    held = booked.reservation
    assert (held.state, held.claim, held.entitlement, held.placement) == (
        "active",
        held.id,
        te.ENT,
        ((held.placement[0][0], 6),),
    )
    assert usage(engine) == EntitlementUse(reserved_uj=500, devices=6, open_claims=1)
    assert refusal(engine, lambda: claims.release(engine, claim=held.id)) == "claim-held"
    ended = reservations.end(engine, held.id, Figure(energy_uj=450, grade=Grade.HW_SHUNT))
    assert ended.release is not None and ended.release.charged.energy_uj == 450
    assert usage(engine) == EntitlementUse(spent_uj=450)
    assert reservations.end(engine, held.id).release is None
    te.check_whole(engine)


def test_machines_that_are_deployed_whole_add_nothing_that_can_be_reserved(tmp_path: Path) -> None:
    """Seed, "Classes": `dedicated` nodes add no reservable capacity."""
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(te.pool("whole", pool_class="metal-dedicated")))
    reservations.join_node(engine, pool="whole", name="n1", gpus=8)
    found = reservations.create(engine, tenant="root", pool="whole", gpus=1).reservation
    assert (found.state, found.placement) == ("pending", ())
    assert found.reason is not None and "deployed whole" in found.reason


def test_a_reservation_under_a_key_is_made_once(engine: Engine) -> None:
    first = reservations.create(engine, tenant="acme", pool="pool-a", gpus=2, key="job")
    again = reservations.create(engine, tenant="acme", pool="pool-a", gpus=2, key="job")
    assert (again.existing, again.reservation) == (True, first.reservation)
    code = refusal(engine, lambda: reservations.create(engine, tenant="acme", pool="pool-a", gpus=3, key="job"))
    assert code == "reservation-key-reused"


def test_what_does_not_fit_waits_and_takes_nothing(engine: Engine) -> None:
    """No node has the room, or pool/1 queues the claim: pending, which counts nowhere (a Queue writes nothing, §6.2)."""
    reservations.leave_node(engine, "n2")
    reservations.create(engine, tenant="acme", pool="pool-a", gpus=6, estimate=MICRO)
    for gpus, estimate in ((4, None), (2, replace(MICRO, energy_uj=10**12)), (1, replace(MICRO, energy_uj=10**12))):
        found = reservations.create(engine, tenant="acme", pool="pool-a", gpus=gpus, estimate=estimate).reservation
        assert (found.state, found.placement, found.claim) == ("pending", (), None)
        assert found.reason
    assert usage(engine).devices == 6
    assert reservations.create(engine, tenant="acme", pool="pool-a", gpus=2).reservation.state == "active"


def test_what_can_never_fit_fails(engine: Engine) -> None:
    found = reservations.create(
        engine, tenant="acme", pool="pool-a", gpus=9, estimate=MICRO
    ).reservation  # the entitlement has 8 devices
    assert (found.state, found.reason) == ("failed", "devices-exceed-guarantee")
    assert reservations.end(engine, found.id).release is None


def test_the_quota_holds_and_a_missing_row_grants_nothing(engine: Engine) -> None:
    """readings B01."""
    reservations.create(engine, tenant="acme", pool="pool-a", gpus=8)
    assert (
        refusal(engine, lambda: reservations.create(engine, tenant="acme", pool="pool-a", gpus=5)) == "quota-exceeded"
    )
    assert reservations.create(engine, tenant="acme", pool="pool-a", gpus=4).reservation.state == "active"
    te.applied(engine, te.fleet(te.offer("eu/pool-a", "beta", quota={"gpu.mig": 4}), te.tenant("beta"), name="us"))
    assert (
        refusal(engine, lambda: reservations.create(engine, tenant="beta", pool="pool-a", gpus=1)) == "quota-exceeded"
    )


@pytest.mark.parametrize(
    ("tenant", "pool", "code"),
    [
        ("beta", "pool-a", "not-found"),  # B04: nothing was offered
        ("acme", "pool-s", "not-found"),
        ("root", "pool-s", "invalid-state"),  # it shares its GPUs
        ("acme", "nowhere", "not-found"),
    ],
)
def test_only_owners_and_those_it_is_offered_to_reserve_in_a_pool(
    engine: Engine, tenant: str, pool: str, code: str
) -> None:
    assert refusal(engine, lambda: reservations.create(engine, tenant=tenant, pool=pool, gpus=1)) == code


@pytest.mark.parametrize("gpus", [0, -1, 10**6 + 1])
def test_a_number_of_gpus_that_cannot_be(engine: Engine, gpus: int) -> None:
    assert (
        refusal(engine, lambda: reservations.create(engine, tenant="acme", pool="pool-a", gpus=gpus)) == "invalid-input"
    )
    assert (
        refusal(engine, lambda: reservations.join_node(engine, pool="pool-a", name="n9", gpus=gpus)) == "invalid-input"
    )


def test_a_withdrawn_or_retired_pool_runs_on_and_takes_nothing_new(engine: Engine) -> None:
    """readings B03, B13."""
    booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=4, estimate=MICRO)
    build = builders.unoffering(te.POOL_A, "acme")
    calls.call(engine, "pools.unoffer", tenant="root", request={}, build=build)
    assert refusal(engine, lambda: reservations.create(engine, tenant="acme", pool="pool-a", gpus=1)) == "not-found"
    calls.call(engine, "pools.archive", tenant="root", request={}, build=builders.removal("pool", te.POOL_A))
    assert refusal(engine, lambda: reservations.create(engine, tenant="root", pool="pool-a", gpus=1)) == "not-found"
    assert refusal(engine, lambda: reservations.join_node(engine, pool="pool-a", name="n9", gpus=8)) == "invalid-state"
    assert reservations.end(engine, booked.reservation.id).release is not None


def test_a_node_stays_while_something_is_booked_on_it(engine: Engine) -> None:
    booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=8).reservation
    (node, _), *_ = booked.placement
    assert refusal(engine, lambda: reservations.leave_node(engine, node)) == "invalid-state"
    with engine.store.read() as reader:
        name = next(item.name for item in reader.nodes() if item.id == node)
    assert refusal(engine, lambda: reservations.join_node(engine, pool="pool-a", name=name, gpus=7)) == "invalid-state"
    assert reservations.join_node(engine, pool="pool-a", name=name, gpus=16).id == node
    reservations.end(engine, booked.id)
    assert reservations.leave_node(engine, name).id == node
    assert refusal(engine, lambda: reservations.leave_node(engine, "nobody")) == "not-found"


def test_reservations_and_claims_are_no_configuration(engine: Engine) -> None:
    """ledger.md: `called` is never for reservations or claims; the state digest does not move."""
    length = len(te.journal(engine))
    booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=2, estimate=MICRO)
    admit(engine, "c1", gang_size=1)
    claims.release(engine, claim="c1")
    reservations.end(engine, booked.reservation.id)
    assert len(te.journal(engine)) == length
    te.check_whole(engine)
