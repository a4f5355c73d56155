"""Peak memory of planning 10,000 pools, as the kernel counts it for the process and its children."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import terraform
from benchmarks.series import Line, Row, alternate, peaks
from benchmarks.workspace import CHANGES, NOTHING, Workspace

WHAT = "peak memory, plan at 10,000"
COUNT = 10_000
RUNS = 3
"""Memory hardly varies."""


def measure(folder: Path) -> Row:
    ours = Workspace(folder / "fleetctl", COUNT)
    fresh = terraform.Terraform(folder / "terraform-create", COUNT)
    applied = terraform.Terraform(folder / "terraform-nothing", COUNT, applied=True)
    create = alternate(lambda: ours.plan(CHANGES), lambda: fresh.plan(terraform.CHANGES), runs=RUNS)
    ours.apply()
    nothing = alternate(lambda: ours.plan(NOTHING), lambda: applied.plan(terraform.NOTHING), runs=RUNS)
    return Row(
        lines=tuple(
            Line(
                what=what,
                ours=peaks("fleetctl plan", taken[0]),
                peer=peaks("terraform plan", taken[1]),
                goal="at-most",
                target=1 / 3,
            )
            for what, taken in (("create", create), ("nothing to do", nothing))
        )
    )
