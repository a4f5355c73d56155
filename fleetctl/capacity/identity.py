"""Whose an operation's object is and what the operation may say of it: a plan file is hostile input, and a digest that
holds does not make its operations ones that a planner would write.
"""

from __future__ import annotations

from typing import Final, NoReturn

from fleetctl.capacity.refusals import ACCESS_DENIED, CONFLICT, INVALID_INPUT, KEY_ARCHIVED, refuse
from fleetctl.capacity.working import Working
from fleetctl.model.ids import Kind, is_key_of, is_name
from fleetctl.model.live import PROTECTABLE, LiveObject, same
from fleetctl.model.operation import Operation
from fleetctl.units import shown

_UNOWNED_ONLY: Final[frozenset[Kind]] = frozenset({"tenant", "site", "offer"})


def refuse_existing(working: Working, operation: Operation, existing: LiveObject) -> NoReturn:
    """The object to create is there already: refuse it and say how to get at it."""
    if existing.archived:
        refuse(
            KEY_ARCHIVED,
            f"{existing.label} was archived and its key cannot come back; use the next key, `{_free_key(working, existing)}`",
            operation.label,
        )
    if existing.kind == "offer":
        refuse_second_offer(existing, operation.label)
    mend = (
        f"to take it over write `adopt: {existing.id}`" if existing.kind in PROTECTABLE else "give this one another key"
    )
    refuse(
        CONFLICT,
        f"{existing.label} exists already as {existing.id}, owned by {owner_of(existing)}; {mend}",
        operation.label,
    )


def refuse_second_offer(existing: LiveObject, label: str) -> NoReturn:
    """A pool has one offer for each tenant (fleet-files: "Identity is (pool, tenant)")."""
    refuse(
        CONFLICT,
        f"{existing.label} ({existing.id}) of {owner_of(existing)} offers this pool to this tenant already, and a pool "
        "has one offer for each tenant; list it under `release` there, or remove it from one of the two",
        label,
    )


def owner_of(item: LiveObject) -> str:
    """`fleet eu`, or `no fleet`."""
    return f"fleet {item.fleet}" if item.fleet else "no fleet"


def refuse_ill_formed(operation: Operation, name: str, fleet: str | None) -> None:
    """Names and keys are those that fleet files may hold; a command may name an object as it likes."""
    if fleet is not None and not is_name(name):
        refuse(
            INVALID_INPUT,
            f"{shown(name)} is no name; write lower-case letters, digits and hyphens, at most 63",
            operation.label,
        )
    if not is_key_of(operation.kind, operation.key) or (operation.kind == "tenant" and not is_name(operation.key)):
        form = (
            "lower-case letters, digits and hyphens, at most 63"
            if operation.kind == "tenant"
            else "ASCII letters, digits and . _ # -, at most 128"
        )
        refuse(INVALID_INPUT, f"{shown(operation.key)} is no key of a {operation.kind}; write {form}", operation.label)


def refuse_unlike(working: Working, operation: Operation, before: LiveObject, fleet: str | None) -> None:
    """Refuse what no planner writes: another `before` than the live one, and a verb that does not say what is changed."""
    state = working.state(before)
    if not same(operation.before, state):
        refuse(INVALID_INPUT, f"`before` of {operation.label} is not what {before.label} is", operation.label)
    if operation.verb == "adopt":
        _refuse_adoption(working, operation, before, fleet)
    elif operation.key != before.key:
        refuse(INVALID_INPUT, f"{before.label} has another key than {shown(operation.key)}", operation.label)
    if operation.after is None or operation.verb == "adopt":
        return
    if operation.verb == "release" and fleet is None:
        refuse(INVALID_INPUT, f"{before.label} is released by the fleet that owns it", operation.label)
    nothing = same(operation.after, state)
    only_name = not nothing and same({**operation.after, "name": state["name"]}, state)
    if operation.verb == "release" and not nothing:
        refuse(INVALID_INPUT, f"a release changes nothing, this one of {operation.label} would", operation.label)
    if operation.verb == "rename" and not only_name:
        refuse(
            INVALID_INPUT, f"a rename changes the name alone, this one of {operation.label} does not", operation.label
        )
    if operation.verb == "update" and nothing:
        refuse(INVALID_INPUT, f"the update of {operation.label} changes nothing", operation.label)
    if operation.verb == "update" and only_name and fleet is not None:
        refuse(INVALID_INPUT, f"the update of {operation.label} is a rename and must say so", operation.label)


def _refuse_adoption(working: Working, operation: Operation, before: LiveObject, fleet: str | None) -> None:
    label = operation.label
    if fleet is None or before.kind not in PROTECTABLE | _UNOWNED_ONLY:
        refuse(INVALID_INPUT, f"{before.label} cannot be adopted", label)
    if before.kind in _UNOWNED_ONLY and before.fleet not in (None, fleet):
        refuse(
            ACCESS_DENIED, f"{before.label} belongs to {owner_of(before)}; it can be had once that releases it", label
        )
    if operation.key == before.key and before.fleet == fleet:
        refuse(INVALID_INPUT, f"{before.label} belongs to fleet {fleet} already", label)
    if before.kind in ("tenant", "site") and operation.key != before.key:
        refuse(INVALID_INPUT, f"{before.label} keeps its key", label)
    bound = working.bound(fleet, before.kind, operation.key)
    if bound is None or bound.id == before.id:
        return
    if bound.archived:
        free = _free_key(working, bound)
        refuse(
            KEY_ARCHIVED, f"{bound.label} was archived and its key cannot come back; use the next key, `{free}`", label
        )
    refuse(CONFLICT, f"{bound.label} of fleet {fleet} is {bound.id}; adopt {before.id} under a key of its own", label)


def next_key(key: str) -> str:
    """The key with its generation raised: `pool-fra1` becomes `pool-fra1-2`, `pool-fra1-2` becomes `pool-fra1-3`."""
    stem, dash, tail = key.rpartition("-")
    if dash and tail.isdigit() and not tail.startswith("0") and 2 <= int(tail) < 10_000:
        return f"{stem}-{int(tail) + 1}"
    return f"{key}-2"


def _free_key(working: Working, archived: LiveObject) -> str:
    taken = {item.key for item in working.objects(archived.kind) if item.tenant == archived.tenant}
    key = next_key(archived.key)
    while key in taken:
        key = next_key(key)
    return key
