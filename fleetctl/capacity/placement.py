"""Where a reservation of whole GPUs goes: pure, over the nodes of one pool and what is booked on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fleetctl.model.bodies import PoolClass
from fleetctl.model.ids import ObjectId


class FreeNode(NamedTuple):
    """A node with GPUs that nobody holds."""

    id: ObjectId
    free: int


def adds_capacity(pool_class: PoolClass) -> bool:
    """Machines of a metal-dedicated pool are deployed whole: only `host` nodes can be reserved (seed: "Classes")."""
    return pool_class != "metal-dedicated"


def free_nodes(gpus: Mapping[ObjectId, int], booked: Iterable[tuple[ObjectId, int]]) -> list[FreeNode]:
    """Nodes with what is left on each, by id. `booked` are (node, GPUs) of live reservations."""
    left = dict(gpus)
    for node, amount in booked:
        if node in left:
            left[node] -= amount
    return [FreeNode(id, left[id]) for id in sorted(left) if left[id] > 0]


def place(gpus: int, nodes: Iterable[FreeNode]) -> tuple[tuple[ObjectId, int], ...] | None:
    """(node, GPUs) for `gpus` whole GPUs, or None when they do not fit now.

    The node with the least room that holds all of them; where none does, the fullest-free nodes first, so that a gang
    touches as few machines as can be. Ties by id, which is arbitrary.
    """
    free = sorted(nodes, key=lambda node: (node.free, node.id))
    for node in free:
        if node.free >= gpus:
            return ((node.id, gpus),)
    if sum(node.free for node in free) < gpus:
        return None
    chosen: list[tuple[ObjectId, int]] = []
    for node in sorted(free, key=lambda node: (-node.free, node.id)):
        take = min(node.free, gpus)
        chosen.append((node.id, take))
        gpus -= take
        if not gpus:
            break
    return tuple(sorted(chosen))
