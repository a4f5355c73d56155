"""Which engine, with which keys and time: what a repository may say, what it may not, and what disagrees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(path=tmp_path).with_engine(fleet=FLEET)


def code(home: Home, *arguments: str, exit: int = 3, cwd: Path | None = None) -> str:
    found: str = home.json(*arguments, exit=exit, cwd=cwd)["diagnostics"][0]["code"]
    return found


def test_init_makes_private_files_and_overwrites_nothing(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    home.write("fleet.yaml", FLEET)
    made = home.json("init", ".")
    assert set(made["files"]) == {"fleetctl.toml", ".github/workflows/fleetctl.yml"}
    assert (home.work / "fleet.yaml").read_text() == FLEET
    engine = tmp_path / "state" / "fleetctl" / made["engine"]
    witness = tmp_path / "state" / "fleetctl" / "witness" / made["witness"]["id"]
    modes = {
        path: path.stat().st_mode & 0o777 for path in (engine, witness, engine / "steward.pem", witness / "witness.pem")
    }
    assert modes == {engine: 0o700, witness: 0o700, engine / "steward.pem": 0o600, witness / "witness.pem": 0o600}
    assert (engine / "state.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "config" / "fleetctl" / "config.toml").stat().st_mode & 0o777 == 0o600


def test_init_again_is_refused_and_changes_nothing(home: Home) -> None:
    config = home.path / "config" / "fleetctl" / "config.toml"
    before = config.read_text()
    assert code(home, "init", ".") == "engine-pinned"
    assert code(home, "init", ".", "--engine", "eng_other") == "engine-pinned"
    assert code(home, "init", ".", "--engine", "eng_test") == "engine-configured"
    assert config.read_text() == before
    assert sorted(path.name for path in (home.path / "state" / "fleetctl").iterdir()) == ["eng_test", "witness"]


def test_a_clone_gets_no_fresh_engine(tmp_path: Path, home: Home) -> None:
    """plan-apply.md, "State": a missing or different engine is exit 3, never a fresh one."""
    stranger = Home(path=tmp_path / "stranger")
    stranger.path.mkdir()
    for arguments in (("plan", "."), ("apply", ".", "--yes"), ("status",), ("init", ".")):
        assert stranger.run(*arguments, cwd=home.work).exit == 3
    assert not (stranger.path / "state").exists()


def test_no_engine_is_named_anywhere(tmp_path: Path) -> None:
    assert code(Home(path=tmp_path), "status") == "engine-unnamed"


@pytest.mark.parametrize(
    "line",
    [
        'state = "sqlite:/tmp/x"',
        'witness = "http://evil"',
        'steward_key = "k"',
        "[guards]",
        'engine = "x"',
        "engine = 1",
        "engine =",
    ],
)
def test_a_repository_may_only_name_the_engine(home: Home, line: str) -> None:
    """pins: any key in `fleetctl.toml` but `engine` is exit 3."""
    text = line if line.startswith("engine") else f'engine = "eng_test"\n{line}\n'
    home.write("fleetctl.toml", text)
    assert code(home, "plan", ".") == "pin-refused"


def test_a_pin_that_is_a_pipe_is_not_waited_for(home: Home) -> None:
    (home.work / "fleetctl.toml").unlink()
    os.mkfifo(home.work / "sub.fifo")
    (home.work / "fleetctl.toml").symlink_to("sub.fifo")
    assert home.run("plan", ".").exit == 1


def test_the_nearest_pin_counts(home: Home) -> None:
    home.write("sub/fleet.yaml", FLEET)
    assert home.ok("plan", "sub").exit == 0
    home.write("sub/fleetctl.toml", 'engine = "eng_unknown"\n')
    assert code(home, "plan", "sub") == "engine-unknown"
    assert code(home, "plan", "sub/fleet.yaml") == "engine-unknown"
    assert home.ok("plan", "fleet.yaml").exit == 0


def test_flag_beats_environment_and_both_must_agree_with_the_pin(tmp_path: Path, home: Home) -> None:
    other = Home(path=tmp_path / "other")
    other.path.mkdir()
    other.with_engine("eng_other")
    state = f"sqlite:{other.path}/state/fleetctl/eng_other/state.db"
    mine = f"sqlite:{home.path}/state/fleetctl/eng_test/state.db"
    home.env["FLEETCTL_STATE"] = state
    assert code(home, "status") == "engine-mismatch"
    assert home.json("status", "--state", mine)["engine"] == "eng_test"
    (home.work / "fleetctl.toml").unlink()
    assert code(home, "status", exit=1) == "steward-key-unknown"
    key = f"{other.path}/state/fleetctl/eng_other/steward.pem"
    assert home.json("status", "--steward-key", key)["engine"] == "eng_other"


def test_a_plan_of_another_engine_is_foreign(tmp_path: Path, home: Home) -> None:
    home.ok("plan", ".", "-o", "plan.json")
    other = Home(path=tmp_path / "other")
    other.path.mkdir()
    other.with_engine("eng_other")
    plan = str(home.work / "plan.json")
    assert code(other, "apply", plan) == "engine-mismatch"
    state = f"sqlite:{other.path}/state/fleetctl/eng_other/state.db"
    assert code(other, "apply", plan, "--state", state, "--now", NOW) == "foreign-plan"


def test_a_plan_alone_names_its_engine(home: Home, tmp_path: Path) -> None:
    home.ok("plan", ".", "-o", "plan.json")
    away = tmp_path / "away"
    away.mkdir()
    assert home.json("apply", str(home.work / "plan.json"), "--now", NOW, cwd=away)["result"] == "applied"


def test_another_stewards_key_is_refused(tmp_path: Path, home: Home) -> None:
    other = Home(path=tmp_path / "other")
    other.path.mkdir()
    other.with_engine("eng_other")
    key = f"{other.path}/state/fleetctl/eng_other/steward.pem"
    assert code(home, "apply", ".", "--yes", "--steward-key", key, "--now", NOW) == "wrong-engine"


def test_a_missing_key_is_said_and_reading_goes_on(home: Home) -> None:
    (home.path / "state" / "fleetctl" / "eng_test" / "steward.pem").unlink()
    assert home.ok("status").exit == 0
    assert code(home, "apply", ".", "--yes", "--now", NOW, exit=1) == "steward-key-missing"


def test_a_key_that_others_can_read_is_refused(home: Home) -> None:
    (home.path / "state" / "fleetctl" / "eng_test" / "steward.pem").chmod(0o644)
    assert code(home, "apply", ".", "--yes", "--now", NOW, exit=1) == "key-file-mode"


def test_a_configuration_that_others_can_write_is_refused(home: Home) -> None:
    (home.path / "config" / "fleetctl" / "config.toml").chmod(0o666)
    assert code(home, "status", exit=1) == "config-permissions"


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "x = 1",
        '["eng_test"]\nstate = 1\nsteward = "s"',
        '["eng_test"]\nstate = "sqlite:x"',
        '["eng_test"]\nstate = "s"\nsteward = "s"\nhost = "h"',
    ],
)
def test_a_broken_configuration_is_named(home: Home, text: str) -> None:
    path = home.path / "config" / "fleetctl" / "config.toml"
    path.write_text(text)
    path.chmod(0o600)
    found = home.json("status", exit=1)["diagnostics"][0]
    assert found["code"] == "config-unreadable" and str(path) in found["detail"]


def test_what_is_in_the_configuration_stays_when_an_engine_is_added(home: Home) -> None:
    path = home.path / "config" / "fleetctl" / "config.toml"
    path.write_text(f"# mine\n{path.read_text()}")
    (home.work / "second").mkdir()
    home.ok("init", "second", "--engine", "eng_second")
    assert path.read_text().startswith("# mine\n")
    assert home.ok("status").exit == 0
    assert home.json("status", cwd=home.work / "second")["engine"] == "eng_second"


def test_now_is_for_queries_and_for_engines_with_a_test_clock(tmp_path: Path) -> None:
    """cli.md: sealing commands take it only on an engine made with `init --test-clock`."""
    home = Home(path=tmp_path)
    home.write("fleet.yaml", FLEET)
    home.ok("init", ".")
    assert home.json("plan", ".", "--now", NOW)["context"]["time"] == "2026-12-01T12:00:00.000Z"
    assert code(home, "apply", ".", "--yes", "--now", NOW) == "now-refused"
    assert home.json("apply", ".", "--yes")["result"] == "applied"


def test_the_actor_is_local_and_self_declared(home: Home) -> None:
    home.ok("apply", ".", "--yes", "--now", NOW)
    assert home.json("history")["entries"][0]["actor"].startswith("local:")


def test_who_acts_decides(home: Home) -> None:
    home.ok("apply", ".", "--yes", "--now", NOW)
    refused = home.json("pools", "archive", "pool-fra1-h100", "--as", "acme", "--now", NOW, exit=1)
    assert refused["diagnostics"][0]["engineCode"] in ("NOT_FOUND", "ACCESS_DENIED")
    home.env["FLEETCTL_AS"] = "acme"
    assert home.run("pools", "archive", "pool-fra1-h100", "--now", NOW).exit == 1
