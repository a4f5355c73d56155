"""A snapshot that decisions change step by step: what a plan's later operations see of its earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from fleetctl.model.bodies import Body
from fleetctl.model.changes import Changes
from fleetctl.model.ids import ROOT_TENANT, Kind, ObjectId
from fleetctl.model.live import LiveObject, ObjectKey, Snapshot


class Working:
    """Objects, quotas and tombstones of a snapshot with changes applied; the snapshot itself stays as it was."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._objects = dict(snapshot.objects)
        self._tombstones = dict(snapshot.tombstones)
        self._quotas = {key: dict(rows) for key, rows in snapshot.quotas.items()}
        self._bound = {(item.fleet, item.kind, item.key): item for item in self._objects.values() if item.fleet}
        self._bodies: dict[ObjectKey, Body] = {}
        self._referrers: dict[ObjectKey, dict[ObjectKey, None]] | None = None

    def get(self, kind: Kind, id: str) -> LiveObject | None:
        """The object, archived ones included."""
        return self._objects.get((kind, ObjectId(id)))

    def bound(self, fleet: str, kind: Kind, key: str) -> LiveObject | None:
        """The object that a fleet's key is bound to."""
        return self._bound.get((fleet, kind, key))

    def objects(self, kind: Kind) -> Iterator[LiveObject]:
        """Every object of a kind, archived ones included."""
        return (item for item in self._objects.values() if item.kind == kind)

    def body(self, item: LiveObject) -> Body:
        """The typed body, decoded once."""
        key = (item.kind, item.id)
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = item.body()
        return found

    def tombstone(self, kind: Kind, id: str) -> int:
        """The version the object had when it was removed; 0 if it never was."""
        found = self._tombstones.get((kind, ObjectId(id)))
        return 0 if found is None else found.version

    def quota(self, pool: str, tenant: str) -> dict[str, int]:
        """Quota rows of a tenant in a pool, by resource."""
        return self._quotas.get((ObjectId(pool), tenant), {})

    def tenant_exists(self, tenant: str) -> bool:
        """Whether a tenant is known; the root tenant always is."""
        return tenant == ROOT_TENANT or ("tenant", ObjectId(tenant)) in self._objects

    def referring_to(self, kind: Kind, id: str, *kinds: Kind) -> list[LiveObject]:
        """Live objects of `kinds` whose body names the object, in order of id."""
        if self._referrers is None:
            self._referrers = {}
            for item in self._objects.values():
                self._note_references(item)
        found = self._referrers.get((kind, ObjectId(id)), {})
        return [self._objects[key] for key in sorted(found) if key[0] in kinds]

    def apply(self, changes: Changes) -> None:
        """Take in what a decision changed."""
        for tombstone in changes.drop:
            key = (tombstone.kind, tombstone.id)
            self._tombstones[key] = tombstone
            self._forget(self._objects.pop(key))
        for item in changes.put:
            key = (item.kind, item.id)
            before = self._objects.get(key)
            if before is not None:
                self._forget(before)
            self._objects[key] = item
            if item.fleet:
                self._bound[item.fleet, item.kind, item.key] = item
            if self._referrers is not None:
                self._note_references(item)
        for row in changes.quotas:
            self._quotas.setdefault((row.pool, row.tenant), {})[row.resource] = row.maximum

    def _forget(self, item: LiveObject) -> None:
        if item.fleet:
            self._bound.pop((item.fleet, item.kind, item.key), None)
        if self._referrers is not None:
            for target in self._references(item):
                self._referrers.get(target, {}).pop((item.kind, item.id), None)
        self._bodies.pop((item.kind, item.id), None)

    def _note_references(self, item: LiveObject) -> None:
        if self._referrers is not None:
            for target in self._references(item):
                self._referrers.setdefault(target, {})[item.kind, item.id] = None

    def _references(self, item: LiveObject) -> Iterable[ObjectKey]:
        return references_of(self.body(item))


_ATTRIBUTES = {"marketPool": "market_pool", "from": "from_pool", "to": "to_pool"}


def references_of(body: Body) -> list[ObjectKey]:
    """The (kind, id) pairs that a body names, in field order."""
    out: list[ObjectKey] = []
    for name, kind in body.REFERENCES.items():
        value = cast("str | None", getattr(body, _ATTRIBUTES.get(name, name)))
        if value is not None:
            out.append((kind, ObjectId(value)))
    return out
