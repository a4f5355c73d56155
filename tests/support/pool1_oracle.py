"""pool/1 a second time, from the text of the standard and its readings and without any of our code: what tests hold ours to.

Sums are made afresh over the whole tree, ratios are fractions, orders are checked pair by pair, and ledgers are read with
cbor2 alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from io import BytesIO
from typing import Any

import cbor2


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A node as declared: `weight` is over_quota_weight, `limit` None for none."""

    parent: str | None
    energy: int
    devices: int
    weight: int
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What is in use of a node."""

    spent: int = 0
    reserved: int = 0
    devices: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A claim. `observed`: its grade is not Estimator."""

    node: str
    gang: int
    each: int
    energy: int
    observed: bool


Answer = tuple[str, tuple[str, ...], int]
"""Outcome, reasons with the primary one first, borrowed microjoules."""


def decided(tree: Mapping[str, Owed], usage: Mapping[str, Used], asked: Asked) -> Answer:
    """Section 4, with readings A08, A09, A13, A15, A22 to A24."""
    if asked.node not in tree:
        return "Deny", ("unknown-entitlement",), 0
    mine, use = tree[asked.node], usage.get(asked.node, Used())
    if asked.gang == 0 or asked.each == 0:
        return "Deny", ("empty-claim",), 0
    devices = sum(asked.each for _ in range(asked.gang)) if asked.gang < 100 else asked.gang * asked.each
    if devices > mine.devices:
        return "Deny", ("devices-exceed-guarantee",), 0
    if mine.limit is not None and mine.limit < asked.energy:
        return "Deny", ("energy-exceeds-limit",), 0
    lenders = [
        name for name in tree if name != asked.node and mine.parent is not None and tree[name].parent == mine.parent
    ]
    borrows = asked.observed and mine.weight > 0 and mine.parent is not None
    if asked.energy > mine.energy + (_part(tree, lenders, mine, {}) if borrows else 0):
        return "Deny", ("never-fits",), 0
    after = use.spent + use.reserved + asked.energy
    past = after - mine.energy
    reasons: list[str] = []
    if past > 0 and not borrows:
        reasons.append("guarantee-exhausted")
    if past > 0 and borrows:
        if mine.limit is not None and after > mine.limit:
            reasons.append("limit-reached")
        if past > _part(tree, lenders, mine, usage):
            reasons.append("surplus-insufficient")
    if use.devices + devices > mine.devices:
        reasons.append("devices-held")
    if reasons:
        return "Queue", tuple(reasons), 0
    return "Admit", (), max(0, min(asked.energy, past))


def _part(tree: Mapping[str, Owed], lenders: Sequence[str], mine: Owed, usage: Mapping[str, Used]) -> int:
    """Section 2.2: the weighted share of what the others have not spent, rounded down once."""
    unspent = 0
    for name in lenders:
        use = usage.get(name, Used())
        unspent += max(0, tree[name].energy - use.spent - use.reserved)
    whole = mine.weight + sum(tree[name].weight for name in lenders)
    return int(Fraction(mine.weight, whole) * unspent)


# ----------------------------------------------------------------------------------------- division, orders, idleness


def check_division(total: int, weights: Mapping[str, int], shares: Mapping[str, int]) -> None:
    """Section 2.5: exact, nothing for no weight, each share the floor or one more, the one more for the largest remainders."""
    whole = sum(weights.values())
    assert set(shares) == set(weights) and sum(shares.values()) == total
    exact = {name: Fraction(total * weight, whole) for name, weight in weights.items()}
    more = {name: shares[name] - exact[name].numerator // exact[name].denominator for name in weights}
    assert set(more.values()) <= {0, 1}
    assert all(shares[name] == 0 for name, weight in weights.items() if weight == 0)
    left = {name: exact[name] - int(exact[name]) for name in weights}
    for one in weights:
        for other in weights:
            if more[one] > more[other]:
                assert left[one] > left[other] or (left[one] == left[other] and one < other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A workload for the order of section 5.2."""

    id: str
    spent: int
    units: int
    observed: bool
    priority: int

    @property
    def known(self) -> bool:
        return self.observed and self.units > 0


def yields_before(one: Running, other: Running) -> bool:
    """Section 5.2, without a division: spent per unit, dearest first; then the unmeasured, lowest priority first; ties by id."""
    if one.known != other.known:
        return one.known
    here, there = (one.spent * other.units, other.spent * one.units) if one.known else (other.priority, one.priority)
    return here > there or (here == there and one.id.encode() < other.id.encode())


def idleness(
    window_ms: int | None,
    threshold_uw: int | None,
    *,
    devices: int,
    watched_ms: int,
    uj: int,
    observed: bool,
    share_of_0: bool,
) -> tuple[str, str]:
    """Section 2.7: nothing held, the window, the grade, the rate."""
    checks = (
        (devices == 0, ("NothingHeld", "nothing-held")),
        (window_ms is None or window_ms == 0, ("NoVerdict", "unconfigured")),
        (watched_ms == 0 or watched_ms < (window_ms or 0), ("NoVerdict", "window-short")),
        (not observed, ("NoVerdict", "estimator")),
        (share_of_0, ("NoVerdict", "zero-weight")),
        (threshold_uw is None, ("NoVerdict", "unconfigured")),
        (uj * 1_000 < (threshold_uw or 0) * watched_ms, ("Idle", "below")),
    )
    return next((answer for applies, answer in checks if applies), ("Working", "not-below"))


# ------------------------------------------------------------------------------------------------------------ ledgers


def cores(data: bytes) -> Iterator[dict[str, Any]]:
    """The core of each sealed entry of an exported ledger."""
    source = BytesIO(data)
    while source.tell() < len(data):
        yield cbor2.loads(cbor2.load(source).value[2])


def recounted(data: bytes) -> list[dict[str, Used]]:
    """Usage by entitlement before the first entry of an exported ledger, and after each (section 6.2)."""
    standing: dict[str, Used] = {}
    opened: dict[str, tuple[str, int, int]] = {}
    out = [dict(standing)]
    for core in cores(data):
        if core["event"] == "admitted":
            opened[core["claim"]] = core["entitlement"], core["reserved_uj"], core["devices"]
            was = standing.get(core["entitlement"], Used())
            standing[core["entitlement"]] = replace(
                was, reserved=was.reserved + core["reserved_uj"], devices=was.devices + core["devices"]
            )
        else:
            name, reserved, devices = opened.pop(core["claim"])
            was = standing[name]
            standing[name] = Used(
                spent=was.spent + core["spent_uj"], reserved=was.reserved - reserved, devices=was.devices - devices
            )
        out.append(dict(standing))
    return out
