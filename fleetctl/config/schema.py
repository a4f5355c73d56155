"""The schema of fleet files: jsonschema-rs decides whether a fleet is valid, jsonschema says why it is not.

Both read `schemas/fleet.schema.json`; a fleet is judged merged and with its defaults filled in (`$defs/complete`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs

from fleetctl.config.convert import Converter, Converters
from fleetctl.config.merge import DEFAULTS
from fleetctl.schemafiles import load_schema_text

NAME = "fleet.schema.json"

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaError:
    """One way in which a value does not fit: `keyword` of the schema `part` wants `wanted`, and `instance` is not so.

    `in_name` says that `instance` is a property's name, not a value.
    """

    path: Path
    keyword: str
    wanted: Any
    instance: Any
    part: Mapping[str, Any]
    message: str
    in_name: bool


@cache
def fleet_schema() -> Mapping[str, Any]:
    """The schema as it is in the file."""
    schema: Mapping[str, Any] = json.loads(load_schema_text(NAME))
    return schema


@cache
def converter() -> Converter:
    """Converts a merged fleet to the data that the schema judges."""
    return Converters(fleet_schema()).of({"$ref": "#/$defs/document"})


@cache
def _complete() -> dict[str, Any]:
    schema = fleet_schema()
    return {"$schema": schema["$schema"], "$ref": "#/$defs/complete", "$defs": schema["$defs"]}


@cache
def _validator() -> Any:
    return jsonschema_rs.validator_for(_complete())


def is_valid(fleet: Mapping[str, Any]) -> bool:
    """Whether a converted fleet fits the schema."""
    return bool(_validator().is_valid(fleet))


def failing(fleet: Mapping[str, Any]) -> list[Path]:
    """The paths at which a converted fleet does not fit; for a name, that of the mapping it is in."""
    return [tuple(error.instance_path) for error in _validator().iter_errors(fleet)]


def in_policy(path: Path) -> bool:
    """Whether a path leads to something inside a policy, whose own validators speak of it."""
    if path[:1] == (DEFAULTS,):
        return path[1:3] == ("pools", "policy") and len(path) > 3
    if path[-1:] == ("from",):
        return False
    if path[:1] == ("policies",):
        return len(path) > 2
    return path[:1] == ("pools",) and path[2:3] == ("policy",) and len(path) > 3


def errors(fleet: Mapping[str, Any]) -> Iterator[SchemaError]:
    """Every way in which a fleet does not fit. Looks only at the objects that fail."""
    at_fault = {path[:2] for path in failing(fleet)}
    part = {
        section: (
            {name: item for name, item in content.items() if (section, name) in at_fault}
            if isinstance(content, Mapping) and (section,) not in at_fault
            else content
        )
        for section, content in fleet.items()
    }
    for error in explaining_validator().iter_errors(part):
        yield SchemaError(
            path=tuple(error.absolute_path),
            keyword=str(error.validator),
            wanted=error.validator_value,
            instance=error.instance,
            part=error.schema if isinstance(error.schema, Mapping) else {},
            message=error.message,
            in_name="propertyNames" in error.absolute_schema_path,
        )


@cache
def explaining_validator() -> Any:
    """jsonschema over the same schema, loaded only when something is wrong."""
    from jsonschema import ValidationError
    from jsonschema.validators import Draft202012Validator, extend

    def pattern(_: Any, wanted: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        # Python's `$` also matches before a line end; that of JSON Schema's dialect does not.
        if isinstance(instance, str) and not re.search(wanted.replace("$", r"\Z"), instance):
            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    make: Any = extend  # the stubs leave it untyped
    return make(Draft202012Validator, {"pattern": pattern})(_complete())
