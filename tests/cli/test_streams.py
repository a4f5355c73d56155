"""Streams that are closed, full or gone, a folder that is gone, and paths that are empty: words and an exit code."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import FLEET, Home

COMMANDS = (["version"], ["status"], ["plan", "."], ["plan", ".", "--format", "json"], ["--help"], ["plan", "--help"])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(path=tmp_path_factory.mktemp("home")).with_engine(fleet=FLEET)


def shell(home: Home, script: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script in which `$fleetctl` is the command with its arguments."""
    words = " ".join(shlex.quote(word) for word in (sys.executable, "-m", "fleetctl", *arguments))
    return subprocess.run(
        ["bash", "-c", script.replace("$fleetctl", words)],
        cwd=cwd or home.work,
        env=home.process_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("script", ["$fleetctl >&-", "$fleetctl >/dev/full", "$fleetctl <&- >&-"])
def test_a_result_that_nobody_can_get_is_said_so(home: Home, script: str, arguments: list[str]) -> None:
    """cli: never a traceback; a lost result is an error, whoever writes it."""
    done = shell(home, script, *arguments)
    if arguments[-1] == "json":
        assert done.returncode == 1 and "Traceback" not in done.stderr
    else:
        assert (done.returncode, done.stderr.partition(":")[2].partition(":")[0]) == (1, " output-unwritable")


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_reader_that_went_away_wants_no_more(home: Home, arguments: list[str]) -> None:
    done = shell(home, "$fleetctl | true; exit ${PIPESTATUS[0]}", *arguments)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", COMMANDS[:4], ids=" ".join)
def test_a_closed_standard_error_takes_nothing_away(home: Home, arguments: list[str]) -> None:
    assert (shell(home, "$fleetctl 2>&- <&-", *arguments).returncode) == 0


@pytest.mark.parametrize("arguments", [["status"], ["tenants", "list"], ["init"], ["state", "backup", "x.db"]])
def test_a_folder_that_is_gone_is_named(home: Home, tmp_path: Path, arguments: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = shell(home, f"rmdir {shlex.quote(str(gone))}; $fleetctl", *arguments, "--format", "json", cwd=gone)
    assert (done.returncode, done.stderr) == (1, "")
    assert [item["code"] for item in json.loads(done.stdout)["diagnostics"]] == ["folder-gone"]


@pytest.mark.parametrize(
    "arguments",
    [["plan", ""], ["apply", "", "--yes"], ["drift", ""], ["validate", ""], ["init", ""], ["plan", ".", "-o", ""]],
    ids=" ".join,
)
def test_an_empty_path_is_not_the_current_folder(home: Home, arguments: list[str]) -> None:
    """A shell's unset variable must not apply whatever folder the shell is in."""
    done = home.run(*arguments)
    assert (done.exit, "the path is empty" in done.err) == (64, True)
    assert not os.path.exists(home.work / "plan.json")
