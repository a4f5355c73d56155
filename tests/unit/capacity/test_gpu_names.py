"""Hardware 2b: NVML names and label forms to families, and to the MIG table of the product. Cases are files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.capacity.gpu_names import device_name, family_of
from fleetctl.capacity.mig import TABLES, table_of_product
from fleetctl.capacity.policy import pool_words

CASES = json.loads((Path(__file__).parents[2] / "cases" / "hardware" / "names.json").read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['name'][:60]} ({case['why']})")
def test_name_case(case: Mapping[str, Any]) -> None:
    device = device_name(case["name"])
    assert family_of(case["name"]) == case["family"]
    if device is None:
        return
    assert device.profile == case.get("profile")
    assert device.compute_slices == case.get("compute_slices")
    if "table" in case:
        table = table_of_product(case["name"])
        assert (table.name if table else None) == case["table"]


def test_every_table_is_reached_by_a_name() -> None:
    assert {case.get("table") for case in CASES} >= set(TABLES)


@given(st.text(max_size=100) | st.from_regex(r"(NVIDIA |Tesla )?[A-Z]{1,2}[0-9]{1,4}[A-Z]?([ -][A-Z0-9]+)*"))
def test_a_family_is_a_gpu_model(name: str) -> None:
    """What inventory derives can be written as a pool's gpuModel."""
    family = family_of(name)
    if family is not None:
        assert list(pool_words(gpu_model=family, pool_class="metal-host", sharing="mig", agent="bcd")) == []
