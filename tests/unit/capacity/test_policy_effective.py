"""What a policy comes to: clamps, defaults, rounding, capacity rows (B27 to B29). Cases are files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.capacity.policy import effective
from fleetctl.capacity.policy.rows import HostInventory, host_rows
from fleetctl.model.policy_forms import from_json

CASES = json.loads((Path(__file__).parents[2] / "cases" / "policy" / "values" / "effective.json").read_text("utf-8"))


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _answer(case: Mapping[str, Any]) -> Any:
    policy, misfits = from_json(case["policy"])
    assert misfits == []
    match case["of"]:
        case "overcommit":
            return _text(effective.overcommit(policy, "vcpu"))
        case "replicas":
            return effective.replicas(policy, case["sharing"])
        case "disruptable":
            return effective.disruptable(policy, case["nodes"])
        case "max-pending":
            return effective.max_pending_ms(policy)
        case "lost-after":
            return effective.lost_after_ms(policy, case["pool_class"])
        case "host-reserve":
            return [
                _text(effective.host_reserve(policy, case["pool_class"], name)) for name in effective.PER_GPU_RESOURCES
            ]
        case "per-gpu":
            hosts = [effective.HostShare(**host) for host in case["hosts"]]
            return [_text(effective.per_gpu(policy, name, hosts)) for name in effective.PER_GPU_RESOURCES]
        case "rows":
            host = HostInventory(**case["host"])
            return host_rows(policy, pool_class=case["pool_class"], host=host, allocated=case["allocated"])
    raise AssertionError(case["of"])


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: f"{case['of']}: {case['why']} ({case['clause']})")
def test_effective_case(case: Mapping[str, Any]) -> None:
    assert _answer(case) == case["expected"]


@given(st.integers(0, 100), st.integers(0, 2))
def test_a_disruption_budget_rounds_exactly(hundredths: int, exponent: int) -> None:
    """B29: 0.29×100 is 29, which a float floor gives as 28."""
    nodes = 100 * 10**exponent
    policy, _ = from_json({"disruptionBudget": {"$decimal": f"{hundredths // 100}.{hundredths % 100:02d}"}})
    assert effective.disruptable(policy, nodes) == hundredths * 10**exponent


@given(st.integers(1, 10**6), st.integers(1, 64), st.integers(1, 1000))
def test_bookings_with_gpus_never_hold_less_than_their_share(thousandths: int, gpus: int, more: int) -> None:
    share = Fraction(thousandths, 1000)
    booked = effective.booked_with_gpus(share, gpus)
    assert share * gpus <= booked < share * gpus + 1
    assert effective.booked_with_gpus(share, gpus + more) >= booked
    assert effective.booked_with_gpus(None, gpus) == 0
