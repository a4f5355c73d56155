"""Many processes on one engine: writers take turns, nobody loses a change, readers never wait, nothing is admitted twice.

issue: "Appliers with random interleaving, in processes: journal order equals commit order, nobody loses a change."
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fleetctl.clock import SystemClock
from fleetctl.engine import claims, drifting, reservations
from fleetctl.engine.apply import apply_plan
from fleetctl.engine.claims import tree_state
from fleetctl.engine.context import Engine
from fleetctl.engine.planning import Source
from fleetctl.engine.state import load_objects
from fleetctl.engine.streams import Usages, read_usages
from fleetctl.errors import Busy, EngineRefused, FleetctlError
from fleetctl.ledger.entries import Admitted, Applied
from fleetctl.ledger.usage import Fold
from fleetctl.model.declared import Fleet
from fleetctl.model.ids import derive_id
from fleetctl.model.usage import EntitlementUse
from fleetctl.pool1.admission import decide
from fleetctl.pool1.claim import Claim, Figure
from fleetctl.pool1.grade import Grade
from fleetctl.store.witness_state import SqliteWitnessState
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support import processes as tp

APPLIERS = 5
ROUNDS = 4


def fleet_of(number: int, gpus: int) -> Fleet:
    """A fleet of its own for each applier; tenant and site are shared between them."""
    key = f"pool-{number}"
    return te.fleet(te.pool(key), te.offer(key, gpus=gpus), name=f"fleet-{number}")


def apply_rounds(folder: Path, number: int) -> str:
    """Plan and apply the fleet some times, each time with another quota; what was applied, with when it began and ended."""
    engine = te.open_engine(folder, clock=SystemClock())
    chance = random.Random(number)
    done = []
    for round_ in range(ROUNDS):
        time.sleep(chance.random() / 100)
        began = time.monotonic_ns()
        receipt = te.applied(engine, fleet_of(number, 8 * (1 + round_)))
        assert receipt.result == "applied"
        done.append((receipt.entry, began, time.monotonic_ns()))
    return json.dumps(done)


def test_appliers_of_different_fleets_all_get_through_in_commit_order(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    te.applied(engine, te.fleet(name="base"))  # the shared tenant and site
    engine.store.close()

    answers = tp.together([partial(apply_rounds, folder, number) for number in range(APPLIERS)])

    applied = sorted(tuple(item) for answer in answers for item in json.loads(answer))
    engine = te.open_engine(folder)
    te.check_whole(engine)
    events = te.journal(engine)
    assert [entry for entry, _, _ in applied] == list(range(1, APPLIERS * ROUNDS + 1))
    assert len(events) == APPLIERS * ROUNDS + 1
    for before, after in zip(events, events[1:], strict=False):
        assert before.state_after == after.state_before
        assert before.at_ms <= after.at_ms
    # Who had the answer before another began comes before it in the journal.
    assert all(one[0] < other[0] for one in applied for other in applied if one[2] < other[1])
    with engine.store.read() as reader:
        quotas = {(row.pool, row.tenant): row.maximum for row in reader.quotas()}
    for number in range(APPLIERS):
        pool = derive_id("pool", "root", f"fleet/fleet-{number}", f"pool-{number}")
        assert quotas[pool, "acme"] == 8 * ROUNDS


def outcome(folder: Path, data: bytes) -> str:
    engine = te.open_engine(folder)
    try:
        receipt = apply_plan(engine, data)
    except FleetctlError as error:
        return f"{type(error).__name__} {error.exit_code}"
    return f"{receipt.result} {receipt.entry}"


@pytest.mark.parametrize("seed", range(3))
def test_of_conflicting_plans_exactly_one_wins(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    te.applied(engine, te.one_pool(32))
    quotas = random.Random(seed).sample(range(1, 32), 6)
    plans = [te.planned(engine, te.one_pool(gpus)) for gpus in quotas]
    engine.store.close()

    answers = tp.together([partial(outcome, folder, data) for data in plans])

    assert sorted(answers) == ["Stale 4"] * 5 + ["applied 1"]
    engine = te.open_engine(folder)
    te.check_whole(engine)
    with engine.store.read() as reader:
        rows = {row.maximum for row in reader.quotas() if row.tenant == "acme"}
    assert rows == {quotas[answers.index("applied 1")]}


def test_one_plan_applied_by_many_is_applied_once(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    data = te.planned(engine, te.one_pool())
    engine.store.close()

    answers = tp.together([partial(outcome, folder, data)] * 6)

    assert sorted(answers) == ["already-applied 0"] * 5 + ["applied 0"]
    engine = te.open_engine(folder)
    te.check_whole(engine)
    assert len(te.journal(engine)) == 1


def test_a_writer_waits_no_longer_than_told_and_readers_never_wait(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    te.applied(engine, te.one_pool(32))
    data = te.planned(engine, te.one_pool(16))
    other = te.open_engine(folder)
    with other.store.write(0) as writer:
        writer.set_meta("unfinished", "yes")
        before = te.lengths(engine)
        for wait_ms in (0, 60):
            with pytest.raises(Busy) as caught:
                apply_plan(engine, data, wait_ms=wait_ms)
            assert caught.value.exit_code == 4
        with pytest.raises(Busy):
            claims.release(engine, claim="c1", wait_ms=0)
        # Readers see what is committed, and their answers are the usual ones.
        assert te.planned(engine, te.one_pool(16)) == data
        assert drifting.drift_fleet(engine, te.one_pool(32), Source(), full=True).result == "none"
        assert te.lengths(engine) == before
    assert apply_plan(engine, data, wait_ms=0).result == "applied"
    te.check_whole(engine)


def test_a_waiting_applier_goes_on_when_the_other_dies(tmp_path: Path) -> None:
    """No lock outlives its process (plan-apply.md, "Apply")."""
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    data = te.planned(engine, te.one_pool())
    engine.store.close()

    def die_writing() -> None:
        with te.open_engine(folder).store.write(0) as writer:
            writer.set_meta("unfinished", "yes")
            tp.die()

    assert tp.in_child(die_writing) == tp.KILLED
    engine = te.open_engine(folder)
    assert apply_plan(engine, data, wait_ms=0).result == "applied"
    te.check_whole(engine)


# ------------------------------------------------------------------------------------------------------- claims

DEVICES = 24
ENERGY = 10_000


def claimant(folder: Path, number: int) -> str:
    """Ask, and release some of what was admitted; how many were admitted."""
    engine = te.open_engine(folder, clock=SystemClock(), checkpoint_every=16)
    chance = random.Random(number)
    admitted = 0
    for turn in range(12):
        claim = f"c{number}-{turn}"
        verdict = claims.admit(
            engine,
            claim=claim,
            entitlement=chance.choice(["ent", "borrower"]),
            gang_size=chance.randint(1, 4),
            devices_per_member=chance.randint(1, 3),
            estimate_uj=chance.randint(0, 600),
            grade=chance.choice(list(Grade)),
        ).verdict
        admitted += verdict.admitted
        if verdict.admitted and chance.random() < 0.6:
            reading = Figure(energy_uj=chance.randint(0, 300), grade=chance.choice(list(Grade)))
            claims.release(engine, claim=claim, reading=chance.choice([None, reading]))
    return str(admitted)


def usages_of(template: Usages, fold: Fold) -> Usages:
    """Usage as the engine's own reading gives it, for a fold that stands somewhere else."""
    opened: dict[str, int] = {}
    for claim in fold.open_claims.values():
        opened[claim.entitlement] = opened.get(claim.entitlement, 0) + 1
    return replace(
        template,
        fold=fold,
        entitlements={
            name: EntitlementUse(
                spent_uj=use.spent_uj,
                reserved_uj=use.reserved_uj,
                devices=use.devices,
                open_claims=opened.get(name, 0),
            )
            for name, use in fold.usage.items()
        },
    )


def check_admissions(engine: Engine) -> int:
    """Every admission, decided again on the usage of its moment, is an admission of the same figures (A36). How many."""
    count = 0
    with engine.store.read() as reader:
        objects = load_objects(reader).values()
        usages = read_usages(engine, reader)
        fold = Fold(usages.head.ledger)
        for index, event in te.usage_events(engine, reader):
            if isinstance(event, Admitted):
                claim = Claim(
                    entitlement=event.entitlement,
                    gang_size=event.devices,
                    devices_per_member=1,
                    estimate_uj=event.reserved_uj,
                    grade=Grade(event.grade),
                    claim_class=event.workload_class,
                )
                verdict = decide(tree_state(objects, usages_of(usages, fold)), claim)
                assert verdict.admitted and verdict.borrowed_uj == event.borrowed_uj, f"entry {index}"
                count += 1
            assert fold.apply(event, index) is None
    return count


def test_concurrent_claimants_never_over_admit(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    te.applied(
        engine,
        te.fleet(
            te.entitlement("parent", energy_uj=0, devices=0),
            te.entitlement("ent", energy_uj=ENERGY, devices=DEVICES, parent="parent", over_quota_weight=1),
            te.entitlement("borrower", energy_uj=ENERGY // 4, devices=6, parent="parent", over_quota_weight=3),
        ),
    )
    engine.store.close()

    answers = tp.together([partial(claimant, folder, number) for number in range(8)])

    engine = te.open_engine(folder)
    te.check_whole(engine)
    assert check_admissions(engine) == sum(map(int, answers)) >= 8


def reserver(folder: Path, number: int) -> str:
    engine = te.open_engine(folder, clock=SystemClock(), entropy=te.CountedEntropy(str(number)))
    states = []
    for _ in range(3):
        try:
            booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=4)
        except EngineRefused as error:
            states.append(error.code)
        else:
            states.append(booked.reservation.state)
    return " ".join(states)


def test_concurrent_reservations_never_book_a_gpu_twice_or_pass_the_quota(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    te.applied(engine, te.one_pool(24))
    for name in ("n1", "n2", "n3", "n4"):
        reservations.join_node(engine, pool="pool-a", name=name, gpus=8)
    engine.store.close()

    answers = tp.together([partial(reserver, folder, number) for number in range(6)])

    states = [state for answer in answers for state in answer.split()]
    assert states.count("active") == 6
    assert states.count("quota-exceeded") == 12
    engine = te.open_engine(folder)
    with engine.store.read() as reader:
        held: dict[str, int] = {}
        for item in reader.reservations():
            for node, gpus in item.placement:
                held[node] = held.get(node, 0) + gpus
    assert sum(held.values()) == 24
    assert max(held.values()) <= 8


# ---------------------------------------------------------------------------------------------------- witnesses


def shared_witness(folder: Path) -> tw.InProcess:
    key = tw.WITNESSES["witness-a"]
    state = SqliteWitnessState.open(folder / "state.db", witness=key.kid, own_key=key.public_key)
    return tw.InProcess(signer=key, state=state, clock=SystemClock())


def apply_witnessed(folder: Path, number: int) -> str:
    witness = shared_witness(folder.parent / "witness")
    engine = te.open_engine(folder, clock=SystemClock(), witnesses=(witness,))
    for round_ in range(ROUNDS):
        receipt = te.applied(engine, fleet_of(number, 8 * (1 + round_)), require_witness=True)
        assert receipt.witnessed.covering == 1, receipt.witnessed.notes
    return "witnessed"


def test_concurrent_appliers_are_all_witnessed_and_none_is_taken_for_a_rollback(tmp_path: Path) -> None:
    """A receipt that another process fetched meanwhile covers this one's entry as well: `--require-witness` holds."""
    folder, key = tmp_path / "engine", tw.WITNESSES["witness-a"]
    engine = te.new_engine(folder, tw.witnessed_by(key, required=1), clock=SystemClock())
    engine.store.close()
    SqliteWitnessState.init(
        tmp_path / "witness" / "state.db",
        witness=key.kid,
        own_key=key.public_key,
        stewards={te.STEWARD.kid: [te.STEWARD.public_key]},
    ).close()
    base = te.open_engine(folder, clock=SystemClock(), witnesses=(shared_witness(tmp_path / "witness"),))
    te.applied(base, te.fleet(name="base"))
    base.store.close()

    assert tp.together([partial(apply_witnessed, folder, number) for number in range(4)]) == ["witnessed"] * 4

    engine = te.open_engine(folder, clock=SystemClock(), witnesses=(shared_witness(tmp_path / "witness"),))
    te.check_whole(engine)
    assert sum(isinstance(event, Applied) for event in te.journal(engine)) == 4 * ROUNDS + 1
