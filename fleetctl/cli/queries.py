"""What list and get commands read: one consistent reading, its usage verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fleetctl.frozen import dataclass
from fleetctl.model.bodies import OfferBody, SiteBody
from fleetctl.model.ids import ROOT_TENANT, Kind, ObjectId
from fleetctl.model.live import LiveObject, Snapshot
from fleetctl.model.operational import Node, Reservation

if TYPE_CHECKING:
    from fleetctl.engine.context import Engine
    from fleetctl.ledger.usage import OpenClaim
    from fleetctl.ports import StoredEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An engine as one tenant sees it; `viewer` None is whoever holds the state and sees everything."""

    snapshot: Snapshot
    viewer: str | None
    nodes: tuple[Node, ...] = ()
    reservations: tuple[Reservation, ...] = ()

    @property
    def acting(self) -> str:
        """Whose `owned` it is: the viewer, else the root tenant."""
        return self.viewer or ROOT_TENANT

    def of_kind(self, kind: Kind) -> list[LiveObject]:
        """Objects of a kind that the viewer sees, by key; ties by id, which is arbitrary."""
        found = (item for item in self.snapshot.objects.values() if item.kind == kind and self._visible(item))
        return sorted(found, key=lambda item: (item.key, item.id))

    def pool(self, id_or_key: str) -> LiveObject:
        """A pool that the viewer sees. Raises EngineRefused (NOT_FOUND, whatever the reason)."""
        from fleetctl.engine.builders import find, refuse_unknown

        found = find(self.snapshot, "pool", id_or_key)
        if not self._visible(found):
            refuse_unknown("pool", id_or_key)
        return found

    def quotas(self, pool: str) -> list[tuple[str, str, int, int]]:
        """(tenant, resource, maximum, used) of a pool's quota rows that the viewer sees, sorted."""
        out = []
        for (where, tenant), rows in self.snapshot.quotas.items():
            if where == pool and self.viewer in (None, tenant, self._owner(pool)):
                used = self.snapshot.usage.by_tenant(pool, tenant).resources
                out += [(tenant, resource, maximum, used.get(resource, 0)) for resource, maximum in rows.items()]
        return sorted(out)

    def _visible(self, item: LiveObject) -> bool:
        """A pool is seen by its owner and, until it is archived, by the tenants it is offered to (seed, "Offerings")."""
        if self.viewer is None or item.tenant == self.viewer:
            return True
        if item.kind == "pool":
            return not item.archived and self._offered(item)
        if item.kind == "site":
            return cast(SiteBody, item.body()).tenant == self.viewer
        if item.kind == "offer":
            return cast(OfferBody, item.body()).to == self.viewer
        return item.kind == "tenant" and item.id == self.viewer

    def _offered(self, pool: LiveObject) -> bool:
        offers = (item.body() for item in self.snapshot.objects.values() if item.kind == "offer")
        return any((body := cast(OfferBody, found)).pool == pool.id and body.to == self.viewer for found in offers)

    def _owner(self, pool: str) -> str | None:
        found = self.snapshot.objects.get(("pool", ObjectId(pool)))
        return None if found is None else found.tenant


def look(engine: Engine, viewer: str | None) -> Seen:
    """Everything that lists need. Raises SafetyRefused, Tampered."""
    from fleetctl.engine.planning import read_snapshot

    with engine.store.read() as reader:
        return Seen(
            snapshot=read_snapshot(engine, reader),
            viewer=viewer,
            nodes=tuple(reader.nodes()),
            reservations=tuple(reader.reservations()),
        )


def open_claims(engine: Engine) -> tuple[list[tuple[str, OpenClaim]], dict[str, tuple[str, int]]]:
    """The claims that are open in the entitlement ledger, in order of admission; and of those that went on from earlier windows the id
    that each began with and what those windows were charged. Raises Tampered.
    """
    from fleetctl.engine.context import check_identity
    from fleetctl.engine.continuing import parts_of
    from fleetctl.engine.streams import read_usages

    with engine.store.read() as reader:
        check_identity(engine, reader)
        usages = read_usages(engine, reader)
        opened = sorted(usages.fold.open_claims.items(), key=lambda item: item[1].seq)
        parts = {id: list(parts_of(engine, reader, usages, id)) for id, _ in opened if usages.fold.is_carried(id)}
    return opened, {id: (found[-1].claim, sum(part.spent_uj for part in found)) for id, found in parts.items()}


def events_after(engine: Engine, since: int, limit: int, viewer: str | None) -> tuple[list[StoredEvent], int]:
    """At most `limit` events after `since` that the viewer sees, and the last sequence number that was looked at."""
    from fleetctl.engine.context import check_identity

    found: list[StoredEvent] = []
    with engine.store.read() as reader:
        check_identity(engine, reader)
        while len(found) < limit and (page := reader.events(since, limit)):
            for item in page:
                since = item.seq
                if viewer in (None, item.event.tenant):
                    found.append(item)
                    if len(found) == limit:
                        break
    return found, since
