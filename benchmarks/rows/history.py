"""A plan must not grow with history: a million sealed entries behind a checkpoint against an empty ledger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.series import Line, Row, alternate, times
from benchmarks.workspace import NOTHING, Workspace

WHAT = "plan with a long ledger"
COUNT = 1_000
"""Pools."""
ENTRIES = 1_000_000
TAIL = 128
"""Entries since the last checkpoint: half of what an engine in use lets come together."""


def measure(folder: Path) -> Row:
    long, empty = (Workspace(folder / name, COUNT).settle() for name in ("long", "empty"))
    key = long.state.with_name("steward.pem")
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-m", "benchmarks.fill", str(long.state), str(key), str(ENTRIES), str(TAIL)]
    subprocess.run(argv, cwd=root, check=True)
    with_history, without = alternate(lambda: long.plan(NOTHING), lambda: empty.plan(NOTHING))
    line = Line(
        what=f"{ENTRIES:,} entries, {COUNT:,} pools, nothing to do",
        ours=times("long ledger", with_history),
        peer=times("empty ledger", without),
        goal="at-most",
        target=1.1,
    )
    size = long.state.stat().st_size / 1e6
    note = (
        f"The entries are sealed and stored one by one ({size:,.0f} MB of state); the last {TAIL} lie behind no "
        "checkpoint and are verified by every plan."
    )
    return Row(lines=(line,), notes=(note,))
