"""Drift of unchanged pools: a plan with nothing to do, and both ledgers and the state verified on the way."""

from __future__ import annotations

from pathlib import Path

from benchmarks.series import Line, Row, alternate, times
from benchmarks.workspace import NOTHING, Workspace

WHAT = "drift on 10,000 unchanged pools"
COUNT = 10_000


def measure(folder: Path) -> Row:
    ours = Workspace(folder / "fleetctl", COUNT).settle()
    taken = alternate(ours.drift, lambda: ours.plan(NOTHING))
    line = Line(
        what=f"{COUNT:,} pools",
        ours=times("fleetctl drift", taken[0]),
        peer=times("fleetctl plan", taken[1]),
        goal="at-most",
        target=1.2,
    )
    return Row(lines=(line,))
