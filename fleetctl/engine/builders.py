"""Operations of single commands, built from the snapshot under the lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from fleetctl.capacity.refusals import INVALID_STATE, NOT_FOUND, refuse
from fleetctl.engine.calls import Build, Nothing
from fleetctl.engine.context import Engine
from fleetctl.model.bodies import BODY_TYPES, Body, SettingsBody
from fleetctl.model.ids import ROOT_TENANT, SETTINGS_ID, Kind, ObjectId, cli_caller, derive_id, object_name, ulid_id
from fleetctl.model.live import LiveObject, ObjectKey, Snapshot, State, state_of
from fleetctl.model.operation import Operation, Precondition


def creation(
    engine: Engine,
    kind: Kind,
    body: Body,
    *,
    tenant: str,
    key: str | None,
    name: str,
    same: frozenset[str] = frozenset(),
    **flags: bool,
) -> Build:
    """Builds a creation under `key` (absent: an id of its own).

    The same key again is the same object: nothing is done, unless a field in `same` differs, which is CONFLICT.
    """

    def build(snapshot: Snapshot) -> Operation | Nothing:
        state = state_of(kind, body, name=name, **flags)
        id = (
            derive_id(kind, tenant, cli_caller(tenant), key)
            if key is not None
            else ulid_id(kind, engine.clock.now_ms(), engine.entropy(10))
        )
        found = snapshot.objects.get((kind, id))
        if found is not None and not found.archived and not _differs(found, state, same):
            return Nothing(found)
        stone = snapshot.tombstones.get((kind, id))
        return Operation(
            verb="create",
            kind=kind,
            key=key or id,
            id=id,
            after=state,
            precondition=Precondition(absent=stone.version if stone else 0),
            reason="called",
        )

    return build


def change(kind: Kind, id: str, edit: Callable[[Snapshot, LiveObject], Body]) -> Build:
    """Builds an update of a live object: `edit` gives the new body."""

    def build(snapshot: Snapshot) -> Operation | Nothing:
        live = find(snapshot, kind, id)
        body = edit(snapshot, live)
        state = state_of(kind, body, name=live.name, protect=live.protect, explicit_only=live.explicit_only)
        return _update(live, state)

    return build


def flag(kind: Kind, id: str, **flags: bool) -> Build:
    """Builds a change of `protect` or `explicit_only`."""

    def build(snapshot: Snapshot) -> Operation | Nothing:
        live = find(snapshot, kind, id)
        wanted = {"protect": live.protect, "explicit_only": live.explicit_only, **flags}
        return _update(live, state_of(kind, live.body(), name=live.name, **wanted))

    return build


def _update(live: LiveObject, state: State) -> Operation | Nothing:
    before = live.state()
    if state == before:
        return Nothing(live)
    return Operation(
        verb="update",
        kind=live.kind,
        key=live.key,
        id=live.id,
        before=before,
        after=state,
        precondition=Precondition(version=live.version),
        reason="called",
    )


def removal(kind: Kind, id: str) -> Build:
    """Builds a removal (an archive, for pools). An archived or absent object is nothing to do for pools."""

    def build(snapshot: Snapshot) -> Operation | Nothing:
        live = find(snapshot, kind, id)
        if live.archived:
            return Nothing(live)
        return Operation(
            verb="remove",
            kind=kind,
            key=live.key,
            id=live.id,
            before=live.state(),
            precondition=Precondition(version=live.version),
            reversible=kind not in ("pool", "tenant"),
            reason="called",
        )

    return build


def deletion(tenant: str) -> Build:
    """Builds the deletion of a tenant; nothing when it was deleted before."""

    def build(snapshot: Snapshot) -> Operation | Nothing:
        key: ObjectKey = ("tenant", ObjectId(tenant))
        if tenant == ROOT_TENANT:
            refuse(
                INVALID_STATE, "the root tenant is the engine's own and is not deleted", object_name("tenant", tenant)
            )
        if key not in snapshot.objects and key in snapshot.tombstones:
            return Nothing(None)
        return removal("tenant", tenant)(snapshot)

    return build


def offering(body: Any, pool_key: str) -> Build:
    """Builds an offer or, where the tenant has one, its update: named quota rows are written, others stay (B06)."""

    def build(snapshot: Snapshot) -> Operation | Nothing:
        pool = find(snapshot, "pool", body.pool)
        key = f"{pool_key or pool.key}/{body.to}"
        live = next(
            (
                item
                for item in snapshot.objects.values()
                if item.kind == "offer" and _pool_and_tenant(item) == (body.pool, body.to)
            ),
            None,
        )
        if live is None:
            id = derive_id("offer", pool.tenant, cli_caller(pool.tenant), key)
            stone = snapshot.tombstones.get(("offer", id))
            return Operation(
                verb="create",
                kind="offer",
                key=key,
                id=id,
                after=state_of("offer", body, name=body.to),
                precondition=Precondition(absent=stone.version if stone else 0),
                reason="called",
            )
        was: Any = live.body()
        merged = replace(body, quota={**was.quota, **body.quota})
        return change("offer", live.id, lambda _snapshot, _live: merged)(snapshot)

    return build


def unoffering(pool_id: str, tenant: str) -> Build:
    """Builds the withdrawal of an offer; nothing when there is none (readings B05)."""

    def build(snapshot: Snapshot) -> Operation | Nothing:
        pool = find(snapshot, "pool", pool_id)
        for item in snapshot.objects.values():
            if item.kind == "offer" and _pool_and_tenant(item) == (pool.id, tenant):
                return removal("offer", item.id)(snapshot)
        if tenant == pool.tenant:
            refuse(INVALID_STATE, f"{pool.label} cannot be unoffered from its owner `{pool.tenant}`", pool.label)
        return Nothing(None, of=pool)

    return build


def settings_change(edit: Callable[[SettingsBody], SettingsBody]) -> Build:
    """Builds a change of the engine's settings."""

    def edit_live(_snapshot: Snapshot, live: LiveObject) -> Body:
        body = live.body()
        assert isinstance(body, SettingsBody)
        return edit(body)

    return change("settings", SETTINGS_ID, edit_live)


def find(snapshot: Snapshot, kind: Kind, id_or_key: str) -> LiveObject:
    """A live object by id, else by key, alone or as `kind/key`, when one object has it. Refuses NOT_FOUND."""
    found = snapshot.objects.get((kind, ObjectId(id_or_key)))
    if found is not None:
        return found
    matches = [item for item in snapshot.objects.values() if item.kind == kind and item.key == id_or_key]
    current = [item for item in matches if not item.archived] or matches
    if len(current) == 1:
        return current[0]
    if current:
        ids = ", ".join(sorted(item.id for item in current))
        refuse(NOT_FOUND, f"{len(current)} objects have the key {id_or_key}; name one by id: {ids}", id_or_key)
    if id_or_key.startswith(f"{kind}/"):
        return find(snapshot, kind, id_or_key.removeprefix(f"{kind}/"))
    refuse_unknown(kind, id_or_key)


def refuse_unknown(kind: Kind, id_or_key: str) -> NoReturn:
    """The same words whether there is no such object or the caller may not see it."""
    listed = _LISTED.get(kind)
    where = f"; `fleetctl {listed}` shows ids and keys; a name is neither" if listed else ""
    refuse(NOT_FOUND, f"there is no {kind} with the id or key {id_or_key}{where}", object_name(kind, id_or_key))


_LISTED: Mapping[Kind, str] = {
    "pool": "pools list",
    "tenant": "tenants list",
    "site": "sites list",
    "entitlement": "entitlements tree",
}


def _differs(found: LiveObject, state: Mapping[str, Any], names: frozenset[str]) -> bool:
    live = found.state()
    return any(live.get(name) != state.get(name) for name in names | BODY_TYPES[found.kind].IMMUTABLE)


def _pool_and_tenant(item: LiveObject) -> tuple[str, str]:
    body: Any = item.body()
    return body.pool, body.to
