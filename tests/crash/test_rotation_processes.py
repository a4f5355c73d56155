"""Rotations while many processes claim, report and release: nobody loses a claim or a joule, and nothing is admitted twice.

issue: "8 concurrent claimants over one tree never over-admit"; a rotation is one more writer among them.
"""

from __future__ import annotations

import json
import random
import time
from functools import partial
from pathlib import Path

from fleetctl.clock import SystemClock
from fleetctl.engine import claims, reports, rotating
from fleetctl.engine.claims import tree_state
from fleetctl.engine.context import Engine
from fleetctl.engine.continuing import running_claim
from fleetctl.engine.ledgers import audit_engine
from fleetctl.engine.state import load_objects
from fleetctl.engine.streams import closed_windows, events, opened_by, read_usages
from fleetctl.ledger.entries import Admitted, Released
from fleetctl.ledger.usage import Fold
from fleetctl.ledger.windows import carried_count
from fleetctl.pool1.admission import decide
from fleetctl.pool1.claim import Claim, Figure
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import Tree, TreeState, Usage
from tests.support import engines as te
from tests.support import processes as tp

CLAIMANTS = 6
TURNS = 10
ROTATIONS = 5


def claimant(folder: Path, number: int) -> str:
    """Ask, report and release by the name that each claim was made with; what its ended claims have cost in all, and what still runs."""
    engine = te.open_engine(folder, clock=SystemClock(), checkpoint_every=8)
    chance = random.Random(number)
    running: dict[str, int] = {}
    cost = 0
    for turn in range(TURNS):
        claim = f"c{number}-{turn}"
        verdict = claims.admit(
            engine,
            claim=claim,
            entitlement=chance.choice(["ent", "borrower"]),
            gang_size=1,
            devices_per_member=chance.randint(1, 2),
            estimate_uj=chance.randint(0, 400),
            grade=chance.choice(list(Grade)),
        ).verdict
        if verdict.admitted:
            running[claim] = 0
        for name in list(running):
            if chance.random() < 0.5:
                running[name] += chance.randint(0, 100)
                reports.report(engine, claim=name, completed_units=turn, spent_uj=running[name], grade=Grade.HW_SHUNT)
            elif chance.random() < 0.5:
                total = running.pop(name) + chance.randint(0, 50)
                reading = Figure(energy_uj=total, grade=Grade.HW_SHUNT)
                ended = claims.release(engine, claim=name, reading=reading)
                assert ended.settled_uj + ended.charged.energy_uj == total
                cost += total
    return json.dumps([cost, sorted(running)])


def rotator(folder: Path) -> str:
    """Rotate whenever some entries more are there."""
    engine = te.open_engine(folder, clock=SystemClock())
    carried = 0
    for _ in range(ROTATIONS):
        for _ in range(1_000):
            if te.lengths(engine)[1] >= carried + 6:
                break
            time.sleep(0.002)
        carried = len(rotating.rotate(engine, accept=["reset-usage:ledger"]).claims)
    return json.dumps([0, []])


def decided_again(engine: Engine) -> int:
    """Every admission that was decided, decided again on the usage of its moment, is one of the same figures. How many."""
    count = 0
    with engine.store.read() as reader:
        tree = tree_state(load_objects(reader).values(), read_usages(engine, reader)).tree
        for name in (*closed_windows(engine, reader), read_usages(engine, reader).stream):
            rotated = opened_by(engine, reader, name)
            carried = 0 if rotated is None else carried_count(rotated)
            fold = Fold(engine.ledger(name), carried)
            for index, event in events(engine, reader, name):
                if isinstance(event, Admitted) and index >= carried:
                    wanted = Claim(
                        entitlement=event.entitlement,
                        gang_size=event.devices,
                        devices_per_member=1,
                        estimate_uj=event.reserved_uj,
                        grade=Grade(event.grade),
                    )
                    verdict = decide(_state(tree, fold), wanted)
                    assert verdict.admitted and verdict.borrowed_uj == event.borrowed_uj, f"{name} {index}"
                    count += 1
                assert fold.apply(event, index) is None
    return count


def _state(tree: Tree, fold: Fold) -> TreeState:
    return TreeState(
        tree,
        {
            name: Usage(spent_uj=use.spent_uj, reserved_uj=use.reserved_uj, devices=use.devices)
            for name, use in fold.usage.items()
        },
    )


def test_rotations_among_claimants_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder, clock=SystemClock())
    te.applied(
        engine,
        te.fleet(
            te.entitlement("parent", energy_uj=0, devices=0),
            te.entitlement("ent", energy_uj=6_000, devices=24, parent="parent", over_quota_weight=1),
            te.entitlement("borrower", energy_uj=2_000, devices=12, parent="parent", over_quota_weight=3),
        ),
    )
    engine.store.close()

    answers = tp.together(
        [*(partial(claimant, folder, number) for number in range(CLAIMANTS)), partial(rotator, folder)]
    )

    assert not any(answer.partition(":")[0].endswith("Error") or "refused" in answer for answer in answers), answers
    told = [json.loads(answer) for answer in answers]
    engine = te.open_engine(folder)
    te.check_whole(engine)
    assert audit_engine(engine).ok
    with engine.store.read() as reader:
        windows = closed_windows(engine, reader)
        usages = read_usages(engine, reader)
        ended = [
            event.spent_uj
            for name in (*windows, usages.stream)
            for _, event in events(engine, reader, name)
            if isinstance(event, Released)
        ]
        names = sorted(claim for _, running in told for claim in running)
        found = {name: running_claim(engine, reader, usages, name) for name in names}
        carried = [opened_by(engine, reader, name) for name in (*windows[1:], usages.stream)]
    assert len(windows) == ROTATIONS
    assert any(item is not None and carried_count(item) for item in carried)
    assert sorted(item.claim for item in found.values()) == sorted(usages.fold.open_claims)
    assert sum(ended) == sum(cost for cost, _ in told) + sum(item.settled_uj for item in found.values())
    assert decided_again(engine) >= CLAIMANTS
