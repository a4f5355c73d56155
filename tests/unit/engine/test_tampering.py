"""The database edited between plan and apply: refused, or what is sealed is byte for byte what would have been sealed anyway.

issue: "Tampering between plan and apply, for each of: fleet file, plan file, database, ledger rows, settings, keys. A
database row edited by hand is `tampered`, and an apply refuses to seal it."
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetctl.engine import rebuild
from fleetctl.engine.apply import apply_plan
from fleetctl.engine.drifting import drift_fleet
from fleetctl.engine.journal import keep_document, write_journal
from fleetctl.engine.planning import Source
from fleetctl.engine.state import check_state, digests_of, load_objects
from fleetctl.errors import FleetctlError, SafetyRefused, Stale
from fleetctl.ledger.entries import Reported
from tests.support import engines as te
from tests.support import tampering
from tests.support.ledgers import signer

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "cases" / "tampering" / "database.json").read_text(encoding="utf-8")
)
EDITS = [
    pytest.param(name, statements, case["expected"], id=name)
    for case in CASES
    for name, statements in case["edits"].items()
]


class Ground:
    """One state, copied for each command; what every command makes of it while nothing is edited."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = tampering.build(folder / "ground")
        self.commands = tampering.commands(self.plan)
        self.copies = 0
        self.honest = {name: tampering.outcome(self.copy(), command) for name, command in self.commands.items()}

    def copy(self) -> Path:
        self.copies += 1
        return te.copied(self.folder / "ground", self.folder / str(self.copies))


@pytest.fixture(scope="module")
def ground(memory: Path) -> Ground:
    return Ground(memory)


def test_the_ground_is_sound(ground: Ground) -> None:
    assert {name: said for name, (said, _) in ground.honest.items() if name != "plan"} == {
        "apply": "applied",
        "call": "4",
        "admit": "Admit",
        "admit again": "duplicate-claim",
        "release": "7",
        "reserve": "active",
        "seal": "4",
        "drift": "none",
        "full": "none",
    }
    assert "state-tampered" not in ground.honest["plan"][0]


@pytest.mark.parametrize(("name", "statements", "expected"), EDITS)
def test_an_edit_is_refused_or_changes_nothing_that_is_sealed(
    ground: Ground, name: str, statements: list[str], expected: dict[str, str]
) -> None:
    found = {}
    for word, command in ground.commands.items():
        folder = ground.copy()
        tampering.edit(folder, statements, ground.plan)
        before = te.dump(folder)
        said, sealed = tampering.outcome(folder, command)
        if (said, sealed) == ground.honest[word]:
            found[word] = "same"
            continue
        found[word] = _named(word, said)
        if found[word] != "Admit":
            assert te.dump(folder) == before, f"{word} was refused and has changed something"
    assert found == {word: expected.get(word, expected.get("*", "same")) for word in ground.commands}


def _named(word: str, said: str) -> str:
    """A plan is named by its warning, or by being another one."""
    if word != "plan" or " " not in said:
        return said
    return "warns state-tampered" if "state-tampered" in said else "another plan"


@pytest.mark.parametrize(("name", "statements", "expected"), EDITS)
def test_rebuilding_mends_what_is_an_index_and_nothing_else(
    ground: Ground, name: str, statements: list[str], expected: dict[str, str]
) -> None:
    """Tables of objects, quotas, tombstones, claims and the journal's indexes come out as they were; ledgers, documents and identity are no index."""
    folder = ground.copy()
    tampering.edit(folder, statements, ground.plan)
    engine = tampering.opened(folder)
    try:
        rebuild.rebuild(engine)
    except SafetyRefused:
        assert name.startswith(("journal", "usage", "document", "meta"))
        return
    finally:
        engine.store.close()
    if name.startswith(
        ("object", "settings", "entitlement", "quota", "tombstone", "authz", "fleet", "applied", "claim")
    ):
        whole = te.dump(ground.folder / "ground")
        del whole["checkpoints"]
        mended = te.dump(folder)
        assert mended.pop("checkpoints") == []
        assert mended == whole


# ------------------------------------------------------------------------------------------- the first state alone

EMPTY_EDITS = {
    "statement": "UPDATE meta SET value = flip(value, 60) WHERE name = 'initial_state'",
    "no hex": "UPDATE meta SET value = 'zz' WHERE name = 'initial_state'",
    "no statement": "DELETE FROM meta WHERE name = 'initial_state'",
    "settings": "UPDATE objects SET version = 2 WHERE kind = 'settings'",
    "no settings": "DELETE FROM objects",
    "head": "UPDATE streams SET head = zeroblob(32) WHERE stream = 'journal'",
    "usage head": "UPDATE streams SET head = zeroblob(32) WHERE stream = 'entitlements'",
    "usage stream": "UPDATE meta SET value = 'other' WHERE name = 'entitlement_stream'",
}


@pytest.mark.parametrize("name", EMPTY_EDITS)
def test_with_an_empty_journal_the_sealed_first_state_stands_in(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    data = te.planned(engine, te.one_pool())
    engine.store.close()
    tampering.edit(folder, [EMPTY_EDITS[name]], data)
    before = te.dump(folder)
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(te.open_engine(folder), data)
    assert caught.value.exit_code == 3
    assert te.dump(folder) == before


def test_a_second_journal_does_not_set_the_engine_back_to_its_first_state(tmp_path: Path) -> None:
    """Everything as `init` left it, and a journal of another name with nothing in it: no witness was ever asked about that one."""
    folder = tmp_path / "engine"
    engine = te.new_engine(folder)
    first = te.dump(
        folder, ["objects", "quotas", "tombstones", "authz_rows", "fleets", "applied_plans", "journal_objects"]
    )
    te.applied(engine, te.one_pool())
    engine.store.close()
    te.restore_rows(folder, first)
    te.edit(
        folder,
        "INSERT INTO streams VALUES ('journal:2', 'root-steward/journal:2', 0, ?, 0)",
        [te.genesis_of("journal:2")],
    )
    te.edit(folder, "UPDATE meta SET value = 'journal:2' WHERE name = 'journal_stream'")
    for command in (lambda engine: te.applied(engine, te.one_pool(8)), te.check_whole):
        with pytest.raises(SafetyRefused) as caught:
            command(te.open_engine(folder))
        assert caught.value.code == "ledger-tampered"


def test_an_entry_that_begins_where_the_one_before_did_not_end_is_found_by_the_fold(tmp_path: Path) -> None:
    """Only the steward's own key can make one; full verification still says so."""
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.one_pool())
    with engine.store.write(0) as tx:
        after = check_state(engine, tx, digests_of(load_objects(tx)))
        digest = keep_document(tx, b"{}")
        write_journal(
            engine, tx, Reported, state_before=bytes(32), state_after=after, report=bytes.fromhex(digest), result="none"
        )
    found = drift_fleet(engine, te.one_pool(), Source(), full=True)
    assert [item.code.name for item in found.tampered] == ["replay-differs"]
    assert drift_fleet(engine, te.one_pool(), Source()).result == "none"


def test_a_first_state_of_another_steward_is_refused(tmp_path: Path) -> None:
    """A whole database put in the place of the first one, by somebody without the steward's key."""
    other = signer("root-steward", "somebody else")
    folder = tmp_path / "engine"
    foreign = te.new_engine(folder, signer=other, steward_key=other.public_key)
    data = te.planned(foreign, te.one_pool())
    foreign.store.close()
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(te.open_engine(folder), data)
    assert caught.value.code == "initial-state-unverified"


# --------------------------------------------------------------------------------------------- plans already applied


def test_an_old_plan_is_not_applied_again_even_when_nothing_says_that_it_was(ground: Ground) -> None:
    folder = ground.copy()
    engine = tampering.opened(folder)
    assert apply_plan(engine, ground.plan).result == "applied"
    engine.store.close()
    tampering.edit(folder, ["DELETE FROM applied_plans"], ground.plan)
    with pytest.raises(Stale):
        apply_plan(tampering.opened(folder), ground.plan)


def test_a_claim_let_in_twice_stops_the_next_checkpoint(ground: Ground) -> None:
    """The fold holds the digest of every claim id: an index that lost one is never sealed over."""
    folder = ground.copy()
    tampering.edit(folder, ["DELETE FROM claims WHERE claim = 'early-0'"], ground.plan)
    engine = tampering.opened(folder)
    codes = [_code(lambda claim=claim: tampering.admit(engine, claim)) for claim in ("early-0", "c1", "c2", "c3")]  # type: ignore[misc]  # defaults bind the loop's values
    assert codes == ["Admit", "ledger-tampered", "ledger-tampered", "ledger-tampered"]
    assert te.lengths(engine)[1] == 8


def _code(work: Callable[[], str]) -> str:
    try:
        return work()
    except FleetctlError as error:
        return error.code


# -------------------------------------------------------------------------------------------------------- entries


@pytest.mark.parametrize("stream", ["journal", "entitlements"])
def test_every_byte_of_the_last_entries_counts(ground: Ground, stream: str) -> None:
    """A bit flipped anywhere in an entry that everything rests on, and nothing is applied."""
    folder = ground.copy()
    (sealed,) = [row[2] for row in te.dump(folder, ["entries"])["entries"] if row[0] == stream][-1:]
    for at in range(0, len(sealed), 7):
        tampering.edit(folder, [_flip(stream, at)], ground.plan)
        engine = tampering.opened(folder)
        with pytest.raises(SafetyRefused):
            apply_plan(engine, ground.plan)
        engine.store.close()
        tampering.edit(folder, [_flip(stream, at)], ground.plan)  # and back


def _flip(stream: str, at: int) -> str:
    last = f"(SELECT MAX(seq) FROM entries WHERE stream = '{stream}')"
    return f"UPDATE entries SET sealed = flip(sealed, {at}) WHERE stream = '{stream}' AND seq = {last}"
