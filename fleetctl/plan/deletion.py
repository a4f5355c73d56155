"""What the deletion of a tenant takes down, as a person must accept it by its danger `remove:tenant/<key>`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fleetctl.frozen import dataclass
from fleetctl.model.changes import Changes
from fleetctl.model.live import Snapshot
from fleetctl.model.operation import Operation
from fleetctl.model.operational import Node, Reservation
from fleetctl.plan.dangers import Danger, counted, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """Everything that ends with a tenant, objects as `kind/key`, and what goes on.

    `pools` are archived, `sites` removed, `offers` withdrawn (of its pools, and made to it), `reservations` ended. `others`
    counts those of other tenants in its pools, which run to their end; `nodes` are the machines there, which stay joined.
    """

    label: str
    id: str
    pools: tuple[str, ...]
    sites: tuple[str, ...]
    offers: tuple[str, ...]
    reservations: tuple[Reservation, ...]
    others: int
    other_gpus: int
    nodes: int
    fleets: tuple[str, ...]
    """Those that own some of it: while their files have it, their next plan makes it again."""

    def danger(self) -> Danger:
        """Deleting a tenant is a danger even when it has nothing: whoever names it again gets another one."""
        return Danger(
            kind="remove",
            subject=self.label,
            figures={
                "pools": len(self.pools),
                "sites": len(self.sites),
                "offers": len(self.offers),
                "reservations": len(self.reservations),
                "gpus": sum(item.gpus for item in self.reservations if item.state == "active"),
            },
            detail=f"deletes the tenant for good: {'; '.join(self._parts()) or 'it has nothing'}",
        )

    def _parts(self) -> Iterator[str]:
        for number, one, what in (
            (len(self.pools), "pool", f"archived ({some(self.pools)})"),
            (len(self.sites), "site", f"removed ({some(self.sites)})"),
            (len(self.offers), "offer", f"withdrawn ({some(self.offers)})"),
            (len(self.reservations), "reservation", f"ended ({some([item.id for item in self.reservations])})"),
            (self.others, "reservation", f"of other tenants holding {self.other_gpus} gpu left to run to their end"),
        ):
            if number:
                yield f"{counted(number, one)} {what}"


def teardown_of(
    operation: Operation,
    changes: Changes,
    snapshot: Snapshot,
    reservations: Iterable[Reservation],
    nodes: Iterable[Node],
) -> Teardown:
    """What the decided `changes` of a tenant's removal take down. `reservations` are those of it that have not ended."""
    tenant = operation.key
    owned = {item.id: item for item in snapshot.objects.values() if item.kind == "pool" and item.tenant == tenant}
    others = [use for (pool, who), use in snapshot.usage.booked.items() if pool in owned and who != tenant]
    gone = [snapshot.objects[stone.kind, stone.id] for stone in changes.drop]
    return Teardown(
        label=operation.label,
        id=operation.id,
        pools=_labels(item.label for item in changes.put),
        sites=_labels(item.label for item in gone if item.kind == "site"),
        offers=_labels(item.label for item in gone if item.kind == "offer"),
        reservations=tuple(reservations),
        others=sum(use.reservations for use in others),
        other_gpus=sum(use.resources.get("gpu", 0) for use in others),
        nodes=sum(node.pool in owned for node in nodes),
        fleets=tuple(sorted({item.fleet for item in (*changes.put, *gone) if item.fleet is not None})),
    )


def _labels(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(found))
