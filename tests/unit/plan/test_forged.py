"""Plan files whose digests hold and whose operations no planner would write: each is refused, and nothing is changed.

A case makes an honest plan, edits its body (or its `context`) by JSON pointers and digests it again. In an edit `@kind/key` is the id of a
live object, `@derive kind key [fleet]` the id that a key derives to, and `@verb kind/key` (with `as other-key`) an operation on
a live object as a planner would write it if it could.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from fleetctl.canonical import digest_of
from fleetctl.errors import FleetctlError, Stale
from fleetctl.model.ids import derive_id, fleet_caller
from fleetctl.model.operation import VERBS, Operation, Precondition, Verb
from fleetctl.plan.planfile import read_plan
from tests.support.fleet_cases import CASES, fleet_of, play
from tests.support.worlds import World, fleet

_FILE = json.loads((CASES / "plan" / "forged" / "operations.json").read_text("utf-8"))


@pytest.mark.parametrize("case", [pytest.param(item, id=item["id"]) for item in _FILE["cases"]])
def test_forged(case: Mapping[str, Any]) -> None:
    world = World()
    for step in case["given"]:
        play(world, step)
    wanted = fleet_of(case["plan"], "plan")
    content = world.file(world.plan(wanted), wanted).to_json()
    for pointer, value in case["forge"]:
        part, _, place = pointer.partition("/")
        _edit(content[part or "body"], f"/{place}", _value(world, value))
    content["digest"], content["contextDigest"] = digest_of(content["body"]), digest_of(content["context"])
    before = world.snapshot
    with pytest.raises(FleetctlError) as refused:
        world.apply(read_plan(json.dumps(content).encode()))
    found = "stale" if isinstance(refused.value, Stale) else refused.value.code
    assert found == case["refused"], str(refused.value)
    assert world.snapshot is before


def test_the_same_edits_undone_are_applied() -> None:
    """What refuses the forged plans is the forgery: each honest plan of the cases can be applied."""
    for case in _FILE["cases"]:
        world = World()
        for step in case["given"]:
            play(world, step)
        wanted = fleet_of(case["plan"], "plan")
        plan = world.plan(wanted)
        content = world.file(plan, wanted).to_json()
        world.apply(read_plan(json.dumps(content).encode()), accept=[item.id for item in plan.dangers])
        assert world.plan(wanted).operations == ()


def _value(world: World, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    word, _, rest = value[1:].partition(" ")
    if word == "derive":
        kind, key, *fleets = rest.split(" ")
        return derive_id(kind, "root", fleet_caller(fleets[0] if fleets else "eu"), key)
    if word == "settings":
        return _operation(world, cast(Verb, rest), "settings/engine", None)
    if word in VERBS:
        label, _, key = rest.partition(" as ")
        return _operation(world, word, label, key or None)
    return world.live(value[1:]).id


def _operation(world: World, verb: Verb, label: str, key: str | None) -> dict[str, Any]:
    live = world.live(label, archived=True)
    after: dict[str, Any] | None = live.state()
    if live.kind == "settings" and after is not None:
        after["requiredApprovals"] = 3
    elif verb == "update" and after is not None:
        after["description"] = "x"
    elif verb == "rename" and after is not None:
        after["name"] = "x"
    return Operation(
        verb=verb,
        kind=live.kind,
        key=key or live.key,
        id=live.id,
        before=None if verb == "create" else live.state(),
        after=None if verb == "remove" else after,
        precondition=Precondition(absent=0) if verb == "create" else Precondition(version=live.version),
        reason="forged",
    ).to_json()


def _edit(body: dict[str, Any], pointer: str, value: Any) -> None:
    *above, last = pointer.split("/")[1:]
    place: Any = body
    for step in above:
        place = place[int(step)] if isinstance(place, list) else place[step]
    if last == "+":
        place.append(value)
    elif isinstance(place, list):
        place[int(last)] = value
    elif value is None:
        del place[last]
    else:
        place[last] = value


GIVEN: Mapping[str, Mapping[str, Any]] = {
    "tenant/acme": {},
    "tenant/beta": {},
    "site/fra1": {},
    "pool/p1": {},
    "pool/p2": {},
    "offer/p1/acme": {},
    "offer/p2/acme": {},
    "entitlement/e1": {},
    "entitlement/e2": {"parent": "e1"},
    "market-pool/dev": {},
    "order/o1": {},
    "procurement/dev/a": {},
}
WANTED: Mapping[str, Mapping[str, Any]] = {
    "tenant/acme": {"description": "x"},
    "site/fra1": {},
    "pool/p1": {"gpuModel": "H200"},
    "pool/p3": {},
    "offer/p1/acme": {"quota": {"gpu": 64}},
    "offer/p3/acme": {},
    "entitlement/e1": {"name": "other"},
    "entitlement/e3": {"parent": "e1"},
    "market-pool/dev": {},
    "market-pool/prod": {},
    "procurement/dev/a": {"nodes": 9},
    "transfer/x1": {},
}


def _swaps(operations: list[dict[str, Any]]) -> list[tuple[int, str, Any]]:
    """Every other value that some operation holds in the same place, and neighbours of each version.

    Another `after` of the same kind is left out: files could ask for that.
    """
    out = []
    for index, item in enumerate(operations):
        for field in ("verb", "kind", "key", "id", "before", "after", "precondition"):
            sources = [other for other in operations if field != "after" or other["kind"] != item["kind"]]
            others: list[Any] = [other.get(field) for other in sources]
            others += list(VERBS) if field == "verb" else []
            if field == "precondition":
                others += [{name: value + step for name, value in item[field].items()} for step in (-1, 1)]
            out += [(index, field, other) for other in others if other != item.get(field)]
    return out


def test_every_value_of_another_operation_in_every_place() -> None:
    world = World()
    world.converge(fleet(GIVEN))
    wanted = fleet(WANTED)
    content = world.file(world.plan(wanted), wanted).to_json()
    operations = content["body"]["operations"]
    assert {item["verb"] for item in operations} == {"create", "update", "rename", "release", "remove"}
    accept = [f"{kind}:{item['kind']}/{item['key']}" for kind in ("remove", "unprotect") for item in operations]
    tried = 0
    for index, field, value in _swaps(operations):
        forged = json.loads(json.dumps(content))
        if value is None:
            forged["body"]["operations"][index].pop(field)
        else:
            forged["body"]["operations"][index][field] = value
        if forged["body"] == content["body"]:
            continue
        forged["digest"] = digest_of(forged["body"])
        before = world.snapshot
        with pytest.raises(FleetctlError):
            world.apply(read_plan(json.dumps(forged).encode()), accept=[*accept, "share:fleet/eu"])
            pytest.fail(f"{operations[index]['verb']} {operations[index]['key']}: {field} became {value}")
        assert world.snapshot is before
        tried += 1
    assert tried > 500
