"""The main job by the command line alone: init, validate, plan, show, check, apply, drift, history, ledgers; exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home

SHRUNK = FLEET.replace("gpu: 32", "gpu: 4")
DANGER = "shrink-below-use:offer/pool-fra1-h100/acme"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(path=tmp_path).with_engine(fleet=FLEET)


@pytest.fixture
def used(home: Home) -> Home:
    """Applied, with 16 GPUs in use."""
    home.ok("apply", ".", "--yes", "--now", NOW)
    home.ok("nodes", "join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "32", "--now", NOW)
    home.ok("reservations", "create", "--tenant", "acme", "--pool", "pool-fra1-h100", "--gpus", "16", "--now", NOW)
    return home


def test_from_plan_to_history(home: Home) -> None:
    planned = home.json("plan", ".", "-o", "plan.json")
    assert planned["result"] == "planned"
    assert (home.work / "plan.json").stat().st_mode & 0o777 == 0o600
    assert json.loads((home.work / "plan.json").read_text()) == {k: v for k, v in planned.items() if k != "result"}
    assert home.json("show", "plan.json") == planned
    assert home.json("check", "plan.json") == {
        "result": "applicable",
        "plan": planned["digest"],
        "operations": 5,
    }
    applied = home.json("apply", "plan.json", "--now", NOW)
    assert (applied["result"], applied["entry"], applied["grade"]) == ("applied", 0, "self-attested")
    again = home.json("apply", "plan.json", "--now", NOW)
    assert (again["result"], again["entry"]) == ("already-applied", 0)
    assert home.json("check", "plan.json")["result"] == "already-applied"
    assert home.json("plan", ".")["result"] == "nothing-to-do"
    drift = home.json("drift", ".")
    assert (drift["result"], drift["items"], drift["pending"], drift["ignored"]) == ("none", [], [], [])
    (entry,) = home.json("history", "offer/pool-fra1-h100/acme")["entries"]
    assert (entry["plan"], entry["at"], entry["witnessed"]) == (planned["digest"], "2026-12-01T12:00:00.000Z", False)
    assert home.json("ledger", "verify")["result"] == "ok"


def test_a_plan_printed_as_json_is_a_plan_that_apply_takes(home: Home) -> None:
    """pins: `plan --format json` adds `result`, which apply tolerates."""
    home.write("printed.json", home.ok("plan", ".", "--format", "json").out)
    assert home.json("apply", "printed.json", "--now", NOW)["result"] == "applied"


def test_nothing_to_do_appends_nothing(home: Home) -> None:
    """pins: apply appends nothing, exit 0, `entry: null`."""
    home.ok("apply", ".", "--yes", "--now", NOW)
    again = home.json("apply", ".", "--yes", "--now", NOW)
    assert (again["result"], again["entry"], again["operations"]) == ("nothing-to-do", None, 0)
    assert home.json("ledger", "head")["heads"][1]["length"] == 1


@pytest.mark.parametrize(
    ("arguments", "exit"),
    [
        (("plan", "."), 0),
        (("plan", ".", "--detailed-exitcode"), 2),
        (("plan", "missing"), 3),
        (("apply", "missing", "--yes"), 3),  # pins: a missing path, for apply as for plan
        (("apply", "missing.json", "--yes"), 1),  # no fleet by its name: a plan that cannot be read
        (("apply", "missing.yaml", "--yes"), 3),
        (("drift", "missing"), 3),
        (("validate", "missing"), 1),
        (("apply", "."), 64),
        (("apply", ".", "--yes", "--expect", "0" * 64), 3),
        (("apply", ".", "--yes", "--expect", "abc"), 64),
        (("plan", ".", "--state", "postgresql://db/fleet"), 1),
        (("plan", ".", "--state", "https://fleet.example"), 1),
        (("plan", ".", "--state", "sqlite:nowhere.db"), 3),
    ],
)
def test_exit_codes(home: Home, arguments: tuple[str, ...], exit: int) -> None:
    done = home.run(*arguments)
    assert (done.exit, done.error) == (exit, None), done


def test_a_danger_is_shown_refused_and_accepted(used: Home) -> None:
    used.write("fleet.yaml", SHRUNK)
    shown = used.ok("plan", ".", "-o", "plan.json")
    assert "1 danger, 1 not accepted" in shown.out
    assert shown.out.index("Dangers") < shown.out.index("Impact") < shown.out.index("Operations")
    assert used.run("plan", ".", "--fail-on-danger", "--detailed-exitcode").exit == 3
    assert used.run("plan", ".", "--fail-on-danger", "--accept", DANGER).exit == 0
    refused = used.json("apply", "plan.json", "--now", NOW, exit=3)
    assert [item["code"] for item in refused["diagnostics"]] == ["unaccepted-danger"]
    assert used.json("apply", "plan.json", "--accept", DANGER, "--now", NOW)["accepted"] == [DANGER]


def test_an_acceptance_in_the_files_is_in_the_plan(used: Home) -> None:
    used.write("fleet.yaml", f'{SHRUNK}accept:\n  - {{danger: "{DANGER}", reason: agreed, until: 2026-12-31}}\n')
    assert used.ok("plan", ".", "--fail-on-danger", "--now", NOW).exit == 0
    assert used.json("apply", ".", "--yes", "--now", NOW)["accepted"] == [DANGER]


def test_an_acceptance_past_its_date_is_none(used: Home) -> None:
    used.write("fleet.yaml", f'{SHRUNK}accept:\n  - {{danger: "{DANGER}", reason: agreed, until: 2026-11-30}}\n')
    assert used.run("apply", ".", "--yes", "--now", NOW).exit == 3


def test_drift_names_who_and_exits_2(used: Home) -> None:
    used.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=30", "--now", NOW)
    found = used.json("drift", ".", "--status-file", "drift.json", exit=2)
    (item,) = found["items"]
    assert (item["field"], item["last_applied"], item["live"]) == ("quota.gpu", 32, 30)
    assert item["who"].startswith("local:") and item["when"] == "2026-12-01T12:00:00.000Z"
    assert json.loads((used.work / "drift.json").read_text()) == found


def test_stale_plan_is_4_and_the_status_file_says_so(used: Home) -> None:
    used.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 24"))
    used.ok("plan", ".", "-o", "plan.json")
    used.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=30", "--now", NOW)
    assert used.run("check", "plan.json").exit == 4
    assert used.run("apply", "plan.json", "--status-file", "status.json", "--now", NOW).exit == 4
    status = json.loads((used.work / "status.json").read_text())
    assert (status["result"], status["exit"], status["diagnostics"][0]["code"]) == ("error", 4, "stale-plan")


def test_a_required_witness_that_is_missing_is_5_and_the_apply_stands(home: Home) -> None:
    done = home.run("apply", ".", "--yes", "--require-witness", "--status-file", "status.json", "--now", NOW)
    assert done.exit == 5
    status = json.loads((home.work / "status.json").read_text())
    assert (status["exit"], status["entry"]) == (5, 0)
    assert home.json("plan", ".")["result"] == "nothing-to-do"


def test_an_edited_plan_is_3(home: Home) -> None:
    plan = home.json("plan", ".")
    plan["body"]["operations"][-1]["after"]["limit"]["energyUj"] += 1
    home.write("edited.json", json.dumps(plan))
    for verb in ("show", "check", "apply"):
        assert home.json(verb, "edited.json", exit=3)["diagnostics"][0]["code"] == "plan-edited"


def test_a_row_edited_by_hand_is_tampered(used: Home) -> None:
    import sqlite3

    database = sqlite3.connect(used.path / "state" / "fleetctl" / "eng_test" / "state.db")
    with database:
        database.execute("UPDATE objects SET name = 'other' WHERE kind = 'pool'")
    database.close()
    assert used.json("drift", ".", exit=3)["result"] == "tampered"
    assert used.run("apply", ".", "--yes", "--now", NOW).exit == 3
