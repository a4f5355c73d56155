"""How every entitlement stands: what it has spent, holds and borrowed, and what it could still be admitted for (pool/1 §2, §4).

Everything is derived by replay of the ledger under today's tree (§6.1); nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetctl.engine.builders import find
from fleetctl.engine.claims import tree_state
from fleetctl.engine.context import Engine, check_identity
from fleetctl.engine.state import load_snapshot
from fleetctl.engine.streams import Usages, read_usages, read_window
from fleetctl.engine.windows import Span, find_window, spans_of
from fleetctl.frozen import dataclass
from fleetctl.model.live import Snapshot
from fleetctl.model.usage import EntitlementUse
from fleetctl.pool1.admission import basis_of
from fleetctl.pool1.tree import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What an entitlement of the tree may still be admitted for, in microjoules.

    `share_uj`: its weighted share of its siblings' surplus (§2.2). `left_uj`: inside its guarantee, at any grade (§4.3).
    `headroom_uj`: the largest observed estimate that its energy admits now (§4.4). `deficit_uj`: what it uses above its guarantee
    without an open claim that was admitted as borrowing it: an overrun, borrowed energy that is spent, or a guarantee
    that was lowered (readings A35).
    """

    share_uj: int
    left_uj: int
    headroom_uj: int
    deficit_uj: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One entitlement. `borrowed_uj`: of its open claims, as they were admitted. `grade`: the weakest of the figures that count.

    `grade` is None while there is none; `room` is None for one that left the tree: it lends nothing and weighs nothing (A69).
    """

    use: EntitlementUse
    borrowed_uj: int = 0
    grade: str | None = None
    room: Room | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """Every entitlement of the tree, and every other that the ledger names, by id; `span` is the window that they stand in.

    In a closed window nothing is admitted any more: what stands there is its usage beside today's tree.
    """

    snapshot: Snapshot
    span: Span
    by_id: Mapping[str, Standing]


def read_standings(engine: Engine, window: str | None = None) -> Standings:
    """How everything stands in the window in force, or in the one that is named.

    Raises SafetyRefused for another engine's state, Tampered, BadInput for a tree that cannot be and for an unknown window.
    """
    with engine.store.read() as reader:
        check_identity(engine, reader)
        usages = read_usages(engine, reader)
        span = spans_of(engine, reader)[-1] if window is None else find_window(engine, reader, window)
        if span.stream != usages.stream:
            usages = read_window(engine, reader, span.stream)
        snapshot = load_snapshot(engine, reader, usages)
    nodes = tree_state(snapshot.objects.values(), usages).nodes
    borrowed = _borrowed(usages)
    grades = {name: use.grade for name, use in usages.fold.usage.items()}
    return Standings(
        snapshot=snapshot,
        span=span,
        by_id={
            name: Standing(
                use=snapshot.usage.of_entitlement(name),
                borrowed_uj=borrowed.get(name, 0),
                grade=grades.get(name),
                room=room(nodes[name], borrowed.get(name, 0)) if name in nodes else None,
            )
            for name in sorted({*nodes, *usages.entitlements})
        },
    )


def named(found: Standings, id_or_key: str) -> str:
    """The id of an entitlement that the tree has or had, given as to `find`. Raises EngineRefused for one that is not there, BadInput for several."""
    id_or_key = id_or_key.removeprefix("entitlement/")
    live = {item.key for item in found.snapshot.objects.values() if item.kind == "entitlement"}
    gone = [
        str(stone.id)
        for stone in found.snapshot.tombstones.values()
        if stone.kind == "entitlement" and id_or_key in (stone.id, stone.key) and stone.id in found.by_id
    ]
    if len(gone) == 1 and id_or_key not in live:
        return gone[0]
    return str(find(found.snapshot, "entitlement", id_or_key).id)


def room(node: Node, borrowed_uj: int = 0) -> Room:
    """What an entitlement may still be admitted for. `borrowed_uj`: what its open claims were admitted to borrow."""
    share = basis_of(node).share_uj
    most = node.guarantee_uj + share
    if node.limit_uj is not None:
        most = min(most, node.limit_uj)
    left = node.unspent_uj
    return Room(
        share_uj=share,
        left_uj=left,
        headroom_uj=max(left, most - node.used_uj),
        deficit_uj=max(0, node.used_uj - node.guarantee_uj - borrowed_uj),
    )


def _borrowed(usages: Usages) -> dict[str, int]:
    found: dict[str, int] = {}
    for claim in usages.fold.open_claims.values():
        found[claim.entitlement] = found.get(claim.entitlement, 0) + claim.borrowed_uj
    return found
