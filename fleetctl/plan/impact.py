"""Who loses or gains what, in which unit, against what is in use now. Computed for every plan and shown first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from fleetctl.canonical import Json
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import OfferBody
from fleetctl.model.codec import unwide, wide
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import Snapshot, State
from fleetctl.model.operation import Operation
from fleetctl.model.usage import EntitlementUse
from fleetctl.units import format_energy

Unit = Literal["count", "uj"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactRow:
    """One tenant's figure on one object, before and after; `in_use` is of this moment. `gone`: nothing is left to use."""

    tenant: str
    subject: str
    resource: str
    unit: Unit
    before: int
    after: int
    in_use: int
    gone: bool = False

    @property
    def effect(self) -> str:
        """What follows for the tenant, in a sentence."""
        if self.after >= self.before:
            return "gains"
        if self.in_use <= self.after:
            return "loses; what is in use still fits"
        if self.gone:
            return "loses; what runs keeps running, nothing new starts"
        over = self.in_use - self.after
        # Energy that was spent stays spent until the window ends.
        until = f"{format_energy(over)} or a new window begins" if self.unit == "uj" else str(over)
        return f"loses; what runs keeps running, new work queues until use falls by {until}"

    def to_json(self) -> dict[str, Json]:
        return {
            "tenant": self.tenant,
            "object": self.subject,
            "resource": self.resource,
            "unit": self.unit,
            "before": wide(self.before),
            "after": wide(self.after),
            "inUse": wide(self.in_use),
            "effect": self.effect,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversubscription:
    """Whole GPUs offered in a pool to other tenants against those in inventory, before and after."""

    pool: str
    inventory: int
    offered_before: int
    offered_after: int

    def to_json(self) -> dict[str, Json]:
        return {
            "pool": self.pool,
            "inventoryGpus": self.inventory,
            "offeredBefore": wide(self.offered_before),
            "offeredAfter": wide(self.offered_after),
        }


def impact(operations: Sequence[Operation], snapshot: Snapshot) -> list[ImpactRow]:
    """Rows for every figure that a tenant gains or loses, losers first, then by tenant, object and resource."""
    rows = [row for item in operations for row in _rows(item, snapshot) if row.before != row.after]
    return sorted(rows, key=lambda row: (row.after >= row.before, row.tenant, row.subject, row.resource))


def oversubscription(operations: Sequence[Operation], snapshot: Snapshot) -> list[Oversubscription]:
    """Pools whose offers change and whose inventory is known, by key (readings B26)."""
    changes: dict[str, int] = {}
    for item in operations:
        state = item.after or item.before or {}
        if item.kind == "offer" and not _to_owner(snapshot, str(state["pool"]), str(state["to"])):
            delta = _counts(item.after, "quota").get("gpu", 0) - _counts(item.before, "quota").get("gpu", 0)
            changes[str(state["pool"])] = changes.get(str(state["pool"]), 0) + delta
    offered: dict[str, int] = {}
    if changes:
        for live in snapshot.objects.values():
            if live.kind == "offer":
                body = cast(OfferBody, live.body())
                if not _to_owner(snapshot, body.pool, body.to):
                    offered[body.pool] = offered.get(body.pool, 0) + body.quota.get("gpu", 0)
    out = []
    for pool, delta in changes.items():
        found = snapshot.objects.get(("pool", ObjectId(pool)))
        inventory = snapshot.usage.inventory_gpus.get(ObjectId(pool), 0)
        if found is not None and inventory and delta:
            was = offered.get(pool, 0)
            out.append(
                Oversubscription(pool=found.label, inventory=inventory, offered_before=was, offered_after=was + delta)
            )
    return sorted(out, key=lambda row: row.pool)


def _to_owner(snapshot: Snapshot, pool: str, tenant: str) -> bool:
    found = snapshot.objects.get(("pool", ObjectId(pool)))
    return found is not None and found.tenant == tenant


def _rows(item: Operation, snapshot: Snapshot) -> Iterator[ImpactRow]:
    if item.kind == "offer":
        yield from _offer_rows(item, snapshot)
    elif item.kind == "entitlement":
        yield from _entitlement_rows(item, snapshot)
    elif item.kind == "pool" and item.verb == "remove":
        yield from _archived_rows(item, snapshot)


def _offer_rows(item: Operation, snapshot: Snapshot) -> Iterator[ImpactRow]:
    state = item.after or item.before or {}
    tenant, pool = str(state["to"]), str(state["pool"])
    was, now = _counts(item.before, "quota"), _counts(item.after, "quota")
    used = snapshot.usage.by_tenant(pool, tenant).resources
    for resource in sorted(was.keys() | now.keys()):
        yield ImpactRow(
            tenant=tenant,
            subject=item.label,
            resource=resource,
            unit="count",
            before=was.get(resource, 0),
            after=now.get(resource, 0),
            in_use=used.get(resource, 0),
            gone=item.after is None,
        )


def _archived_rows(item: Operation, snapshot: Snapshot) -> Iterator[ImpactRow]:
    """Offers of other fleets end with the pool; the plan has no operation of its own for them."""
    for live in snapshot.objects.values():
        owner = snapshot.objects.get((item.kind, item.id))
        if live.kind != "offer" or owner is None or live.fleet == owner.fleet:
            continue
        body = cast(OfferBody, live.body())
        if body.pool != item.id:
            continue
        used = snapshot.usage.by_tenant(body.pool, body.to).resources
        for resource, maximum in sorted(body.quota.items()):
            yield ImpactRow(
                tenant=body.to,
                subject=live.label,
                resource=resource,
                unit="count",
                before=maximum,
                after=0,
                in_use=used.get(resource, 0),
                gone=True,
            )


def _entitlement_rows(item: Operation, snapshot: Snapshot) -> Iterator[ImpactRow]:
    """An entitlement that moves to another tenant is a loss of the one and a gain of the other."""
    was, now = (None if state is None else str(state["tenant"]) for state in (item.before, item.after))
    if was is not None and was != now:
        yield from _guarantee_rows(item, snapshot, was, item.before, None)
    if now is not None:
        yield from _guarantee_rows(item, snapshot, now, item.before if was == now else None, item.after)


def _guarantee_rows(
    item: Operation, snapshot: Snapshot, tenant: str, before: State | None, after: State | None
) -> Iterator[ImpactRow]:
    use = snapshot.usage.of_entitlement(item.id) if before is not None else EntitlementUse()
    rows: tuple[tuple[str, str, Unit, int], ...] = (
        ("guarantee.energy", "energyUj", "uj", use.total_uj),
        ("guarantee.devices", "devices", "count", use.devices),
    )
    for resource, name, unit, in_use in rows:
        yield ImpactRow(
            tenant=tenant,
            subject=item.label,
            resource=resource,
            unit=unit,
            before=_guarantee(before, name),
            after=_guarantee(after, name),
            in_use=in_use,
            gone=after is None,
        )


def _counts(state: Mapping[str, Any] | None, name: str) -> dict[str, int]:
    return {resource: unwide(value) for resource, value in ((state or {}).get(name) or {}).items()}


def _guarantee(state: Mapping[str, Any] | None, name: str) -> int:
    return unwide(((state or {}).get("guarantee") or {}).get(name, 0))
