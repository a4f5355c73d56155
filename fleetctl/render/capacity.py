"""Pools with their quotas and machines, reservations, nodes, events, authorization rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from fleetctl.capacity.placement import adds_capacity
from fleetctl.model.bodies import PoolBody
from fleetctl.model.changes import AuthzRow
from fleetctl.model.live import LiveObject
from fleetctl.model.operational import Node, Reservation
from fleetctl.render.document import Block, Column, Document, Facts, Heading, Paragraph, Table, Verdict
from fleetctl.render.objects import object_facts, object_json
from fleetctl.render.words import Names, counted
from fleetctl.units import format_ms

if TYPE_CHECKING:
    from fleetctl.ports import StoredEvent

QuotaRows = Sequence[tuple[str, str, int, int]]
"""(tenant, resource, maximum, used)."""


def quotas_json(rows: QuotaRows) -> list[dict[str, Any]]:
    """`available` is what is left, never below 0 (readings B01)."""
    return [
        {"tenant": tenant, "resource": resource, "max": top, "used": used, "available": max(0, top - used)}
        for tenant, resource, top, used in rows
    ]


def quotas_table(rows: QuotaRows) -> Table:
    columns = (
        Column("tenant"),
        Column("resource"),
        Column("max", right=True),
        Column("used", right=True),
        Column("available", right=True),
    )
    return Table(columns, [(a, b, str(top), str(used), str(max(0, top - used))) for a, b, top, used in rows])


def pool_json(pool: LiveObject, rows: QuotaRows, *, owned: bool) -> dict[str, Any]:
    return object_json(pool) | {"owned": owned, "quotas": quotas_json(rows)}


def pool_document(pool: LiveObject, rows: QuotaRows, names: Names) -> Document:
    blocks: list[Block] = [Verdict(pool.label), Facts(object_facts(pool, names))]
    return [*blocks, Heading("Quotas"), quotas_table(rows)] if rows else blocks


def capacity_json(pool: LiveObject, nodes: Sequence[Node], booked: int, rows: QuotaRows) -> dict[str, Any]:
    """Machines of a pool, the GPUs that can be reserved on them, and bookings."""
    return {
        "result": "ok",
        "pool": pool.label,
        "id": pool.id,
        "nodes": len(nodes),
        "gpus": _reservable(pool, nodes),
        "booked_gpus": booked,
        "quotas": quotas_json(rows),
    }


def capacity_document(pool: LiveObject, nodes: Sequence[Node], booked: int, rows: QuotaRows) -> Document:
    total = _reservable(pool, nodes)
    return [
        Verdict(f"{pool.label}: {total - booked} of {total} GPUs free on {counted(len(nodes), 'node')}"),
        quotas_table(rows),
    ]


def _reservable(pool: LiveObject, nodes: Sequence[Node]) -> int:
    if not adds_capacity(cast(PoolBody, pool.body()).pool_class):
        return 0
    return sum(item.gpus for item in nodes)


def node_json(node: Node, names: Names) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": node.id,
        "name": node.name,
        "pool": names.get(node.pool, node.pool),
        "gpus": node.gpus,
        "joined_at": format_ms(node.joined_at_ms),
    }
    more = {"product": node.product, "vram_gib": node.vram_gib, "vcpu": node.vcpu, "memory_gib": node.memory_gib}
    return out | {name: value for name, value in more.items() if value is not None}


def nodes_table(nodes: Iterable[Node], names: Names) -> Table:
    columns = (Column("name"), Column("pool"), Column("gpus", right=True), Column("product"), Column("joined"))
    rows = [
        (item.name, names.get(item.pool, item.pool), str(item.gpus), item.product or "-", format_ms(item.joined_at_ms))
        for item in nodes
    ]
    return Table(columns, rows)


def reservation_json(item: Reservation, names: Names) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": item.id,
        "tenant": item.tenant,
        "pool": names.get(item.pool, item.pool),
        "gpus": item.gpus,
        "state": item.state,
        "created_at": format_ms(item.created_at_ms),
        "placement": [{"node": node, "gpus": gpus} for node, gpus in item.placement],
    }
    ended = None if item.ended_at_ms is None else format_ms(item.ended_at_ms)
    entitlement = None if item.entitlement is None else names.get(item.entitlement, item.entitlement)
    more = {"key": item.key, "entitlement": entitlement, "claim": item.claim, "ended_at": ended, "reason": item.reason}
    return out | {name: value for name, value in more.items() if value is not None}


def reservations_table(items: Iterable[Reservation], names: Names) -> Table:
    columns = (
        Column("id"),
        Column("tenant"),
        Column("pool"),
        Column("gpus", right=True),
        Column("state"),
        Column("why", wraps=True),
    )
    rows = [
        (item.id, item.tenant, names.get(item.pool, item.pool), str(item.gpus), item.state, item.reason or "")
        for item in items
    ]
    return Table(columns, rows)


def reservation_facts(item: Reservation, names: Names) -> list[tuple[str, str]]:
    """A reservation's fields for people."""
    shown = reservation_json(item, names)
    placed = ", ".join(f"{gpus} on {names.get(node, node)}" for node, gpus in item.placement)
    return [(name, placed if name == "placement" else str(value)) for name, value in shown.items() if value != []]


def events_json(events: Iterable[StoredEvent], last: int) -> dict[str, Any]:
    """`next` is what to give as --since for what comes after."""
    rows = [
        {
            "seq": item.seq,
            "at": format_ms(item.at_ms),
            "type": item.event.type,
            "object": item.event.object,
            "tenant": item.event.tenant,
            "data": dict(item.event.data),
        }
        for item in events
    ]
    return {"result": "ok", "next": last, "items": rows}


def events_document(events: Sequence[StoredEvent]) -> Document:
    if not events:
        return [Paragraph("There are no events there.")]
    columns = (Column("seq", right=True), Column("at"), Column("type"), Column("object"), Column("tenant"))
    rows = [
        (str(item.seq), format_ms(item.at_ms), item.event.type, item.event.object, item.event.tenant) for item in events
    ]
    return [Table(columns, rows)]


def authz_json(rows: Iterable[AuthzRow], names: Names) -> dict[str, Any]:
    """The authorization rows that offering writes, with the attributes that tenant policies decide on."""
    items = [
        {
            "pool": names.get(row.pool, row.pool),
            "tenant": row.tenant,
            "gpuModel": row.gpu_model,
            "class": row.pool_class,
            "sharing": row.sharing,
            "region": row.region,
            "owned": row.owned,
        }
        for row in rows
    ]
    return {"result": "ok", "items": items}


def authz_document(rows: Sequence[AuthzRow], names: Names) -> Document:
    if not rows:
        return [Paragraph("There are no authorization rows.")]
    titles = ("pool", "tenant", "gpu", "class", "sharing", "region", "owned")
    cells = [
        (
            names.get(row.pool, row.pool),
            row.tenant,
            row.gpu_model,
            row.pool_class,
            row.sharing,
            row.region,
            "yes" if row.owned else "no",
        )
        for row in rows
    ]
    return [Table([Column(title) for title in titles], cells)]
