"""On a terminal: the question, colour, and pages that fit."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home

_SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(path=tmp_path, env={"TERM": "xterm"}).with_engine(fleet=FLEET)
    made.ok("apply", ".", "--yes", "--now", NOW)
    return made


def on_terminal(home: Home, *arguments: str, answer: str = "", columns: int = 80) -> tuple[int, str]:
    """Run a command with a terminal as its three streams, type `answer`, and return its exit and what was shown."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {
        name: value for name, value in home.process_environment().items() if name not in ("COLUMNS", "LINES")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "fleetctl", *arguments],
        cwd=home.work,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return process.wait(timeout=60), shown.decode().replace("\r\n", "\n")


def test_apply_shows_the_plan_and_asks(home: Home) -> None:
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 33"))
    exit, shown = on_terminal(home, "apply", ".", "--now", NOW, answer="n\n")
    assert exit == 130 and "Apply this plan? [y/N]:" in shown and "declined: nothing was done" in shown
    assert "Apply exactly this" not in shown
    exit, shown = on_terminal(home, "apply", ".", "--now", NOW, answer="y\n")
    assert exit == 0 and "Applied: 1 operation, in one transaction" in shown


def test_what_would_be_refused_is_not_asked_about(home: Home) -> None:
    home.write("fleet.yaml", FLEET.partition("entitlements:")[0])
    exit, shown = on_terminal(home, "apply", ".", "--now", NOW)
    assert exit == 3 and "unaccepted-danger: share:fleet/eu-test" in shown
    assert "Apply this plan?" not in shown


def test_colour_is_for_terminals_that_want_it(home: Home) -> None:
    assert _SGR.search(on_terminal(home, "plan", ".", "--now", NOW)[1])
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        plain = Home(path=home.path, env=home.env | {name: value})
        assert not _SGR.search(on_terminal(plain, "plan", ".", "--now", NOW)[1])
    assert not _SGR.search(home.ok("plan", ".", "--now", NOW).out)


def test_a_wide_table_is_folded_for_eyes_and_a_line_for_tools(home: Home) -> None:
    _, shown = on_terminal(home, "ledger", "head", columns=60)
    assert "ledger                     length\n    head\n" in _SGR.sub("", shown)
    assert re.search(r"^root-steward/journal +1  [0-9a-f]{64}$", home.ok("ledger", "head").out, re.MULTILINE)
