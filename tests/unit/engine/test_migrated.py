"""The journal's `migrated`: a store that a newer version opened says so in the next entry's transaction (ledger.md, "Events")."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.engine import builders, calls, claims
from fleetctl.engine.context import Engine
from fleetctl.engine.history import engine_history
from fleetctl.engine.initial import initialise
from fleetctl.engine.rebuild import rebuild
from fleetctl.errors import Tampered
from fleetctl.ledger.entries import Migrated
from fleetctl.model.bodies import SettingsBody
from fleetctl.pool1.grade import Grade
from fleetctl.store.migrations import MIGRATIONS
from fleetctl.store.sqlite import ENGINE_FORM, SqliteStore
from fleetctl.store.sqlite_db import Database
from tests.support import engines as te

MORE = ("CREATE TABLE more (id {text} PRIMARY KEY NOT NULL){strict}",)
NOW = len(MIGRATIONS)


def newer(folder: Path, steps: int = 1) -> Engine:
    """The engine of the folder under a program that knows `steps` more migrations."""
    more = tuple((statement.replace("more", f"more{n}"),) for n in range(steps) for statement in MORE)
    form = replace(ENGINE_FORM, migrations=(*MIGRATIONS, *more))
    return te.over(SqliteStore(Database.open(str(folder / "state.db"), form)))


def events(engine: Engine) -> list[str]:
    return [event.EVENT for event in te.journal(engine)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    te.applied(te.new_engine(tmp_path / "engine"), te.one_pool())
    return tmp_path / "engine"


def test_a_migration_is_journalled_before_the_next_entry_and_once(folder: Path) -> None:
    engine = newer(folder)
    assert events(engine) == ["applied"]
    te.applied(engine, te.one_pool(gpus=16))
    te.applied(engine, te.one_pool(gpus=17))
    assert events(engine) == ["applied", "migrated", "applied", "applied"]
    migrated = te.journal(engine)[1]
    assert isinstance(migrated, Migrated)
    assert migrated.schema == NOW + 1
    assert migrated.state_before == migrated.state_after == te.journal(engine)[0].state_after
    te.check_whole(engine)
    assert [item.entry for item in engine_history(engine, "offer/pool-a/acme").entries] == [0, 2, 3]


def test_several_migrations_at_once_are_one_entry_and_later_ones_are_another(folder: Path) -> None:
    calls.call(newer(folder, 2), "x", tenant="root", request={}, build=builders.flag("pool", te.POOL_A, protect=True))
    te.applied(newer(folder, 3), te.one_pool(gpus=16), accept=["unprotect:pool/pool-a"])
    engine = newer(folder, 3)
    assert events(engine) == ["applied", "migrated", "called", "migrated", "applied"]
    assert [event.schema for event in te.journal(engine) if isinstance(event, Migrated)] == [NOW + 2, NOW + 3]
    te.check_whole(engine)
    rebuild(engine)
    te.check_whole(engine)


def test_an_engine_made_at_a_newer_schema_was_never_migrated(tmp_path: Path) -> None:
    form = replace(ENGINE_FORM, migrations=(*MIGRATIONS, MORE))
    (tmp_path / "engine").mkdir(mode=0o700)
    made = te.over(SqliteStore(Database.create(str(tmp_path / "engine" / "state.db"), form)))
    initialise(made, SettingsBody())
    te.applied(made, te.one_pool())
    assert events(made) == ["applied"]


def test_what_seals_usage_alone_leaves_it_to_the_next_journal_entry(folder: Path) -> None:
    engine = newer(folder)
    claims.admit(
        engine,
        claim="c1",
        entitlement="ent",
        gang_size=1,
        devices_per_member=1,
        estimate_uj=1,
        grade=Grade.ESTIMATOR,
    )
    assert events(engine) == ["applied"]
    te.applied(engine, te.one_pool(gpus=16))
    assert events(engine) == ["applied", "migrated", "applied"]
    te.check_whole(engine)


@pytest.mark.parametrize(
    "edit", ["DELETE FROM meta WHERE name = 'schema'", "UPDATE meta SET value = '9' WHERE name = 'schema'"]
)
def test_an_edited_note_makes_no_entry(folder: Path, edit: str) -> None:
    te.edit(folder, edit)
    te.applied(te.open_engine(folder), te.one_pool(gpus=16))
    assert events(te.open_engine(folder)) == ["applied", "applied"]
    te.applied(newer(folder), te.one_pool(gpus=17))
    te.edit(folder, edit)
    te.applied(newer(folder), te.one_pool(gpus=18))
    assert events(newer(folder)) == ["applied", "applied", "migrated", "applied", "applied"]


def test_a_migrated_state_that_was_edited_is_not_sealed(folder: Path) -> None:
    te.edit(folder, "UPDATE objects SET name = 'other' WHERE kind = 'pool'")
    engine = newer(folder)
    with pytest.raises(Tampered):
        calls.call(engine, "x", tenant="root", request={}, build=builders.flag("pool", te.POOL_A, protect=True))
    assert events(engine) == ["applied"]
