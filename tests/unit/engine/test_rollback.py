"""A state that was set back or rewritten: refused while anybody outside it knows more (ledger.md, "The witness").

"A restored or rolled-back database, or a stolen key, can leave the witness ahead of the steward: it answers 409 for ever,
and that is right. The engine then refuses to append."
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fleetctl.engine import builders, calls, claims, drifting, moving, reservations
from fleetctl.engine.apply import Unwitnessed, apply_plan
from fleetctl.engine.context import Engine
from fleetctl.errors import SafetyRefused
from fleetctl.pool1.grade import Grade
from fleetctl.ports import Reader, Store, Writer
from tests.support import engines as te
from tests.support import inprocess as tw

ROSTER = tw.witnessed_by(tw.WITNESSES["witness-a"])


def unoffer(engine: Engine) -> object:
    build = builders.unoffering(te.POOL_A, "acme")
    return calls.call(engine, "pools.unoffer", tenant="root", request={}, build=build)


def admit(engine: Engine, claim: str) -> object:
    return claims.admit(
        engine,
        claim=claim,
        entitlement="ent",
        gang_size=1,
        devices_per_member=1,
        estimate_uj=1,
        grade=Grade.ESTIMATOR,
    )


COMMANDS: dict[str, Callable[[Engine], object]] = {
    "apply": lambda engine: te.applied(engine, te.one_pool(1)),
    "call": unoffer,
    "move": lambda engine: moving.close(engine, "elsewhere"),
    "admit": lambda engine: admit(engine, "c1"),
    "release": lambda engine: claims.release(engine, claim="early"),
    "reserve": lambda engine: reservations.create(engine, tenant="acme", pool="pool-a", gpus=1),
    "end": lambda engine: reservations.end(engine, "res_1"),
    "seal": lambda engine: drifting.seal_report(engine, {}, "none"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_restored_backup_is_refused_while_the_witness_knows_more(tmp_path: Path, name: str) -> None:
    witness = tw.InProcess()
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(witness,))
    te.applied(engine, te.one_pool(32))
    admit(engine, "early")
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    te.applied(engine, te.one_pool(16))

    restored = te.open_engine(backup, witnesses=(witness,))
    before = te.dump(backup)
    with pytest.raises(SafetyRefused) as caught:
        COMMANDS[name](restored)
    assert (caught.value.code, caught.value.exit_code) == ("state-rolled-back", 3)
    assert "(ahead)" in str(caught.value)
    assert te.dump(backup) == before


@pytest.mark.parametrize("name", COMMANDS)
def test_a_rewritten_history_is_refused(tmp_path: Path, name: str) -> None:
    """The backup went its own way, without the witness, to the same length and beyond."""
    witness = tw.InProcess()
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(witness,))
    te.applied(engine, te.one_pool(32))
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    te.applied(engine, te.one_pool(16))
    alone = te.open_engine(backup)
    for gpus in (8, 9):
        te.applied(alone, te.one_pool(gpus))
    alone.store.close()

    with pytest.raises(SafetyRefused) as caught:
        COMMANDS[name](te.open_engine(backup, witnesses=(witness,)))
    assert caught.value.code == "state-rolled-back"
    assert "(fork)" in str(caught.value)


def test_usage_set_back_is_refused_as_configuration_is(tmp_path: Path) -> None:
    witness = tw.InProcess()
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(witness,))
    te.applied(engine, te.one_pool(32))
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    admit(engine, "c1")
    te.witness(engine)
    with pytest.raises(SafetyRefused) as caught:
        te.applied(te.open_engine(backup, witnesses=(witness,)), te.one_pool(1))
    assert "entitlements (ahead)" in str(caught.value)


def test_receipts_that_stayed_tell_of_what_was_cut_without_asking_anybody(tmp_path: Path) -> None:
    """Somebody cut the last apply out of the database and forgot the receipts in it."""
    folder = tmp_path / "engine"
    engine = te.new_engine(folder, ROSTER, witnesses=(tw.InProcess(),))
    te.applied(engine, te.one_pool(32))
    earlier = te.dump(folder)
    te.applied(engine, te.one_pool(16))
    engine.store.close()
    receipts = te.dump(folder, ["receipts"])["receipts"]
    folder = te.copied(folder, tmp_path / "cut")
    te.restore_rows(folder, {name: rows for name, rows in earlier.items() if name != "receipts"})
    assert te.dump(folder, ["receipts"])["receipts"] == receipts

    alone = te.open_engine(folder)
    te.check_whole(alone)  # everything in it verifies: it is a prefix
    with pytest.raises(SafetyRefused) as caught:
        te.applied(alone, te.one_pool(8))
    assert caught.value.code == "state-rolled-back"


def test_a_rollback_with_its_older_receipts_is_seen_by_nobody_until_the_witness_answers(tmp_path: Path) -> None:
    """ledger.md: "Rollback to an older prefix with its older receipt cannot be seen inside the files"."""
    witness = tw.Down(tw.InProcess(), answers=True)
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(witness,))
    te.applied(engine, te.one_pool(32))
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    te.applied(engine, te.one_pool(16))

    restored = te.open_engine(backup, witnesses=(witness,))
    witness.answers = False
    receipt = te.applied(restored, te.one_pool(8))
    assert receipt.result == "applied"
    assert (receipt.witnessed.grade, receipt.witnessed.covering) == ("witnessed-to", 0)
    witness.answers = True
    assert te.witness(restored).covering == 0
    with pytest.raises(SafetyRefused):
        te.applied(restored, te.one_pool(4))


class Racing:
    """A store in which another process applies between the reading of receipts from witnesses and the next reading."""

    def __init__(self, store: Store, between: Callable[[], object]) -> None:
        self._store, self._between = store, between

    @contextmanager
    def read(self) -> Iterator[Reader]:
        with self._store.read() as reader:
            yield reader
        self._between()

    @contextmanager
    def write(self, wait_ms: int) -> Iterator[Writer]:
        with self._store.write(wait_ms) as writer:
            yield writer

    def backup(self, target: str) -> None:
        self._store.backup(target)

    def close(self) -> None:
        self._store.close()


@pytest.mark.parametrize("witnessed", [True, False], ids=["witnessed", "alone"])
def test_an_apply_beside_this_one_takes_nothing_away_from_it(tmp_path: Path, witnessed: bool) -> None:
    """Whenever the other one runs: before the witness is asked, after it, after the commit, while receipts are judged.

    It is never taken for a rollback, and where it is not witnessed itself, this one is all the same.
    """
    folder = tmp_path / "engine"
    key = tw.WITNESSES["witness-a"]
    witness = tw.InProcess(signer=key)
    te.applied(te.new_engine(folder, tw.witnessed_by(key, required=1), witnesses=(witness,)), te.fleet(name="base"))
    moments = 0
    for moment in itertools.count():
        other = te.open_engine(folder, witnesses=(witness,) if witnessed else ())
        readings: list[int] = []

        def between(moment: int = moment, other: Engine = other, readings: list[int] = readings) -> None:
            readings.append(1)
            if len(readings) == moment + 1:
                with contextlib.nullcontext() if witnessed else pytest.raises(Unwitnessed):
                    te.applied(other, te.fleet(te.pool(f"other-{moment}"), name=f"other-{moment}"))

        mine = te.fleet(te.pool(f"mine-{moment}"), name=f"mine-{moment}")
        data = te.planned(te.open_engine(folder), mine)
        racing = te.over(Racing(te.open_engine(folder).store, between), witnesses=(witness,))
        assert apply_plan(racing, data).result == "applied"  # else Unwitnessed, or taken for a rollback
        if len(readings) <= moment:  # there is no later moment
            break
        moments += 1
    assert moments > 5
    te.check_whole(te.open_engine(folder))
