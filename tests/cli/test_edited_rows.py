"""Rows that no engine wrote: every command that reads one says so, exit 3, and none has an error that no rule foresees."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home

HUGE = 2**62
EDITS = [
    ("UPDATE nodes SET gpus = -1", ["nodes", "list"], "row-unreadable"),
    (f"UPDATE nodes SET gpus = {HUGE}", ["plan", "."], "row-unreadable"),
    (f"UPDATE nodes SET joined_at_ms = {HUGE}", ["nodes", "list"], "row-unreadable"),
    (f"UPDATE reservations SET gpus = {HUGE}", ["plan", "."], "row-unreadable"),
    (f"UPDATE reservations SET created_at_ms = {HUGE}", ["reservations", "list"], "row-unreadable"),
    (f"UPDATE events SET at_ms = {HUGE}", ["events", "list"], "row-unreadable"),
    ("UPDATE events SET at_ms = -1", ["events", "list"], "row-unreadable"),
    (f"UPDATE fleets SET entry = {HUGE}", ["status"], "index-tampered"),
    ("UPDATE fleets SET entry = 1", ["status"], "index-tampered"),
]
READERS = [
    ["status"],
    ["plan", "."],
    ["drift", "."],
    ["drift", ".", "--full"],
    ["history"],
    ["nodes", "list"],
    ["reservations", "list"],
    ["events", "list"],
    ["pools", "capacity", "pool-fra1-h100"],
    ["entitlements", "usage"],
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(path=tmp_path_factory.mktemp("home")).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)
    home.ok("nodes", "join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "8")
    home.ok("reservations", "create", "--tenant", "acme", "--pool", "pool-fra1-h100", "--gpus", "2")
    return home


@pytest.mark.parametrize(("statement", "command", "code"), EDITS, ids=[statement for statement, _, _ in EDITS])
def test_a_row_that_cannot_be_is_tampering(
    home: Home, tmp_path: Path, statement: str, command: list[str], code: str
) -> None:
    """plan-apply, ledger.md: edited behind the engine's back is tampering, exit 3; cli: never an unforeseen error."""
    (state,) = home.path.glob("state/fleetctl/eng_test/state.db")
    copy = tmp_path / "state.db"
    with sqlite3.connect(state) as source, sqlite3.connect(copy) as edited:
        source.backup(edited)
        edited.execute(statement)
    copy.chmod(0o600)
    place = ["--state", f"sqlite:{copy}", "--format", "json"]
    done = home.run(*command, *place)
    assert (done.exit, [item["code"] for item in done.json["diagnostics"]]) == (3, [code])
    for reader in READERS:
        done = home.run(*reader, *place)
        said = {item["code"] for item in json.loads(done.out).get("diagnostics", [])}
        assert (done.exit in (0, 3), "internal-error" in said) == (True, False), (reader, done)


def test_rows_that_changed_are_named_as_people_know_them(home: Home, tmp_path: Path) -> None:
    """pins.md, "Kinds": an object is written `kind/key` everywhere; the id stands beside it, for a key may be the edit."""
    (state,) = home.path.glob("state/fleetctl/eng_test/state.db")
    copy = tmp_path / "state.db"
    with sqlite3.connect(state) as source, sqlite3.connect(copy) as edited:
        source.backup(edited)
        edited.execute("UPDATE objects SET name = 'other' WHERE kind = 'pool'")
        ((pool,),) = edited.execute("SELECT id FROM objects WHERE kind = 'pool'").fetchall()
    copy.chmod(0o600)
    (found,) = home.json("drift", ".", "--state", f"sqlite:{copy}", exit=3)["diagnostics"]
    assert f"rows that changed: pool/pool-fra1-h100 ({pool}). Somebody" in found["detail"]
    with sqlite3.connect(copy) as edited:
        edited.execute("UPDATE objects SET name = 'other'")
    (found,) = home.json("drift", ".", "--state", f"sqlite:{copy}", exit=3)["diagnostics"]
    assert "and 1 more. Somebody" in found["detail"]
