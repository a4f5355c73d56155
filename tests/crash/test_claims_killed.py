"""Claimants killed at moments that nobody chose: what they were told stands, and usage is what the exported entries sum to.

issue: "replay equals live usage after every prefix of random histories, across restarts and kills; 8 concurrent claimants over one
tree never over-admit". The sums and the decisions are made again by an oracle that knows none of our code.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fleetctl.clock import SystemClock
from fleetctl.engine import claims, reports
from fleetctl.engine.context import Engine
from fleetctl.engine.ledgers import export_stream
from fleetctl.engine.standing import read_standings
from fleetctl.engine.streams import read_usages
from fleetctl.errors import EngineRefused
from fleetctl.model.declared import Declared
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from tests.support import engines as te
from tests.support import processes as tp
from tests.support.pool1_oracle import Asked, Owed, Used, cores, decided, recounted

TREE = {
    "left": Owed(parent=None, energy=500, devices=4, weight=0, limit=None),
    "right": Owed(parent=None, energy=0, devices=0, weight=1, limit=None),
    "a": Owed(parent="left", energy=4_000, devices=12, weight=1, limit=None),
    "b": Owed(parent="left", energy=900, devices=6, weight=3, limit=1_900),
    "c": Owed(parent="left", energy=0, devices=9, weight=2, limit=400),
    "d": Owed(parent="right", energy=2_000, devices=10, weight=1, limit=None),
    "e": Owed(parent="right", energy=100, devices=10, weight=1, limit=2_000),
    "f": Owed(parent="e", energy=700, devices=5, weight=4, limit=None),
}
"""Two roots, three parents, an interior entitlement of its own; some with limits, some that never borrow."""


def declared() -> list[Declared]:
    return [
        te.entitlement(
            key,
            energy_uj=owed.energy,
            devices=owed.devices,
            parent=owed.parent,
            over_quota_weight=owed.weight,
            limit_uj=owed.limit,
        )
        for key, owed in TREE.items()
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(*declared()))
    engine.store.close()
    return tmp_path / "engine"


def act(engine: Engine, chance: random.Random, name: str, mine: list[str]) -> dict[str, Any] | None:
    """One command of a claimant, and what it was told; None when the engine refused it."""
    kind = chance.choices(["admit", "release", "report"], [6, 3, 1])[0]
    if kind == "admit" or not mine:
        admission = claims.admit(
            engine,
            claim=name,
            entitlement=chance.choice([*TREE, *"abcdef"]),
            gang_size=chance.randint(1, 4),
            devices_per_member=chance.randint(1, 2),
            estimate_uj=chance.choice([chance.randint(0, 300), chance.randint(0, 300), chance.randint(0, 2_500)]),
            grade=chance.choice(list(Grade)),
            workload_class=chance.choice([None, "train"]),
        )
        if admission.verdict.admitted:
            mine.append(name)
        return {"admitted": name, "entry": admission.entry} if admission.verdict.admitted else {"refused": name}
    claim = mine[chance.randrange(len(mine))]
    energy, grade = chance.randint(0, 60), chance.choice(list(Grade))
    try:
        if kind == "release":
            mine.remove(claim)
            reading = chance.choice([None, Figure(energy_uj=energy, grade=grade)])
            ended = claims.release(engine, claim=claim, reading=reading)
            return {"released": claim, "entry": ended.entry, "spent": ended.charged.energy_uj}
        reports.report(engine, claim=claim, completed_units=1, spent_uj=energy, grade=grade)
    except EngineRefused as error:  # a release that was killed after its commit, or a report that fell
        assert error.code in ("claim-not-open", "report-falls"), error
    return None


def claimant(folder: Path, number: int, told: Path, turns: int) -> str:
    """Act, and write down what was answered before the next act. Each turn is a restart, with what is open of its number."""
    chance = random.Random(os.getpid())
    with told.open("a", buffering=1) as answers:
        for turn in range(turns):
            engine = te.open_engine(folder, clock=SystemClock(), checkpoint_every=8)
            mine = opened_by(engine, number)
            for step in range(5):
                answer = act(engine, chance, f"c{number}-{os.getpid()}-{turn}-{step}", mine)
                if answer is not None:
                    answers.write(json.dumps(answer) + "\n")
            engine.store.close()
    return ""


def opened_by(engine: Engine, number: int) -> list[str]:
    with engine.store.read() as reader:
        open_claims = read_usages(engine, reader).fold.open_claims
        return [name for name in open_claims if name.startswith(f"c{number}-")]


def check_recounted(folder: Path) -> list[dict[str, Any]]:
    """Everything verifies; each admission is what the oracle admits on the usage before it; live usage is the recount."""
    engine = te.open_engine(folder, clock=SystemClock())
    te.check_whole(engine)
    data = export_stream(engine)
    found, standing = list(cores(data)), recounted(data)
    keys = {str(te.id_of("entitlement", key)): key for key in TREE}
    for core, before in zip(found, standing, strict=False):
        if core["event"] == "admitted":
            usage = {keys[id]: use for id, use in before.items()}
            asked = Asked(
                node=keys[core["entitlement"]],
                gang=1,
                each=core["devices"],
                energy=core["reserved_uj"],
                observed=core["grade"] != "Estimator",
            )
            assert decided(TREE, usage, asked) == ("Admit", (), core["borrowed_uj"]), core
    live = {
        id: Used(spent=item.use.spent_uj, reserved=item.use.reserved_uj, devices=item.use.devices)
        for id, item in read_standings(engine).by_id.items()
    }
    assert {id: use for id, use in live.items() if use != Used()} == {
        id: use for id, use in standing[-1].items() if use != Used()
    }
    engine.store.close()
    return found


def check_told(found: list[dict[str, Any]], told: Path) -> int:
    """Whatever was answered is in the ledger where the answer said, and what was refused is nowhere. How many answers."""
    lines = [json.loads(line) for line in told.read_text("utf-8").splitlines()]
    admitted = {core["claim"] for core in found if core["event"] == "admitted"}
    for line in lines:
        if "refused" in line:
            assert line["refused"] not in admitted
            continue
        core = found[line["entry"]]
        if "admitted" in line:
            assert (core["event"], core["claim"]) == ("admitted", line["admitted"])
        else:
            assert (core["event"], core["claim"]) == ("released", line["released"])
            assert core["spent_uj"] == line["spent"]
    return len(lines)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.clause("pool/1 §7.10", "pool/1 §6.1")
def test_claimants_that_are_killed_at_any_moment(folder: Path, tmp_path: Path, seed: int) -> None:
    """Four claimants; every few milliseconds one is killed and another takes its place, which is a restart."""
    chance = random.Random(seed)
    told = [tmp_path / f"told-{number}" for number in range(4)]
    running: dict[int, int] = {}
    try:
        for number in range(4):
            running[number] = begun(folder, number, told[number])
        for kills in range(1_000):
            if kills >= 30 and answered(told) >= 60:
                break
            time.sleep(chance.random() / 20)
            number = chance.randrange(4)
            assert ended(running.pop(number)) == tp.KILLED
            running[number] = begun(folder, number, told[number])
    finally:
        for child in running.values():
            ended(child)
    found = check_recounted(folder)
    assert sum(check_told(found, path) for path in told) >= 60
    assert {core["event"] for core in found} == {"admitted", "released"}


def answered(told: list[Path]) -> int:
    """How many answers were written down so far."""
    return sum(path.read_text("utf-8").count("\n") for path in told if path.exists())


def begun(folder: Path, number: int, told: Path) -> int:
    """A claimant in a process of its own."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            claimant(folder, number, told, turns=10_000)
            status = 0
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    """Kill a process; how it ended, which is another way when it had failed before."""
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.clause("pool/1 §7.1", "pool/1 §7.2")
def test_eight_claimants_over_one_tree_never_over_admit(folder: Path, tmp_path: Path) -> None:
    """Gangs, limits, several parents, borrowing."""
    told = [tmp_path / f"told-{number}" for number in range(8)]
    assert tp.together([partial(claimant, folder, number, told[number], 8) for number in range(8)]) == [""] * 8
    found = check_recounted(folder)
    assert sum(check_told(found, path) for path in told) >= 8
    assert any(core.get("borrowed_uj") for core in found)
