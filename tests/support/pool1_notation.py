"""The notation of the pool/1 readings, for case files: `A G100 S80 w1; B G200 w1`, `A 120 HW 2x2`, `Admit uj=120 dev=4 …`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fleetctl.pool1.admission import Verdict
from fleetctl.pool1.claim import Claim
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import Entitlement, Tree, TreeState, Usage

GRADES = {"HW": Grade.HW_SHUNT, "MB": Grade.MODEL_BASED, "ES": Grade.ESTIMATOR}
_SHORT = {grade: short for short, grade in GRADES.items()}
_FIGURE = re.compile(r"([GSRDHwLp])(-?[0-9]+)")


def read_state(text: str) -> TreeState:
    """A tree with usage. Nodes hang under `P` unless they say `@PARENT` or `<-` (a root); `orphan` is usage without a node."""
    nodes: dict[str, Entitlement] = {}
    usage: dict[str, Usage] = {}
    for part in text.split(";"):
        name, *words = part.split()
        figures = {match[1]: int(match[2]) for word in words if (match := _FIGURE.fullmatch(word))}
        usage[name] = Usage(spent_uj=figures.get("S", 0), reserved_uj=figures.get("R", 0), devices=figures.get("H", 0))
        if "orphan" in words:
            continue
        above = next((word[1:] for word in words if word.startswith("@")), None if "<-" in words else "P")
        nodes[name] = Entitlement(
            id=name,
            parent=above,
            guarantee_uj=figures.get("G", 0),
            guarantee_devices=figures.get("D", 0 if name == "P" else 8),
            over_quota_weight=figures.get("w", 0),
            limit_uj=figures.get("L"),
            priority=figures.get("p", 0),
        )
    if "P" not in nodes and any(node.parent == "P" for node in nodes.values()):
        nodes["P"] = Entitlement(id="P", parent=None, guarantee_uj=0, guarantee_devices=0, over_quota_weight=0)
    return TreeState(Tree(nodes.values()), usage)


def read_claim(text: str) -> Claim:
    """`NODE energy grade [gang x per-member]`."""
    entitlement, energy, grade, *gang = text.split()
    size, per_member = (int(item) for item in gang[0].split("x")) if gang else (1, 1)
    return Claim(
        entitlement=entitlement,
        gang_size=size,
        devices_per_member=per_member,
        estimate_uj=int(energy),
        grade=GRADES[grade],
    )


def write_verdict(verdict: Verdict, *, like: str) -> str:
    """The verdict in the notation, with a share only where `like`, the expected text, names one."""
    words = [verdict.outcome.value]
    if verdict.admitted:
        words += [f"uj={verdict.reserved_uj}", f"dev={verdict.devices}", f"borrowed={verdict.borrowed_uj}"]
        words += [f"grade={_SHORT[verdict.grade]}"]
    else:
        words += [",".join(reason.value for reason in verdict.reasons)]
    if "share=" in like and verdict.basis is not None:
        words += [f"share={verdict.basis.share_uj}"]
    return " ".join(words)


def write_usage(state: TreeState) -> Mapping[str, list[int]]:
    """Entitlement → [settled, reserved, devices], orphans too."""
    names = [*state.nodes, *state.orphans]
    return {name: [used.spent_uj, used.reserved_uj, used.devices] for name in names for used in [state.usage(name)]}
