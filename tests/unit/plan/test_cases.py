"""Plans, their dangers and drift, as files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.fleet_cases import cases, run


@pytest.mark.parametrize("case", cases("plan", "dangers", "drift"))
def test_case(case: Mapping[str, Any]) -> None:
    run(case)
