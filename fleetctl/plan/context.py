"""The context of a plan: what its readers saw. It has a digest of its own and never decides anything but accepted figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from fleetctl.canonical import Digest, Json
from fleetctl.frozen import dataclass
from fleetctl.model.declared import Fleet
from fleetctl.model.ids import Kind, ObjectId, object_name
from fleetctl.model.live import Snapshot
from fleetctl.plan.compare import FieldDifference
from fleetctl.plan.impact import impact, oversubscription
from fleetctl.plan.planner import Plan
from fleetctl.units import UnixMs, format_ms

Moved = tuple[str, str | None]
"""`kind/key` and a field of it; without a field the whole object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """Who moved something on the live side, and when, by the journal."""

    actor: str
    at_ms: int
    entry: int

    def to_json(self) -> dict[str, Json]:
        return {"who": self.actor, "when": format_ms(UnixMs(self.at_ms)), "entry": self.entry}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known of the moment and place of planning. `commit` carries `+dirty` when files were uncommitted.

    `culprits` are those of the fields that drifted, and of the objects that are made again because somebody removed them;
    who is not there did nothing through the engine.
    """

    at: UnixMs
    host: str
    tool: str
    journal_length: int
    journal_head: bytes
    commit: str | None = None
    culprits: Mapping[Moved, Culprit] = field(default_factory=dict)


def plan_context(plan: Plan, fleet: Fleet, snapshot: Snapshot, around: Surroundings) -> dict[str, Json]:
    """The context as JSON."""
    config: Digest = fleet.digest()
    context: dict[str, Any] = {
        "config": config,
        "tool": around.tool,
        "time": format_ms(around.at),
        "host": around.host,
        "journal": {"length": around.journal_length, "head": around.journal_head.hex()},
        "dangers": [item.to_json() for item in plan.dangers],
        "impact": [row.to_json() for row in impact(plan.operations, snapshot)],
        "oversubscription": [row.to_json() for row in oversubscription(plan.operations, snapshot)],
        "fields": {
            label: [_field_json(entry, around.culprits.get((label, entry.field))) for entry in fields]
            for label, fields in plan.fields.items()
        },
        "ignored": [
            _present(
                {
                    "object": item.entry.object,
                    "field": item.entry.field,
                    "owner": item.entry.owner,
                    "reason": item.entry.reason,
                    "until": item.entry.until,
                    "declared": item.declared,
                    "live": item.live,
                }
            )
            for item in plan.ignored
        ],
        "warnings": [item.to_json() for item in plan.warnings],
        "names": _names(plan, snapshot),
        "spans": _spans(plan, fleet),
        "owned": plan.owned,
        "unowned": plan.unowned,
    }
    if around.commit is not None:
        context["commit"] = around.commit
    gone = {label: who.to_json() for (label, name), who in around.culprits.items() if name is None}
    if gone:
        context["removed"] = gone
    return cast("dict[str, Json]", context)


def _field_json(entry: FieldDifference, culprit: Culprit | None) -> dict[str, Any]:
    who = {} if culprit is None else culprit.to_json()
    return who | _present(
        {
            "field": entry.field,
            "cause": entry.cause,
            "declared": entry.declared,
            "live": entry.live,
            "lastApplied": entry.last_applied,
        }
    )


def _names(plan: Plan, snapshot: Snapshot) -> dict[str, str]:
    """Ids that operations name, with what people call them."""
    made = {item.id: item.label for item in plan.operations}
    named: dict[str, str] = {}
    for item in plan.operations:
        for state in (item.before, item.after):
            for value in (state or {}).values():
                if type(value) is str and "_" in value:
                    label = made.get(ObjectId(value)) or _live_label(snapshot, ObjectId(value))
                    if label is not None:
                        named[value] = label
    return named


def _live_label(snapshot: Snapshot, id: ObjectId) -> str | None:
    kinds: tuple[Kind, ...] = ("site", "pool", "entitlement", "market-pool")
    found = (snapshot.objects.get((kind, id)) for kind in kinds)
    return next((item.label for item in found if item is not None), None)


def _spans(plan: Plan, fleet: Fleet) -> dict[str, str]:
    touched = {item.label for item in plan.operations}
    return {
        item.label: str(item.span)
        for item in fleet.objects
        if item.span is not None and object_name(item.kind, item.key) in touched
    }


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
