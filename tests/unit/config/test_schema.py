"""The schema: one verdict of two validators, one verdict on a fleet and on its parts, and in step with the model."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fleetctl.config import codes, load
from fleetctl.config.merge import DEFAULTS, HEADER, LISTS, SECTIONS
from fleetctl.config.schema import explaining_validator, failing_parts, fleet_schema, is_valid
from fleetctl.model import policy_fields
from fleetctl.model.ids import KINDS
from tests.support.fleet_files import make_folder
from tests.support.fleets import FLEET

CASES = sorted((Path(__file__).parents[2] / "cases" / "fleet-files").glob("*.json"))
VALUES: list[Any] = [None, True, False, 0, 1, -1, 10**20, [], ["a"], {}, {"a": 1}]
VALUES += ["", "a", "A b", "6h", "6h\n", "40 MJ", "2026-12-31", "a/b", "é", "x" * 5000]


def mutated(seed: int) -> dict[str, Any]:
    """The full fleet with some values replaced, removed or added, anywhere."""
    rng = random.Random(seed)
    fleet = copy.deepcopy(dict(FLEET))
    for _ in range(rng.randint(0, 3)):
        node: Any = fleet
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.85:
                node = node[key]
                continue
            how = rng.random()
            if how < 0.2:
                del node[key]
            elif how < 0.4 and isinstance(node, dict):
                node[rng.choice(["idempotencyKey", "pool", "pools", "X", "nodes", str(key) + "s"])] = rng.choice(VALUES)
            else:
                node[key] = rng.choice(VALUES)
            break
    return fleet


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_two_validators_have_one_verdict(seed: int) -> None:
    """architecture.md: jsonschema-rs decides, jsonschema explains."""
    fleet = mutated(seed)
    assert is_valid(fleet) == (next(explaining_validator(header=True).iter_errors(fleet), None) is None)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_a_fleet_is_valid_when_its_parts_are(seed: int) -> None:
    """Sections come merged, as mappings and lists; what is in them may be anything."""
    fleet = mutated(seed)
    shape: dict[str, Any] = {**dict.fromkeys(SECTIONS, dict), **dict.fromkeys(LISTS, list), DEFAULTS: dict}
    fleet = {
        name: value for name, value in fleet.items() if name in HEADER or isinstance(value, shape.get(name, type(None)))
    }
    assert is_valid(fleet) == (next(failing_parts(fleet), None) is None)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_two_validators_have_one_verdict_on_every_case(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[tuple[bool, bool]] = []

    def both(fleet: Mapping[str, Any]) -> bool:
        explained = next(explaining_validator(header=True).iter_errors(fleet), None) is None
        judged.append((is_valid(fleet), explained))
        return is_valid(fleet)

    monkeypatch.setattr(load, "is_valid", both)
    result = load.load_fleet(make_folder(tmp_path, json.loads(path.read_text(encoding="utf-8"))))
    assert all(decided == explained for decided, explained in judged)
    if any(not decided for decided, _ in judged):
        assert result.fleet is None
    assert codes.INVALID not in {item.code for item in result.diagnostics}, (
        "every rule of the schema has words of its own"
    )


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(dict(fleet_schema()))
    assert jsonschema_rs.validator_for(dict(fleet_schema())).is_valid(dict(FLEET))


def test_sections_are_those_of_the_merge() -> None:
    document = fleet_schema()["$defs"]["document"]["properties"]
    assert set(document) == {*HEADER, *SECTIONS, *LISTS, DEFAULTS}
    assert set(fleet_schema()["$defs"][DEFAULTS]["properties"]) == set(SECTIONS) - {"policies"}
    assert {kind for kind in SECTIONS.values() if kind} | {"procurement", "settings"} == set(KINDS)


def test_known_policy_fields_are_those_of_the_model() -> None:
    """A policy field that the validators know is in the schema with its type, and the other way round."""
    schema = dict(fleet_schema()["$defs"]["policy"])
    schema["properties"] = {name: part for name, part in schema["properties"].items() if name != "from"}
    assert sorted(_differences(schema, policy_fields.POLICY, "policy")) == []


_TYPE = {
    policy_fields.Kind.DURATION: "#/$defs/duration",
    policy_fields.Kind.DECIMAL: "#/$defs/decimal",
    policy_fields.Kind.COUNT: "#/$defs/count",
    policy_fields.Kind.BOOLEAN: "boolean",
    policy_fields.Kind.STRING: "string",
    policy_fields.Kind.LIST: "array",
    policy_fields.Kind.MAP: "object",
    policy_fields.Kind.OBJECT: "object",
    policy_fields.Kind.OPEN: None,
}


def _differences(part: Any, known: policy_fields.Field, path: str) -> Iterator[str]:
    found = None if part is True else part.get("$ref", part.get("type"))
    if found != _TYPE[known.kind]:
        yield f"{path}: {found}, not {_TYPE[known.kind]}"
    if known.kind is policy_fields.Kind.OBJECT:
        parts = part.get("properties", {})
        yield from (f"{path}.{name}: in one of them only" for name in set(parts) ^ set(known.fields))
        for name in set(parts) & set(known.fields):
            yield from _differences(parts[name], known.fields[name], f"{path}.{name}")
    elif known.kind is policy_fields.Kind.LIST and known.item is not None:
        yield from _differences(part.get("items", True), known.item, f"{path}[]")
    elif known.kind is policy_fields.Kind.MAP and known.item is not None:
        yield from _differences(part.get("additionalProperties", True), known.item, f"{path}.*")
