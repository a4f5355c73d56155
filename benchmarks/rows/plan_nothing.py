"""Plan with nothing to do, whole process: the most frequent run of all."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import terraform
from benchmarks.peers.octodns import OctoDns
from benchmarks.series import Line, Row, alternate, times
from benchmarks.workspace import NOTHING, Workspace

WHAT = "plan, nothing to do"
SIZES = (1_000, 10_000)


def measure(folder: Path) -> Row:
    return Row(
        lines=tuple(line for count in SIZES for line in _lines(folder, count)),
        notes=(
            "Terraform's state is written as an apply would have left it; every run must plan empty (`-detailed-exitcode`).",
            "octoDNS compares as many A records of two values from one YAML provider to another.",
        ),
    )


def _lines(folder: Path, count: int) -> list[Line]:
    ours = Workspace(folder / f"fleetctl-{count}", count).settle()
    theirs = terraform.Terraform(folder / f"terraform-{count}", count, applied=True)
    dns = OctoDns(folder / f"octodns-{count}", count)
    taken = alternate(lambda: ours.plan(NOTHING), lambda: theirs.plan(terraform.NOTHING), dns.plan)
    mine = times("fleetctl plan", taken[0])
    peers = ((times("terraform plan", taken[1]), 10.0), (times("octodns-sync", taken[2]), 5.0))
    return [Line(what=f"{count:,} pools", ours=mine, peer=peer, goal="faster", target=target) for peer, target in peers]
