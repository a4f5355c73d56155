"""Rotations against a witness over HTTP, and what an auditor says of all windows who holds a bundle and two public keys."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli import FLEET, Home
from tests.support.pipelines import answer, codes, ended, serving

ENGINE, WITNESS = "eng_windows", "witness-windows"
EARLY = ("--accept", "reset-usage:ledger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the commands answered, and a bundle in the auditor's folder."""

    auditor: Path
    first: dict[str, object]
    missed: dict[str, object]
    finished: dict[str, object]
    resumed: Path


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A rotation with the witness, one without it that `ledger witness` finishes, and a verification between them."""
    home = Home(path=tmp_path_factory.mktemp("engine"))
    home.ok("init", ".", "--engine", ENGINE, "--no-example")
    home.write("fleet.yaml", FLEET)
    home.ok("apply", ".", "--yes")
    claim = ("--entitlement", "ent-acme", "--devices", "1", "--energy", "5MJ", "--grade", "HwShunt")
    with serving(home, WITNESS) as url:
        seen = Home(path=home.path, env={"FLEETCTL_WITNESS": url})
        seen.ok("settings", "set", "requiredWitnesses", "1")
        seen.ok("claims", "admit", "--claim", "c1", *claim)
        seen.ok("claims", "report", "--claim", "c1", "--units", "1", "--energy", "2MJ", "--grade", "HwShunt")
        first = answer(seen, "ledger", "rotate", "--window", "w2", "--require-witness", *EARLY)
        seen.ok("claims", "admit", "--claim", "c2", *claim)
        seen.ok("ledger", "witness")
        last = ended(seen, "ledger", "verify", "--format", "json").stdout
    missed = answer(home, "ledger", "rotate", "--window", "w3", *EARLY, exit=5)
    with serving(home, WITNESS) as url:
        seen = Home(path=home.path, env={"FLEETCTL_WITNESS": url})
        finished = answer(seen, "ledger", "witness")
        ended(seen, "ledger", "export", "--bundle", "bundle")
        ended(seen, "ledger", "export", "--stream", "entitlements", "-o", "first.cborseq")
    auditor = tmp_path_factory.mktemp("auditor")
    shutil.copytree(home.work / "bundle", auditor / "bundle")
    shutil.copy(home.work / "first.cborseq", auditor)
    state = home.path / "state" / "fleetctl"
    shutil.copy(state / ENGINE / "steward.pub.pem", auditor)
    shutil.copy(state / "witness" / WITNESS / "witness.pub.pem", auditor)
    (auditor / "last.json").write_text(last)
    return Case(auditor=auditor, first=first, missed=missed, finished=finished, resumed=auditor / "last.json")


KEYS = ("--steward-key", "steward.pub.pem", "--steward", "root-steward", "--witness-key", f"{WITNESS}=witness.pub.pem")


def auditing(told: Case, tmp_path: Path) -> Home:
    """An auditor who may do with the files as they like."""
    home = Home(path=tmp_path)
    shutil.copytree(told.auditor, home.work, dirs_exist_ok=True)
    return home


def test_a_rotation_is_witnessed_over_http(told: Case) -> None:
    assert (told.first["grade"], told.first["early"]) == ("witnessed", True)
    assert told.first["claims"] == [
        {
            "claim": "c1",
            "successor": "c1:2",
            "entitlement": "entitlement/ent-acme",
            "spent_uj": 2_000_000_000_000,
            "grade": "HwShunt",
            "reserved_uj": 3_000_000_000_000,
            "borrowed_uj": 0,
            "devices": 1,
        }
    ]


def test_a_rotation_that_no_witness_saw_is_done_says_so_and_is_finished_later(told: Case) -> None:
    opened = told.missed["opened"]
    assert isinstance(opened, dict) and opened["ledger"] == "root-steward/entitlements:w3"
    assert told.missed["grade"] != "witnessed"
    assert told.finished["grade"] == "witnessed"
    heads = told.finished["heads"]
    assert isinstance(heads, list)
    assert [(item["ledger"].partition("/")[2], item.get("closed", False)) for item in heads] == [
        ("entitlements:w3", False),
        ("journal", False),
        ("entitlements", True),
        ("entitlements:w2", True),
    ]


def test_a_bundle_has_every_window_and_each_is_witnessed(told: Case, tmp_path: Path) -> None:
    found = answer(auditing(told, tmp_path), "ledger", "verify", "bundle", *KEYS)
    assert (found["result"], found["ledger"], found["grade"]) == ("ok", "root-steward/entitlements:w3", "witnessed")
    assert [(item["ledger"].partition("/")[2], item["grade"]) for item in found["windows"]] == [
        ("entitlements", "witnessed"),
        ("entitlements:w2", "witnessed"),
    ]
    assert {item["verdict"] for part in (found, *found["windows"]) for item in part["receipts"]} <= {
        "witnessed",
        "prefix",
    }
    (usage,) = found["windows"][0]["usage"].values()
    assert (usage["spent_uj"], usage["reserved_uj"]) == (2_000_000_000_000, 0)


def test_one_window_verifies_from_a_file_and_a_key(told: Case, tmp_path: Path) -> None:
    found = answer(auditing(told, tmp_path), "ledger", "verify", "first.cborseq", "--steward-key", "steward.pub.pem")
    assert (found["result"], found["ledger"], found["length"]) == ("ok", "root-steward/entitlements", 2)


def test_the_last_verification_still_binds_what_it_saw(told: Case, tmp_path: Path) -> None:
    """It was of a window that is closed now: it must be what it was, and longer at most."""
    home = auditing(told, tmp_path)
    found = answer(home, "ledger", "verify", "bundle", *KEYS, "--resume", "last.json")
    assert found["result"] == "ok"
    assert [item.get("resumed_from") for item in (found, *found["windows"])] == [None, 2, 2]
    last = json.loads((home.work / "last.json").read_text())
    home.write("last.json", json.dumps(last | {"head": "0" * 64}))
    found = answer(home, "ledger", "verify", "bundle", *KEYS, "--resume", "last.json", exit=3)
    assert found["windows"][1]["reasons"] == ["resume-mismatch"]
    home.write("last.json", json.dumps(last | {"ledger": "root-steward/entitlements:w9", "windows": []}))
    found = answer(home, "ledger", "verify", "bundle", *KEYS, "--resume", "last.json", exit=1)
    assert codes(found) == ["bad-resume-file"]


def drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut(name: str) -> Callable[[Path], None]:
    """The last entry taken off: the file verifies by itself."""

    def edit(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: data.rindex(b"\xd2\x84")])

    return edit


def swap(one: str, other: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        held = (folder / one).read_bytes()
        (folder / one).write_bytes((folder / other).read_bytes())
        (folder / other).write_bytes(held)

    return edit


FIRST, SECOND = "windows/0000-entitlements.cborseq", "windows/0001-entitlements_w2.cborseq"


@pytest.mark.parametrize(
    "edit",
    [drop(FIRST), drop(SECOND), cut(FIRST), cut(SECOND), cut("entitlements.cborseq"), swap(FIRST, SECOND)],
    ids=["first dropped", "second dropped", "first cut", "second cut", "last cut", "swapped"],
)
def test_a_bundle_whose_windows_do_not_follow_fails(edit: Callable[[Path], None], told: Case, tmp_path: Path) -> None:
    home = auditing(told, tmp_path)
    edit(home.work / "bundle")
    found = answer(home, "ledger", "verify", "bundle", *KEYS, exit=3)
    assert (found["result"], "usage" in found) == ("failed", False)


@pytest.mark.parametrize("edit", [drop(FIRST), cut(SECOND)], ids=["dropped", "cut"])
def test_without_any_receipt_it_fails_all_the_same(edit: Callable[[Path], None], told: Case, tmp_path: Path) -> None:
    home = auditing(told, tmp_path)
    shutil.rmtree(home.work / "bundle" / "receipts")
    edit(home.work / "bundle")
    found = answer(home, "ledger", "verify", "bundle", *KEYS[:4], exit=3)
    assert set(found["reasons"]) & {"rotation-broken", "journal-disagrees"}


def test_history_tells_of_rotations_from_a_bundle_alone(told: Case, tmp_path: Path) -> None:
    keys = ("--steward-key", "steward.pub.pem", "--witness-key", f"{WITNESS}=witness.pub.pem")
    entries = answer(auditing(told, tmp_path), "history", "--bundle", "bundle", *keys)["entries"]
    moved = [(item["closed"], item["opened"], item["witnessed"]) for item in entries if item["event"] == "rotated"]
    assert moved == [
        ("root-steward/entitlements", "root-steward/entitlements:w2", True),
        ("root-steward/entitlements:w2", "root-steward/entitlements:w3", True),
    ]
