"""Whole pipelines for tests: every command a process of its own, and a witness served over HTTP by another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.cli import Home
from tests.support.schemas import check_answer

COMMAND = (sys.executable, "-m", "fleetctl")


def ended(home: Home, *arguments: str, exit: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own that must end with `exit`, and must never show a traceback."""
    done = home.process(*arguments, **options)
    assert done.returncode == exit, f"{' '.join(arguments)}: {done}"
    assert "Traceback" not in done.stderr
    return done


def answer(home: Home, *arguments: str, exit: int = 0, **options: Any) -> Any:
    """The JSON that a command answers in a process of its own, which must end with `exit`. It is held to its schema."""
    found = json.loads(ended(home, *arguments, "--format", "json", exit=exit, **options).stdout)
    check_answer(arguments, found)
    return found


def codes(error: Any) -> list[str]:
    """Codes of an error answered as JSON."""
    assert error["result"] == "error"
    return [item["code"] for item in error["diagnostics"]]


def lengths(home: Home) -> list[int]:
    """Lengths of the entitlement ledger and the journal."""
    return [head["length"] for head in home.json("ledger", "head")["heads"]]


@contextmanager
def serving(home: Home, witness: str) -> Iterator[str]:
    """`fleetctl witness serve` as a process of its own on a free port, until the context ends. Gives its URL."""
    process = subprocess.Popen(
        [*COMMAND, "witness", "serve", "--id", witness],
        cwd=home.work,
        env=home.process_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), url
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0, "a witness that is asked to stop stops in order"


@contextmanager
def started(home: Home, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs beside the test. Killed at the end of the context if it still runs."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=home.work,
        env=home.process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def wait_until_open(process: subprocess.Popen[str], file: Path) -> None:
    """Until a process has opened a file. Fails when the process ends first."""
    wanted = str(file.resolve())
    while process.poll() is None:
        if wanted in _open_files(process.pid):
            return
        time.sleep(0.005)
    raise AssertionError(f"the command ended before it opened {file}: {process.communicate()}")


def _open_files(pid: int) -> set[str]:
    folder = Path(f"/proc/{pid}/fd")
    found = set()
    for name in os.listdir(folder):
        try:
            found.add(os.readlink(folder / name))
        except FileNotFoundError:
            continue  # closed meanwhile
    return found
