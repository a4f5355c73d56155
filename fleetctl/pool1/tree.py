"""The entitlement tree and what is in use of it (pool/1 §2.1, §2.2).

`Tree` is what is declared; `TreeState` adds usage and keeps, for the children of each parent, the three sums that a weighted
share needs, so that a decision costs the same in a tree of ten nodes and of ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fleetctl.diagnostics import Diagnostic, code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.units import MAX_QUANTITY, check_quantity, shown

DUPLICATE_ID = code(
    "tree-duplicate-id",
    "Two entitlements of one tree have the same id",
    trigger="two nodes with id A",
)
SELF_PARENT = code(
    "tree-self-parent",
    "An entitlement is its own parent",
    trigger="node A with parent A",
)
UNKNOWN_PARENT = code(
    "tree-unknown-parent",
    "An entitlement's parent is not in the tree",
    trigger="node A with parent Z and no node Z",
)
CYCLE = code(
    "tree-cycle",
    "Entitlements are each other's ancestors",
    trigger="node A with parent B, node B with parent A",
)


_NAMED = 8  # members of a cycle that its message names


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """A node of the tree (§2.1).

    Raises ValueError for a figure that is no integer from 0 to 2^63-1, and for a priority beyond ±(2^63-1) (A29). A limit below
    the guarantee is a contradiction that files may not hold; here it is evaluated as written (A17).
    """

    id: str
    parent: str | None
    guarantee_uj: int
    guarantee_devices: int
    over_quota_weight: int
    limit_uj: int | None = None
    priority: int = 0

    def __post_init__(self) -> None:
        check_quantity(self.guarantee_uj, "guarantee_uj")
        check_quantity(self.guarantee_devices, "guarantee_devices")
        check_quantity(self.over_quota_weight, "over_quota_weight")
        if self.limit_uj is not None:
            check_quantity(self.limit_uj, "limit_uj")
        if type(self.priority) is not int or abs(self.priority) > MAX_QUANTITY:
            raise ValueError(f"priority must be an integer within ±{MAX_QUANTITY}, not {self.priority!r}")


class Tree:
    """Entitlements by id, checked as a whole: a malformed tree is refused, never repaired (A70)."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: Iterable[Entitlement]) -> None:
        """Raises BadInput with every fault: duplicate id, self-parent, unknown parent, cycle."""
        by_id: dict[str, Entitlement] = {}
        faults: list[Diagnostic] = []
        for node in nodes:
            if node.id in by_id:
                faults.append(DUPLICATE_ID.at(f"the id {shown(node.id)} is given to two entitlements; rename one"))
            by_id.setdefault(node.id, node)
        faults.extend(_parent_faults(by_id))
        if faults:
            raise BadInput(faults)
        self.nodes: Mapping[str, Entitlement] = by_id

    def __iter__(self) -> Iterator[Entitlement]:
        return iter(self.nodes.values())


def _parent_faults(nodes: Mapping[str, Entitlement]) -> Iterator[Diagnostic]:
    rooted: set[str] = set()
    for node in nodes.values():
        if node.parent == node.id:
            yield SELF_PARENT.at(f"{shown(node.id)} is its own parent; leave the parent out to make it a root")
        elif node.parent is not None and node.parent not in nodes:
            yield UNKNOWN_PARENT.at(
                f"{shown(node.id)} has the parent {shown(node.parent)}, which is not in the tree; declare it or correct the name"
            )
        elif (ring := _ring(node.id, nodes, rooted)) is not None:
            first = ", ".join(shown(item) for item in ring[:_NAMED])
            yield CYCLE.at(f"{first}{' and others' * (len(ring) > _NAMED)} go round; make one of them a root")


def _ring(start: str, nodes: Mapping[str, Entitlement], rooted: set[str]) -> list[str] | None:
    """The cycle that `start` leads into, or None. Every node walked joins `rooted`, so that a cycle is found once, in linear time."""
    walked: dict[str, None] = {}
    here: str | None = start
    while here is not None and here in nodes and here not in rooted:
        if here in walked:
            ring = list(walked)[list(walked).index(here) :]
            rooted.update(walked)
            return ring if len(ring) > 1 else None
        walked[here] = None
        here = nodes[here].parent
    rooted.update(walked)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What is in use of one entitlement: settled energy, energy reserved by open claims, devices held.

    Settled and reserved count alike (A01): together they are S, `used_uj`. Sums may exceed 64 bits in memory (A29).
    """

    spent_uj: int = 0
    reserved_uj: int = 0
    devices: int = 0

    def __post_init__(self) -> None:
        if min(self.spent_uj, self.reserved_uj, self.devices) < 0:
            raise ValueError(f"usage cannot be negative: {self}")

    @property
    def used_uj(self) -> int:
        """S."""
        return self.spent_uj + self.reserved_uj


class Siblings:
    """Sums over the children of one parent: ΣG, Σw and Σ max(0, G−S). Roots have no siblings (A10)."""

    __slots__ = ("guarantee_uj", "surplus_uj", "weight")

    def __init__(self) -> None:
        self.guarantee_uj = 0
        self.weight = 0
        self.surplus_uj = 0


class Node:
    """One entitlement's figures beside what is in use of it. Read it; change it through its TreeState."""

    __slots__ = (
        "entitlement",
        "guarantee_devices",
        "guarantee_uj",
        "held",
        "limit_uj",
        "siblings",
        "spent_uj",
        "used_uj",
        "weight",
    )

    def __init__(self, entitlement: Entitlement, siblings: Siblings | None, usage: Usage) -> None:
        self.entitlement = entitlement
        self.guarantee_uj = entitlement.guarantee_uj
        self.guarantee_devices = entitlement.guarantee_devices
        self.weight = entitlement.over_quota_weight
        self.limit_uj = entitlement.limit_uj
        self.siblings = siblings
        self.spent_uj = usage.spent_uj
        self.used_uj = usage.used_uj
        self.held = usage.devices

    @property
    def unspent_uj(self) -> int:
        """What it lends: max(0, G−S), never less than nothing when it overran (A07)."""
        return max(0, self.guarantee_uj - self.used_uj)


class TreeState:
    """A tree and its usage. `reserve` and `release` are the two events of §6.2; each keeps the sums in constant time.

    Usage of entitlements that the tree does not hold is kept apart: it lends nothing and weighs nothing (A69).
    """

    __slots__ = ("nodes", "orphans", "tree")

    def __init__(self, tree: Tree, usage: Mapping[str, Usage] | None = None) -> None:
        given = usage or {}
        groups: dict[str, Siblings] = {}
        none = Usage()
        self.tree = tree
        self.nodes: dict[str, Node] = {}
        self.orphans: dict[str, Usage] = {name: used for name, used in given.items() if name not in tree.nodes}
        for item in tree:
            siblings = groups.setdefault(item.parent, Siblings()) if item.parent is not None else None
            node = self.nodes[item.id] = Node(item, siblings, given.get(item.id, none))
            if siblings is not None:
                siblings.guarantee_uj += node.guarantee_uj
                siblings.weight += node.weight
                siblings.surplus_uj += node.unspent_uj

    def usage(self, entitlement: str) -> Usage:
        """What is in use of an entitlement, in the tree or not; nothing for a name never used."""
        node = self.nodes.get(entitlement)
        if node is None:
            return self.orphans.get(entitlement, Usage())
        return Usage(spent_uj=node.spent_uj, reserved_uj=node.used_uj - node.spent_uj, devices=node.held)

    def with_tree(self, tree: Tree) -> TreeState:
        """The same usage under another tree: no event, no eviction, whatever the new figures are (A35, A69)."""
        names = [*self.nodes, *self.orphans]
        return TreeState(tree, {name: used for name in names if (used := self.usage(name)) != Usage()})

    def reserve(self, entitlement: str, *, energy_uj: int, devices: int) -> None:
        """`Admitted`: the whole estimate is held against the entitlement (§3, §6.2)."""
        check_quantity(energy_uj, "energy_uj")
        check_quantity(devices, "devices")
        self._move(entitlement, spent_uj=0, reserved_uj=energy_uj, devices=devices)

    def release(self, entitlement: str, *, reserved_uj: int, devices: int, actual_uj: int) -> None:
        """`Released`: the reservation is lifted and the actual figure charged in its place, whatever the limit (§6.2, A37).

        Raises ValueError for more than is reserved or held: that release belongs to no admission.
        """
        check_quantity(reserved_uj, "reserved_uj")
        check_quantity(devices, "devices")
        check_quantity(actual_uj, "actual_uj")
        self._move(entitlement, spent_uj=actual_uj, reserved_uj=-reserved_uj, devices=-devices)

    def _move(self, entitlement: str, *, spent_uj: int, reserved_uj: int, devices: int) -> None:
        before = self.usage(entitlement)
        after = Usage(
            spent_uj=before.spent_uj + spent_uj,
            reserved_uj=before.reserved_uj + reserved_uj,
            devices=before.devices + devices,
        )
        node = self.nodes.get(entitlement)
        if node is None:
            self.orphans[entitlement] = after
            return
        lent = node.unspent_uj
        node.spent_uj, node.used_uj, node.held = after.spent_uj, after.used_uj, after.devices
        if node.siblings is not None:
            node.siblings.surplus_uj += node.unspent_uj - lent
