"""A remembered fleet is the loaded one, and what is not one is nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.config.load import load_fleet
from fleetctl.config.loaded import KnownPool, KnownPools, LoadResult
from fleetctl.config.remembered import recall, remember
from tests.support.fleet_files import make_folder
from tests.support.fleets import FLEET, as_yaml, write

ROOT = Path(__file__).resolve().parents[3]
CASES = sorted((ROOT / "tests/cases/fleet-files").rglob("*.json"))
EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())
KNOWN: KnownPools = {"pool-p": KnownPool(resources={"gpu": 8}, families=frozenset({"H100", "A100"}))}


def known(_fleet: str) -> KnownPools:
    return KNOWN


def again(result: LoadResult) -> LoadResult | None:
    assert result.fleet is not None
    return recall(remember(result, result.fleet, KNOWN), result.files, known)


def test_every_fleet_that_loads_is_remembered_as_it_was_loaded(tmp_path: Path) -> None:
    """Every example and every case without errors: objects with their bodies and places, statements, warnings, references."""
    remembered, warned = 0, 0
    folders = [*EXAMPLES]
    for number, path in enumerate(CASES):
        case = json.loads(path.read_text(encoding="utf-8"))
        (tmp_path / str(number)).mkdir()
        folders.append(make_folder(tmp_path / str(number), case))
    for folder in folders:
        result = load_fleet(folder, inventory=known)
        if result.fleet is None:
            continue
        found = again(result)
        assert found == result, folder
        assert found is not None and found.fleet is not None
        assert found.fleet.digest() == result.fleet.digest()
        for was, now in zip(result.fleet.objects, found.fleet.objects, strict=True):
            assert (now.body, now.text, now.span, now.adopt) == (was.body, was.text, was.span, was.adopt)
        remembered, warned = remembered + 1, warned + bool(result.diagnostics)
    assert remembered > 40 and warned > 10


@pytest.fixture
def kept(tmp_path: Path) -> tuple[bytes, LoadResult]:
    write(tmp_path, {"fleet.yaml": as_yaml(FLEET)})
    result = load_fleet(tmp_path, inventory=known)
    assert result.fleet is not None
    return remember(result, result.fleet, KNOWN), result


@pytest.mark.parametrize(
    "now",
    [
        {},
        {"pool-p": KnownPool(resources={"gpu": 16}, families=frozenset({"H100", "A100"}))},
        {"pool-p": KnownPool(resources={"gpu": 8}, families=frozenset({"H100"}))},
        {**KNOWN, "pool-q": KnownPool(resources={})},
    ],
)
def test_other_machines_ask_for_the_lints_again(kept: tuple[bytes, LoadResult], now: KnownPools) -> None:
    data, result = kept
    assert recall(data, result.files, known) == result
    assert recall(data, result.files, lambda _fleet: now) is None


def test_what_is_damaged_is_nothing(kept: tuple[bytes, LoadResult]) -> None:
    data, result = kept
    whole: dict[str, Any] = json.loads(data)
    for name in whole:
        for value in (None, 1, [[1]], {"a": 1}, "x", [["a"] * 9]):
            found = recall(json.dumps({**whole, name: value}).encode(), result.files, known)
            assert found is None or isinstance(found, LoadResult)
        assert recall(json.dumps({key: item for key, item in whole.items() if key != name}).encode(), {}, known) is None
    assert recall(b"[" * 100_000, result.files, known) is None


@given(
    st.binary(max_size=50)
    | st.recursive(st.none() | st.text(), lambda inner: st.lists(inner)).map(lambda item: json.dumps(item).encode())
)
def test_any_bytes_are_nothing(data: bytes) -> None:
    assert recall(data, {}, known) is None
