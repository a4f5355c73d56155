"""`--as TENANT`: who acts is somebody (cli.md, "Settings")."""

from __future__ import annotations

import pytest

from tests.support.cli import FLEET, Home

LISTS = [
    ["pools", "list"],
    ["sites", "list"],
    ["tenants", "list"],
    ["events", "list"],
    ["authz", "list"],
    ["reservations", "list"],
    ["nodes", "list"],
    ["quotas", "list", "pool-fra1-h100"],
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(path=tmp_path_factory.mktemp("home")).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes")
    return home


@pytest.mark.parametrize("command", LISTS, ids=lambda command: command[0])
def test_a_tenant_that_does_not_exist_is_named_with_those_like_it(home: Home, command: list[str]) -> None:
    (found,) = home.json(*command, "--as", "acmee", exit=1)["diagnostics"]
    assert (found["code"], found["engineCode"], found["object"]) == ("not-found", "NOT_FOUND", "tenant/acmee")
    assert found["detail"] == (
        "--as: there is no tenant `acmee`; did you mean `acme`? `fleetctl tenants list` shows them"
    )
    assert home.run(*command, "--as", "acme").exit == 0
    assert home.run(*command, "--as", "root").exit == 0


def test_one_like_no_other_is_named_too_and_commands_that_write_refuse_it(home: Home) -> None:
    for command in (["tenants", "list"], ["sites", "create", "s2", "--kind", "shared", "--region", "eu"]):
        (found,) = home.json(*command, "--as", "zzz", exit=1)["diagnostics"]
        assert found["detail"] == "--as: there is no tenant `zzz`; `fleetctl tenants list` shows them"
    home.env["FLEETCTL_AS"] = "zzz"
    assert home.run("pools", "list").exit == 1
    del home.env["FLEETCTL_AS"]


def test_machines_join_and_leave_the_pools_of_who_acts(home: Home) -> None:
    """Seed: the owner of a pool alone manages it, and others are told NOT_FOUND; an offer does not change that."""
    join = ("nodes", "join", "--pool", "pool-fra1-h100", "--name", "own-1", "--gpus", "8")
    assert home.json(*join, "--as", "acme", exit=1)["diagnostics"][0]["engineCode"] == "NOT_FOUND"
    home.ok(*join, "--as", "root")
    leave = ("nodes", "leave", "own-1")
    assert home.json(*leave, "--as", "acme", exit=1)["diagnostics"][0]["engineCode"] == "NOT_FOUND"
    home.ok(*leave, "--as", "root")


def test_a_reservation_is_ended_by_whom_it_is_shown_to(home: Home) -> None:
    made = home.json("reservations", "create", "--tenant", "acme", "--pool", "pool-fra1-h100", "--gpus", "1")
    id = made["reservation"]["id"]
    for verb in ("get", "end"):
        (found,) = home.json("reservations", verb, id, "--as", "root", exit=1)["diagnostics"]
        assert (found["engineCode"], found["detail"]) == ("NOT_FOUND", f"there is no reservation {id}")
    assert home.json("reservations", "end", id, "--as", "acme")["reservation"]["state"] == "ended"
