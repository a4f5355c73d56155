"""Answers held to `schemas/`: what a command prints with `--format json`, and what any of them prints when it fails."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.support.cli import ROOT

SCHEMAS = ROOT / "schemas"
OUTPUT = json.loads((SCHEMAS / "output.schema.json").read_text(encoding="utf-8"))
PLAN = json.loads((SCHEMAS / "plan.schema.json").read_text(encoding="utf-8"))
COMMANDS: dict[str, Any] = OUTPUT["$defs"]["commands"]["$defs"]
_REGISTRY: Registry[Any] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in (OUTPUT, PLAN)
)


def check(pointer: str, answer: Any) -> None:
    """Fails unless `answer` is what the schema at `$defs/<pointer>` describes."""
    schema = {"$ref": f"{OUTPUT['$id']}#/$defs/{pointer}"}
    validator = Draft202012Validator(schema, registry=_REGISTRY)
    found = sorted(validator.iter_errors(answer), key=lambda error: list(map(str, error.path)))
    assert not found, [f"{list(error.path)}: {error.message}" for error in found[:5]]


def check_answer(arguments: tuple[str, ...], answer: Any) -> None:
    """Fails unless `answer` is what the command of these arguments may answer."""
    command = next(name for name in (" ".join(arguments[:2]), arguments[0]) if name in COMMANDS)
    check("error" if answer["result"] == "error" else f"commands/$defs/{command.replace(' ', '%20')}", answer)
