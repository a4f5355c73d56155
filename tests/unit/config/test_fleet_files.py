"""Every refusal of fleet-files.md, and what is near it and passes: tests/cases/fleet-files/*.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleetctl.config.load import load_fleet
from tests.support.fleet_files import make_folder

CASES = sorted((Path(__file__).parents[2] / "cases" / "fleet-files").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    found = load_fleet(make_folder(tmp_path, case)).diagnostics
    seen = [
        (item.code.name, *((item.span.file, item.span.line, item.span.column) if item.span else (None, None, None)))
        for item in found
    ]
    expected = case["expect"]
    assert seen == [(item["code"], item["file"], item["line"], item["column"]) for item in expected], case["why"]
    for item, want in zip(found, expected, strict=True):
        assert want.get("says", "") in item.detail, case["why"]


def test_there_are_cases() -> None:
    assert len(CASES) > 60
