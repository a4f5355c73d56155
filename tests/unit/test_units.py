"""Power as text: exact to the microwatt, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.units import MAX_QUANTITY, UnitError, format_power, parse_power


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0 W", 0),
        ("120W", 120_000_000),
        ("1.5 kW", 1_500_000_000),
        ("7 uW", 7),
        ("7 µW", 7),
        ("2mW", 2_000),
        ("1 MW", 10**12),
    ],
)
def test_power(text: str, value: int) -> None:
    assert parse_power(text) == value


@pytest.mark.parametrize(
    "text", ["", "120", "-1 W", "1 w", "1 J", "0.5 uW", "1e3 W", "01 W", "10000000 MW", "9" * 99 + "W", "1 W "]
)
def test_no_power(text: str) -> None:
    with pytest.raises(UnitError):
        parse_power(text)


@given(st.integers(0, MAX_QUANTITY))
def test_power_is_written_so_that_it_reads_back(value: int) -> None:
    assert parse_power(format_power(value)) == value
