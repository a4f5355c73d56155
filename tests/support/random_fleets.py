"""Random fleets that the rules allow, from a seed or from Hypothesis: one generator, two sources of choices.

What may not change is a function of an object's key, so that any fleet can follow any other; what a plan refuses for
good reasons (a protected object that leaves, the key of an archived pool) is left in.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from fleetctl.model.declared import Fleet
from tests.support.worlds import fleet

T = TypeVar("T")
Objects = dict[str, dict[str, Any]]
"""`kind/key` to fields, as `worlds.fleet` takes them."""


class Choose(Protocol):
    """A source of choices."""

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        ...


class Seeded:
    """Choices of a seeded generator: fast, and the same on every machine."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


class Drawn:
    """Choices that Hypothesis can shrink."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))


@st.composite
def choices(draw: st.DrawFn) -> Choose:
    """A source of choices for a Hypothesis test."""
    return Drawn(draw)


def flag(choose: Choose, percent: int = 50) -> bool:
    """True in `percent` of all cases."""
    return choose.integer(1, 100) > 100 - percent


def one(choose: Choose, items: Sequence[T]) -> T:
    """One of the items."""
    return items[choose.integer(0, len(items) - 1)]


def some(choose: Choose, items: Sequence[T], percent: int = 60) -> list[T]:
    """Some of the items, in their order."""
    return [item for item in items if flag(choose, percent)]


def shuffled(choose: Choose, items: Sequence[T]) -> list[T]:
    """The items in any order."""
    rest = list(items)
    return [rest.pop(choose.integer(0, len(rest) - 1)) for _ in items]


def random_objects(choose: Choose) -> Objects:
    """The objects of a fleet of tenant `root`."""
    out: Objects = {"site/s0": {"region": one(choose, ["north", "south"])}}
    tenants = _forest(choose, out, "tenant", some(choose, ["t0", "t1", "t2", "t3"]), {"parent": "root"})
    for index in (1, 2):
        if flag(choose):
            out[f"site/s{index}"] = {"kind": "custom" if index == 2 else "shared"}
    _pools(choose, out, tenants)
    _entitlements(choose, out, [*tenants, "root", "any"])
    _market(choose, out)
    return {label: out[label] for label in shuffled(choose, list(out))}


def random_fleet(choose: Choose, *, name: str = "eu") -> Fleet:
    """A fleet of tenant `root`."""
    return fleet(random_objects(choose), name=name)


def rekeyed(objects: Mapping[str, Mapping[str, Any]], key: str, new: str) -> Objects:
    """The objects with a pool under another key, its offers with it."""
    out: Objects = {}
    for label, fields in objects.items():
        kind, _, rest = label.partition("/")
        if label == f"pool/{key}":
            label = f"pool/{new}"
        elif kind == "offer" and rest.startswith(f"{key}/"):
            label = f"offer/{new}/{rest.partition('/')[2]}"
        out[label] = dict(fields)
    return out


def _common(choose: Choose) -> dict[str, Any]:
    out: dict[str, Any] = {"name": one(choose, ["a", "b", "c"])}
    if flag(choose, 30):
        out["description"] = one(choose, ["x", "Grüße", ""])
    return out


def _forest(choose: Choose, out: Objects, kind: str, keys: Sequence[str], root: Mapping[str, Any]) -> list[str]:
    """Nodes with parents among those before them, in any order."""
    made: list[str] = []
    for key in shuffled(choose, keys):
        above = {"parent": one(choose, made)} if made and flag(choose, 60) else dict(root)
        out[f"{kind}/{key}"] = {**_common(choose), **above}
        made.append(key)
    return made


_SHARING = {"p3": "mig", "p4": "timeslice", "p5": "mps"}


def _pools(choose: Choose, out: Objects, tenants: Sequence[str]) -> None:
    sites = [label.removeprefix("site/") for label in out if label.startswith("site/")]
    for key in some(choose, ["p0", "p1", "p2", "p3", "p4", "p5", "p6"]):
        site = f"s{int(key[1]) % 3}"
        if site not in sites:
            continue
        policy: dict[str, Any] = {}
        if flag(choose, 40):
            policy["maxPendingMs"] = choose.integer(1, 3) * 3_600_000
        if flag(choose, 30):
            policy["x"] = one(choose, [1, True, "1", [1, 2], {"gpu": 8}, {"y": {"z": 1}}])
        single = key in ("p1", "p2") and flag(choose, 40)
        if single:
            policy["singleTenant"] = True
        out[f"pool/{key}"] = {
            **_common(choose),
            "site": site,
            "gpuModel": one(choose, ["H100", "H200"]),
            "sharing": _SHARING.get(key, "exclusive"),
            "policy": policy,
            "ownerQuota": _quota(choose),
            "labels": {"team.a": "1"} if flag(choose, 20) else {},
            "protect": flag(choose, 8),
            **({"class": "provider", "agent": "none", "providerAccountId": "pacct_1"} if key == "p6" else {}),
        }
        if key not in ("p4", "p5"):
            takers = some(choose, tenants, 50)
            for tenant in takers[:1] if single else takers:
                out[f"offer/{key}/{tenant}"] = _offer(choose, key)


def _offer(choose: Choose, pool: str) -> dict[str, Any]:
    out: dict[str, Any] = {**_common(choose), "quota": _quota(choose), "priority": choose.integer(-2, 2) * 500}
    if pool == "p0" and flag(choose, 30):
        out["includeDescendants"] = True
    if flag(choose, 20):
        out["onBudgetExceeded"] = one(choose, ["stop-new", "drain"])
    return out


def _quota(choose: Choose) -> dict[str, Any]:
    sizes: list[Any] = [0, 1, 8, 32, "9007199254740993", "9223372036854775807"]
    return {resource: one(choose, sizes) for resource in some(choose, ["gpu", "gpu.mig", "vcpu"], 50)}


def _entitlements(choose: Choose, out: Objects, tenants: Sequence[str]) -> None:
    keys = some(choose, ["e0", "e1", "e2", "e3", "e4"])
    for key in _forest(choose, out, "entitlement", keys, {}):
        fields = out[f"entitlement/{key}"]
        energy = choose.integer(0, 3) * 10**6
        fields["tenant"] = one(choose, tenants)
        fields["guarantee"] = {"energyUj": energy, "devices": choose.integer(0, 8)}
        fields["overQuotaWeight"] = choose.integer(0, 2)
        fields["priority"] = choose.integer(-1, 1)
        fields["protect"] = flag(choose, 8)
        if flag(choose, 40):
            fields["limit"] = {"energyUj": energy + choose.integer(0, 2)}
        if "parent" not in fields and flag(choose, 30):
            fields["periodMs"] = choose.integer(1, 3) * 86_400_000


def _market(choose: Choose, out: Objects) -> None:
    pools = some(choose, ["m0", "m1"], 70)
    for key in pools:
        explicit_only = flag(choose, 25)
        out[f"market-pool/{key}"] = {**_common(choose), "explicitOnly": explicit_only, "protect": flag(choose, 8)}
        for sku in [] if explicit_only else some(choose, ["x", "y"], 40):
            out[f"procurement/{key}/{sku}"] = {"instanceSku": sku, "nodes": choose.integer(1, 9)}
        if flag(choose, 40):
            out[f"order/buy-{key}"] = {"name": one(choose, ["a", "b"]), "pool": key}
        if flag(choose, 40) and not explicit_only:
            out[f"order/sell-{key}"] = {
                "side": "sell",
                "pool": key,
                "standing": True,
                "maxRateMicrousd": None,
                "minRateMicrousd": 5,
            }
    if len(pools) == 2 and flag(choose, 40):
        out["transfer/x0"] = {"from": "m0", "to": "m1"}
