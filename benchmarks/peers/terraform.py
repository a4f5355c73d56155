"""Terraform over resources of its built-in `terraform_data`, which needs no provider download."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from benchmarks.fleets import hcl_object, pools
from benchmarks.process import clean_environment, peer_python, run
from benchmarks.series import Sample

_CLI = Path(__file__).with_name("terraform_cli.py")
_COMMON = ("-no-color", "-input=false")
PLAN = "terraform.plan"
NOTHING, CHANGES = 0, 2
"""What `-detailed-exitcode` answers."""


class Terraform:
    """A Terraform folder that declares `count` pools; `applied` also writes the state that an apply would have left."""

    def __init__(self, folder: Path, count: int, *, applied: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.env = clean_environment(folder / "home") | {"CHECKPOINT_DISABLE": "1"}  # no look for newer versions
        _write_configuration(folder / "main.tf", count)
        if applied:
            _write_state(folder / "terraform.tfstate", count, self.version())

    def plan(self, expect: int) -> Sample:
        """Plan and save the plan; `expect` is what the plan must turn out to be."""
        return self._run("plan", *_COMMON, "-detailed-exitcode", f"-out={PLAN}", expect=expect)

    def apply(self, count: int) -> Sample:
        """Apply the saved plan, which must create `count` resources."""
        (self.folder / "terraform.tfstate").unlink(missing_ok=True)
        return self._run("apply", *_COMMON, PLAN, says=f"Resources: {count} added")

    def version(self) -> str:
        """Such as `1.15.5`."""
        self._run("version")
        said = (self.folder / "output.txt").read_text()
        return said.split()[1].removeprefix("v")

    def _run(self, *arguments: str, expect: int = 0, says: str | None = None) -> Sample:
        argv = [peer_python(), str(_CLI), str(self.folder), *arguments]
        return run(argv, cwd=self.folder, env=self.env, expect=expect, says=says)


def _write_configuration(path: Path, count: int) -> None:
    with path.open("w") as out:
        for pool in pools(count):
            value = _hcl(hcl_object(pool), indent="  ")
            out.write(f'resource "terraform_data" "{pool.name}" {{\n  input = {value}\n}}\n\n')


def _hcl(value: object, indent: str) -> str:
    if isinstance(value, Mapping):
        lines = "".join(f"{indent}  {key} = {_hcl(item, indent + '  ')}\n" for key, item in value.items())
        return f"{{\n{lines}{indent}}}"
    if isinstance(value, list):
        return f"[{', '.join(_hcl(item, indent) for item in value)}]"
    return json.dumps(value)


def _write_state(path: Path, count: int, version: str) -> None:
    resources = []
    for pool in pools(count):
        value = hcl_object(pool)
        typed = {"value": value, "type": _type(value)}
        id = str(uuid.uuid5(uuid.NAMESPACE_URL, pool.name))
        attributes = {"id": id, "input": typed, "output": typed, "triggers_replace": None}
        instance = {
            "schema_version": 0,
            "attributes": attributes,
            "sensitive_attributes": [],
            "identity_schema_version": 0,
        }
        resources.append(
            {
                "mode": "managed",
                "type": "terraform_data",
                "name": pool.name,
                "provider": 'provider["terraform.io/builtin/terraform"]',
                "instances": [instance],
            }
        )
    state = {
        "version": 4,
        "terraform_version": version,
        "serial": 1,
        "lineage": str(uuid.uuid5(uuid.NAMESPACE_URL, "fleetctl benchmarks")),
        "outputs": {},
        "resources": resources,
        "check_results": None,
    }
    path.write_text(json.dumps(state, indent=2))


def _type(value: object) -> object:
    """The type that Terraform keeps beside a dynamic value."""
    if isinstance(value, Mapping):
        return ["object", {key: _type(item) for key, item in value.items()}]
    if isinstance(value, list):
        return ["tuple", [_type(item) for item in value]]
    return "number" if isinstance(value, int) else "string"
