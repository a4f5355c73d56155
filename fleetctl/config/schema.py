"""The schema of fleet files: jsonschema-rs decides whether a fleet is valid, jsonschema says why it is not.

Both read `schemas/fleet.schema.json`; a fleet is judged merged and with its defaults filled in (`$defs/complete`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

import jsonschema_rs

from fleetctl.config.convert import Converter, Converters
from fleetctl.config.merge import DEFAULTS, HEADER
from fleetctl.frozen import dataclass
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
def _judge() -> Any:
    return jsonschema_rs.validator_for(_complete(header=True))


@cache
def _judge_of_parts() -> Any:
    return jsonschema_rs.validator_for(_complete(header=False))


def _complete(*, header: bool) -> dict[str, Any]:
    """The schema of a merged fleet; without `header` that of a part of one."""
    schema = fleet_schema()
    complete = dict(schema["$defs"]["complete"])
    if not header:
        del complete["required"]
    return {"$schema": schema["$schema"], "$ref": "#/$defs/complete", "$defs": schema["$defs"] | {"complete": complete}}


def is_valid(fleet: Mapping[str, Any]) -> bool:
    """Whether a converted fleet fits the schema."""
    return bool(_judge().is_valid(fleet))


def failing_parts(fleet: Mapping[str, Any]) -> Iterator[Path]:
    """The paths of the objects, defaults and entries that do not fit, one by one; the empty path is the header.

    Asking for each costs less than a list of errors, which a hostile file can make as long as it likes.
    """
    if not _judge().is_valid(_part(fleet, ())):
        yield ()
    for path in _parts(fleet):
        if not _judge_of_parts().is_valid(_part(fleet, path)):
            yield path


def _parts(fleet: Mapping[str, Any]) -> Iterator[Path]:
    for section, content in fleet.items():
        if section == DEFAULTS and isinstance(content, Mapping):
            for kind, fields in content.items():
                whole = not isinstance(fields, Mapping) or not fields
                yield from [(section, kind)] if whole else [(section, kind, name) for name in fields]
        elif isinstance(content, Mapping):
            yield from ((section, name) for name in content)
        elif isinstance(content, list):
            yield from ((section, index) for index in range(len(content)))


def _part(fleet: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A fleet with nothing but what is at a path of `_parts`; the empty path is the header."""
    if not path:
        return {field: fleet[field] for field in HEADER if field in fleet}
    inner: Any = fleet
    for step in path:
        inner = inner[step]
    for step in reversed(path):
        inner = [inner] if isinstance(step, int) else {step: inner}
    return cast(dict[str, Any], inner)


def in_policy(path: Path) -> bool:
    """Whether a path leads to something inside a policy, whose own validators speak of it."""
    if path[:1] == (DEFAULTS,):
        return path[1:3] == ("pools", "policy") and len(path) > 3
    if path[-1:] == ("from",):
        return False
    if path[:1] == ("policies",):
        return len(path) > 2
    return path[:1] == ("pools",) and path[2:3] == ("policy",) and len(path) > 3


def errors_of(fleet: Mapping[str, Any], path: Path) -> Iterator[SchemaError]:
    """Every way in which a part does not fit, with paths in the whole fleet."""
    shift = path[-1] if path and isinstance(path[-1], int) else None
    for error in explaining_validator(header=not path).iter_errors(_part(fleet, path)):
        where: Path = tuple(error.absolute_path)
        yield SchemaError(
            path=where if shift is None or len(where) < len(path) else (*path, *where[len(path) :]),
            keyword=str(error.validator),
            wanted=error.validator_value,
            instance=error.instance,
            part=error.schema if isinstance(error.schema, Mapping) else {},
            message=error.message,
            in_name="propertyNames" in error.absolute_schema_path,
        )


@cache
def explaining_validator(*, header: bool) -> Any:
    """jsonschema over the same schema, loaded only when something is wrong."""
    from jsonschema import ValidationError
    from jsonschema.validators import Draft202012Validator, extend

    def pattern(_: Any, wanted: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        # Python's `$` also matches before a line end; that of JSON Schema's dialect does not.
        if isinstance(instance, str) and not re.search(wanted.replace("$", r"\Z"), instance):
            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    make: Any = extend  # the stubs leave it untyped
    return make(Draft202012Validator, {"pattern": pattern})(_complete(header=header))
