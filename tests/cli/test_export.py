"""`ledger export`: to a file, to standard output, or everything to a folder; never two of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(path=tmp_path).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)
    return home


def test_standard_output_is_the_file(home: Home) -> None:
    """pins: `ledger export [--stream S] [-o FILE] | --bundle DIR`."""
    home.ok("ledger", "export", "--stream", "journal", "-o", "journal.cborseq")
    done = subprocess.run(
        [sys.executable, "-m", "fleetctl", "ledger", "export", "--stream", "journal"],
        cwd=home.work,
        env=home.process_environment(),
        capture_output=True,
        check=True,
    )
    assert done.stdout == (home.work / "journal.cborseq").read_bytes() != b""
    assert done.stderr == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ("--format", "json"),
        ("-o", "a.cborseq", "--bundle", "b"),
        ("--stream", "journal", "--bundle", "b"),
    ],
)
def test_what_does_not_go_together(home: Home, arguments: tuple[str, ...]) -> None:
    assert home.run("ledger", "export", *arguments).exit == 64
    assert not (home.work / "b").exists() and not (home.work / "a.cborseq").exists()


def test_a_ledger_that_is_not_there(home: Home) -> None:
    assert home.json("ledger", "export", "--stream", "other", "-o", "x", exit=1)["diagnostics"][0]["code"] == (
        "no-such-stream"
    )
