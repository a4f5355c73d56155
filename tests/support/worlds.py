"""Declared fleets for tests, and a pure engine to plan and apply them on: no store, no ledger, no clock.

Objects are written in canonical field names under `kind/key`, with defaults for what a test does not care about::

    small = fleet({"site/fra1": {}, "pool/p1": {"ownerQuota": {"gpu": 8}}, "offer/p1/acme": {"quota": {"gpu": 4}}})
    world = World()
    world.converge(small)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from fleetctl.canonical import canonical_json
from fleetctl.capacity.decide import Actor, decide
from fleetctl.capacity.working import Working
from fleetctl.engine.apply import UNACCEPTED_DANGER
from fleetctl.engine.calls import Build, Nothing
from fleetctl.engine.preconditions import STALE_PLAN
from fleetctl.errors import SafetyRefused, Stale
from fleetctl.model.bodies import OWNER_QUOTA_DEFAULT, SettingsBody
from fleetctl.model.changes import AuthzRow, Changes, Event
from fleetctl.model.codec import decode, encode
from fleetctl.model.declared import Acceptance, Declared, Fleet, IgnoredDrift
from fleetctl.model.ids import (
    ROOT_TENANT,
    SETTINGS_ID,
    EngineId,
    FleetName,
    Kind,
    ObjectId,
    TenantId,
    cli_caller,
    fleet_caller,
)
from fleetctl.model.live import FleetRecord, LiveObject, ObjectKey, Snapshot
from fleetctl.model.operation import Operation
from fleetctl.model.usage import BookedUse, EntitlementUse
from fleetctl.plan.context import Culprit, Moved, Surroundings, plan_context
from fleetctl.plan.dangers import Danger, find_dangers, unaccepted
from fleetctl.plan.planfile import PlanFile, plan_file, read_plan, write_plan
from fleetctl.plan.planner import Plan, make_plan
from fleetctl.plan.provenance import Provenance
from fleetctl.units import UnixMs, parse_time

ENGINE = EngineId("eng_test")
NOW = UnixMs(parse_time("2026-11-30T00:00Z") * 60_000)
ORIGIN = ("0" * 40, "fleet")
_FLAGS = {"protect": "protect", "explicitOnly": "explicit_only", "adopt": "adopt"}


def fleet(
    objects: Mapping[str, Mapping[str, Any]],
    *,
    name: str = "eu",
    tenant: str = "root",
    accept: Iterable[str | Mapping[str, Any]] = (),
    ignore: Iterable[Mapping[str, Any]] = (),
    release: Iterable[str] = (),
) -> Fleet:
    """A fleet of objects written as `kind/key` to fields."""
    return Fleet(
        name=FleetName(name),
        tenant=TenantId(tenant),
        objects=tuple(declared(label, fields, tenant) for label, fields in objects.items()),
        accept=tuple(Acceptance(danger=item) if isinstance(item, str) else Acceptance(**item) for item in accept),
        ignore_drift=tuple(IgnoredDrift(**{"owner": "sre", "reason": "tuned live", **item}) for item in ignore),
        release=tuple(release),
    )


def declared(label: str, fields: Mapping[str, Any], tenant: str = "root") -> Declared:
    """One declared object. Beside its body's fields: `name` (default: from the key), `protect`, `explicitOnly`, `adopt`.

    A field that is None is left out, also where it has a default here.
    """
    text, _, key = label.partition("/")
    kind = cast(Kind, text)
    flags = {_FLAGS[name]: value for name, value in fields.items() if name in _FLAGS}
    rest = {name: value for name, value in fields.items() if name not in _FLAGS and name != "name"}
    data = {name: value for name, value in {**_defaults(kind, key, tenant), **rest}.items() if value is not None}
    return Declared(kind=kind, key=key, name=fields.get("name", _name(key)), body=decode(kind, data), **flags)


def redeclared(item: Declared, **parts: Any) -> Declared:
    """The object with other parts."""
    names = ("kind", "key", "name", "body", "protect", "explicit_only", "adopt", "span")
    return Declared(**{name: getattr(item, name) for name in names} | parts)


def _name(key: str) -> str:
    return key.rpartition("/")[2].lower().replace(".", "-").replace("_", "-").replace("#", "-")


def _defaults(kind: Kind, key: str, tenant: str) -> dict[str, Any]:
    above, _, below = key.rpartition("/")
    window = {"startAtMin": parse_time("2026-12-07T00:00Z"), "endAtMin": parse_time("2026-12-07T08:00Z")}
    defaults: dict[Kind, dict[str, Any]] = {
        "tenant": {"parent": tenant},
        "site": {"kind": "shared", "region": "eu-central", "tenant": tenant},
        "pool": {
            "site": "fra1",
            "class": "metal-host",
            "gpuModel": "H100",
            "sharing": "exclusive",
            "agent": "bcd",
            "policy": {},
            "ownerQuota": dict(OWNER_QUOTA_DEFAULT),
            "labels": {},
        },
        "offer": {"pool": above, "to": below, "quota": {"gpu": 8}, "priority": 0, "includeDescendants": False},
        "entitlement": {
            "tenant": tenant,
            "guarantee": {"energyUj": 0, "devices": 0},
            "overQuotaWeight": 0,
            "priority": 0,
        },
        "market-pool": {"kind": "market"},
        "procurement": {
            "marketPool": above,
            "instanceSku": "sea-3-h100",
            "nodes": 2,
            "windowMs": 7_200_000,
            "maxRateMicrousd": 20_000_000,
        },
        "order": {
            "side": "buy",
            "pool": "dev",
            "nodes": 1,
            "maxRateMicrousd": 20_000_000,
            "standing": False,
            **window,
        },
        "transfer": {"from": "dev", "to": "prod", "nodes": 4, "instanceSku": "sea-3-h100", **window},
        "settings": encode("settings", SettingsBody()),
    }
    return defaults[kind]


def settings_object(body: SettingsBody | None = None) -> LiveObject:
    """The settings as `init` makes them."""
    return LiveObject(
        kind="settings",
        id=SETTINGS_ID,
        tenant=ROOT_TENANT,
        key="engine",
        name="engine",
        version=1,
        body_json=canonical_json(encode("settings", body or SettingsBody())),
    )


def fold(snapshot: Snapshot, changes: Changes) -> Snapshot:
    """The snapshot after a decision's rows were written, by nothing but those rows."""
    objects, tombstones = dict(snapshot.objects), dict(snapshot.tombstones)
    quotas = {key: dict(rows) for key, rows in snapshot.quotas.items()}
    for stone in changes.drop:
        del objects[stone.kind, stone.id]
        tombstones[stone.kind, stone.id] = stone
    for item in changes.put:
        objects[item.kind, item.id] = item
    for row in changes.quotas:
        quotas.setdefault((row.pool, row.tenant), {})[row.resource] = row.maximum
    return replace(snapshot, objects=objects, tombstones=tombstones, quotas=quotas)


class World:
    """A pure engine. Plans go through their bytes, so what is applied is what a reader of the file would see."""

    def __init__(self, settings: SettingsBody | None = None) -> None:
        made = settings_object(settings)
        self.snapshot = Snapshot(engine=ENGINE, objects={(made.kind, made.id): made})
        self.now = NOW
        self.authz: dict[tuple[ObjectId, str], AuthzRow] = {}
        self.events: list[Event] = []
        self._entry = 0

    def plan(self, wanted: Fleet, *, provenance: Provenance | None = None, accept: Iterable[str] = ()) -> Plan:
        """The fleet's plan; by default its files come from one repository, each commit after the last one."""
        record = self.snapshot.fleets.get(wanted.name)
        last = record.commit if record else None
        where = provenance or Provenance(last_commit=last, ancestor=None if last is None else True, origin=ORIGIN)
        return make_plan(wanted, self.snapshot, now=self.now, provenance=where, accept=accept)

    def file(
        self,
        plan: Plan,
        wanted: Fleet,
        *,
        commit: str | None = None,
        culprits: Mapping[Moved, Culprit] = MappingProxyType({}),
    ) -> PlanFile:
        """The plan's file, read back from its bytes. Who moved what is in no journal here."""
        around = Surroundings(
            at=self.now,
            host="test",
            tool="test",
            journal_length=0,
            journal_head=bytes(32),
            commit=commit,
            culprits=culprits,
        )
        return read_plan(write_plan(plan_file(plan, plan_context(plan, wanted, self.snapshot, around))))

    def converge(
        self,
        wanted: Fleet,
        *,
        provenance: Provenance | None = None,
        commit: str | None = None,
        accept_all: bool = True,
    ) -> Plan:
        """Plan and apply; `accept_all` accepts the dangers that the plan shows."""
        plan = self.plan(wanted, provenance=provenance)
        accept = [item.id for item in plan.dangers] if accept_all else []
        self.apply(self.file(plan, wanted, commit=commit), accept=accept)
        return plan

    def apply(self, file: PlanFile, *, accept: Iterable[str] = ()) -> tuple[Danger, ...]:
        """Steps 8 to 11 of an apply: preconditions, dangers, decide, write. Raises Stale, SafetyRefused, EngineRefused."""
        body = file.body
        for item in body.operations:
            if not self._holds(item):
                raise Stale(STALE_PLAN.at(f"{item.label} moved", subject=item.label))
        dangers = find_dangers(body.operations, body.fleet, self.snapshot, body.provenance)
        acceptances = (*body.acceptances, *(Acceptance(danger=name) for name in accept))
        refused = unaccepted(dangers, acceptances, file.planned_figures(), self.now)
        if refused:
            raise SafetyRefused(UNACCEPTED_DANGER.at(why, subject=danger.id) for danger, why in refused)
        self._write(body.operations, Actor(tenant=body.tenant, caller=fleet_caller(body.fleet), fleet=body.fleet))
        if body.operations:
            self._entry += 1
            commit = cast("str | None", file.context.get("commit"))
            record = FleetRecord(entry=self._entry, commit=commit, origin=body.provenance.origin)
            self.snapshot = replace(self.snapshot, fleets={**self.snapshot.fleets, body.fleet: record})
        return dangers

    def decide(self, operation: Operation, *, tenant: str = "root", fleet: str | None = "eu") -> Changes:
        """What one operation would change now, nothing written."""
        caller = fleet_caller(fleet) if fleet is not None else cli_caller(tenant)
        return decide(Working(self.snapshot), operation, Actor(tenant=tenant, caller=caller, fleet=fleet), self.now)

    def call(self, build: Build, tenant: str = "root") -> Operation | None:
        """One imperative command, as `engine.builders` makes them; None when there was nothing to do."""
        operation = build(self.snapshot)
        if isinstance(operation, Nothing):
            return None
        self._write([operation], Actor(tenant=tenant, caller=cli_caller(tenant)))
        return operation

    def _write(self, operations: Sequence[Operation], actor: Actor) -> None:
        working, after = Working(self.snapshot), self.snapshot
        made: list[Changes] = []
        for item in operations:
            changes = decide(working, item, actor, self.now)
            working.apply(changes)
            after = fold(after, changes)
            made.append(changes)
        for key, live in after.objects.items():
            assert working.get(*key) == live, f"{live.label}: the rows and the working snapshot disagree"
        self.snapshot = after
        for changes in made:
            self.authz.update({(row.pool, row.tenant): row for row in changes.authz})
            for gone in changes.authz_removed:
                self.authz.pop(gone, None)
            self.events += changes.events

    def _holds(self, item: Operation) -> bool:
        found = self.snapshot.objects.get((item.kind, item.id))
        wants = item.precondition
        there = {live.id for live in self.snapshot.objects.values() if not live.archived}
        if not there.issuperset(wants.requires):
            return False
        if wants.version is not None:
            return found is not None and found.version == wants.version
        stone = self.snapshot.tombstones.get((item.kind, item.id))
        return found is None and (stone.version if stone else 0) == wants.absent

    def live(self, label: str, *, archived: bool = False) -> LiveObject:
        """The one live object written `kind/key`."""
        found = [
            item
            for item in self.snapshot.objects.values()
            if item.label == label and item.archived in (False, archived)
        ]
        assert len(found) == 1, f"{label} is {len(found)} objects"
        return found[0]

    def has(self, label: str) -> bool:
        """Whether `kind/key` is live."""
        return any(item.label == label and not item.archived for item in self.snapshot.objects.values())

    def quotas(self, pool: str, tenant: str) -> dict[str, int]:
        """Quota rows of a tenant in the pool written `pool/key`."""
        return dict(self.snapshot.quotas.get((self.live(pool, archived=True).id, tenant), {}))

    def use(
        self,
        *,
        booked: Mapping[tuple[str, str], Mapping[str, int]] | None = None,
        inventory: Mapping[str, int] | None = None,
        entitlements: Mapping[str, EntitlementUse] | None = None,
    ) -> None:
        """Set what is in use: (pool label, tenant) to `reservations` and resources; GPUs by pool label; entitlement labels."""
        usage = self.snapshot.usage
        if booked is not None:
            rows = {
                (self.live(pool, archived=True).id, tenant): BookedUse(
                    reservations=held.get("reservations", 1 if any(held.values()) else 0),
                    resources={name: value for name, value in held.items() if name != "reservations"},
                )
                for (pool, tenant), held in booked.items()
            }
            usage = replace(usage, booked=rows)
        if inventory is not None:
            usage = replace(usage, inventory_gpus={self.live(pool).id: gpus for pool, gpus in inventory.items()})
        if entitlements is not None:
            usage = replace(usage, entitlements={self.live(name).id: use for name, use in entitlements.items()})
        self.snapshot = replace(self.snapshot, usage=usage)

    def outside(self, name: str) -> dict[ObjectKey, LiveObject]:
        """Everything that a fleet does not own."""
        return {key: item for key, item in self.snapshot.objects.items() if item.fleet != name}


def steps(plan: Plan) -> list[str]:
    """`verb kind/key` of every operation, in order."""
    return [f"{item.verb} {item.label}" for item in plan.operations]
