"""What an auditor can say who holds exported files and public keys, and no engine."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli import FLEET, Home
from tests.support.pipelines import answer, codes, ended, serving

ENGINE = "eng_e2e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The auditor's home, whose working folder holds the exported files and both public keys; and the engine's."""

    engine: Home
    auditor: Home

    @property
    def keys(self) -> tuple[str, ...]:
        return ("--steward-key", "steward.pub.pem", "--steward", "root-steward")

    @property
    def all_keys(self) -> tuple[str, ...]:
        return (*self.keys, "--witness-key", "witness-e2e=witness.pub.pem")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Two applies and a claim that came and went, witnessed, then exported."""
    home = Home(path=tmp_path_factory.mktemp("engine"))
    home.ok("init", ".", "--engine", ENGINE, "--no-example")
    home.write("fleet.yaml", FLEET)
    with serving(home, "witness-e2e") as url:
        seen = Home(path=home.path, env={"FLEETCTL_WITNESS": url})
        seen.ok("apply", ".", "--yes")
        claim = ("--claim", "c1", "--energy", "5MJ", "--grade", "HwShunt")
        seen.ok("claims", "admit", "--entitlement", "ent-acme", "--devices", "8", *claim)
        seen.ok("claims", "release", *claim)
        home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
        seen.ok("apply", ".", "--yes")
        ended(seen, "ledger", "export", "--bundle", "bundle")
        ended(seen, "ledger", "export", "-o", "entitlements.cborseq")
        ended(seen, "ledger", "export", "--stream", "journal", "-o", "journal.cborseq")
    auditor = Home(path=tmp_path_factory.mktemp("auditor"))
    shutil.copytree(home.work / "bundle", auditor.work / "bundle")
    for name in ("entitlements.cborseq", "journal.cborseq"):
        shutil.copy(home.work / name, auditor.work)
    state = home.path / "state" / "fleetctl"
    shutil.copy(state / ENGINE / "steward.pub.pem", auditor.work)
    shutil.copy(state / "witness" / "witness-e2e" / "witness.pub.pem", auditor.work)
    return Case(engine=home, auditor=auditor)


def test_a_file_verifies_with_the_public_key_alone(exported: Case) -> None:
    """ledger.md, export: `ledger verify FILE --steward-key PUB` needs nothing else."""
    found = answer(exported.auditor, "ledger", "verify", "entitlements.cborseq", "--steward-key", "steward.pub.pem")
    assert (found["result"], found["ledger"], found["length"]) == ("ok", "root-steward/entitlements", 2)
    assert (found["grade"], found["first_fault"]) == ("self-attested", None)
    (usage,) = found["usage"].values()
    assert usage == {"spent_uj": 5_000_000_000_000, "reserved_uj": 0, "devices": 0, "grade": "HwShunt"}
    journal = answer(
        exported.auditor, "ledger", "verify", "journal.cborseq", *exported.keys, "--stream", "journal", "--cross-check"
    )
    assert (journal["result"], journal["ledger"], journal["length"]) == ("ok", "root-steward/journal", 2)


def test_a_bundle_verifies_in_another_folder_as_witnessed(exported: Case) -> None:
    found = answer(exported.auditor, "ledger", "verify", "bundle", *exported.all_keys)
    assert [found["grade"], found["journal"]["grade"]] == ["witnessed", "witnessed"]
    assert [found["witnessed_length"], found["journal"]["witnessed_length"]] == [2, 2]


def test_a_witness_that_the_auditor_does_not_know_raises_no_grade(exported: Case) -> None:
    found = answer(exported.auditor, "ledger", "verify", "bundle", *exported.keys)
    assert [found["result"], found["grade"], found["journal"]["grade"]] == ["ok", "self-attested", "self-attested"]


def test_history_is_answered_from_a_bundle_alone(exported: Case) -> None:
    arguments = (
        "--bundle",
        "bundle",
        "--steward-key",
        "steward.pub.pem",
        "--witness-key",
        "witness-e2e=witness.pub.pem",
    )
    entries = answer(exported.auditor, "history", "offer/pool-fra1-h100/acme", *arguments)["entries"]
    assert [entry["witnessed"] for entry in entries] == [True, True]
    own = answer(exported.engine, "history", "offer/pool-fra1-h100/acme")["entries"]
    assert [entry["plan"] for entry in entries] == [entry["plan"] for entry in own]


def test_the_last_verification_is_what_the_next_one_builds_on(exported: Case, tmp_path: Path) -> None:
    kept = tmp_path / "audit.json"
    kept.write_text(ended(exported.auditor, "ledger", "verify", "bundle", *exported.keys, "--format", "json").stdout)
    again = answer(exported.auditor, "ledger", "verify", "bundle", *exported.keys, "--resume", str(kept))
    assert (again["result"], again["resumed_from"]) == ("ok", 2)

    longer = json.loads(kept.read_text()) | {"length": 3}
    kept.write_text(json.dumps(longer))
    found = answer(exported.auditor, "ledger", "verify", "bundle", *exported.keys, "--resume", str(kept), exit=3)
    assert found["result"] == "failed"


def test_a_changed_byte_is_refused(exported: Case, tmp_path: Path) -> None:
    data = bytearray((exported.auditor.work / "entitlements.cborseq").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "changed.cborseq").write_bytes(data)
    found = answer(exported.auditor, "ledger", "verify", str(tmp_path / "changed.cborseq"), *exported.keys, exit=3)
    assert (found["result"], "usage" in found) == ("failed", False)
    assert found["first_fault"]["index"] in (0, 1)


def test_a_tail_that_was_cut_off_is_seen_by_whoever_was_shown_it(exported: Case, tmp_path: Path) -> None:
    """ledger.md, receipts: `ahead` is what a rollback looks like; without receipts `--min-length` is the guard."""
    cut = tmp_path / "bundle"
    shutil.copytree(exported.auditor.work / "bundle", cut)
    data = (cut / "entitlements.cborseq").read_bytes()
    first = data.index(b"\xd2\x84", 1)  # the next entry: tag 18 over an array of four
    (cut / "entitlements.cborseq").write_bytes(data[:first])
    found = answer(exported.auditor, "ledger", "verify", str(cut), *exported.all_keys, exit=3)
    assert {"ahead"} <= {receipt["verdict"] for receipt in found["receipts"]}
    file = str(cut / "entitlements.cborseq")
    assert answer(exported.auditor, "ledger", "verify", file, *exported.keys)["length"] == 1
    short = answer(exported.auditor, "ledger", "verify", file, *exported.keys, "--min-length", "2", exit=3)
    assert "below-min-length" in short["reasons"]


def test_another_key_opens_nothing(exported: Case) -> None:
    wrong = ("--steward-key", "witness.pub.pem", "--steward", "root-steward")
    found = answer(exported.auditor, "ledger", "verify", "entitlements.cborseq", *wrong, exit=3)
    assert found["first_fault"] == {"index": 0, "axis": "authenticity", "code": "bad-signature"}
    missing = answer(exported.auditor, "ledger", "verify", "entitlements.cborseq", "--steward-key", "none.pem", exit=1)
    assert len(codes(missing)) == 1
