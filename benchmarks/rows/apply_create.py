"""Apply a saved plan of 1,000 creations, whole process: one transaction, fsync on, against Terraform's apply."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import terraform
from benchmarks.series import RUNS, Line, Row, times
from benchmarks.workspace import CHANGES, Workspace

WHAT = "apply 1,000 creations"
COUNT = 1_000


def measure(folder: Path) -> Row:
    theirs = terraform.Terraform(folder / "terraform", COUNT)
    theirs.plan(terraform.CHANGES)
    peer = [theirs.apply(COUNT)]
    mine = []
    for number in range(RUNS):
        ours = Workspace(folder / f"fleetctl-{number}", COUNT)
        ours.plan(CHANGES)
        mine.append(ours.apply())
    line = Line(
        what=f"{COUNT:,} pools",
        ours=times("fleetctl apply", mine),
        peer=times("terraform apply", peer),
        goal="faster",
        target=100.0,
    )
    return Row(
        lines=(line,),
        notes=("Terraform is applied once: it takes over a minute. Every run of ours starts from a fresh engine.",),
    )
