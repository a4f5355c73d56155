"""What is in use at one moment: the other half of a snapshot. Folds of reservations and of the entitlement ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fleetctl.frozen import dataclass
from fleetctl.model.ids import ObjectId


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitlementUse:
    """Usage of one entitlement (pool/1 §6.1): S is `spent_uj + reserved_uj`."""

    spent_uj: int = 0
    reserved_uj: int = 0
    devices: int = 0
    open_claims: int = 0

    @property
    def total_uj(self) -> int:
        """S of pool/1 §4.3."""
        return self.spent_uj + self.reserved_uj


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedUse:
    """Live reservations of one tenant in one pool: how many, and how much of each resource they hold."""

    reservations: int = 0
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Everything in use."""

    booked: Mapping[tuple[ObjectId, str], BookedUse] = field(default_factory=dict)
    """(pool id, tenant)."""
    inventory_gpus: Mapping[ObjectId, int] = field(default_factory=dict)
    """GPUs of the nodes that joined, by pool."""
    entitlements: Mapping[str, EntitlementUse] = field(default_factory=dict)
    """By entitlement id; entitlements that left the tree stay here (pool/1 readings A69)."""

    def in_pool(self, pool: str) -> BookedUse:
        """What all tenants together hold in a pool."""
        reservations, total = 0, dict[str, int]()
        for (where, _), use in self.booked.items():
            if where == pool:
                reservations += use.reservations
                for resource, amount in use.resources.items():
                    total[resource] = total.get(resource, 0) + amount
        return BookedUse(reservations=reservations, resources=total)

    def by_tenant(self, pool: str, tenant: str) -> BookedUse:
        """What one tenant holds in a pool."""
        return self.booked.get((ObjectId(pool), tenant), BookedUse())

    def of_entitlement(self, entitlement: str) -> EntitlementUse:
        """Usage of one entitlement; nothing while no claim named it."""
        return self.entitlements.get(entitlement, EntitlementUse())
