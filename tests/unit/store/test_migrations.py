"""Numbered migrations: in order, whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.errors import SafetyRefused, Unreachable
from fleetctl.store.migrations import MIGRATIONS, POSTGRES_TYPES, SQLITE_TYPES, migrate
from fleetctl.store.sqlite import ENGINE_FORM, SqliteStore
from fleetctl.store.sqlite_db import Database

SECOND = (*MIGRATIONS, ("CREATE TABLE more (id {text} PRIMARY KEY NOT NULL){strict}", "INSERT INTO more VALUES ('x')"))
BROKEN = (*SECOND, ("CREATE TABLE third (id {int}){strict}", "CREATE TABLE third (id {int}){strict}"))


def test_only_what_is_missing_runs() -> None:
    ran: list[str] = []
    steps = (("a {int}",), ("b {text}", "c"))
    assert migrate(ran.append, steps, SQLITE_TYPES, 0) == 2
    assert migrate(ran.append, steps, POSTGRES_TYPES, 1) == 2
    assert migrate(ran.append, steps, SQLITE_TYPES, 2) == 2
    assert ran == ["a INTEGER", "b TEXT", "c", 'b TEXT COLLATE "C"', "c"]


def test_an_older_state_is_migrated_when_it_is_opened_for_writing(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    store = SqliteStore.create(path)
    with store.write(0) as writer:
        writer.set_meta("engine", "eng_1")
    store.close()
    newer = replace(ENGINE_FORM, migrations=SECOND)
    with pytest.raises(Unreachable, match="schema-older"):
        Database.open(path, newer, read_only=True)
    for _ in range(2):
        database = Database.open(path, newer)
        with database.read() as connection:
            assert connection.schema_version() == 2
            assert connection.rows("SELECT id FROM more") == [("x",)]
            assert connection.rows("SELECT value FROM meta") == [("eng_1",)]
        database.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    SqliteStore.create(path).close()
    with pytest.raises(Unreachable, match="already exists"):
        Database.open(path, replace(ENGINE_FORM, migrations=BROKEN))
    store = SqliteStore.open(path)
    with store.read() as reader:
        assert reader.schema_version() == 1
    store.close()


def test_a_creation_that_fails_leaves_no_engine(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    with pytest.raises(Unreachable, match="already exists"):
        Database.create(path, replace(ENGINE_FORM, migrations=BROKEN))
    with pytest.raises(SafetyRefused, match="engine-missing"):
        SqliteStore.open(path)
    SqliteStore.create(path).close()
