"""Ten times the pools must not cost much more than ten times the time."""

from __future__ import annotations

from pathlib import Path

from benchmarks.series import Line, Row, alternate, times
from benchmarks.workspace import CHANGES, NOTHING, Workspace

WHAT = "growth from 1,000 to 10,000 pools"
TARGET = 11.0


def measure(folder: Path) -> Row:
    small, large = (Workspace(folder / f"fleetctl-{count}", count) for count in (1_000, 10_000))
    create = _line("plan, create", small, large, CHANGES)
    small.apply()
    large.apply()
    nothing = _line("plan, nothing to do", small, large, NOTHING)
    return Row(lines=(create, nothing), notes=("Starting the process counts in both, which favours the larger side.",))


def _line(what: str, small: Workspace, large: Workspace, expect: int) -> Line:
    many, few = alternate(lambda: large.plan(expect), lambda: small.plan(expect))
    return Line(
        what=what, ours=times("10,000 pools", many), peer=times("1,000 pools", few), goal="at-most", target=TARGET
    )
