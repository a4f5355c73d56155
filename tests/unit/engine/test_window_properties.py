"""Usage by replay is usage as it happened, after every prefix of any history of claims, reports, rotations, restarts and kills.

pool/1 P8; readings A05: nothing is reset in place, and no joule is counted twice. The model below knows nothing of ledgers.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetctl.engine import claims, rebuild, reports, rotating
from fleetctl.engine.context import Engine
from fleetctl.engine.streams import read_usages, read_window
from fleetctl.engine.windows import check_succession
from fleetctl.errors import EngineRefused
from fleetctl.model.usage import EntitlementUse
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.store.sqlite import SqliteStore
from tests.support import engines as te
from tests.support import processes as tp
from tests.support.ledgers import AT_MS
from tests.support.stores import CrashingStore

ENTITLEMENTS = ("a", "b")
FLEET = te.fleet(
    te.entitlement("parent", energy_uj=0, devices=0),
    *(te.entitlement(key, energy_uj=900, devices=12, parent="parent", over_quota_weight=1) for key in ENTITLEMENTS),
)
IDS = {key: str(te.id_of("entitlement", key)) for key in ENTITLEMENTS}

# --------------------------------------------------------------------------------------------------------- model


@dataclass
class Work:
    """One piece of work as its owner sees it, however many windows it lasts: `charged` by those that are closed."""

    entitlement: str
    reserved: int
    devices: int
    names: list[str]
    charged: list[int] = field(default_factory=list)
    said: int = 0
    """The last sum that was reported."""
    said_here: bool = False
    """Whether that was in the window in force."""


@dataclass
class Model:
    running: list[Work] = field(default_factory=list)
    spent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENTITLEMENTS, 0))
    closed: list[dict[str, int]] = field(default_factory=list)
    made: int = 0
    total: int = 0
    """What everything that ended has cost, by the sums that its owners gave."""

    def usage(self) -> dict[str, tuple[int, int, int]]:
        found = {}
        for key in ENTITLEMENTS:
            work = [item for item in self.running if item.entitlement == key]
            found[key] = (self.spent[key], sum(item.reserved for item in work), sum(item.devices for item in work))
        return found

    def rotate(self) -> None:
        for item in self.running:
            here = item.said - sum(item.charged) if item.said_here else 0
            item.charged.append(here)
            item.reserved = max(0, item.reserved - here)
            item.said_here = False
            item.names.append(f"{item.names[0]}:{len(item.names) + 1}")
            self.spent[item.entitlement] += here
        self.closed.append(self.spent)
        self.spent = dict.fromkeys(ENTITLEMENTS, 0)


# --------------------------------------------------------------------------------------------------------- steps

Step = tuple[str, int, int, int]
"""What, and three numbers that say on what and how much."""

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "admit",
                "admit",
                "admit",
                "report",
                "report",
                "release",
                "release",
                "rotate",
                "restart",
                "rebuild",
                "clock",
            ]
        ),
        st.integers(0, 40),
        st.integers(0, 400),
        st.integers(0, 30),
    ),
    min_size=3,
    max_size=22,
)


def act(engine: Engine, model: Model, step: Step) -> None:
    """Do a step on both; what the engine refuses, the model does not do."""
    what, which, amount, how = step
    if what == "admit":
        _admit(engine, model, which, amount, how)
    elif what == "rotate":
        rotating.rotate(engine, accept=["reset-usage:ledger"])
        model.rotate()
    elif what == "rebuild":
        rebuild.rebuild(engine)
    elif model.running and what == "report":
        _report(engine, model.running[which % len(model.running)], amount, how)
    elif model.running and what == "release":
        _release(engine, model, which % len(model.running), amount, how)


def _admit(engine: Engine, model: Model, which: int, amount: int, how: int) -> None:
    key, grade = ENTITLEMENTS[which % 2], list(Grade)[how % 3]
    name = f"c{model.made}"
    model.made += 1
    verdict = claims.admit(
        engine,
        claim=name,
        entitlement=key,
        gang_size=1 + how % 2,
        devices_per_member=1 + which % 2,
        estimate_uj=amount,
        grade=grade,
        workload_class="train" if how % 5 else None,
    ).verdict
    if verdict.admitted:
        model.running.append(Work(entitlement=key, reserved=amount, devices=verdict.devices, names=[name]))


def _report(engine: Engine, work: Work, amount: int, how: int) -> None:
    named = how % len(work.names)
    before = sum(work.charged[:named])
    total = max(work.said, sum(work.charged)) + amount // 4
    reports.report(
        engine,
        claim=work.names[named],
        completed_units=total - before,
        spent_uj=total - before,
        grade=list(Grade)[how % 3],
    )
    work.said, work.said_here = total, True


def _release(engine: Engine, model: Model, index: int, amount: int, how: int) -> None:
    work = model.running[index]
    named = how % len(work.names)
    if how % 4 == 0:
        ended = claims.release(engine, claim=work.names[named])
        here = work.reserved
    else:
        settled = sum(work.charged)
        figure = Figure(energy_uj=max(0, settled + amount - 40 - sum(work.charged[:named])), grade=Grade.HW_SHUNT)
        try:
            ended = claims.release(engine, claim=work.names[named], reading=figure)
        except EngineRefused as error:
            assert error.code == "figure-below-settled" and amount < 40
            return
        here = figure.energy_uj - sum(work.charged[named:])
    assert (ended.claim, ended.charged.energy_uj) == (work.names[-1], here)
    assert here >= 0
    model.spent[work.entitlement] += here
    model.total += here + sum(work.charged)
    del model.running[index]


# -------------------------------------------------------------------------------------------------------- checks


def usage_of(entitlements: dict[str, EntitlementUse]) -> dict[str, tuple[int, int, int]]:
    found = {}
    for key, id in IDS.items():
        use = entitlements.get(id, EntitlementUse())
        found[key] = (use.spent_uj, use.reserved_uj, use.devices)
    return found


def check(engine: Engine, model: Model) -> None:
    """P8 after this prefix: resumed, from genesis and by the model it is one usage, and closed windows are as they were."""
    with engine.store.read() as reader:
        resumed = read_usages(engine, reader)
        whole = read_window(engine, reader, resumed.stream)
        streams = [item.stream for item in reader.streams() if item.closed]
    assert usage_of(dict(resumed.entitlements)) == usage_of(dict(whole.entitlements)) == model.usage()
    assert resumed.fold.open_claims == whole.fold.open_claims
    assert (resumed.fold.evidence, resumed.fold.claims_digest) == (whole.fold.evidence, whole.fold.claims_digest)
    assert sorted(resumed.fold.open_claims) == sorted(item.names[-1] for item in model.running)
    assert len(streams) == len(model.closed)


def check_all(engine: Engine, model: Model) -> None:
    """Every window, and every joule: what all windows were charged is what owners said, with what closed ones have of running work."""
    te.check_whole(engine)
    charged = 0
    with engine.store.read() as reader:
        found = check_succession(engine, reader)
        for seen, spent in zip(found, model.closed, strict=False):
            use = read_window(engine, reader, seen.ledger.partition("/")[2]).entitlements
            assert {key: use.get(id, EntitlementUse()).total_uj for key, id in IDS.items()} == spent
            charged += sum(spent.values())
    charged += sum(model.spent.values())
    assert charged == model.total + sum(sum(item.charged) for item in model.running)


def opened(folder: Path, clock: te.ToldClock, wrap: Callable[[Any], Any] = lambda store: store) -> Engine:
    return te.over(wrap(SqliteStore.open(folder / "state.db")), clock=clock, checkpoint_every=3)


@pytest.mark.clause("pool/1 §7.10", "pool/1 §6.1")
@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_replay_equals_usage_after_every_prefix(memory: Path, steps: list[Step]) -> None:
    folder = Path(tempfile.mkdtemp(dir=memory))
    clock, model = te.ToldClock(step_ms=1), Model()
    te.new_engine(folder / "e", clock=clock).store.close()
    engine = opened(folder / "e", clock)
    te.applied(engine, FLEET)
    for step in steps:
        if step[0] == "restart":
            engine.store.close()
            engine = opened(folder / "e", clock)
        elif step[0] == "clock":
            clock.at_ms += (step[2] - 200) * 1_000_000  # also backwards
        else:
            act(engine, model, step)
        check(engine, model)
    check_all(engine, model)
    engine.store.close()
    shutil.rmtree(folder)


def killed(folder: Path, clock: te.ToldClock, point: int, model: Model, step: Step) -> None:
    """Do a step in a process that dies at a write of it, where it has as many."""
    act(opened(folder, clock, lambda store: CrashingStore(store, point)), model, step)


@given(steps=STEPS, kills=st.lists(st.integers(1, 16), min_size=1, max_size=4))
@settings(max_examples=10, deadline=None)
def test_replay_equals_usage_after_kills(memory: Path, steps: list[Step], kills: list[int]) -> None:
    """Each kill comes at a write of some step: then the step was done as a whole or not at all, row for row."""
    folder = Path(tempfile.mkdtemp(dir=memory))
    model, at_ms = Model(), AT_MS
    engine = te.new_engine(folder / "e", clock=te.ToldClock())
    te.applied(engine, FLEET)
    engine.store.close()
    for number, step in enumerate(step for step in steps if step[0] not in ("restart", "clock")):
        at_ms += 1_000
        before, done = te.dump(folder / "e"), deepcopy(model)
        copy = opened(te.copied(folder / "e", folder / str(number)), te.ToldClock(at_ms=at_ms))
        act(copy, done, step)
        copy.store.close()

        clock, point = te.ToldClock(at_ms=at_ms), kills[number % len(kills)]
        work = partial(killed, folder / "e", clock, point, deepcopy(model), step)
        assert tp.in_child(work) in (0, tp.KILLED), step
        found = te.dump(folder / "e")
        assert found in (before, te.dump(folder / str(number))), step
        if found != before:
            model = done
        engine = opened(folder / "e", te.ToldClock(at_ms=at_ms))
        check(engine, model)
        engine.store.close()
    engine = opened(folder / "e", te.ToldClock(at_ms=at_ms))
    check_all(engine, model)
    engine.store.close()
    shutil.rmtree(folder)
