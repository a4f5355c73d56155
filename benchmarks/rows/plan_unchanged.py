"""Plan with nothing to do where the files have not changed since the last plan: the fleet is taken from the user's cache."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import terraform
from benchmarks.series import Line, Row, alternate, times
from benchmarks.workspace import NOTHING, Workspace

WHAT = "plan, nothing to do, files unchanged"
COUNT = 10_000


def measure(folder: Path) -> Row:
    ours = Workspace(folder / "fleetctl", COUNT).settle()
    theirs = terraform.Terraform(folder / "terraform", COUNT, applied=True)
    ours.plan(NOTHING, remembers=True)  # the plan that the others come after
    taken = alternate(
        lambda: ours.plan(NOTHING, remembers=True),
        lambda: ours.plan(NOTHING),
        lambda: theirs.plan(terraform.NOTHING),
    )
    mine = times("fleetctl plan, remembered", taken[0])
    peers = ((times("fleetctl plan, files read", taken[1]), 5.0), (times("terraform plan", taken[2]), 50.0))
    return Row(
        lines=tuple(
            Line(what=f"{COUNT:,} pools", ours=mine, peer=peer, goal="faster", target=target) for peer, target in peers
        ),
        notes=(
            "The live side is read and verified as always; only the reading of the files is spared. Every other row runs without the cache.",
        ),
    )
