"""Rotations edited in the database, by somebody without the steward's key and by somebody with it: what each command says.

The rows of a closed window are looked at where they end by every `drift`, in full by `drift --full`, `doctor` and `ledger verify`;
a claim or an apply rests on the window in force alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetctl.engine import claims, drifting, health, rebuild, reports, rotating
from fleetctl.engine.context import Engine
from fleetctl.engine.ledgers import audit_engine
from fleetctl.engine.planning import Source
from fleetctl.errors import FleetctlError
from fleetctl.ledger.chain import Head, genesis, seal
from fleetctl.ledger.entries import Event, Rotated
from fleetctl.ledger.identifiers import ledger_id
from fleetctl.pool1.grade import Grade
from tests.support import engines as te
from tests.support.ledgers import AT_MS, admitted, applied, released, seal_all

OLD, NEW = "entitlements", "entitlements:w2"
GUARDS = ("drift", "full", "doctor", "verify")
ALL = (*GUARDS, "admit")


@pytest.fixture(scope="module")
def ground(memory: Path) -> Path:
    """A rotation with two claims that went on, one of them with a report, and nothing after it."""
    engine = te.new_engine(memory / "ground")
    te.applied(engine, te.one_pool())
    for claim in ("c1", "gone", "c2"):
        admit(engine, claim)
    claims.release(engine, claim="gone")
    reports.report(engine, claim="c1", completed_units=1, spent_uj=15, grade=Grade.HW_SHUNT)
    rotating.rotate(engine, window="w2", accept=["reset-usage:ledger"])
    engine.store.close()
    return memory / "ground"


def admit(engine: Engine, claim: str) -> claims.Admission:
    return claims.admit(
        engine,
        claim=claim,
        entitlement="ent",
        gang_size=1,
        devices_per_member=1,
        estimate_uj=40,
        grade=Grade.HW_SHUNT,
    )


def said(work: Callable[[], object]) -> str:
    try:
        return str(work())
    except FleetctlError as error:
        return error.code


def outcomes(folder: Path) -> dict[str, str]:
    """What each command says of the state."""
    engine = te.open_engine(folder)
    looked = {
        "drift": said(lambda: drifting.drift_fleet(engine, te.one_pool(), Source()).result),
        "full": said(lambda: drifting.drift_fleet(engine, te.one_pool(), Source(), full=True).result),
        "doctor": "ok" if all(item.ok for item in health.examine(engine)) else "failed",
        "verify": said(lambda: "ok" if audit_engine(engine).ok else "failed"),
        "admit": said(lambda: admit(engine, "c3").verdict.outcome.value),
    }
    engine.store.close()
    return looked


HONEST = {"drift": "none", "full": "none", "doctor": "ok", "verify": "ok", "admit": "Admit"}


def test_the_ground_is_sound(ground: Path, tmp_path: Path) -> None:
    assert outcomes(te.copied(ground, tmp_path / "copy")) == HONEST


# ------------------------------------------------------------------------------------------------------- edits


def sql(*statements: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        for statement in statements:
            assert te.edit(folder, statement) > 0, statement

    return edit


def append(stream: str, *events: Event, move_head: bool = False) -> Callable[[Path], None]:
    """Entries sealed with the steward's own key, behind the last one."""

    def edit(folder: Path) -> None:
        engine = te.open_engine(folder)
        with engine.store.read() as reader:
            found = reader.stream(stream)
        engine.store.close()
        assert found is not None
        head = Head(ledger=ledger_id(te.STEWARD.kid, stream), length=found.length, address=found.head)
        for event in events:
            sealed = seal(event, head, te.STEWARD)
            te.edit(folder, "INSERT INTO entries VALUES (?, ?, ?)", (stream, sealed.seq, sealed.data))
            head = sealed.head
        if move_head:
            te.edit(
                folder,
                "UPDATE streams SET length = ?, head = ? WHERE stream = ?",
                (head.length, head.address, stream),
            )

    return edit


def rewrite(stream: str, *events: Event) -> Callable[[Path], None]:
    """Another stream in its place, sealed with the steward's own key."""

    def edit(folder: Path) -> None:
        ledger = ledger_id(te.STEWARD.kid, stream)
        te.edit(folder, "DELETE FROM entries WHERE stream = ?", (stream,))
        te.edit(folder, "DELETE FROM claims WHERE stream = ?", (stream,))
        sealed = seal_all(events, ledger=ledger)
        for item in sealed:
            te.edit(folder, "INSERT INTO entries VALUES (?, ?, ?)", (stream, item.seq, item.data))
        head = sealed[-1].address if sealed else genesis(ledger)
        te.edit(folder, "UPDATE streams SET length = ?, head = ? WHERE stream = ?", (len(sealed), head, stream))

    return edit


def reseal_rotation(**changes: Any) -> Callable[[Path], None]:
    """The journal's last entry told otherwise, sealed with the steward's own key."""

    def edit(folder: Path) -> None:
        engine = te.open_engine(folder)
        events = te.journal(engine)
        engine.store.close()
        last = events[-1]
        assert isinstance(last, Rotated)
        journal = seal_all([*events[:-1], replace(last, **changes)], ledger=ledger_id(te.STEWARD.kid, "journal"))
        te.edit(folder, "DELETE FROM entries WHERE stream = 'journal' AND seq = ?", (len(journal) - 1,))
        te.edit(folder, "INSERT INTO entries VALUES ('journal', ?, ?)", (len(journal) - 1, journal[-1].data))
        te.edit(folder, "UPDATE streams SET head = ? WHERE stream = 'journal'", (journal[-1].address,))

    return edit


ENT = te.ENT
C1_2 = admitted("c1:2", entitlement=ENT, workload_class=None, reserved_uj=25, devices=1, grade="HwShunt", at_ms=AT_MS)
C2_2 = admitted("c2:2", entitlement=ENT, workload_class=None, reserved_uj=40, devices=1, grade="HwShunt", at_ms=AT_MS)

EDITS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "the closed window cut": (
        sql("DELETE FROM entries WHERE stream = 'entitlements' AND seq = 5"),
        GUARDS,
    ),
    "the closed window cut, with its row": (
        rewrite(OLD, *(replace(C2_2, claim=claim) for claim in ("c1", "gone", "c2"))),
        GUARDS,
    ),
    "an entry behind the closed window": (
        append(OLD, released("c1", spent_uj=0)),
        GUARDS,
    ),
    "an entry behind the closed window, with its row": (
        append(OLD, admitted("late", entitlement=ENT), move_head=True),
        GUARDS,
    ),
    "the closed window open again": (
        sql("UPDATE streams SET closed = 0 WHERE stream = 'entitlements'"),
        ("drift", "full", "doctor"),
    ),
    "all entries of the closed window gone": (
        sql("DELETE FROM entries WHERE stream = 'entitlements'"),
        GUARDS,
    ),
    "an early entry of the closed window edited": (
        sql("UPDATE entries SET sealed = zeroblob(300) WHERE stream = 'entitlements' AND seq = 1"),
        ("full", "doctor", "verify"),
    ),
    "the index of the closed window's claims edited": (
        sql("UPDATE claims SET released_at = NULL WHERE stream = 'entitlements' AND claim = 'c1'"),
        ("full", "doctor"),
    ),
    "the new window cut": (
        sql(
            "DELETE FROM entries WHERE stream = 'entitlements:w2'",
            f"UPDATE streams SET length = 0, head = x'{te.genesis_of(NEW).hex()}' WHERE stream = 'entitlements:w2'",
        ),
        ALL,
    ),
    "a claim left out of the new window": (
        rewrite(NEW, C2_2),
        ALL,
    ),
    "another claim in its place": (
        rewrite(NEW, admitted("x", entitlement=ENT), C2_2),
        ("full", "doctor", "verify"),
    ),
    "too little left of a claim": (
        rewrite(NEW, replace(C1_2, reserved_uj=1), C2_2),
        ("full", "doctor", "verify"),
    ),
    "the old window in force again": (
        sql("UPDATE meta SET value = 'entitlements' WHERE name = 'entitlement_stream'"),
        ALL,
    ),
    "another window in force": (
        sql("UPDATE meta SET value = 'entitlements:w9' WHERE name = 'entitlement_stream'"),
        ALL,
    ),
    "a rotation that leads elsewhere": (
        reseal_rotation(to_ledger=ledger_id(te.STEWARD.kid, "entitlements:w9")),
        ALL,
    ),
    "a rotation that closed it sooner": (
        reseal_rotation(from_length=4, from_head=b"\x01" * 32),
        ("drift", "full", "doctor", "verify"),
    ),
    "a rotation that closed another ledger": (
        reseal_rotation(from_ledger=ledger_id(te.STEWARD.kid, "entitlements:w7")),
        GUARDS,
    ),
    "a rotation that had no open claims": (
        reseal_rotation(ledger_length=6),
        ("full", "doctor", "verify"),
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_rotation_is_found(name: str, ground: Path, tmp_path: Path) -> None:
    edit, expected = EDITS[name]
    folder = te.copied(ground, tmp_path / "copy")
    edit(folder)
    looked = outcomes(folder)
    found = {word for word, answer in looked.items() if answer != HONEST[word]}
    assert set(expected) <= found, looked
    assert not any("internal" in answer for answer in looked.values())


def test_what_is_edited_in_tables_is_mended_by_a_rebuild(ground: Path, tmp_path: Path) -> None:
    folder = te.copied(ground, tmp_path / "copy")
    EDITS["the index of the closed window's claims edited"][0](folder)
    engine = te.open_engine(folder)
    rebuild.rebuild(engine)
    engine.store.close()
    assert outcomes(folder) == HONEST


def test_entries_after_the_rotation_pin_what_it_carried(ground: Path, tmp_path: Path) -> None:
    """An apply after it says that the new window was empty: the claims that went on were not there (step 6)."""
    folder = te.copied(ground, tmp_path / "copy")
    new = ledger_id(te.STEWARD.kid, NEW)
    append("journal", applied(9, pins=Head(ledger=new, length=0, address=genesis(new))), move_head=True)(folder)
    report = audit_engine(te.open_engine(folder))
    assert "rotation-broken" in [item.code for item in report.reasons]
