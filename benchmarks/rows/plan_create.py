"""Plan from nothing, whole process: read the files, validate, compare with an empty engine, write the plan."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import terraform
from benchmarks.series import Line, Row, alternate, times
from benchmarks.workspace import CHANGES, Workspace

WHAT = "plan, create from nothing"
SIZES = ((1_000, 5.0), (10_000, 10.0))
"""Pools, and how many times faster the plan is to be."""


def measure(folder: Path) -> Row:
    return Row(lines=tuple(_line(folder, count, target) for count, target in SIZES))


def _line(folder: Path, count: int, target: float) -> Line:
    ours = Workspace(folder / f"fleetctl-{count}", count)
    theirs = terraform.Terraform(folder / f"terraform-{count}", count)
    mine, peer = alternate(lambda: ours.plan(CHANGES), lambda: theirs.plan(terraform.CHANGES))
    return Line(
        what=f"{count:,} pools",
        ours=times("fleetctl plan", mine),
        peer=times("terraform plan", peer),
        goal="faster",
        target=target,
    )
