"""Every refusal of fleet-files.md, and what is near it and passes: tests/cases/fleet-files/*.json."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest

from fleetctl import config
from fleetctl.config.load import load_fleet
from fleetctl.diagnostics import REGISTRY, Code
from tests.support.fleet_files import make_folder

WRITING = ("filing", "yamlfiles")
"""Modules of the package that write files; their codes have tests of their own."""
CASES = sorted((Path(__file__).parents[2] / "cases" / "fleet-files").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    result = load_fleet(make_folder(tmp_path, case))
    seen = [
        (item.code.name, *((item.span.file, item.span.line, item.span.column) if item.span else (None, None, None)))
        for item in result.diagnostics
    ]
    expected = case["expect"]
    assert seen == [(item["code"], item["file"], item["line"], item["column"]) for item in expected], case["why"]
    for item, want in zip(result.diagnostics, expected, strict=True):
        assert want.get("says", "") in item.detail, case["why"]
        assert len(item.detail) < 500 and item.detail.isprintable()
    assert (result.fleet is None) == any(item.severity == "error" for item in result.diagnostics)
    if "externals" in case:
        assert [list(item) for item in result.externals] == case["externals"]
    if "declares" in case:
        assert result.fleet is not None
        objects = {item.label: json.loads(item.canonical()) for item in result.fleet.objects}
        for label, fields in case["declares"].items():
            found = {**objects[label]["body"], **objects[label]}
            assert {name: found.get(name) for name in fields} == fields, case["why"]


def test_there_are_cases_for_every_code_of_the_package() -> None:
    """fleet-files: "Refused": every refusal and every lint has a case; what needs another test is named here."""
    reported = {item["code"] for path in CASES for item in json.loads(path.read_text(encoding="utf-8"))["expect"]}
    declared = {code.name for name, code in REGISTRY.items() if name in _codes_of_config()}
    assert declared - reported == {
        "plan-not-fleet",  # test_load.py: it is about a path that is one file
        "path-not-found",  # test_load.py: there is no folder to put a case into
        "yaml-parser-missing",  # test_reader.py
        "offers-over-capacity",  # test_load.py: needs a known inventory
        "gpu-model-differs",  # test_load.py, so does this
        "more-problems",  # test_load.py
        "invalid-value",  # a net below the schema; test_schema.py shows that nothing falls into it
    }


def _codes_of_config() -> set[str]:
    names: set[str] = set()
    for module in pkgutil.iter_modules(config.__path__, "fleetctl.config."):
        if module.name.rpartition(".")[2] in WRITING:
            continue
        members = vars(importlib.import_module(module.name)).values()
        source = Path(importlib.import_module(module.name).__file__ or "").read_text(encoding="utf-8")
        names |= {item.name for item in members if isinstance(item, Code) and f'"{item.name}"' in source}
    return names
