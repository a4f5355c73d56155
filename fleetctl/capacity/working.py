"""A snapshot that decisions change step by step: what a plan's later operations see of its earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from fleetctl.capacity.policy import PolicyProblem
from fleetctl.model.bodies import Body, SettingsBody
from fleetctl.model.changes import Changes
from fleetctl.model.ids import ROOT_TENANT, SETTINGS_ID, Kind, ObjectId
from fleetctl.model.live import LiveObject, ObjectKey, Snapshot, State


class Working:
    """Objects, quotas and tombstones of a snapshot with changes applied; the snapshot itself stays as it was."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._objects = dict(snapshot.objects)
        self._tombstones = dict(snapshot.tombstones)
        self._quotas = {key: dict(rows) for key, rows in snapshot.quotas.items()}
        self._bound = {(item.fleet, item.kind, item.key): item for item in self._objects.values() if item.fleet}
        self._bodies: dict[tuple[Kind, ObjectId, int], Body] = {}
        self._states: dict[tuple[Kind, ObjectId, int], State] = {}
        self._referrers: dict[Kind, dict[ObjectKey, dict[ObjectKey, None]]] = {}
        self._policies: dict[object, Sequence[PolicyProblem]] = {}
        self._settings: SettingsBody | None = None
        self._descendants: dict[str, set[str]] = {}

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
        """The typed body, decoded once for each version."""
        key = (item.kind, item.id, item.version)
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = item.body()
        return found

    def know(self, item: LiveObject, body: Body) -> None:
        """Spare decoding the body of an object that is about to be applied."""
        self._bodies[item.kind, item.id, item.version] = body

    def state(self, item: LiveObject) -> State:
        """The flat state, parsed once for each version."""
        key = (item.kind, item.id, item.version)
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = item.state()
        return found

    def know_state(self, item: LiveObject, state: State) -> None:
        """Spare parsing the state of an object whose `state()` the caller has."""
        self._states[item.kind, item.id, item.version] = state

    def settings(self) -> SettingsBody:
        """The engine's settings, decoded once; their defaults while nothing was set."""
        if self._settings is None:
            found = self.get("settings", SETTINGS_ID)
            self._settings = SettingsBody() if found is None else cast(SettingsBody, self.body(found))
        return self._settings

    def once(self, key: object, check: Callable[[], Sequence[PolicyProblem]]) -> Sequence[PolicyProblem]:
        """What `check` found, asked once for each key: pools of a fleet share their policies."""
        found = self._policies.get(key)
        if found is None:
            found = self._policies[key] = check()
        return found

    def tombstone(self, kind: Kind, id: str) -> int:
        """The version the object had when it was removed; 0 if it never was."""
        found = self._tombstones.get((kind, ObjectId(id)))
        return 0 if found is None else found.version

    def quota(self, pool: str, tenant: str) -> dict[str, int]:
        """Quota rows of a tenant in a pool, by resource."""
        return self._quotas.get((ObjectId(pool), tenant), {})

    def quota_keys(self) -> list[tuple[ObjectId, str]]:
        """(pool id, tenant) of all quota rows, sorted."""
        return sorted(self._quotas)

    def tenant_exists(self, tenant: str) -> bool:
        """Whether a tenant is known; the root tenant always is."""
        return tenant == ROOT_TENANT or ("tenant", ObjectId(tenant)) in self._objects

    def descendants(self, tenant: str) -> set[str]:
        """Tenants already known to be `tenant` or under it, for the caller to add to; forgotten when a tenant moves or ends."""
        return self._descendants.setdefault(tenant, {tenant})

    def referring_to(self, kind: Kind, id: str, *kinds: Kind) -> list[LiveObject]:
        """Live objects of `kinds` whose body names the object, in order of kind and id."""
        target = (kind, ObjectId(id))
        return [self._objects[key] for kind in sorted(kinds) for key in sorted(self._index(kind).get(target, ()))]

    def apply(self, changes: Changes) -> None:
        """Take in what a decision changed."""
        for tombstone in changes.drop:
            key = (tombstone.kind, tombstone.id)
            self._tombstones[key] = tombstone
            self._forget(self._objects.pop(key))
            if tombstone.kind == "tenant":
                self._descendants.clear()
        for item in changes.put:
            key = (item.kind, item.id)
            before = self._objects.get(key)
            if before is not None:
                self._forget(before)
                if item.kind == "tenant":
                    self._descendants.clear()
            self._objects[key] = item
            if item.fleet:
                self._bound[item.fleet, item.kind, item.key] = item
            self._note_references(item)
            if item.kind == "settings":
                self._settings = None
                self._policies.clear()
        for row in changes.quotas:
            self._quotas.setdefault((row.pool, row.tenant), {})[row.resource] = row.maximum

    def _forget(self, item: LiveObject) -> None:
        if item.fleet:
            self._bound.pop((item.fleet, item.kind, item.key), None)
        index = self._referrers.get(item.kind)
        if index is not None:
            for target in references_of(self.body(item)):
                index.get(target, {}).pop((item.kind, item.id), None)

    def _index(self, kind: Kind) -> dict[ObjectKey, dict[ObjectKey, None]]:
        """What objects of a kind refer to, by target; built when first asked for."""
        if kind not in self._referrers:
            self._referrers[kind] = {}
            for item in self.objects(kind):
                self._note_references(item)
        return self._referrers[kind]

    def _note_references(self, item: LiveObject) -> None:
        index = self._referrers.get(item.kind)
        if index is not None:
            for target in references_of(self.body(item)):
                index.setdefault(target, {})[item.kind, item.id] = None


_ATTRIBUTES = {"marketPool": "market_pool", "from": "from_pool", "to": "to_pool"}


def references_of(body: Body) -> list[ObjectKey]:
    """The (kind, id) pairs that a body names, in field order."""
    out: list[ObjectKey] = []
    for name, kind in body.REFERENCES.items():
        value = cast("str | None", getattr(body, _ATTRIBUTES.get(name, name)))
        if value is not None:
            out.append((kind, ObjectId(value)))
    return out
