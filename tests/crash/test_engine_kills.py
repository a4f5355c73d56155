"""A process killed at any write of any command leaves all of it or none, and the next run finishes or reports it.

plan-apply.md, "Apply": "A crash at any point leaves all of the plan or none of it, at most one `applied` entry, and a
state that the next run finishes or reports."

Keys, clock and entropy are fixed, so every run of a command writes the same rows: whatever a killed run leaves behind
must be, row for row, what an unkilled run had after as many commits.
"""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fleetctl.engine import (
    builders,
    calls,
    claims,
    deletion,
    drifting,
    moving,
    rebuild,
    reports,
    reservations,
    rotating,
    witnessing,
)
from fleetctl.engine.apply import apply_plan
from fleetctl.engine.context import Engine
from fleetctl.engine.stands import Replica
from fleetctl.errors import FleetctlError
from fleetctl.ledger.entries import Applied
from fleetctl.model.bodies import MarketPoolBody, OfferBody, PoolBody, ProcurementBody, SettingsBody, SiteBody
from fleetctl.model.declared import Declared, Fleet
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.ports import Store, Writer
from fleetctl.store.sqlite import SqliteStore
from fleetctl.units import DurationMs, MicroUsd
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support import processes as tp
from tests.support import recoveries as tr
from tests.support.stores import CrashingStore

ROSTER = tw.witnessed_by(*tw.WITNESSES.values())
BASE = te.fleet(
    te.pool("pool-a"),
    te.pool("pool-b"),
    te.offer("pool-a"),
    te.offer("pool-b"),
    te.entitlement(),
    Declared(kind="market-pool", key="mkt", name="mkt", body=MarketPoolBody()),
    Declared(
        kind="procurement",
        key="mkt/proc",
        name="proc",
        body=ProcurementBody(
            market_pool="mkt", instance_sku="h100", nodes=2, window_ms=DurationMs(te.HOUR), max_rate=MicroUsd(10)
        ),
    ),
)
GROWN = te.fleet(*BASE.objects[2:], te.pool("pool-c"), te.offer("pool-c", gpus=8))
REDUCED = te.fleet(te.pool("pool-a"), te.entitlement())
"""Everything else is removed: two offers, a pool, a market pool and its procurement."""
MIXED = te.fleet(
    te.pool("pool-a", name="renamed"),
    te.offer("pool-a", gpus=16),
    te.pool("pool-c"),
    te.offer("pool-c"),
    te.entitlement(devices=32),
    *BASE.objects[-2:],
    release=["entitlement/other"],
)
SHARE = ["share:fleet/eu"]
ESTIMATE = reservations.Estimate(entitlement="ent", energy_uj=5_000, grade=Grade.ESTIMATOR)


@dataclass(frozen=True, kw_only=True)
class Command:
    """`prepare` makes the ground, `run` is what gets killed and then run again.

    `again` is what the second run answers when the first had committed its change; it answers `answer` when it had not.
    """

    run: Callable[[Engine], str]
    answer: str
    again: str
    prepare: Callable[[Engine], object] = lambda engine: te.applied(engine, BASE)
    commits: int = 1
    witnesses: int = 0
    checkpoint_every: int = 256


def apply_of(declared: Fleet, accept: list[str] | None = None) -> Callable[[Engine], str]:
    """Applies the plan that was made on the ground, however often it is run."""
    made: dict[str, bytes] = {}

    def run(engine: Engine) -> str:
        data = made.get("plan")
        if data is None:
            data = made["plan"] = te.planned(engine, declared, accept=accept or ())
        return apply_plan(engine, data).result

    return run


def answer_of(work: Callable[[], Any], show: Callable[[Any], str]) -> str:
    """What a command answers, or the code of its refusal."""
    try:
        return show(work())
    except FleetctlError as error:
        return error.code


def admit(engine: Engine, claim: str = "c1") -> str:
    return answer_of(
        lambda: claims.admit(
            engine,
            claim=claim,
            entitlement="ent",
            gang_size=2,
            devices_per_member=4,
            estimate_uj=1_000,
            grade=Grade.MODEL_BASED,
        ),
        lambda found: str(found.verdict.outcome.value),
    )


def release(engine: Engine) -> str:
    reading = Figure(energy_uj=900, grade=Grade.HW_SHUNT)
    return answer_of(lambda: claims.release(engine, claim="c1", reading=reading), lambda found: "released")


def with_node(engine: Engine) -> str:
    te.applied(engine, BASE)
    return str(reservations.join_node(engine, pool="pool-a", name="n1", gpus=8).id)


def reserve(engine: Engine, gpus: int = 8) -> str:
    return answer_of(
        lambda: reservations.create(engine, tenant="acme", pool="pool-a", gpus=gpus, estimate=ESTIMATE, key="job"),
        lambda found: f"{found.reservation.state}{' again' if found.existing else ''}",
    )


def end(engine: Engine) -> str:
    with engine.store.read() as reader:
        (found,) = reader.reservations()
    return answer_of(
        lambda: reservations.end(engine, found.id), lambda ended: "ended" if ended.release else "ended already"
    )


def join(engine: Engine) -> str:
    return str(reservations.join_node(engine, pool="pool-a", name="n1", gpus=8).gpus)


def leave(engine: Engine) -> str:
    return answer_of(lambda: reservations.leave_node(engine, "n1"), lambda node: str(node.name))


def called(build: calls.Build) -> Callable[[Engine], str]:
    return lambda engine: (
        "called"
        if calls.call(engine, "test", tenant="root", request={"word": "x"}, build=build).entry is not None
        else "nothing"
    )


def lower_quota(engine: Engine) -> str:
    body = OfferBody(pool=te.POOL_A, to="acme", quota={"gpu": 4})
    return called(builders.offering(body, ""))(engine)


def report(engine: Engine) -> str:
    return str(drifting.seal_report(engine, {"result": "none"}, "none"))


def spoilt(engine: Engine) -> None:
    """A ground whose index tables were edited, so that rebuilding them changes something."""
    te.applied(engine, BASE)
    admit(engine)
    folder = te.state_of(engine).parent
    te.edit(folder, "UPDATE quotas SET maximum = maximum + 1")
    te.edit(folder, "DELETE FROM claims")
    te.edit(folder, "DELETE FROM journal_objects")


def rotate(engine: Engine) -> str:
    return answer_of(
        lambda: rotating.rotate(engine, window="w2", accept=["reset-usage:ledger"]),
        lambda found: f"{len(found.claims)} went on",
    )


def running(engine: Engine) -> None:
    """Two claims of which one was reported on, and a reservation with its own."""
    with_node(engine)
    reserve(engine, 4)
    admit(engine, "c1")
    admit(engine, "c2")
    reports.report(engine, claim="c1", completed_units=2, spent_uj=400, grade=Grade.HW_SHUNT)


def some_claims(engine: Engine) -> None:
    te.applied(engine, BASE)
    admit(engine, "c1")
    admit(engine, "c2")


@functools.cache
def future() -> Replica:
    """What the engine of `before` went on to be, as a replica with the receipts of a witness."""
    with tempfile.TemporaryDirectory() as folder:
        engine = te.new_engine(Path(folder) / "engine", ROSTER, witnesses=(tw.InProcess(),))
        tr.before(engine)
        tr.after(engine)
        te.witness(engine)
        return tr.replica_of(engine)


@functools.cache
def windows() -> Replica:
    """The same engine after two rotations."""
    with tempfile.TemporaryDirectory() as folder:
        engine = te.new_engine(Path(folder) / "engine", ROSTER)
        tr.before(engine)
        for window in ("w2", "w3"):
            rotating.rotate(engine, window=window, accept=["reset-usage:ledger"])
            admit(engine, f"in-{window}")
        return tr.replica_of(engine)


def recover(engine: Engine) -> str:
    return tr.recovered(engine, future()).result


def give_up(engine: Engine) -> str:
    """Nobody has the entries that the receipts speak of."""
    accept = ["lose-entries:ledger/journal", "lose-entries:ledger/entitlements"]
    return tr.recovered(engine, replace(future(), entries=()), accept=accept).result


def with_tenant(engine: Engine) -> None:
    """acme owns a site and a pool that beta runs in, and runs on an entitlement in root's."""
    te.applied(engine, te.fleet(te.tenant("beta"), te.pool("pool-a"), te.offer("pool-a"), te.entitlement(tenant="any")))

    def own(build: calls.Build) -> str:
        return str(calls.call(engine, "own", tenant="acme", request={}, build=build).id)

    site = own(
        builders.creation(
            engine,
            "site",
            SiteBody(kind="custom", region="eu", tenant="acme"),
            tenant="acme",
            key="par1",
            name="par1",
        )
    )
    body = PoolBody(site=site, pool_class="metal-host", gpu_model="H100")
    pool = own(builders.creation(engine, "pool", body, tenant="acme", key="own", name="own"))
    own(builders.offering(OfferBody(pool=pool, to="beta", quota={"gpu": 8}), ""))
    for where, name in (("pool-a", "n1"), (pool, "n2")):
        reservations.join_node(engine, pool=where, name=name, gpus=8)
    for tenant, where, estimate in (
        ("beta", pool, None),
        ("acme", pool, None),
        ("acme", "pool-a", ESTIMATE),
        ("acme", "pool-a", ESTIMATE),
    ):
        reservations.create(engine, tenant=tenant, pool=where, gpus=4, estimate=estimate)


def delete(engine: Engine) -> str:
    done = deletion.delete_tenant(engine, "acme", tenant="root", accept=["remove:tenant/acme"])
    return "nothing" if done.teardown is None else f"{len(done.teardown.reservations)} ended"


COMMANDS: dict[str, Command] = {
    "first apply": Command(prepare=lambda engine: None, run=apply_of(BASE), answer="applied", again="already-applied"),
    "apply of creations": Command(run=apply_of(GROWN), answer="applied", again="already-applied"),
    "apply of removals": Command(run=apply_of(REDUCED, SHARE), answer="applied", again="already-applied"),
    "apply of everything at once": Command(run=apply_of(MIXED, SHARE), answer="applied", again="already-applied"),
    "apply, witnessed": Command(
        run=apply_of(REDUCED, SHARE), answer="applied", again="already-applied", commits=2, witnesses=3
    ),
    "apply, checkpoint due": Command(
        prepare=some_claims, run=apply_of(GROWN), answer="applied", again="already-applied", checkpoint_every=2
    ),
    "apply of nothing": Command(run=apply_of(BASE), answer="nothing-to-do", again="nothing-to-do"),
    "offer": Command(run=lower_quota, answer="called", again="nothing"),
    "unoffer": Command(run=called(builders.unoffering(te.POOL_A, "acme")), answer="called", again="nothing"),
    "archive": Command(run=called(builders.removal("pool", te.POOL_A)), answer="called", again="nothing"),
    "settings": Command(
        run=called(builders.settings_change(lambda body: replace(body, share_threshold_percent=50))),
        answer="called",
        again="nothing",
    ),
    "tenant": Command(prepare=with_tenant, run=delete, answer="3 ended", again="nothing"),
    "tenant, checkpoint due": Command(
        prepare=with_tenant, run=delete, answer="3 ended", again="nothing", checkpoint_every=2
    ),
    "admit": Command(run=admit, answer="Admit", again="duplicate-claim"),
    "admit, checkpoint due": Command(
        prepare=some_claims,
        run=lambda engine: admit(engine, "c3"),
        answer="Admit",
        again="duplicate-claim",
        checkpoint_every=2,
    ),
    "release": Command(
        prepare=lambda engine: (te.applied(engine, BASE), admit(engine)),
        run=release,
        answer="released",
        again="claim-not-open",
    ),
    "release, checkpoint due": Command(
        prepare=some_claims, run=release, answer="released", again="claim-not-open", checkpoint_every=2
    ),
    "reserve": Command(prepare=with_node, run=reserve, answer="active", again="active again"),
    "reserve what does not fit": Command(
        prepare=with_node, run=lambda engine: reserve(engine, 9), answer="pending", again="pending again"
    ),
    "rotate": Command(prepare=running, run=rotate, answer="3 went on", again="window-used"),
    "rotate a second time": Command(
        prepare=lambda engine: (running(engine), rotating.rotate(engine, window="w1", accept=["reset-usage:ledger"])),
        run=rotate,
        answer="3 went on",
        again="window-used",
    ),
    "rotate, witnessed": Command(
        prepare=running,
        run=lambda engine: (rotate(engine), te.witness(engine))[
            0
        ],  # whoever is killed before it asks the witness asks later
        answer="3 went on",
        again="window-used",
        commits=2,
        witnesses=3,
    ),
    "rotate nothing": Command(run=rotate, answer="0 went on", again="window-used"),
    "release after a rotation": Command(
        prepare=lambda engine: (running(engine), rotate(engine)), run=release, answer="released", again="claim-not-open"
    ),
    "end after a rotation": Command(
        prepare=lambda engine: (running(engine), rotate(engine)), run=end, answer="ended", again="ended already"
    ),
    "end": Command(
        prepare=lambda engine: (with_node(engine), reserve(engine)), run=end, answer="ended", again="ended already"
    ),
    "join": Command(run=join, answer="8", again="8"),
    "leave": Command(prepare=with_node, run=leave, answer="n1", again="not-found"),
    "sealed report": Command(run=report, answer="1", again="2"),
    "rebuild": Command(prepare=spoilt, run=lambda engine: str(rebuild.rebuild(engine)), answer="1", again="1"),
    "recover": Command(prepare=tr.before, run=recover, answer="recovered", again="nothing-to-do"),
    "recover over rotations": Command(
        prepare=tr.before,
        run=lambda engine: tr.recovered(engine, windows()).result,
        answer="recovered",
        again="nothing-to-do",
    ),
    "recover without the entries": Command(prepare=tr.before, run=give_up, answer="reopened", again="nothing-to-do"),
    "move": Command(
        run=lambda engine: answer_of(lambda: moving.close(engine, "elsewhere"), lambda _: "closed"),
        answer="closed",
        again="closed",
    ),
    "witness": Command(
        run=lambda engine: str(witnessing.witness_heads(engine).covering), answer="3", again="3", witnesses=3
    ),
}


class Recording(CrashingStore):
    """Counts points, and keeps the rows as they are after each commit, with the point at which that was."""

    def __init__(self, store: Store, folder: Path) -> None:
        super().__init__(store)
        self.folder = folder
        self.committed: list[tuple[int, dict[str, list[tuple[Any, ...]]]]] = []

    @contextmanager
    def write(self, wait_ms: int) -> Iterator[Writer]:
        with super().write(wait_ms) as writer:
            yield writer
        self.committed.append((self.points, te.dump(self.folder)))


def opened(folder: Path, command: Command, wrap: Callable[[Store], Store] = lambda store: store) -> Engine:
    witnesses = tuple(tw.InProcess(signer=key) for key in list(tw.WITNESSES.values())[: command.witnesses])
    store = wrap(SqliteStore.open(folder / "state.db"))
    return te.over(store, witnesses=witnesses, checkpoint_every=command.checkpoint_every)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_kill_at_any_write_leaves_all_or_nothing(name: str, tmp_path: Path) -> None:
    command = COMMANDS[name]
    ground = tmp_path / "ground"
    engine = te.new_engine(ground, ROSTER)
    command.prepare(engine)
    engine.store.close()

    folder = te.copied(ground, tmp_path / "whole")
    recording = Recording(SqliteStore.open(folder / "state.db"), folder)
    assert command.run(opened(folder, command, lambda _: recording)) == command.answer
    recording.close()
    states = [te.dump(ground), *(rows for _, rows in recording.committed)]
    assert len(states) == 1 + command.commits
    te.check_whole(open_again := te.open_engine(folder))
    open_again.store.close()

    for point in range(1, recording.points + 1):
        done = sum(at <= point for at, _ in recording.committed)
        folder = te.copied(ground, tmp_path / str(point))
        ended = tp.in_child(
            lambda folder=folder, point=point: command.run(  # type: ignore[misc]  # defaults bind the loop's values
                opened(folder, command, lambda store: CrashingStore(store, point))
            )
        )
        assert ended == tp.KILLED
        assert te.dump(folder) == states[done], f"killed at point {point} of {recording.points}"

        engine = opened(folder, command)
        if name != "rebuild" or done:
            te.check_whole(engine)
        assert command.run(engine) == (command.again if done else command.answer)
        te.check_whole(engine)
        applied = Counter(event.plan for event in te.journal(engine) if isinstance(event, Applied))
        assert set(applied.values()) <= {1}
        engine.store.close()
        if command.again != "2":  # a report is sealed each time it is asked for
            assert te.dump(folder) == states[-1]


def test_init_is_all_or_nothing(tmp_path: Path) -> None:
    from fleetctl.engine.initial import initialise

    tmp_path.chmod(0o700)
    counting = CrashingStore(SqliteStore.create(tmp_path / "count" / "state.db"))
    initialise(te.over(counting), SettingsBody())
    counting.close()
    for point in range(1, counting.points + 1):
        folder = tmp_path / str(point)

        def begin(folder: Path = folder, point: int = point) -> None:
            initialise(te.over(CrashingStore(SqliteStore.create(folder / "state.db"), point)), SettingsBody())

        assert tp.in_child(begin) == tp.KILLED
        if point < counting.points:  # a creation that was cut short is no engine yet, and can be done again
            initialise(te.over(SqliteStore.create(folder / "state.db")), SettingsBody())
        te.check_whole(te.open_engine(folder))
