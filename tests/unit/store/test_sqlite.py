"""What is particular to the file: who may open it, what it must be, damage, and its schema."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from fleetctl.errors import BadInput, Busy, FleetctlError, SafetyRefused, Tampered, Unreachable
from fleetctl.model.changes import Event
from fleetctl.model.ids import ObjectId
from fleetctl.model.operational import Node, Observation, Reservation, WorkReport
from fleetctl.store.migrations import MIGRATIONS
from fleetctl.store.sqlite import SqliteStore, check_file, restore_file
from tests.support.stores import pool


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with one pool and one ledger entry."""
    path = tmp_path / "engine" / "state.db"
    store = SqliteStore.create(path)
    with store.write(0) as writer:
        writer.set_meta("engine", "eng_1")
        writer.put_objects([pool("a")])
        writer.add_events([Event(type="pool.created", object="pool/a", tenant="acme")], 1)
        writer.put_reservation(
            Reservation(
                id=ObjectId("res_1"),
                tenant="acme",
                pool=ObjectId("pool_a"),
                gpus=1,
                state="active",
                created_at_ms=1,
                placement=((ObjectId("node_1"), 1),),
            )
        )
        writer.put_report(
            WorkReport(
                stream="entitlements",
                claim="c1",
                completed_units=1,
                spent_uj=2,
                grade="HwShunt",
                at_ms=3,
                observation=Observation(observed_ms=4, energy_uj=5),
            )
        )
        writer.open_stream("journal", "root/journal", b"g" * 32)
        writer.append("journal", expected_length=0, expected_head=b"g" * 32, entries=[(b"e", b"a" * 32)])
    store.close()
    return path


def edit(path: Path, statement: str) -> None:
    """What somebody does behind the engine's back."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(statement)


def refusal(path: Path, *, read_only: bool = False) -> FleetctlError:
    with pytest.raises(FleetctlError) as caught:
        SqliteStore.open(path, read_only=read_only)
    assert str(path.parent) in caught.value.diagnostics[0].detail
    return caught.value


# --------------------------------------------------------------------------------------------- the file itself


def test_file_and_folder_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = SqliteStore.create(tmp_path / "engine" / "state.db")
    finally:
        os.umask(before)
    with store.write(0) as writer:
        writer.set_meta("a", "b")
    store.backup(str(tmp_path / "copies" / "one.db"))
    made = {entry.relative_to(tmp_path).as_posix(): stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.rglob("*")}
    store.close()
    assert made == {
        "engine": 0o700,
        "engine/state.db": 0o600,
        "engine/state.db-wal": 0o600,
        "engine/state.db-shm": 0o600,
        "copies": 0o700,
        "copies/one.db": 0o600,
    }


def test_opening_makes_no_engine(tmp_path: Path) -> None:
    """plan-apply.md, "State": a missing engine is exit 3, never a fresh one."""
    for read_only in (False, True):
        error = refusal(tmp_path / "none" / "state.db", read_only=read_only)
        assert (error.code, error.exit_code) == ("engine-missing", 3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "code"),
    [
        (0o640, 0o700, "state-permissions"),
        (0o602, 0o700, "state-permissions"),
        (0o600, 0o770, "state-permissions"),
        (0o600, 0o703, "state-permissions"),
        (0o200, 0o700, "state-cannot-open"),
        (0o400, 0o700, "state-read-only"),
        (0o600, 0o500, "state-read-only"),
    ],
)
def test_mode_bits_are_judged_for_the_superuser_too(path: Path, file_mode: int, folder_mode: int, code: str) -> None:
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    error = refusal(path)
    assert (error.code, error.exit_code) == (code, 1)
    assert "chmod" in error.diagnostics[0].detail


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o600, 0o755), (0o600, 0o1777), (0o400, 0o500)])
def test_what_nobody_can_replace_is_read(path: Path, file_mode: int, folder_mode: int) -> None:
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    store = SqliteStore.open(path, read_only=True)
    with store.read() as reader:
        assert reader.meta("engine") == "eng_1"
    with pytest.raises(Unreachable, match="state-read-only"), store.write(0):
        pass
    store.close()


def test_names_that_mean_something_in_a_uri(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=memory&b#c%20d é" / "state.db"
    SqliteStore.create(path).close()
    assert path.is_file()
    SqliteStore.open(path).close()


def test_a_name_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "state.db").mkdir(parents=True)
    for path in (tmp_path / "file" / "state.db", tmp_path / "a\0b", tmp_path / ("x" * 300)):
        with pytest.raises(Unreachable, match="state-cannot-open"):
            SqliteStore.create(path)
    with pytest.raises(Unreachable, match="is not a file"):
        SqliteStore.open(tmp_path / "folder" / "state.db")


# ----------------------------------------------------------------------------------------------- what is in it


def private(path: Path, content: bytes) -> Path:
    path.touch(0o600)
    path.write_bytes(content)
    return path


def test_a_file_of_something_else(tmp_path: Path) -> None:
    assert refusal(private(tmp_path / "text.db", b"not a database, and longer than its header" * 100)).code == (
        "state-not-a-database"
    )
    empty = refusal(private(tmp_path / "empty.db", b""))
    assert (empty.code, empty.exit_code) == ("engine-missing", 3)
    edit(private(tmp_path / "other.db", b""), "CREATE TABLE cookies (name TEXT)")
    assert refusal(tmp_path / "other.db").code == "state-foreign"
    with pytest.raises(SafetyRefused, match="engine-exists"):
        SqliteStore.create(tmp_path / "other.db")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused(path: Path, read_only: bool) -> None:
    edit(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = path.read_bytes()
    error = refusal(path, read_only=read_only)
    assert error.code == "schema-newer" and f"up to {len(MIGRATIONS)}" in error.diagnostics[0].detail
    assert path.read_bytes() == before


def test_damaged_pages_are_said_and_not_repaired(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as raw:
        ((root,),) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'objects'")
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xa5" * 4096)
    store = SqliteStore.open(path)
    with pytest.raises(Unreachable, match="state-corrupt"), store.read() as reader:
        list(reader.objects())
    with pytest.raises(Unreachable, match="state-corrupt"), store.write(0) as writer:
        writer.put_objects([pool("b")])
    store.close()
    with pytest.raises(Unreachable, match="state-corrupt"):
        check_file(path)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * 3_996)
    assert refusal(path).code == "state-corrupt"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE reservations",
        "ALTER TABLE objects DROP COLUMN protect",
    ],
)
def test_a_schema_that_was_edited(path: Path, statement: str) -> None:
    if "reservations" in statement:
        edit(path, "DROP INDEX reservations_active")
    edit(path, statement)
    store = SqliteStore.open(path)
    with pytest.raises(Unreachable, match="state-corrupt"), store.read() as reader:
        list(reader.objects())
        list(reader.reservations())
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE objects SET kind = 'pod'",
        "UPDATE objects SET name = CAST(x'ff' AS TEXT)",
        "UPDATE reservations SET state = 'gone'",
        "UPDATE reservations SET placement = '{'",
        "UPDATE reservations SET placement = '[[1, 1]]'",
        "UPDATE reservations SET placement = '[[\"node_1\", true]]'",
        "UPDATE events SET data = '" + "[" * 100_000 + "'",
        "UPDATE events SET data = '[]'",
        "UPDATE reports SET grade = 'Guess'",
        "UPDATE reports SET spent_uj = -1",
        "UPDATE reports SET observed_uj = -1",
        "UPDATE reports SET observed_ms = NULL",
    ],
)
def test_a_row_that_no_engine_wrote(path: Path, statement: str) -> None:
    """A database row edited by hand is tampering, never a traceback."""
    edit(path, statement)
    store = SqliteStore.open(path)
    with pytest.raises(Tampered, match="row-unreadable") as caught, store.read() as reader:
        list(reader.objects())
        list(reader.stored_digests())
        list(reader.reservations())
        list(reader.reports("entitlements"))
        reader.events(0, 10)
    assert caught.value.exit_code == 3
    store.close()


def test_columns_hold_only_their_type(path: Path) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        edit(path, "UPDATE objects SET version = 'many'")


def test_an_edited_object_keeps_the_digest_it_had(path: Path) -> None:
    """ledger.md, "State digest": each object's digest is stored beside it; verifying recomputes them."""
    edit(path, "UPDATE objects SET name = 'renamed'")
    store = SqliteStore.open(path)
    with store.read() as reader:
        (item,), ((_, stored),) = reader.objects(), reader.stored_digests()
    assert item.digest() != stored == pool("a").digest()
    store.close()


def test_an_edited_document_is_not_handed_out(path: Path) -> None:
    edit(path, "INSERT INTO documents VALUES ('00', x'01')")
    store = SqliteStore.open(path)
    with store.read() as reader:
        with pytest.raises(Tampered, match="another digest"):
            reader.document("00")
        assert list(reader.documents()) == [("00", b"\x01")]
    store.close()


# ------------------------------------------------------------------------------------------------- transactions


def test_a_full_database_loses_nothing_and_is_used_again(path: Path) -> None:
    store = SqliteStore.open(path)
    with store.write(0) as writer:
        pages = writer._db.rows("PRAGMA page_count")[0][0]
        writer._db.run(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Unreachable, match="disk-full"), store.write(0) as writer:
        for number in range(1_000):
            writer.put_objects([pool(str(number), name="x" * 1_000)])
    with store.write(0) as writer:
        writer._db.run("PRAGMA max_page_count = 1000000")
        writer.put_objects([pool("b")])
    with store.read() as reader:
        assert [item.key for item in reader.objects()] == ["a", "b"]
    store.close()


def test_after_an_error_that_was_caught_nothing_is_committed(path: Path) -> None:
    """SQLite undoes a whole transaction when its disk is full; what follows must not be committed on its own."""
    store = SqliteStore.open(path)
    with pytest.raises(Unreachable, match="disk-full"), store.write(0) as writer:
        writer.set_meta("first", "x")
        pages = writer._db.rows("PRAGMA page_count")[0][0]
        writer._db.run(f"PRAGMA max_page_count = {pages}")
        with contextlib.suppress(Unreachable):
            for number in range(1_000):
                writer.put_objects([pool(str(number), name="x" * 1_000)])
        with contextlib.suppress(Unreachable):
            writer.set_meta("second", "x")
    with store.read() as reader:
        assert reader.meta("first") is None and reader.meta("second") is None
    store.close()


def test_a_reader_cannot_write(path: Path) -> None:
    store = SqliteStore.open(path)
    with pytest.raises(Unreachable, match="state-read-only"), store.read() as reader:
        reader._db.run("DELETE FROM objects")
    store.close()


def test_commits_are_synchronous_and_logged_ahead(path: Path) -> None:
    """architecture.md: WAL, `synchronous=FULL`, foreign keys on."""
    store = SqliteStore.open(path)
    with store.write(0) as writer:
        pragmas = {
            name: writer._db.rows(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    store.close()


# ------------------------------------------------------------------------------------------- backup and restore


def test_a_restored_state_is_what_the_backup_was(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    store = SqliteStore.open(path)
    store.backup(str(backup))
    with store.write(0) as writer:
        writer.put_objects([pool("b")])
        with pytest.raises(Busy, match="state-busy"):
            restore_file(backup, path, 0)
    with store.read() as before:
        restore_file(backup, path, 1_000)
        assert len(list(before.objects())) == 2
    with store.read() as reader:
        assert [item.key for item in reader.objects()] == ["a"]
    store.close()

    restore_file(backup, tmp_path / "new" / "state.db", 0)
    again = SqliteStore.open(tmp_path / "new" / "state.db")
    with again.write(0) as writer:
        writer.put_objects([pool("c")])
    again.close()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["backup.db", "engine", "new"]


def test_what_is_not_sound_is_not_restored(path: Path, tmp_path: Path) -> None:
    store = SqliteStore.open(path)
    store.backup(str(tmp_path / "orphan.db"))
    store.backup(str(tmp_path / "index.db"))
    store.close()
    edit(tmp_path / "orphan.db", "DELETE FROM streams")
    with contextlib.closing(sqlite3.connect(tmp_path / "index.db", isolation_level=None)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("UPDATE sqlite_master SET sql = replace(sql, 'active', 'ended') WHERE name = 'reservations_active'")
    cases = {
        "orphan.db": "state-corrupt",
        "index.db": "state-corrupt",
        "missing.db": "engine-missing",
        "text.db": "state-not-a-database",
    }
    private(tmp_path / "text.db", b"x" * 5_000)
    before = path.read_bytes()
    for name, code in cases.items():
        with pytest.raises(FleetctlError, match=code):
            restore_file(tmp_path / name, path, 0)
    assert path.read_bytes() == before


def test_a_failed_backup_leaves_no_file(path: Path, tmp_path: Path) -> None:
    store = SqliteStore.open(path)
    with pytest.raises(Unreachable, match="state-cannot-open"):
        store.backup(str(path / "below" / "a-file"))
    with pytest.raises(BadInput, match="file-exists"):
        store.backup(str(path))
    assert sorted(item.name for item in tmp_path.rglob("*.db*")) == ["state.db", "state.db-shm", "state.db-wal"]
    with store.write(0) as writer:
        writer.put_node(Node(id=ObjectId("node_1"), pool=ObjectId("pool_a"), name="n", gpus=1, joined_at_ms=0))
    store.close()
