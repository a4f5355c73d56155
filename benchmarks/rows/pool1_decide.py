"""pool/1 decisions in memory on prepared claims, against raw Ed25519 signing: admitting must never be what costs."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.peers.ed25519 import TYPICAL, sign_loop
from benchmarks.series import Line, Row, Sample, alternate, rates
from fleetctl.pool1.admission import decide
from fleetctl.pool1.claim import Claim
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import Entitlement, Tree, TreeState, Usage

WHAT = "pool1.decide, in memory"
DECISIONS = 200_000
SIGNATURES = 20_000
PER_PARENT = 20


def measure(folder: Path) -> Row:
    small, thousand, large = (state(count) for count in (10, 1_000, 100_000))
    messages = [bytes(TYPICAL)] * SIGNATURES
    taken = alternate(
        lambda: _decide(thousand), lambda: sign_loop(messages), lambda: _decide(large), lambda: _decide(small)
    )
    ours, raw, many, few = (
        rates(name, count, samples)
        for (name, count), samples in zip(
            (
                ("decide, 1,000 nodes", DECISIONS),
                ("raw sign", SIGNATURES),
                ("decide, 100,000 nodes", DECISIONS),
                ("decide, 10 nodes", DECISIONS),
            ),
            taken,
            strict=True,
        )
    )
    return Row(
        lines=(
            Line(what="tree of 1,000 nodes", ours=ours, peer=raw, goal="rate", target=5.0),
            Line(what="independent of tree size", ours=many, peer=few, goal="rate"),
        ),
        notes=("Claims in turn admit within the guarantee, admit by borrowing, queue and deny.",),
    )


def state(count: int) -> TreeState:
    """A tree of `count` nodes, twenty to a parent, each half spent."""
    nodes = [_node("n0", None)] + [_node(f"n{number}", f"n{(number - 1) // PER_PARENT}") for number in range(1, count)]
    return TreeState(Tree(nodes), {node.id: Usage(spent_uj=node.guarantee_uj // 2) for node in nodes})


def _node(id: str, parent: str | None) -> Entitlement:
    return Entitlement(
        id=id,
        parent=parent,
        guarantee_uj=1_000_000_000,
        guarantee_devices=64,
        over_quota_weight=1,
        limit_uj=4_000_000_000,
    )


def _decide(tree: TreeState) -> Sample:
    names = list(tree.nodes)
    claims = [
        Claim(
            entitlement=names[number % len(names)],
            gang_size=1,
            devices_per_member=8,
            estimate_uj=(400_000_000, 600_000_000, 1_400_000_000, 5_000_000_000)[number % 4],
            grade=Grade.HW_SHUNT,
        )
        for number in range(1_000)
    ]
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(DECISIONS // len(claims)):
        for claim in claims:
            decide(tree, claim)
    return Sample(wall_s=time.perf_counter() - began, cpu_s=time.process_time() - cpu)
