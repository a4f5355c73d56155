"""What the engine allows, as files: better-compute 4A and 4D, the market's stored objects, and every other rule of `decide`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.fleet_cases import cases, run


@pytest.mark.parametrize("case", cases("better-compute", "sf-compute", "decide"))
def test_case(case: Mapping[str, Any]) -> None:
    run(case)
