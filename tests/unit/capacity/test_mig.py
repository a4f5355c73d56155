"""Hardware 2b: MIG profiles, layouts and what fits one GPU. Cases are files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.capacity.mig import (
    TABLES,
    MigTable,
    layout_instances,
    layout_profiles,
    placement,
    tables_of_family,
)

HARDWARE = Path(__file__).parents[2] / "cases" / "hardware"
PROFILES = json.loads((HARDWARE / "mig-profiles.json").read_text("utf-8"))["tables"]
GEOMETRY = json.loads((HARDWARE / "mig-geometry.json").read_text("utf-8"))["cases"]


@pytest.mark.parametrize(
    ("table", "profile", "most"),
    [(table, profile, most) for table, profiles in PROFILES.items() for profile, most in profiles.items()],
)
def test_profile_row(table: str, profile: str, most: int) -> None:
    """The layout `all-<profile>` puts that many instances on each GPU, and they fit; one more does not."""
    instances = layout_instances(TABLES[table], f"all-{profile}")
    assert instances == (profile,) * most
    assert placement(TABLES[table], instances) is not None
    assert placement(TABLES[table], (*instances, profile)) is None


@pytest.mark.parametrize("case", GEOMETRY, ids=lambda case: f"{'+'.join(case['instances']) or 'none'} ({case['why']})")
def test_geometry_case(case: Mapping[str, Any]) -> None:
    table = TABLES[case["table"]]
    starts = placement(table, case["instances"])
    assert (starts is not None) == case["fits"]
    if starts is not None:
        _assert_placed(table, case["instances"], starts)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_layout_fits(table: MigTable) -> None:
    for layout in [*layout_profiles([table]), "all-balanced", "all-enabled", "all-disabled"]:
        instances = layout_instances(table, layout)
        assert instances is not None
        assert placement(table, instances) is not None
    assert layout_instances(table, "all-8g.80gb") is None
    assert layout_instances(table, "1g.10gb") is None


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_media_engines_are_given_once(table: MigTable) -> None:
    with_media = [profile for profile in table.profiles if profile.name.endswith("+me")]
    assert with_media
    for profile in with_media:
        assert layout_instances(table, f"all-{profile.name}") == (profile.name,)
        assert placement(table, [profile.name, profile.name]) is None


def test_a_family_may_need_several_tables() -> None:
    assert [table.name for table in tables_of_family("H100")] == ["H100-80", "H100-NVL-94"]
    assert "all-1g.10gb" not in layout_profiles(tables_of_family("H100"))
    assert "all-1g.10gb" in layout_profiles(tables_of_family("A100"))


def test_unknown_profiles_fit_nowhere() -> None:
    assert placement(TABLES["H100-80"], ["1g.5gb"]) is None


@given(st.sampled_from(sorted(TABLES)), st.data())
def test_placement_agrees_with_trying_everything(name: str, data: st.DataObject) -> None:
    table = TABLES[name]
    plain = [profile.name for profile in table.profiles]
    instances = data.draw(st.lists(st.sampled_from(plain), max_size=5))
    starts = placement(table, instances)
    assert (starts is not None) == _brute(table, instances)
    if starts is not None:
        _assert_placed(table, instances, starts)


def _brute(table: MigTable, instances: Sequence[str]) -> bool:
    profiles = [profile for item in instances if (profile := table.profile(item)) is not None]
    if sum(profile.compute for profile in profiles) > table.compute:
        return False
    if sum(profile.name.endswith("+me") for profile in profiles) > 1:
        return False
    return any(
        _disjoint([set(range(start, start + profile.slots)) for start, profile in zip(starts, profiles, strict=True)])
        for starts in itertools.product(*(profile.starts for profile in profiles))
    )


def _disjoint(runs: Sequence[set[int]]) -> bool:
    return len(set().union(*runs)) == sum(len(run) for run in runs)


def _assert_placed(table: MigTable, instances: Sequence[str], starts: Sequence[int]) -> None:
    runs = []
    for name, start in zip(instances, starts, strict=True):
        profile = table.profile(name)
        assert profile is not None
        assert start in profile.starts
        runs.append(set(range(start, start + profile.slots)))
    assert _disjoint(runs)
