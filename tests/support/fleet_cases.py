"""Case files about planning: what is given, what is asked, what is expected. `run` plays one case on a pure engine.

A file is `{"clause": …, "cases": [{"id", "why", "given": [step…], "when": step, "expected": {…}}]}`. Steps:

=========================================  ===================================================================
`{"fleet": {objects}, …}`                  plan and apply a fleet (all dangers accepted); beside the objects: `name`,
                                           `tenant`, `accept`, `ignore`, `release`, `commit`, `provenance`
`{"call": {verb: "kind/key", …}}`          one imperative command: `create` with `fields`, `update` with `set`, `remove`,
                                           `offer` with `to` and `quota`, `unoffer` with `to`; `as` is the tenant
`{"use": {…}}`                             what is in use: `booked` by `pool/key tenant`, `inventory`, `entitlements`
`{"now": "2026-12-01T00:00Z"}`             the time from here on
=========================================  ===================================================================

`when` is one of these, or `{"plan": {objects}, …}` and `{"drift": {objects}, …}`, which write nothing.
`expected` holds only what the case is about; a case without `refused` must not be refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from fleetctl.canonical import Json
from fleetctl.engine import builders
from fleetctl.engine.calls import Build
from fleetctl.errors import FleetctlError
from fleetctl.model.bodies import Body, SettingsBody
from fleetctl.model.codec import decode
from fleetctl.model.declared import Fleet
from fleetctl.model.ids import Kind
from fleetctl.model.live import LiveObject, Snapshot
from fleetctl.model.usage import EntitlementUse
from fleetctl.plan.drift import Drift, find_drift
from fleetctl.plan.planner import Plan, draft_plan
from fleetctl.plan.provenance import Provenance
from fleetctl.units import UnixMs, parse_time
from tests.support.worlds import World, declared, fleet, steps

CASES = Path(__file__).parents[1] / "cases"
_FLEET_WORDS = frozenset({"name", "tenant", "accept", "ignore", "release"})


def cases(*topics: str) -> list[Any]:
    """Every case of the topics' files, as pytest parameters named by file, id and clause."""
    found = []
    for topic in topics:
        for file in sorted((CASES / topic).glob("*.json")):
            content = json.loads(file.read_text("utf-8"))
            for case in content["cases"]:
                clause = case.get("clause", content.get("clause"))
                assert clause and case["why"], f"{file.name}: {case['id']} needs a clause and a why"
                found.append(pytest.param(case, id=f"{file.stem}: {case['id']} ({clause})"))
    return found


def run(case: Mapping[str, Any]) -> None:
    """Play a case and check everything it expects."""
    world = World(SettingsBody(**case.get("settings", {})))
    for step in case.get("given", ()):
        play(world, step)
    world.events.clear()
    expected = case["expected"]
    when = _named(world, case["when"])
    try:
        answer = play(world, when)
    except FleetctlError as error:
        assert "refused" in expected, f"refused: {error}"
        _check_refusal(error, expected)
        return
    assert "refused" not in expected, "this should have been refused"
    _check_answer(world, answer, when, expected)


def play(world: World, step: Mapping[str, Any]) -> Plan | Drift | None:
    """Play one step; a planning step returns its plan, a drift step what drifted."""
    step = _named(world, step)
    if "fleet" in step:
        provenance = _provenance(step, world, fleet_of(step, "fleet").name)
        return world.converge(fleet_of(step, "fleet"), provenance=provenance, commit=step.get("commit"))
    if "plan" in step:
        wanted = fleet_of(step, "plan")
        return world.plan(wanted, provenance=_provenance(step, world, wanted.name), accept=step.get("flags", ()))
    if "drift" in step:
        wanted = fleet_of(step, "drift")
        plan, _ = draft_plan(wanted, world.snapshot, now=world.now)
        return find_drift(wanted, world.snapshot, plan, world.now)
    if "call" in step:
        world.call(_command(step["call"]), tenant=step["call"].get("as", "root"))
    elif "use" in step:
        _use(world, step["use"])
    else:
        world.now = UnixMs(parse_time(step["now"]) * 60_000)
    return None


def fleet_of(step: Mapping[str, Any], word: str) -> Fleet:
    """The fleet that a step writes."""
    return fleet(step[word], **{name: value for name, value in step.items() if name in _FLEET_WORDS})


def _provenance(step: Mapping[str, Any], world: World, name: str) -> Provenance | None:
    given = step.get("provenance")
    if given is None:
        return None
    record = world.snapshot.fleets.get(name)
    origin = given.get("origin")
    return Provenance(
        last_commit=record.commit if record else None,
        ancestor=given.get("ancestor"),
        origin=None if origin is None else (origin[0], origin[1]),
    )


def _command(call: Mapping[str, Any]) -> Build:
    if "create" in call:
        made = declared(call["create"], call.get("fields", {}), call.get("as", "root"))
        return _creation(made.kind, made.body, call, made.key, made.name)
    if "update" in call:
        return _on(call["update"], lambda live: _edited(live, call["set"]))
    if "remove" in call:
        return _on(call["remove"], lambda live: builders.removal(live.kind, live.id))
    if "offer" in call:
        return _on(call["offer"], lambda live: builders.offering(_offer_body(live, call), ""))
    return _on(call["unoffer"], lambda live: builders.unoffering(live.id, call["to"]))


def _creation(kind: Kind, body: Body, call: Mapping[str, Any], key: str, name: str) -> Build:
    flags = {word: call["fields"][word] for word in ("protect",) if word in call.get("fields", {})}
    engine = cast(Any, None)  # only ids without a key need its clock
    return builders.creation(engine, kind, body, tenant=call.get("as", "root"), key=key, name=name, **flags)


def _named(world: World, value: Any) -> Any:
    """`@kind/key` anywhere in a step stands for the id of that live object, as callers of an API write it."""
    if isinstance(value, dict):
        return {name: _named(world, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_named(world, item) for item in value]
    return world.live(value[1:], archived=True).id if isinstance(value, str) and value.startswith("@") else value


def _on(label: str, make: Any) -> Build:
    def build(snapshot: Snapshot) -> Any:
        found = [item for item in snapshot.objects.values() if item.label == label]
        assert len(found) == 1, f"{label} is {len(found)} objects"
        return make(found[0])(snapshot)

    return build


def _edited(live: LiveObject, values: Mapping[str, Any]) -> Build:
    flags = {word: name for word, name in (("protect", "protect"), ("explicitOnly", "explicit_only")) if word in values}
    if flags:
        return builders.flag(live.kind, live.id, **{name: values[word] for word, name in flags.items()})
    data = {**json.loads(live.body_json), **values}
    body = decode(live.kind, {name: value for name, value in data.items() if value is not None})
    return builders.change(live.kind, live.id, lambda _snapshot, _live: body)


def _offer_body(pool: LiveObject, call: Mapping[str, Any]) -> Body:
    made = declared(
        f"offer/{pool.key}/{call['to']}", {"pool": pool.id, **call.get("fields", {}), "quota": call["quota"]}
    )
    return made.body


def _use(world: World, use: Mapping[str, Any]) -> None:
    booked = use.get("booked")
    entitlements = use.get("entitlements")
    world.use(
        booked=None
        if booked is None
        else {cast("tuple[str, str]", tuple(key.split())): v for key, v in booked.items()},
        inventory=use.get("inventory"),
        entitlements=None if entitlements is None else {key: EntitlementUse(**v) for key, v in entitlements.items()},
    )


def _check_refusal(error: FleetctlError, expected: Mapping[str, Any]) -> None:
    wanted: Sequence[Mapping[str, Any]] = expected["refused"]
    found = [(item.code.name, item.subject) for item in error.diagnostics]
    assert found == [(item["code"], item.get("object")) for item in wanted], str(error)
    for item, diagnostic in zip(wanted, error.diagnostics, strict=True):
        for part in item.get("says", ()):
            assert part in diagnostic.detail
        if "engine" in item:
            assert diagnostic.code.engine_code == item["engine"]
    assert error.exit_code == expected.get("exit", 1)


def _check_answer(
    world: World, answer: Plan | Drift | None, when: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    unknown = set(expected) - _PLAN_CHECKS.keys() - _DRIFT_CHECKS.keys() - _WORLD_CHECKS.keys()
    assert expected and not unknown, f"nothing checks {unknown}"
    for word, wanted in expected.items():
        if word in _WORLD_CHECKS:
            assert _WORLD_CHECKS[word](world, wanted) == wanted, word
        elif isinstance(answer, Drift):
            assert _DRIFT_CHECKS[word](answer) == wanted, word
        else:
            assert isinstance(answer, Plan), f"{word} needs a plan"
            assert _PLAN_CHECKS[word](answer, wanted) == wanted, word
    if isinstance(answer, Plan) and "fleet" in when:
        again = world.plan(fleet_of(when, "fleet"))
        assert steps(again) == [], "a plan after an apply has nothing to do"


def _after(plan: Plan, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    states = {item.label: item.after or {} for item in plan.operations}
    return {label: {name: states[label].get(name) for name in fields} for label, fields in wanted.items()}


def _pairs(wanted: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(key, *cast("tuple[str, str]", tuple(key.split()))) for key in wanted]


def _authz(world: World, pool: str, tenant: str) -> Json | None:
    row = world.authz.get((world.live(pool, archived=True).id, tenant))
    if row is None:
        return None
    return {
        "gpuModel": row.gpu_model,
        "class": row.pool_class,
        "sharing": row.sharing,
        "region": row.region,
        "owned": row.owned,
    }


def _live(world: World, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for label, fields in wanted.items():
        item = world.live(label, archived=True)
        state: dict[str, Any] = {
            **item.state(),
            "version": item.version,
            "archived": item.archived,
            "owner": item.fleet,
            "tenantOf": item.tenant,
        }
        out[label] = {name: state.get(name) for name in fields}
    return out


_WORLD_CHECKS: Mapping[str, Any] = {
    "quotas": lambda world, wanted: {key: world.quotas(pool, tenant) for key, pool, tenant in _pairs(wanted)},
    "authz": lambda world, wanted: {key: _authz(world, pool, tenant) for key, pool, tenant in _pairs(wanted)},
    "events": lambda world, _: [{"type": item.type, "object": item.object, **item.data} for item in world.events],
    "live": _live,
    "gone": lambda world, wanted: [label for label in wanted if not world.has(label)],
}
_PLAN_CHECKS: Mapping[str, Any] = {
    "operations": lambda plan, _: steps(plan),
    "reasons": lambda plan, _: [item.reason for item in plan.operations],
    "dangers": lambda plan, _: {item.id: dict(item.figures) for item in plan.dangers},
    "warnings": lambda plan, _: [(item.code.name + " " + str(item.subject)) for item in plan.warnings],
    "after": lambda plan, wanted: _after(plan, wanted),
    "preconditions": lambda plan, wanted: {
        item.label: item.precondition.to_json() for item in plan.operations if item.label in wanted
    },
    "fields": lambda plan, _: {
        label: [f"{entry.field} {entry.cause}" for entry in fields] for label, fields in plan.fields.items()
    },
    "ignored": lambda plan, _: [
        {"field": item.entry.field, "declared": item.declared, "live": item.live} for item in plan.ignored
    ],
    "counts": lambda plan, _: {"owned": plan.owned, "unowned": plan.unowned},
}
_DRIFT_CHECKS: Mapping[str, Any] = {
    "drift": lambda drift: [
        {"object": i.label, "field": i.field, "declared": i.declared, "lastApplied": i.last_applied, "live": i.live}
        for i in drift.items
    ],
    "drifted": lambda drift: [f"{i.label} {i.field}" for i in drift.items],
    "ignoredDrift": lambda drift: [f"{i.label} {i.field}" for i, _ in drift.ignored],
    "pending": lambda drift: [f"{verb} {label}" for verb, label in drift.pending],
}
