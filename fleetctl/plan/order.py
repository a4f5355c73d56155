"""The total order of a plan: display order is apply order.

1. what nothing depends on leaves: transfers, orders, procurements, offers, each by key;
2. creations, updates, renames and adoptions: by kind (tenants, sites, pools, offers, entitlements, market pools,
   procurements, orders, transfers), parents before children, then by key;
3. the rest leaves, the other way round: market pools, entitlements (children before parents), pools, by key;
4. releases, by kind and key.

Ties are broken by id, which is arbitrary. So a withdrawn offer makes room for another one, names may swap, and a parent outlives its children.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fleetctl.model.ids import KIND_RANK, Kind, ObjectId
from fleetctl.model.operation import Operation

_LEAVES: frozenset[Kind] = frozenset({"offer", "procurement", "order", "transfer"})

OrderKey = tuple[int, int, int, str, str]


def order_key(operation: Operation, depth: int) -> OrderKey:
    """(phase, kind, depth, key, id); `depth` is the number of ancestors of the object's own kind."""
    rank = KIND_RANK[operation.kind]
    if operation.verb == "remove":
        phase = 1 if operation.kind in _LEAVES else 3
        return (phase, -rank, -depth, operation.key, operation.id)
    return (4 if operation.verb == "release" else 2, rank, depth, operation.key, operation.id)


def in_order(operations: Iterable[Operation], parents: Mapping[ObjectId, str | None]) -> list[Operation]:
    """Operations in their total order. `parents` maps ids of tenants and entitlements to their parent's id."""
    depths = _Depths(parents)
    return sorted(operations, key=lambda item: order_key(item, depths.of(item.id)))


class _Depths:
    """Numbers of ancestors, each counted once. Those who go round have none: the kind's rules refuse them."""

    def __init__(self, parents: Mapping[ObjectId, str | None]) -> None:
        self._parents = parents
        self._known: dict[str, int] = {}

    def of(self, id: ObjectId) -> int:
        chain: dict[str, None] = {}  # in order, and quick to look into
        current: str | None = id
        while current is not None and current not in self._known and current in self._parents:
            if current in chain:
                names = list(chain)
                self._known |= dict.fromkeys(names[names.index(current) :], 0)
                break
            chain[current] = None
            current = self._parents[ObjectId(current)]
        depth = self._known.get(current, -1) if current is not None else -1
        for item in reversed([item for item in chain if item not in self._known]):
            depth += 1
            self._known[item] = depth
        return self._known.get(id, 0)
