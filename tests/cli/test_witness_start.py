"""A witness starts only as the one that was made: not on lost state, not with another key, never with a steward's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from fleetctl.ledger.keyfiles import load_private_key
from tests.support.cli import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """With an engine whose own witness is made and not started."""
    return Home(path=tmp_path).with_engine()


def folder(home: Home) -> Path:
    return home.path / "state/fleetctl/witness/witness-test"


def refused(home: Home) -> str:
    """How `witness serve` ends, in a process of its own: exit 3, and what it says."""
    done = home.process("witness", "serve", "--id", "witness-test")
    assert (done.returncode, done.stdout) == (3, ""), done
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("lost", ["the file", "its content", "what init wrote", "the folder"])
def test_not_on_lost_state(home: Home, lost: str) -> None:
    """ledger.md: "refuses to start on lost state": it would sign a second history."""
    state = folder(home) / "state.db"
    if lost == "what init wrote":
        with sqlite3.connect(state) as raw:
            raw.execute("DELETE FROM meta")
    elif lost == "its content":
        for part in folder(home).glob("state.db*"):
            part.unlink()
        state.touch(mode=0o600)
    elif lost == "the file":
        for part in folder(home).glob("state.db*"):
            part.unlink()
    else:
        folder(home).rename(home.path / "elsewhere")
    assert "witness-state-missing" in refused(home)
    assert lost != "the file" or not state.exists()  # none is made


@pytest.mark.clause("pool/1 §7.15", "pool/1 §6.7")
@pytest.mark.parametrize("when", ["the steward's key", "one that another steward had"])
def test_not_with_a_stewards_key(home: Home, when: str) -> None:
    """The 32 bytes are compared, whatever the name: also of keys that were retired and stay on the roster."""
    own = load_private_key(folder(home) / "witness.pem", "witness-test").public_key
    steward = "root-steward" if when == "the steward's key" else "retired-steward"
    with sqlite3.connect(folder(home) / "state.db") as raw:
        raw.execute("INSERT INTO stewards VALUES (?, ?)", (steward, own))
    assert "witness-holds-own-key" in refused(home)


def test_not_with_the_stewards_private_key_in_its_place(home: Home) -> None:
    (key,) = home.path.glob("state/fleetctl/eng_test/steward.pem")
    own = folder(home) / "witness.pem"
    own.write_bytes(key.read_bytes())
    assert "witness-other-key" in refused(home)


def test_it_is_made_with_every_key_that_a_steward_had(home: Home, tmp_path: Path) -> None:
    (now,) = home.path.glob("state/fleetctl/eng_test/steward.pub.pem")
    other = Home(path=tmp_path / "other")
    other.path.mkdir()
    other.with_engine("eng_other")
    (before,) = other.path.glob("state/fleetctl/eng_other/steward.pub.pem")
    keys = ("--steward-key", str(now), "--steward-key", str(before))
    home.ok("witness", "init", "--id", "audit-1", *keys, "--steward", "root-steward")
    with sqlite3.connect(home.path / "state/fleetctl/witness/audit-1/state.db") as raw:
        assert raw.execute("SELECT COUNT(*) FROM stewards WHERE steward = 'root-steward'").fetchone() == (2,)
