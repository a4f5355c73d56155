"""Disk full at any page, a state that may not be written, keys that are not there: a clear error, nothing lost.

issue: "Disk full, read-only database, missing keys, wrong permissions: clear error, nothing lost."
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fleetctl.engine import calls, claims, drifting, reservations
from fleetctl.engine.apply import Unwitnessed, apply_plan
from fleetctl.engine.builders import settings_change
from fleetctl.engine.context import Engine
from fleetctl.engine.planning import Source
from fleetctl.errors import FleetctlError, SafetyRefused, Tampered, Unreachable
from fleetctl.ledger.keyfiles import create_private_key, create_public_key, load_private_key, load_public_key
from fleetctl.ledger.keys import SeedSigner
from fleetctl.pool1.grade import Grade
from fleetctl.store.sqlite import SqliteStore
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support import processes as tp
from tests.support.ledgers import seed, signer

FRAME = 4_096 + 24
"""What one page takes in the write-ahead log."""
FULL = {"disk-full", "state-io-error"}
BIG = te.fleet(*(te.pool(f"pool-{n}") for n in range(12)), *(te.offer(f"pool-{n}") for n in range(12)))


def with_limit(limit: int, work: Callable[[], str]) -> str:
    """Do the work in a process whose files cannot grow beyond `limit` bytes; what it says, or the code of its error."""

    def limited() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            return work()
        except FleetctlError as error:
            return error.code

    return tp.together([limited])[0]


def apply_big(folder: Path, data: bytes, required: bool) -> str:
    witness = tw.InProcess()
    engine = te.open_engine(folder, witnesses=(witness,) if required else ())
    try:
        receipt = apply_plan(engine, data, require_witness=required)
    except Unwitnessed as error:
        assert error.receipt.result == "applied"
        assert any("could not be kept" in note for note in error.receipt.witnessed.notes)
        return "unwitnessed"
    return receipt.result


@pytest.mark.parametrize("required", [False, True], ids=["alone", "witnessed"])
def test_a_disk_that_fills_at_any_page_of_an_apply(tmp_path: Path, required: bool) -> None:
    ground = tmp_path / "ground"
    engine = te.new_engine(ground, tw.witnessed_by(tw.WITNESSES["witness-a"]))
    data = te.planned(engine, BIG)
    engine.store.close()
    untouched = te.dump(ground)

    said = []
    for pages in range(200):
        folder = te.copied(ground, tmp_path / str(pages))
        # Not at a multiple of a page: some writes are cut in the middle.
        said.append(with_limit(pages * FRAME + 100, partial(apply_big, folder, data, required)))
        engine = te.open_engine(folder, witnesses=(tw.InProcess(),) if required else ())
        te.check_whole(engine)
        committed = said[-1] in ("applied", "unwitnessed")
        if not committed:
            assert te.dump(folder) == untouched
        again = apply_plan(engine, data, require_witness=required)
        assert again.result == ("already-applied" if committed else "applied")
        engine.store.close()
        if said[-1] == "applied":
            break

    assert said[-1] == "applied"
    assert {*said[:-1]} - {"unwitnessed"} <= FULL
    assert len(said) > 5
    if required:  # committed, and no room for the receipts: it says so, exit 5, and the next run finishes it
        assert "unwitnessed" in said


def admit_one(folder: Path) -> str:
    engine = te.open_engine(folder)
    return str(
        claims.admit(
            engine,
            claim="c1",
            entitlement="ent",
            gang_size=1,
            devices_per_member=1,
            estimate_uj=1,
            grade=Grade.ESTIMATOR,
        ).entry
    )


def reserve_one(folder: Path) -> str:
    return reservations.create(te.open_engine(folder), tenant="acme", pool="pool-a", gpus=1, key="k").reservation.state


@pytest.mark.parametrize("work", [admit_one, reserve_one])
@pytest.mark.parametrize("pages", [0, 1, 3])
def test_a_full_disk_admits_and_books_nothing(tmp_path: Path, work: Callable[[Path], str], pages: int) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    te.applied(engine, te.one_pool())
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=8)
    engine.store.close()
    before = te.dump(folder)

    assert with_limit(pages * FRAME, partial(work, folder)) in FULL
    assert te.dump(folder) == before
    assert work(folder) in ("0", "active")
    te.check_whole(te.open_engine(folder))


# ------------------------------------------------------------------------------------------------- permissions


def writing_commands(engine: Engine, data: bytes) -> dict[str, Callable[[], object]]:
    return {
        "apply": lambda: apply_plan(engine, data),
        "call": lambda: calls.call(
            engine, "settings.set", tenant="root", request={}, build=settings_change(lambda body: body)
        ),
        "admit": lambda: claims.admit(
            engine,
            claim="c1",
            entitlement="ent",
            gang_size=1,
            devices_per_member=1,
            estimate_uj=1,
            grade=Grade.ESTIMATOR,
        ),
        "seal": lambda: drifting.seal_report(engine, {}, "none"),
    }


def test_a_state_opened_for_reading_only_is_read_and_never_written(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    te.applied(engine, te.one_pool())
    engine.store.close()
    before = te.dump(folder)
    engine = te.over(SqliteStore.open(folder / "state.db", read_only=True))
    data = te.planned(engine, te.one_pool(8))
    assert drifting.drift_fleet(engine, te.one_pool(), Source(), full=True).result == "none"
    for name, command in writing_commands(engine, data).items():
        with pytest.raises(Unreachable) as caught:
            command()
        assert (caught.value.code, caught.value.exit_code) == ("state-read-only", 1), name
    engine.store.close()
    assert te.dump(folder) == before


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "code"),
    [
        (0o400, 0o700, "state-read-only"),
        (0o600, 0o500, "state-read-only"),
        (0o200, 0o700, "state-cannot-open"),
        (0o640, 0o700, "state-permissions"),
        (0o604, 0o700, "state-permissions"),
        (0o600, 0o770, "state-permissions"),
        (0o600, 0o702, "state-permissions"),
    ],
)
def test_a_state_with_wrong_permissions_is_not_opened(
    tmp_path: Path, file_mode: int, folder_mode: int, code: str
) -> None:
    folder = tmp_path / "engine"
    te.new_engine(folder).store.close()
    (folder / "state.db").chmod(file_mode)
    folder.chmod(folder_mode)
    with pytest.raises(Unreachable) as caught:
        te.open_engine(folder)
    assert caught.value.code == code
    folder.chmod(0o700)
    (folder / "state.db").chmod(0o600)
    assert te.applied(te.open_engine(folder), te.one_pool()).result == "applied"


# -------------------------------------------------------------------------------------------------------- keys


def test_without_the_private_key_everything_can_be_read_and_nothing_sealed(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    te.applied(te.new_engine(folder), te.one_pool())
    engine = te.open_engine(folder, signer=None)
    before = te.dump(folder)
    data = te.planned(engine, te.one_pool(8))
    commands = writing_commands(engine, data)
    del commands["call"]  # it changes nothing, so it seals nothing
    for name, command in commands.items():
        with pytest.raises(Unreachable) as caught:
            command()
        assert caught.value.code == "steward-key-missing", name
    assert te.dump(folder) == before
    assert apply_plan(te.open_engine(folder), data).result == "applied"
    assert apply_plan(engine, data).result == "already-applied"


@pytest.mark.parametrize("impostor", [signer("root-steward", "another key"), signer("other-steward")])
def test_another_private_key_seals_nothing(tmp_path: Path, impostor: SeedSigner) -> None:
    folder = tmp_path / "engine"
    te.applied(te.new_engine(folder), te.one_pool())
    engine = te.open_engine(folder, signer=impostor)
    before = te.dump(folder)
    for name, command in writing_commands(engine, te.planned(engine, te.one_pool(8))).items():
        if name == "call":
            continue
        with pytest.raises(SafetyRefused) as caught:
            command()
        assert (caught.value.code, caught.value.exit_code) == ("wrong-engine", 3), name
    assert te.dump(folder) == before


def test_replaced_key_files_are_noticed_whichever_of_them_was_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    te.applied(te.new_engine(folder), te.one_pool())
    private, public = tmp_path / "steward.pem", tmp_path / "steward.pub.pem"
    data = te.planned(te.open_engine(folder), te.one_pool(8))
    before = te.dump(folder)

    create_private_key(private, te.STEWARD.kid, seed("somebody else"))
    create_public_key(public, te.STEWARD.public_key)
    replaced = te.open_engine(
        folder, signer=load_private_key(private, te.STEWARD.kid), steward_key=load_public_key(public)
    )
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(replaced, data)
    assert caught.value.code == "wrong-engine"

    public.unlink()
    create_public_key(public, signer(te.STEWARD.kid, "somebody else").public_key)
    both = te.open_engine(folder, signer=load_private_key(private, te.STEWARD.kid), steward_key=load_public_key(public))
    with pytest.raises(Tampered) as tampered:
        apply_plan(both, data)
    assert tampered.value.exit_code == 3
    assert te.dump(folder) == before
