"""What the rules of a kind are given, and the references they share."""

from __future__ import annotations

from typing import Any, Final

from fleetctl.capacity.refusals import INVALID_INPUT, INVALID_STATE, NOT_FOUND, refuse
from fleetctl.capacity.working import Working
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import Body
from fleetctl.model.changes import Changes
from fleetctl.model.ids import ANY_TENANT, Kind
from fleetctl.model.live import LiveObject, Tombstone
from fleetctl.units import UnixMs

QUOTA_SET: Final = "quota set"
"""The reason of an operation that `quotas.set` asks for: it changes an offer's rows without offering again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One object under decision: who acts, what it was and what it shall be. `label` is `kind/key`."""

    working: Working
    actor_tenant: str
    actor_fleet: str | None = None
    label: str
    now: UnixMs
    before: LiveObject | None
    after: LiveObject
    body: Any = None
    """The typed body of `after`; absent for a removal."""
    was: Body | None = None
    """The typed body of `before`, for an update."""
    reason: str = ""
    """The operation's."""


def require(case: Case, kind: Kind, id: str, field: str) -> LiveObject:
    """The live, unarchived object that a field names. Refuses NOT_FOUND or INVALID_STATE."""
    found = case.working.get(kind, id)
    if found is None:
        refuse(NOT_FOUND, f"`{field}` of {case.label} names {kind} {id}, which does not exist", case.label)
    if found.archived:
        refuse(INVALID_STATE, f"`{field}` of {case.label} names {found.label}, which is archived", case.label)
    return found


def require_own(case: Case, kind: Kind, id: str, field: str) -> LiveObject:
    """As `require`, of the acting tenant: what belongs to another one does not exist for it."""
    found = require(case, kind, id, field)
    if found.tenant != case.actor_tenant:
        refuse(
            NOT_FOUND,
            f"`{field}` of {case.label} names {kind} {id}, which does not exist for tenant `{case.actor_tenant}`",
            case.label,
        )
    return found


def require_key(case: Case, key: str) -> None:
    """Refuse a fleet's object whose key is not the one that its kind makes of what it names (pins: "Kinds")."""
    if (
        case.actor_fleet is not None
        and case.after.key != key
        and (case.before is None or case.before.key != case.after.key)
    ):
        refuse(INVALID_INPUT, f"the key of {case.label} must be `{key}`", case.label)


def require_tenant(case: Case, tenant: str, field: str, *, or_any: bool = False) -> None:
    """Refuse NOT_FOUND unless the tenant exists (or is `any` where that may be said)."""
    if or_any and tenant == ANY_TENANT:
        return
    if case.working.tenant_exists(tenant):
        return
    why = (
        "was deleted; take that out of the files, or declare it under `tenants` to make a new one"
        if case.working.tombstone("tenant", tenant)
        else "does not exist; declare it under `tenants`"
    )
    refuse(NOT_FOUND, f"`{field}` of {case.label} names tenant `{tenant}`, which {why}", case.label)


def tombstone_of(gone: LiveObject, actor_fleet: str | None) -> Tombstone:
    """What stays of an object that `actor_fleet` (absent: a command) removes."""
    return Tombstone(
        kind=gone.kind,
        id=gone.id,
        version=gone.version,
        key=gone.key,
        name=gone.name,
        fleet=gone.fleet,
        last_applied_json=None if gone.fleet == actor_fleet else gone.last_applied_json,
    )


def dropped(case: Case) -> Changes:
    """The object itself ends, and nothing follows."""
    return Changes(drop=(tombstone_of(case.after, case.actor_fleet),))


def refuse_cycle(case: Case, kind: Kind, parent: str | None) -> None:
    """Refuse a parent chain that comes back to the object itself: only a parent that changes can close one."""
    was: Any = case.was
    if was is None or was.parent == parent:
        return
    seen = {str(case.after.id)}
    while parent is not None:
        if parent in seen:
            refuse(INVALID_INPUT, f"the parents of {case.label} form a cycle; break it at one of them", case.label)
        seen.add(parent)
        found = case.working.get(kind, parent)
        if found is None:
            return
        body: Any = case.working.body(found)
        parent = body.parent
