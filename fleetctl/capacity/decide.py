"""`decide`: the only place that knows what the engine allows. The planner and the engine run the same function.

An operation is decided in the same steps whatever its kind: who acts, what is there, what may not change, the
rules of the kind, and the rows that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from fleetctl.capacity import entitlements, market, offers, pools, sites, tenants
from fleetctl.capacity.identity import next_key, owner_of, refuse_existing, refuse_ill_formed, refuse_unlike
from fleetctl.capacity.refusals import (
    ACCESS_DENIED,
    CONFLICT,
    INVALID_INPUT,
    INVALID_STATE,
    NOT_FOUND,
    refuse,
    refuse_protected,
)
from fleetctl.capacity.rules import Case
from fleetctl.capacity.texts import refuse_bad_text
from fleetctl.capacity.working import Working
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import Body
from fleetctl.model.changes import Changes
from fleetctl.model.codec import CodecError, decode
from fleetctl.model.ids import Kind, derive_id
from fleetctl.model.live import LiveObject, StateParts, split_state
from fleetctl.model.operation import Operation
from fleetctl.units import UnixMs, format_money, format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who commands: a tenant, the caller that ids are derived for, and the fleet when a plan acts."""

    tenant: str
    caller: str
    fleet: str | None = None


class Rules(Protocol):
    """The rules of one kind. Each returns the rows that follow, beside the object itself, or raises EngineRefused."""

    def check(self, case: Case) -> Changes:
        """A creation or an update; `case.before` is absent for a creation."""
        ...

    def remove(self, case: Case, now: UnixMs) -> Changes:
        """A removal, the object's own row included."""
        ...


_RULES: Mapping[Kind, Rules] = {
    "tenant": tenants.TenantRules(),
    "site": sites.SiteRules(),
    "pool": pools.PoolRules(),
    "offer": offers.OfferRules(),
    "entitlement": entitlements.EntitlementRules(),
    "market-pool": market.MarketPoolRules(),
    "procurement": market.ProcurementRules(),
    "order": market.OrderRules(),
    "transfer": market.TransferRules(),
    "settings": tenants.SettingsRules(),
}


def decide(
    working: Working, operation: Operation, actor: Actor, now: UnixMs, body: Body | None = None, text: str | None = None
) -> Changes:
    """What one operation changes, given everything before it. Does not apply it.

    `body` may hand in the decoded body of `operation.after`, and `text` its canonical JSON, to spare making them again. Raises EngineRefused in the
    seed's codes, SafetyRefused for a protected object.
    """
    if not working.tenant_exists(actor.tenant):
        why = (
            "was deleted, and what it had with it; a new one of that name begins with nothing"
            if working.tombstone("tenant", actor.tenant)
            else "does not exist; create it first"
        )
        refuse(NOT_FOUND, f"the acting tenant `{actor.tenant}` {why}", operation.label)
    if operation.kind == "settings" and actor.fleet is not None:
        refuse(ACCESS_DENIED, "the engine's settings are changed by a command, never by a plan", operation.label)
    if operation.verb == "create":
        return _create(working, operation, actor, now, body, text)
    before = _owned(working, operation, actor)
    if before.archived:
        refuse(
            INVALID_STATE, f"{before.label} is archived and cannot change; a new key makes a new pool", operation.label
        )
    refuse_unlike(working, operation, before, actor.fleet)
    if operation.verb == "remove":
        if before.protect:
            refuse_protected(operation.label)
        case = Case(
            working=working,
            actor_tenant=actor.tenant,
            actor_fleet=actor.fleet,
            label=before.label,
            now=now,
            before=before,
            after=before,
        )
        return _RULES[operation.kind].remove(case, now)
    return _change(working, operation, actor, before, now, body)


def _create(
    working: Working, operation: Operation, actor: Actor, now: UnixMs, body: Body | None, text: str | None
) -> Changes:
    existing = working.get(operation.kind, operation.id)
    if existing is not None:
        if existing.kind == "offer" and existing.tenant != actor.tenant:
            refuse(NOT_FOUND, f"{existing.label} does not exist for tenant {actor.tenant}", operation.label)
        refuse_existing(working, operation, existing)
    if actor.fleet is not None and working.bound(actor.fleet, operation.kind, operation.key) is not None:
        refuse(CONFLICT, f"fleet {actor.fleet} already has {operation.label}", operation.label)
    if operation.id != derive_id(operation.kind, actor.tenant, actor.caller, operation.key) and actor.fleet is not None:
        refuse(INVALID_INPUT, f"id {operation.id} is not the one that {operation.label} derives to", operation.label)
    parts = _parts(operation)
    refuse_ill_formed(operation, parts.name, actor.fleet)
    made = LiveObject(
        kind=operation.kind,
        id=operation.id,
        tenant=actor.tenant,
        fleet=actor.fleet,
        key=operation.key,
        name=parts.name,
        version=working.tombstone(operation.kind, operation.id) + 1,
        protect=parts.protect,
        explicit_only=parts.explicit_only,
        body_json=parts.body_json if text is None else text,
        last_applied_json=operation.after_json() if actor.fleet is not None else None,
    )
    return _with_rules(working, operation, actor, None, made, parts, now, body)


def _change(
    working: Working, operation: Operation, actor: Actor, before: LiveObject, now: UnixMs, body: Body | None
) -> Changes:
    parts = _parts(operation)
    if operation.verb != "release":
        refuse_ill_formed(operation, parts.name, actor.fleet)
    changed = replace(
        before,
        key=operation.key,
        name=parts.name,
        version=before.version + 1,
        protect=parts.protect,
        explicit_only=parts.explicit_only,
        body_json=parts.body_json,
        fleet=None if operation.verb == "release" else actor.fleet or before.fleet,
        last_applied_json=operation.after_json() if actor.fleet is not None else before.last_applied_json,
    )
    if operation.verb in ("release", "rename"):
        return Changes(put=(changed,))
    return _with_rules(working, operation, actor, before, changed, parts, now, body)


def _with_rules(
    working: Working,
    operation: Operation,
    actor: Actor,
    before: LiveObject | None,
    after: LiveObject,
    parts: StateParts,
    now: UnixMs,
    body: Body | None,
) -> Changes:
    refuse_bad_text(operation, after.name, parts.body, after.body_json)
    if body is None:
        try:
            body = decode(operation.kind, parts.body)
        except CodecError as error:
            refuse(INVALID_INPUT, str(error), operation.label)
    case = Case(
        working=working,
        actor_tenant=actor.tenant,
        actor_fleet=actor.fleet,
        label=operation.label,
        now=now,
        before=before,
        after=after,
        body=body,
        was=None if before is None else working.body(before),
        reason=operation.reason,
    )
    if before is not None:
        _refuse_immutable(case, before, parts)
    working.know(after, body)
    follows = _RULES[operation.kind].check(case)
    return replace(follows, put=(after, *follows.put))


def _refuse_immutable(case: Case, before: LiveObject, parts: StateParts) -> None:
    if before.body_json == case.after.body_json:
        return
    was = case.working.state(before)
    for name in sorted(case.body.IMMUTABLE):
        if was.get(name) != parts.body.get(name):
            field, write = next(
                ((name.removesuffix(unit), write) for unit, write in _WRITTEN.items() if name.endswith(unit)),
                (name, str),
            )
            then, now = (_named(case, name, state.get(name), write) for state in (was, parts.body))
            refuse(CONFLICT, _immutable_detail(before, field, then, now), case.label)


_WRITTEN: Final[Mapping[str, Callable[[int], str]]] = {"Min": format_time, "Microusd": format_money}
"""How files write the figures of fields whose canonical names end so."""


def _named(case: Case, field: str, value: object, write: Callable[[int], str]) -> object:
    """The value of a field as people know it: an id by the label of what it names, a figure as files write it."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return write(value)
    kind = case.body.REFERENCES.get(field)
    found = case.working.get(kind, value) if kind is not None and isinstance(value, str) else None
    return value if found is None else found.label


def _immutable_detail(before: LiveObject, name: str, was: object, now: object) -> str:
    change = f"`{name}` of {before.label} is {was if was is not None else 'not set'} and cannot become {now if now is not None else 'unset'}"
    if before.kind == "pool":
        return (
            f"{change}; to have such a pool give it a new idempotencyKey (say `{next_key(before.key)}`): that makes a "
            "new pool, and this one is archived once it leaves the files (what runs on it runs to its end)"
        )
    if before.kind in ("offer", "procurement"):
        return f"{change}; take it out of the files, apply that, and declare it again"
    return f"{change}; a new key makes a new {before.kind}"


def _owned(working: Working, operation: Operation, actor: Actor) -> LiveObject:
    found = working.get(operation.kind, operation.id)
    if found is None:
        refuse(NOT_FOUND, f"{operation.label} ({operation.id}) does not exist", operation.label)
    if actor.fleet is not None and operation.verb != "adopt" and found.fleet != actor.fleet:
        refuse(
            ACCESS_DENIED,
            f"{operation.label} belongs to {owner_of(found)}, not to fleet {actor.fleet}",
            operation.label,
        )
    if found.kind not in ("tenant", "settings") and found.tenant != actor.tenant:
        refuse(NOT_FOUND, f"{operation.label} does not exist for tenant {actor.tenant}", operation.label)
    return found


def _parts(operation: Operation) -> StateParts:
    if operation.after is None:
        refuse(
            INVALID_INPUT, f"{operation.verb} of {operation.label} says nothing of what it shall be", operation.label
        )
    try:
        return split_state(operation.kind, operation.after)
    except ValueError as error:
        refuse(INVALID_INPUT, str(error), operation.label)
