"""What somebody meets who has never used fleetctl: help, slips of the hand, and what is said about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetctl import __version__
from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(path=tmp_path).with_engine(fleet=FLEET)
    made.ok("apply", ".", "--yes", "--now", NOW)
    return made


def test_the_version_is_an_option_and_a_command(home: Home) -> None:
    home.env["FLEETCTL_VERSION"] = "1"
    assert home.ok("--version").out == home.ok("version").out == f"fleetctl {__version__}\n"
    assert home.ok("status").exit == 0


def test_the_commands_of_a_group_are_listed_with_their_whole_sentence(home: Home) -> None:
    shown = " ".join(home.ok("pools", "--help").out.split())
    assert "Retire a pool: offers end, nothing new starts, what runs runs to its end." in shown
    assert "..." not in shown.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nodes", "join", "--pool", "p", "--name", "n", "--gpus", "eight"), "'eight' is not a whole number"),
        (("import", "pools", "x"), "`pools` is a section of fleet files; the kind is `pool`"),
        (("import", "pol", "x"), "`pol` is no kind; write one of tenant, site, pool"),
        (("settings", "set", "share", "5"), "Invalid value for 'NAME': 'share' is not one of"),
    ],
)
def test_a_slip_on_the_command_line_is_named_with_what_would_do(
    home: Home, arguments: tuple[str, ...], said: str
) -> None:
    answer = home.run(*arguments)
    assert answer.exit == 64 and said in answer.err


def test_import_takes_an_object_as_plans_write_it(home: Home) -> None:
    assert home.ok("import", "pool/pool-fra1-h100").out == home.ok("import", "pool", "pool-fra1-h100").out


def test_explain_leads_from_the_engines_word_to_the_codes(home: Home) -> None:
    assert "it is the engine's word for: conflict, " in home.run("explain", "CONFLICT").err
    assert "near it: unknown-field" in home.run("explain", "Unknown-Fild").err
