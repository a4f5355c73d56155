"""A `file:` witness never raises the grade, whichever command shows it (ledger.md: "The witness")."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An engine whose witness, which `init` made, is used in process."""
    home = Home(path=tmp_path, env={"FLEETCTL_WITNESS": "file:witness-test"}).with_engine(fleet=FLEET)
    assert home.json("apply", ".", "--yes", "--now", NOW)["co_located"] is True
    return home


@pytest.mark.parametrize("command", [("status",), ("ledger", "head"), ("ledger", "verify"), ("ledger", "witness")])
def test_its_receipts_are_shown_as_co_located(home: Home, command: tuple[str, ...]) -> None:
    answer = home.json(*command, "--now", NOW)
    assert (answer["grade"], answer["co_located"]) == ("self-attested", True)


def test_it_witnesses_nothing_of_the_history(home: Home) -> None:
    assert [entry["witnessed"] for entry in home.json("history", "--now", NOW)["entries"]] == [False]
