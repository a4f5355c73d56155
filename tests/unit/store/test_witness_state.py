"""What a witness remembers: made once, never forgotten, never its own steward's."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.errors import BadInput, FleetctlError, SafetyRefused, Tampered
from fleetctl.ledger.keys import PublicKey, SeedSigner
from fleetctl.ledger.witness import Known
from fleetctl.store.sqlite import SqliteStore
from fleetctl.store.witness_state import MAX_EVIDENCE, SqliteWitnessState
from tests.support.witnesses import LEDGER, OTHER, STEWARD, WITNESS, init_state, open_state


def known(length: int, head: bytes = b"h" * 32, at_ms: int = 5) -> Known:
    return Known(length=length, head=head, receipt=b"receipt %d" % length, at_ms=at_ms, key=STEWARD.public_key)


def edit(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(statement)


def refusal(folder: Path, witness: str = "w1", own_key: PublicKey = WITNESS.public_key) -> FleetctlError:
    with pytest.raises(FleetctlError) as caught:
        SqliteWitnessState.open(folder / "state.db", witness=witness, own_key=own_key)
    return caught.value


def test_its_roster_and_its_file(tmp_path: Path) -> None:
    init_state(tmp_path / "w")
    state = open_state(tmp_path / "w")
    assert state.stewards == {"root-steward": [STEWARD.public_key], "other-steward": [OTHER.public_key]}
    assert (tmp_path / "w").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "w" / "state.db").stat().st_mode & 0o777 == 0o600
    newer = SeedSigner("other-steward", b"n" * 32).public_key
    state.add_steward("other-steward", newer, own_key=WITNESS.public_key)
    state.close()
    state = open_state(tmp_path / "w")
    assert sorted(state.stewards["other-steward"]) == sorted([OTHER.public_key, newer])
    state.close()


def test_a_lost_state_is_refused_and_not_made_anew(tmp_path: Path) -> None:
    """ledger.md: starts only from an explicit `init`, refuses to start on lost state."""
    error = refusal(tmp_path)
    assert (error.code, error.exit_code) == ("witness-state-missing", 3)
    assert list(tmp_path.iterdir()) == []

    init_state(tmp_path)
    edit(tmp_path / "state.db", "DELETE FROM meta")
    assert refusal(tmp_path).code == "witness-state-missing"
    (tmp_path / "state.db").write_bytes(b"")
    assert refusal(tmp_path).code == "witness-state-missing"
    (tmp_path / "state.db").unlink()
    SqliteStore.create(tmp_path / "state.db").close()
    assert refusal(tmp_path).code == "state-foreign"


def test_a_state_in_use_is_not_initialised_again(tmp_path: Path) -> None:
    init_state(tmp_path)
    state = open_state(tmp_path)
    assert state.move(LEDGER, None, known(3))
    with pytest.raises(SafetyRefused, match="witness-exists"):
        init_state(tmp_path)
    assert state.known(LEDGER) == known(3)
    state.close()


def test_an_initialisation_cut_short_can_be_done_again(tmp_path: Path) -> None:
    from fleetctl.store.sqlite_db import Database
    from fleetctl.store.witness_state import WITNESS_FORM

    Database.create(str(tmp_path / "state.db"), WITNESS_FORM).close()
    assert refusal(tmp_path).code == "witness-state-missing"
    init_state(tmp_path)
    open_state(tmp_path).close()


def test_it_belongs_to_one_witness_with_one_key(tmp_path: Path) -> None:
    init_state(tmp_path)
    for error in (refusal(tmp_path, witness="w2"), refusal(tmp_path, own_key=OTHER.public_key)):
        assert (error.code, error.exit_code) == ("witness-other-key", 3)
        assert "w1" in error.diagnostics[0].detail


@pytest.mark.clause("pool/1 §7.15", "pool/1 §6.7")
def test_its_own_key_is_never_a_stewards(tmp_path: Path) -> None:
    """ledger-attacks F 101: compare the 32 bytes, whatever the kid says."""
    roster = {"root-steward": [STEWARD.public_key, WITNESS.public_key]}
    with pytest.raises(SafetyRefused, match="witness-holds-own-key"):
        SqliteWitnessState.init(tmp_path / "state.db", witness="w1", own_key=WITNESS.public_key, stewards=roster)
    assert list(tmp_path.iterdir()) == []
    init_state(tmp_path)
    state = open_state(tmp_path)
    with pytest.raises(SafetyRefused, match="witness-holds-own-key"):
        state.add_steward("another", WITNESS.public_key, own_key=WITNESS.public_key)
    state.close()
    edit(
        tmp_path / "state.db", f"UPDATE stewards SET public_key = x'{WITNESS.public_key.hex()}' WHERE steward LIKE 'r%'"
    )
    assert refusal(tmp_path).code == "witness-holds-own-key"


@pytest.mark.parametrize("name", ["", "a b", "w" * 200, "é"])
def test_names_are_identifiers(tmp_path: Path, name: str) -> None:
    key = STEWARD.public_key
    with pytest.raises(BadInput, match="bad-ledger-identifier"):
        SqliteWitnessState.init(tmp_path / "s.db", witness=name, own_key=WITNESS.public_key, stewards={"s": [key]})
    with pytest.raises(BadInput, match="bad-ledger-identifier"):
        SqliteWitnessState.init(tmp_path / "s.db", witness="w", own_key=WITNESS.public_key, stewards={name: [key]})
    assert list(tmp_path.iterdir()) == []


def test_the_head_moves_by_compare_and_set(tmp_path: Path) -> None:
    init_state(tmp_path)
    state = open_state(tmp_path)
    assert state.known(LEDGER) is None
    assert not state.move(LEDGER, known(1), known(2))
    assert state.move(LEDGER, None, known(1))
    assert not state.move(LEDGER, None, known(2))
    stale = [known(2), known(1, head=b"x" * 32), known(1, at_ms=4)]
    assert not any(state.move(LEDGER, before, known(3)) for before in stale)
    assert state.known(LEDGER) == known(1)
    assert state.move(LEDGER, known(1), known(3, at_ms=6))
    assert state.known(LEDGER) == known(3, at_ms=6)
    assert state.known("root-steward/journal") is None
    state.close()


def test_a_head_that_moved_survives_a_kill(tmp_path: Path) -> None:
    init_state(tmp_path)
    child = os.fork()
    if child == 0:
        try:
            open_state(tmp_path).move(LEDGER, None, known(3))
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    state = open_state(tmp_path)
    assert state.known(LEDGER) == known(3)
    state.close()


def test_evidence_is_kept_once_and_within_bounds(tmp_path: Path) -> None:
    init_state(tmp_path)
    state = open_state(tmp_path)
    for number in range(MAX_EVIDENCE + 10):
        for _ in range(2):
            state.keep_evidence(LEDGER, b"proof %d" % number, at_ms=number)
    state.keep_evidence("root-steward/journal", b"proof", at_ms=1)
    assert state.evidence(LEDGER) == [(number, b"proof %d" % number) for number in range(MAX_EVIDENCE)]
    assert state.evidence("root-steward/journal") == [(1, b"proof")]
    state.close()


def test_a_key_that_was_edited(tmp_path: Path) -> None:
    init_state(tmp_path)
    state = open_state(tmp_path)
    assert state.move(LEDGER, None, replace(known(1)))
    edit(tmp_path / "state.db", "UPDATE heads SET public_key = zeroblob(32)")
    with pytest.raises(Tampered, match="row-unreadable"):
        state.known(LEDGER)
    state.close()
    edit(tmp_path / "state.db", "UPDATE stewards SET public_key = x'00'")
    assert refusal(tmp_path).code == "row-unreadable"


def test_entries_are_kept_with_the_head_that_they_led_to(tmp_path: Path) -> None:
    init_state(tmp_path)
    state = open_state(tmp_path)
    assert state.move(LEDGER, None, known(2), entries=[b"0", b"1"])
    assert not state.move(LEDGER, None, known(3), entries=[b"x", b"y", b"z"])
    assert state.move(LEDGER, known(2), known(4), start=2, entries=[b"2", b"3"])
    assert state.entries(LEDGER, 0, 10) == [b"0", b"1", b"2", b"3"]
    assert state.entries(LEDGER, 1, 2) == [b"1", b"2"]
    assert state.entries(LEDGER, 4, 10) == state.entries("root-steward/journal", 0, 10) == []
    state.close()
    edit(tmp_path / "state.db", "DELETE FROM entries WHERE seq = 2")
    state = open_state(tmp_path)
    assert state.entries(LEDGER, 1, 10) == [b"1"]  # never across a gap
    assert state.entries(LEDGER, 2, 10) == []
    state.close()


def test_a_state_of_an_earlier_version_is_taken_over_with_what_it_knows(tmp_path: Path) -> None:
    """It kept no entries; what it is shown from now on it keeps."""
    init_state(tmp_path)
    state = open_state(tmp_path)
    assert state.move(LEDGER, None, known(2))
    state.close()
    edit(tmp_path / "state.db", "DROP TABLE entries")
    edit(tmp_path / "state.db", "PRAGMA user_version = 1")
    state = open_state(tmp_path)
    assert state.known(LEDGER) == known(2)
    assert state.move(LEDGER, known(2), known(3), start=2, entries=[b"2"])
    assert (state.entries(LEDGER, 0, 10), state.entries(LEDGER, 2, 10)) == ([], [b"2"])
    state.close()
