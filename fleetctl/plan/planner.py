"""`plan(declared, live)`: the operations that turn the live side into what the files declare, each one decided.

Pure: the fleet, one snapshot, where the files come from and the time are arguments; the same ones give the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from fleetctl.capacity.decide import Actor
from fleetctl.capacity.identity import owner_of
from fleetctl.capacity.refusals import INVALID_STATE
from fleetctl.diagnostics import Diagnostic
from fleetctl.errors import EngineRefused, SafetyRefused
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import Body, OrderBody, TransferBody
from fleetctl.model.declared import Acceptance, Declared, Fleet, IgnoredDrift
from fleetctl.model.ids import EngineId, FleetName, ObjectId, TenantId, fleet_caller
from fleetctl.model.live import LiveObject, Snapshot, State, state_of
from fleetctl.model.operation import Operation, Precondition
from fleetctl.plan.compare import (
    FieldDifference,
    at_path,
    changed_paths,
    covered,
    differences,
    leaf_paths,
    same,
    taken_from,
)
from fleetctl.plan.dangers import Danger, find_dangers
from fleetctl.plan.fullset import against_live, against_rows
from fleetctl.plan.order import in_order
from fleetctl.plan.provenance import Provenance
from fleetctl.plan.rehearse import Step, rehearse
from fleetctl.plan.resolve import SHARED_DIFFERS, UNASKED, Resolved, resolve
from fleetctl.plan.warnings import (
    acceptance_warnings,
    history_warnings,
    idle_release,
    ignore_expired,
    made_anew,
    new_keys,
    past_window,
)
from fleetctl.units import UnixMs, end_of_date_ms

_MS_PER_MINUTE = 60_000
_IRREVERSIBLE = frozenset({"pool", "order", "transfer"})


REMOVED_LIVE: Final = "removed live"
"""The reason of a creation of what the fleet had made and somebody else removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A field left as it is live because of an `ignoreDrift` entry that is in force and made a difference."""

    entry: IgnoredDrift
    declared: Any
    live: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A frozen list of operations with everything a reader needs beside it. `body` of the plan file is the first part."""

    engine: EngineId
    fleet: FleetName
    tenant: TenantId
    operations: tuple[Operation, ...]
    acceptances: tuple[Acceptance, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    dangers: tuple[Danger, ...] = ()
    fields: Mapping[str, tuple[FieldDifference, ...]] = field(default_factory=dict)
    """Per `kind/key` of an update, rename or adoption: what differs and who moved it."""
    ignored: tuple[Ignored, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    unowned: int = 0
    """Live objects that this fleet does not own; they are left alone."""
    owned: int = 0


def make_plan(
    fleet: Fleet,
    snapshot: Snapshot,
    *,
    now: UnixMs,
    provenance: Provenance | None = None,
    accept: Iterable[str] = (),
) -> Plan:
    """Plan a fleet against a snapshot. `accept` are danger ids accepted by flags.

    Raises EngineRefused with every refusal that `decide` or the resolution of names gives, SafetyRefused when the only
    refusals are of protected objects.
    """
    plan, problems = draft_plan(fleet, snapshot, now=now, provenance=provenance, accept=accept)
    if problems:
        _raise(problems)
    return plan


def draft_plan(
    fleet: Fleet,
    snapshot: Snapshot,
    *,
    now: UnixMs,
    provenance: Provenance | None = None,
    accept: Iterable[str] = (),
) -> tuple[Plan, list[Diagnostic]]:
    """As `make_plan`, but with the refusals beside the plan: drift is found whether or not a plan could be applied."""
    where = provenance or Provenance()
    resolved, problems = resolve(fleet, snapshot)
    drafts = _Drafts(fleet, snapshot, now)
    for item in resolved:
        drafts.declare(item)
    drafts.take_away(resolved)
    operations = in_order((draft.operation for draft in drafts.made.values()), drafts.parents)
    problems += drafts.problems
    actor = Actor(tenant=fleet.tenant, caller=fleet_caller(fleet.name), fleet=fleet.name)
    problems += rehearse(map(drafts.step, operations), actor, snapshot, now)
    owned = sum(1 for live in snapshot.objects.values() if live.fleet == fleet.name and not live.archived)
    counted = sum(1 for live in snapshot.objects.values() if live.kind != "settings" and not live.archived)
    flags = sorted(set(accept))
    spans = {item.label: item.span for item in fleet.objects}
    dangers = find_dangers(operations, fleet.name, snapshot, where)
    plan = Plan(
        engine=snapshot.engine,
        fleet=fleet.name,
        tenant=fleet.tenant,
        operations=tuple(operations),
        acceptances=(*fleet.accept, *(Acceptance(danger=danger) for danger in flags)),
        provenance=where,
        dangers=dangers,
        fields={draft.operation.label: draft.fields for draft in drafts.made.values() if draft.fields},
        ignored=tuple(drafts.ignored),
        warnings=(
            *drafts.warnings,
            *history_warnings(fleet, snapshot, where),
            *new_keys(operations, spans),
            *made_anew(operations, spans),
            *acceptance_warnings(fleet.accept, flags, dangers, now),
        ),
        unowned=counted - owned,
        owned=owned,
    )
    return plan, problems


@dataclass(frozen=True, slots=True)
class _Draft:
    operation: Operation
    body: Body | None
    fields: tuple[FieldDifference, ...] = ()
    declared: Declared | None = None
    text: str | None = None


class _Drafts:
    """Operations in the making, by object."""

    def __init__(self, fleet: Fleet, snapshot: Snapshot, now: UnixMs) -> None:
        self.fleet, self.snapshot, self.now = fleet, snapshot, now
        self.made: dict[tuple[str, ObjectId], _Draft] = {}
        self.parents: dict[ObjectId, str | None] = {}
        self.problems: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []
        self.ignored: list[Ignored] = []
        self._ignores: dict[str, list[IgnoredDrift]] = {}
        for entry in fleet.ignore_drift:
            if entry.until is not None and now >= end_of_date_ms(entry.until):
                self.warnings.append(ignore_expired(entry))
            else:
                self._ignores.setdefault(entry.object, []).append(entry)

    def step(self, item: Operation) -> Step:
        """The operation with what is known beside it."""
        draft = self.made[item.kind, item.id]
        return item, draft.body, draft.text, draft.declared.span if draft.declared else None

    def declare(self, item: Resolved) -> None:
        """Draft what a declared object needs, if anything."""
        declared, live = item.declared, item.live
        if item.id not in self.parents and declared.kind in ("tenant", "entitlement"):
            self.parents[item.id] = getattr(item.body(), "parent", None)
        if declared.kind in ("order", "transfer") and _window_over(body := item.body(), self.now):
            if live is None:
                self.warnings.append(past_window(declared, body))
                return
            if _window_over(live.body(), self.now):
                return
        if live is not None and live.archived:
            live = None  # `decide` refuses the creation with `key-archived` and names the next key
        if item.shared and live is not None:
            self._check_shared(item, live)
        elif live is None:
            self._create(item)
        else:
            self._compare(item, live)

    def take_away(self, resolved: Iterable[Resolved]) -> None:
        """Draft the end of what the fleet owns and no longer declares."""
        released = set(self.fleet.release)
        declared = {(item.declared.kind, item.id) for item in resolved}
        in_files = {item.label for item in self.fleet.objects}  # also what could not be resolved, and is reported
        for live in self.snapshot.objects.values():
            if live.fleet != self.fleet.name or live.archived:
                continue
            label = live.label
            if (live.kind, live.id) in declared or label in in_files:
                continue
            if label in released or live.kind in ("tenant", "site"):
                reason = "listed under release" if label in released else "left the files"
                self._add(live, "release", reason)
                released.discard(label)
            elif not _window_over(live.body() if live.kind in ("order", "transfer") else None, self.now):
                self._add(live, "remove", "left the files")
            if live.kind == "entitlement":
                self.parents[live.id] = getattr(live.body(), "parent", None)
        self._refuse_idle_releases()
        for label in sorted(released):
            self.warnings.append(idle_release(label, self.fleet.name))

    def _refuse_idle_releases(self) -> None:
        """An offer cannot be released from a pool that is archived in the same plan: archiving withdraws it."""
        for key, draft in [*self.made.items()]:
            item = draft.operation
            if item.verb != "release" or item.kind != "offer" or item.before is None:
                continue
            pool = self.made.get(("pool", ObjectId(str(item.before["pool"]))))
            if pool is not None and pool.operation.verb == "remove":
                del self.made[key]
                self.problems.append(
                    INVALID_STATE.at(
                        f"{item.label} cannot be released while {pool.operation.label} is archived, which withdraws "
                        "every offer of it; take the entry out of `release`, or release the pool too",
                        subject=item.label,
                    )
                )

    def _add(self, live: LiveObject, verb: str, reason: str) -> None:
        state = live.state()
        self.made[live.kind, live.id] = _Draft(
            Operation(
                verb="release" if verb == "release" else "remove",
                kind=live.kind,
                key=live.key,
                id=live.id,
                before=state,
                after=state if verb == "release" else None,
                precondition=Precondition(version=live.version),
                reversible=verb == "release" or live.kind not in _IRREVERSIBLE,
                reason=reason,
            ),
            None,
        )

    def _create(self, item: Resolved) -> None:
        declared = item.declared
        declared_body = item.body()
        body = against_rows(declared_body, self.snapshot)
        tombstone = self.snapshot.tombstones.get((declared.kind, item.id))
        self.made[declared.kind, item.id] = _Draft(
            Operation(
                verb="create",
                kind=declared.kind,
                key=declared.key,
                id=item.id,
                after=_declared_state(item, body),
                precondition=Precondition(absent=tombstone.version if tombstone else 0, requires=item.requires),
                reversible=True,
                reason="declared" if tombstone is None or tombstone.last_applied_json is None else REMOVED_LIVE,
            ),
            body,
            declared=declared,
            text=item.body_json() if body is declared_body else None,
        )

    def _compare(self, item: Resolved, live: LiveObject) -> None:
        declared = item.declared
        foreign = live.fleet != self.fleet.name
        unasked = declared.kind in UNASKED and live.fleet is None
        if foreign and declared.adopt is None and not unasked:
            self._create(item)  # `decide` refuses it with `conflict` and says how to adopt
            return
        adopting = foreign or declared.key != live.key
        if not adopting and self._equal(item, live):
            return
        before = live.state()
        after = self._ignoring(declared, _declared_state(item, against_live(item.body(), live)), before)
        if not adopting and same(after, before):
            return
        fields = tuple(differences(after, before, live.last_applied()))
        only_name = [entry.field for entry in fields] == ["name"]
        self.made[declared.kind, item.id] = _Draft(
            Operation(
                verb="adopt" if adopting else "rename" if only_name else "update",
                kind=declared.kind,
                key=declared.key,
                id=item.id,
                before=before,
                after=after,
                precondition=Precondition(version=live.version, requires=item.requires),
                reversible=True,
                reason=_reason(fields, live if adopting else None),
            ),
            None,
            fields,
            declared,
        )

    def _equal(self, item: Resolved, live: LiveObject) -> bool:
        declared = item.declared
        return (
            declared.name == live.name
            and declared.protect == live.protect
            and declared.explicit_only == live.explicit_only
            and item.body_json() == live.body_json
        )

    def _ignoring(self, declared: Declared, after: State, before: State) -> State:
        for entry in self._ignores.get(declared.label, ()):
            leaves = [
                leaf for path, want, have in changed_paths(after, before) for leaf in leaf_paths(want, have, path)
            ]
            for place in sorted({place for leaf in leaves if (place := covered(entry.field, leaf))}):
                self.ignored.append(Ignored(entry=entry, declared=at_path(after, place), live=at_path(before, place)))
                after = taken_from(before, after, place)
        return after

    def _check_shared(self, item: Resolved, live: LiveObject) -> None:
        fields = differences(_declared_state(item, item.body()), live.state(), None)
        if fields:
            names = ", ".join(f"`{entry.field}`" for entry in fields)
            self.problems.append(
                SHARED_DIFFERS.at(
                    f"{item.declared.label} belongs to fleet {live.fleet} and differs there in {names}; make both fleets agree",
                    span=item.declared.span,
                    subject=item.declared.label,
                )
            )


def _raise(problems: Sequence[Diagnostic]) -> None:
    if all(item.code.exit_code == SafetyRefused.exit_code for item in problems):
        raise SafetyRefused(problems)
    raise EngineRefused(problems)


def _declared_state(item: Resolved, body: Body) -> State:
    declared = item.declared
    return state_of(
        declared.kind, body, name=declared.name, protect=declared.protect, explicit_only=declared.explicit_only
    )


def _window_over(body: Body | None, now: UnixMs) -> bool:
    return isinstance(body, (OrderBody, TransferBody)) and body.end_at * _MS_PER_MINUTE <= now


def _reason(fields: Sequence[FieldDifference], adopted: LiveObject | None) -> str:
    if adopted is not None:
        return f"owned by {owner_of(adopted)} before"
    causes = {entry.cause for entry in fields}
    if causes <= {"change"}:
        return "changed"
    return "drifted" if causes == {"drift"} else "changed and drifted"
