"""Drift: what moved on the live side since the last apply, as opposed to what git moved (that is `pending`).

What moved on both sides to the same value has converged: it is neither.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fleetctl.frozen import dataclass
from fleetctl.model.declared import Fleet, IgnoredDrift
from fleetctl.model.ids import Kind, ObjectId, object_name
from fleetctl.model.live import LiveObject, Snapshot, state_of
from fleetctl.plan.compare import at_path, changed_paths, covered, leaf_paths, same, split_path
from fleetctl.plan.planner import Ignored, Plan
from fleetctl.units import UnixMs, end_of_date_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftItem:
    """One field (absent: the whole object) that differs from what was last applied. Absent values are None."""

    kind: Kind
    id: ObjectId
    key: str
    name: str
    field: str | None
    declared: Any = None
    last_applied: Any = None
    live: Any = None

    @property
    def label(self) -> str:
        return object_name(self.kind, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What drifted, what was ignored, and the operations' labels that wait in git."""

    items: tuple[DriftItem, ...]
    ignored: tuple[tuple[DriftItem, IgnoredDrift], ...]
    pending: tuple[tuple[str, str], ...]
    """(verb, `kind/key`) of what git declares and nobody applied yet."""


def find_drift(fleet: Fleet, snapshot: Snapshot, plan: Plan, now: UnixMs) -> Drift:
    """Compare what this fleet last applied with what is live. `plan` is the fleet's plan over the same snapshot."""
    declared = _declared_states(fleet, snapshot, plan)
    found: list[DriftItem] = []
    for live in snapshot.objects.values():
        last = live.last_applied() if live.fleet == fleet.name else None
        if last is not None:
            found += _of_object(live, last, declared)
    for stone in snapshot.tombstones.values():
        want = declared.get((stone.kind, stone.id))
        if want is None:  # git does not want it any more either: converged
            continue
        if stone.fleet == fleet.name and stone.last_applied_json and (stone.kind, stone.id) not in snapshot.objects:
            found.append(
                DriftItem(
                    kind=stone.kind,
                    id=stone.id,
                    key=stone.key,
                    name=stone.name,
                    field=None,
                    declared=want,
                    last_applied=json.loads(stone.last_applied_json),
                )
            )
    items, left = _split(sorted(found, key=_by_place), fleet.ignore_drift, now)
    ignored = tuple((_as_declared(item, entry, plan.ignored), entry) for item, entry in left)
    return Drift(items=items, ignored=ignored, pending=_pending(plan, {item.label for item in found}))


def _of_object(
    live: LiveObject, last: Mapping[str, Any], declared: Mapping[tuple[str, str], Mapping[str, Any] | None]
) -> list[DriftItem]:
    key = (live.kind, live.id)
    if live.archived:
        wanted = declared.get(key)
        return [] if wanted is None else [_item(live, None, wanted, dict(last), None)]
    state = live.state()
    want = declared[key] if key in declared else state
    return [_item(live, path, at_path(want, path), was, have) for path, was, have in sorted_paths(last, state)]


def sorted_paths(last: Mapping[str, Any], live: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(path, last applied, live) of every field that moved, by path."""
    return sorted(changed_paths(last, live), key=lambda entry: entry[0])


def _item(live: LiveObject, field: str | None, declared: Any, last: Any, now: Any) -> DriftItem:
    return DriftItem(
        kind=live.kind,
        id=live.id,
        key=live.key,
        name=live.name,
        field=field,
        declared=declared,
        last_applied=last,
        live=now,
    )


def _declared_states(fleet: Fleet, snapshot: Snapshot, plan: Plan) -> dict[tuple[str, str], Mapping[str, Any] | None]:
    """What git says of each object that the plan would touch; an object without operation is declared as it is live.

    What is gone and still in the files is declared as they have it: a reference to another fleet's object that left
    with it keeps the plan from making it again, and is no agreement.
    """
    found: dict[tuple[str, str], Mapping[str, Any] | None] = {(i.kind, i.id): i.after for i in plan.operations}
    gone = {
        stone.label: key
        for key, stone in snapshot.tombstones.items()
        if stone.fleet == fleet.name and key not in snapshot.objects
    }
    gone |= {item.label: key for key, item in snapshot.objects.items() if item.archived and item.fleet == fleet.name}
    for item in fleet.objects:
        key = gone.get(item.label)
        if key is not None and key not in found:
            found[key] = state_of(
                item.kind, item.body, name=item.name, protect=item.protect, explicit_only=item.explicit_only
            )
    return found


def _split(
    items: Sequence[DriftItem], entries: Sequence[IgnoredDrift], now: UnixMs
) -> tuple[tuple[DriftItem, ...], tuple[tuple[DriftItem, IgnoredDrift], ...]]:
    in_force = [item for item in entries if item.until is None or now < end_of_date_ms(item.until)]
    drifted: list[DriftItem] = []
    ignored: list[tuple[DriftItem, IgnoredDrift]] = []
    for item in items:
        entry = next((found for found in in_force if _covers(found, item)), None)
        if entry is not None:
            ignored.append((item, entry))
        elif not same(item.declared, item.live):  # else git was moved to what is live: converged
            drifted.append(item)
    return tuple(drifted), tuple(ignored)


def _as_declared(item: DriftItem, entry: IgnoredDrift, ignored: Sequence[Ignored]) -> DriftItem:
    """The item with what the files say: the plan has the live value in the place of an ignored one."""
    place = covered(entry.field, item.field) if item.field is not None else None
    found = next((known for known in ignored if known.entry == entry), None)
    if item.field is None or place is None or found is None:
        return item
    inside = split_path(item.field)[len(split_path(place)) :]
    return replace(item, declared=_within(found.declared, inside))


def _within(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _covers(entry: IgnoredDrift, item: DriftItem) -> bool:
    """Whether the entry is about everything that moved in the item's field."""
    if entry.object != item.label or item.field is None:
        return False
    return all(covered(entry.field, leaf) for leaf in leaf_paths(item.last_applied, item.live, item.field))


def _pending(plan: Plan, drifted: set[str]) -> tuple[tuple[str, str], ...]:
    out = []
    for item in plan.operations:
        causes = {entry.cause for entry in plan.fields.get(item.label, ())}
        if item.label in drifted and (causes == {"drift"} or item.verb == "create"):
            continue
        out.append((item.verb, item.label))
    return tuple(out)


def _by_place(item: DriftItem) -> tuple[str, str, str]:
    return (item.kind, item.key, item.field or "")
