"""`doctor`: every check says what it saw, and each kind of damage fails its own check, with the code of that damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import FLEET, NOW, Home
from tests.support.pipelines import serving


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(path=tmp_path).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)
    claim = ("--entitlement", "ent-acme", "--claim", "c1", "--devices", "1", "--energy", "1MJ", "--grade", "HwShunt")
    home.ok("claims", "admit", *claim, "--now", NOW)
    return home


def folder(home: Home) -> Path:
    return home.path / "state" / "fleetctl" / "eng_test"


def failed(answer: Any) -> dict[str, str]:
    """The first code of each check that failed."""
    return {item["check"]: item["diagnostics"][0]["code"] for item in answer["checks"] if not item["ok"]}


def test_all_is_well(home: Home) -> None:
    with serving(home, "witness-test") as url:
        answer = home.json("doctor", "--witness", url)
        assert (answer["result"], failed(answer)) == ("ok", {})
        assert [item["check"] for item in answer["checks"]] == [
            "configuration",
            "place",
            "steward's key",
            "identity",
            "ledgers",
            "state",
            "tables",
            "witness witness-test",
            "rollback",
        ]
        assert "All is well: 9 checks" in home.ok("doctor", "--witness", url).out
    assert failed(home.json("doctor", exit=1)) == {"witness witness-test": "witness-unreachable"}


def edited(statement: str) -> Callable[[Home], None]:
    def damage(home: Home) -> None:
        with sqlite3.connect(folder(home) / "state.db") as state:
            assert state.execute(statement).rowcount

    return damage


def without_key(home: Home) -> None:
    (folder(home) / "steward.pem").unlink()


def key_open_to_others(home: Home) -> None:
    (folder(home) / "steward.pem").chmod(0o644)


def anothers_key(home: Home) -> None:
    home.ok("state", "copy", f"sqlite:{home.work}/copy.db", "--engine", "eng_copy", "--now", NOW)
    key = folder(home) / "steward.pem"
    key.write_bytes((folder(home).parent / "eng_copy" / "steward.pem").read_bytes())


def without_state(home: Home) -> None:
    (folder(home) / "state.db").unlink()


@pytest.mark.parametrize(
    ("damage", "check", "code", "exit"),
    [
        (edited("UPDATE objects SET name = 'other' WHERE kind = 'offer'"), "state", "state-tampered", 3),
        (edited("UPDATE authz_rows SET region = 'moon'"), "tables", "index-tampered", 3),
        (edited("UPDATE entries SET sealed = x'00' WHERE stream = 'entitlements'"), "ledgers", "ledger-tampered", 3),
        (edited("UPDATE meta SET value = 'eng_other' WHERE name = 'engine'"), "engine", "engine-mismatch", 3),
        (without_key, "steward's key", "steward-key-missing", 1),
        (key_open_to_others, "steward's key", "key-file-mode", 1),
        (anothers_key, "steward's key", "wrong-engine", 3),
        (without_state, "engine", "engine-missing", 3),
    ],
)
def test_damage_fails_its_check(home: Home, damage: Callable[[Home], None], check: str, code: str, exit: int) -> None:
    damage(home)
    found = home.json("doctor", exit=exit)
    assert failed(found)[check] == code
    assert f"{check}: {code}: " in home.run("doctor", "--width", "200").out


def test_without_an_engine_it_says_what_leads_nowhere(tmp_path: Path) -> None:
    assert failed(Home(path=tmp_path).json("doctor", exit=3)) == {"place": "engine-unnamed"}
