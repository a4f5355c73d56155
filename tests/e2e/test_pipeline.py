"""From fleet files to a witnessed ledger, as a pipeline runs it: real processes, and a witness over HTTP."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetctl.canonical import digest_of
from tests.support.cli import FLEET, Home
from tests.support.pipelines import answer, codes, ended, lengths, serving, started, wait_until_open

SHRUNK = FLEET.replace("gpu: 32", "gpu: 4")
DANGER = "shrink-below-use:offer/pool-fra1-h100/acme"
ACCEPTED = f'{SHRUNK}accept:\n  - {{danger: "{DANGER}", reason: agreed, until: 2099-12-31}}\n'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An engine, eng_e2e, with its fleet in the working folder, and a witness that does not run."""
    found = Home(path=tmp_path)
    found.ok("init", ".", "--engine", "eng_e2e", "--no-example")
    found.write("fleet.yaml", FLEET)
    return found


@pytest.fixture
def witnessed(home: Home) -> Iterator[Home]:
    """The same with its witness running."""
    with serving(home, "witness-e2e") as url:
        yield Home(path=home.path, env={"FLEETCTL_WITNESS": url})


def use(home: Home, gpus: int) -> None:
    """Acme holds GPUs of the pool."""
    home.ok("nodes", "join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "16")
    home.ok("reservations", "create", "--tenant", "acme", "--pool", "pool-fra1-h100", "--gpus", str(gpus))


def test_plan_apply_and_drift_with_a_witness(witnessed: Home) -> None:
    home = witnessed
    answer(home, "plan", ".", "-o", "plan.json", "--detailed-exitcode", exit=2)
    applied = answer(home, "apply", "plan.json", "--require-witness")
    assert (applied["result"], applied["entry"], applied["operations"]) == ("applied", 0, 5)
    assert (applied["grade"], applied["co_located"]) == ("witnessed", False)
    assert answer(home, "plan", ".", "--detailed-exitcode")["result"] == "nothing-to-do"
    assert answer(home, "drift", ".", "--full")["result"] == "none"
    again = answer(home, "apply", "plan.json", "--require-witness")
    assert (again["result"], again["entry"]) == ("already-applied", 0)
    verified = answer(home, "ledger", "verify", "--cross-check")
    assert [ledger["grade"] for ledger in (verified, verified["journal"])] == ["witnessed", "witnessed"]
    assert lengths(home) == [0, 1]


def test_a_quota_below_use_is_refused_until_the_files_accept_it(witnessed: Home) -> None:
    """plan-apply.md, dangers: `plan` shows and exits 0, `apply` refuses with 3 what nobody accepted."""
    home = witnessed
    home.ok("apply", ".", "--yes")
    use(home, 8)
    home.write("fleet.yaml", SHRUNK)
    planned = answer(home, "plan", ".", "-o", "shrink.json")
    assert [danger["id"] for danger in planned["context"]["dangers"]] == [DANGER]
    ended(home, "plan", ".", "--fail-on-danger", exit=3)
    assert codes(answer(home, "apply", "shrink.json", exit=3)) == ["unaccepted-danger"]
    assert answer(home, "drift", ".")["pending"], "the change waits in git, nothing of it is live"

    home.write("fleet.yaml", ACCEPTED)
    ended(home, "plan", ".", "-o", "accepted.json", "--fail-on-danger")
    applied = answer(home, "apply", "accepted.json", "--require-witness")
    assert (applied["accepted"], applied["entry"], applied["grade"]) == ([DANGER], 1, "witnessed")
    assert answer(home, "drift", ".")["result"] == "none"


def test_usage_that_rises_between_plan_and_apply_makes_a_danger_of_a_harmless_shrink(home: Home) -> None:
    """plan-apply.md: apply computes dangers again with the usage of that moment."""
    home.ok("apply", ".", "--yes")
    home.write("fleet.yaml", SHRUNK)
    assert answer(home, "plan", ".", "-o", "plan.json")["context"]["dangers"] == []
    use(home, 8)
    assert codes(answer(home, "apply", "plan.json", exit=3)) == ["unaccepted-danger"]
    assert lengths(home)[1] == 1


def test_usage_that_rises_past_the_accepted_figure_is_not_accepted(home: Home) -> None:
    home.ok("apply", ".", "--yes")
    use(home, 6)
    home.write("fleet.yaml", ACCEPTED)
    home.ok("plan", ".", "-o", "plan.json")
    home.ok("reservations", "create", "--tenant", "acme", "--pool", "pool-fra1-h100", "--gpus", "2")
    assert codes(answer(home, "apply", "plan.json", exit=3)) == ["unaccepted-danger"]


def test_a_plan_whose_ground_moved_is_stale(home: Home) -> None:
    """plan-apply.md, apply step 8: each object that moved is named, and the entry that moved it."""
    home.ok("apply", ".", "--yes")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    home.ok("plan", ".", "-o", "plan.json")
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=30")
    for verb in ("check", "apply"):
        refused = answer(home, verb, "plan.json", exit=4)
        assert codes(refused) == ["stale-plan"]
        assert "offer/pool-fra1-h100/acme" in refused["diagnostics"][0]["detail"]
        assert "entry 1" in refused["diagnostics"][0]["detail"]
    assert lengths(home)[1] == 2


def test_somebody_elses_hand_is_drift(home: Home) -> None:
    home.ok("apply", ".", "--yes")
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=30")
    found = answer(home, "drift", ".", "--status-file", "drift.json", exit=2)
    (item,) = found["items"]
    assert (item["kind"], item["key"], item["field"]) == ("offer", "pool-fra1-h100/acme", "quota.gpu")
    assert (item["declared"], item["last_applied"], item["live"]) == (32, 32, 30)
    assert item["who"].startswith("local:")
    assert json.loads((home.work / "drift.json").read_text()) == found
    ended(home, "plan", ".", "--detailed-exitcode", exit=2)
    ended(home, "apply", ".", "--yes")
    assert answer(home, "drift", ".")["items"] == []


def test_an_edited_plan_is_refused(home: Home) -> None:
    planned = home.json("plan", ".", "-o", "plan.json")
    file = json.loads((home.work / "plan.json").read_text())
    file["body"]["operations"][3]["after"]["quota"]["gpu"] = 64
    home.write("edited.json", json.dumps(file))
    assert codes(answer(home, "apply", "edited.json", exit=3)) == ["plan-edited"]
    file["digest"] = digest_of(file["body"])
    home.write("forged.json", json.dumps(file))
    refused = answer(home, "apply", "forged.json", "--expect", planned["digest"], exit=3)
    assert codes(refused) == ["unexpected-plan"]
    assert lengths(home) == [0, 0]


def test_a_plan_of_another_engine_is_refused(home: Home, tmp_path: Path) -> None:
    home.ok("plan", ".", "-o", "plan.json")
    home.ok("init", "../other", "--engine", "eng_other", "--no-example")
    other = tmp_path / "other"
    assert codes(answer(home, "apply", "../work/plan.json", cwd=other, exit=3)) == ["engine-mismatch"]
    state = f"sqlite:{home.path}/state/fleetctl/eng_other/state.db"
    assert codes(answer(home, "apply", "work/plan.json", "--state", state, cwd=tmp_path, exit=3)) == ["foreign-plan"]
    assert home.json("ledger", "head", cwd=other)["heads"][1]["length"] == 0


def test_a_missing_engine_is_never_made_afresh(home: Home) -> None:
    home.ok("plan", ".", "-o", "plan.json")
    (home.path / "state" / "fleetctl" / "eng_e2e" / "state.db").rename(home.path / "moved.db")
    for arguments in (("plan", "."), ("apply", "plan.json"), ("drift", ".")):
        ended(home, *arguments, exit=3)
    assert not (home.path / "state" / "fleetctl" / "eng_e2e" / "state.db").exists()


def test_a_required_witness_that_is_away_is_5_and_is_made_up_for_later(home: Home) -> None:
    """cli.md, exit 5: applied and committed, but a required witness is missing; `ledger witness` finishes it."""
    home.ok("plan", ".", "-o", "plan.json")
    missing = answer(home, "apply", "plan.json", "--require-witness", "--status-file", "status.json", exit=5)
    assert missing["result"] == "applied" and [item["code"] for item in missing["diagnostics"]] == ["witness-missing"]
    status = json.loads((home.work / "status.json").read_text())
    assert status == missing | {"exit": 5} and (status["entry"], status["grade"]) == (0, "self-attested")
    verified = answer(home, "ledger", "verify")
    assert (verified["result"], verified["journal"]["grade"]) == ("ok", "self-attested")
    again = answer(home, "apply", "plan.json", "--require-witness", exit=5)
    assert (again["result"], again["diagnostics"][0]["code"]) == ("already-applied", "witness-missing")

    with serving(home, "witness-e2e") as url:
        assert answer(home, "ledger", "witness", "--witness", url)["grade"] == "witnessed"
    verified = answer(home, "ledger", "verify")
    assert [ledger["grade"] for ledger in (verified, verified["journal"])] == ["witnessed", "witnessed"]
    assert answer(home, "apply", "plan.json", "--require-witness")["result"] == "already-applied"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc for the moment at which to interrupt")
def test_an_interrupt_before_the_commit_leaves_nothing_done(home: Home) -> None:
    """plan-apply.md: the first interrupt before the commit stops it with nothing done, exit 130."""
    home.ok("plan", ".", "-o", "plan.json")
    state = home.path / "state" / "fleetctl" / "eng_e2e" / "state.db"
    writer = sqlite3.connect(state)
    writer.execute("BEGIN IMMEDIATE")
    with started(home, "apply", "plan.json") as process:
        wait_until_open(process, state)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    writer.close()
    assert (process.returncode, out, "Traceback" in err) == (130, "", False)
    assert err.startswith("error: interrupted: ")
    assert lengths(home) == [0, 0]
    assert answer(home, "apply", "plan.json")["result"] == "applied"


def test_an_apply_that_waits_for_another_writer_in_vain_is_4(home: Home) -> None:
    home.ok("plan", ".", "-o", "plan.json")
    writer = sqlite3.connect(home.path / "state" / "fleetctl" / "eng_e2e" / "state.db")
    writer.execute("BEGIN IMMEDIATE")
    ended(home, "plan", ".")
    ended(home, "drift", ".")
    refused = answer(home, "apply", "plan.json", "--wait", "100ms", exit=4)
    writer.close()
    assert len(codes(refused)) == 1
    assert lengths(home) == [0, 0]


def test_an_old_backup_is_refused_while_the_witness_knows_more(witnessed: Home) -> None:
    home = witnessed
    home.ok("apply", ".", "--yes", "--require-witness")
    ended(home, "state", "backup", "old.db")
    ended(home, "state", "restore", "old.db")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    home.ok("apply", ".", "--yes", "--require-witness")
    assert codes(answer(home, "state", "restore", "old.db", exit=3)) == ["state-rolled-back"]
    assert lengths(home)[1] == 2
    ended(home, "state", "backup", "new.db")
    assert answer(home, "state", "restore", "new.db")["journal_length"] == 2


def test_a_state_rolled_back_by_hand_appends_nothing(witnessed: Home) -> None:
    """plan-apply.md, apply step 4: the witness is ahead of this state, so it was rolled back."""
    home = witnessed
    home.ok("apply", ".", "--yes", "--require-witness")
    home.ok("state", "backup", "old.db")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    home.ok("apply", ".", "--yes", "--require-witness")
    folder = home.path / "state" / "fleetctl" / "eng_e2e"
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (folder / name).unlink(missing_ok=True)
    (home.work / "old.db").rename(folder / "state.db")
    assert codes(answer(home, "apply", ".", "--yes", exit=3)) == ["state-rolled-back"]
    assert lengths(home)[1] == 1


def test_the_fleet_that_init_writes_validates_applies_and_stays(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    ended(home, "init", "first-fleet")
    assert answer(home, "validate", "first-fleet")["diagnostics"] == []
    ended(home, "plan", "first-fleet", "-o", "plan.json")
    assert answer(home, "apply", "plan.json")["result"] == "applied"
    assert answer(home, "drift", "first-fleet")["result"] == "none"
    before = {path: path.read_bytes() for path in (home.work / "first-fleet").rglob("*") if path.is_file()}
    ended(home, "init", "first-fleet", exit=3)
    assert {path: path.read_bytes() for path in (home.work / "first-fleet").rglob("*") if path.is_file()} == before
