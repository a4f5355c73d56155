"""Quantities as exact integers, their text forms, and nothing else. Text that is not exactly a quantity raises UnitError."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NewType

MicroJoules = NewType("MicroJoules", int)
MicroWatts = NewType("MicroWatts", int)
DurationMs = NewType("DurationMs", int)
UnixMs = NewType("UnixMs", int)
UnixMinutes = NewType("UnixMinutes", int)
MicroUsd = NewType("MicroUsd", int)
"""Micro-dollars per node-hour."""
Decimal = NewType("Decimal", str)
"""A decimal kept as exact text, without trailing zeros: `1.5`, `0.05`, `2`."""

MAX_QUANTITY = 2**63 - 1
"""What every store and the wire hold."""
LAST_MS = 253_402_300_799_999
"""Unix milliseconds of 9999-12-31T23:59:59.999Z, the last one that people can be shown."""

_ENERGY_UJ = {
    "uJ": 1,
    "µJ": 1,
    "μJ": 1,  # Greek mu, which keyboards give for the micro sign
    "mJ": 10**3,
    "J": 10**6,
    "kJ": 10**9,
    "MJ": 10**12,
    "GJ": 10**15,
    "Wh": 3_600 * 10**6,
    "kWh": 3_600 * 10**9,
    "MWh": 3_600 * 10**12,
    "GWh": 3_600 * 10**15,
}
_POWER_UW = {"uW": 1, "µW": 1, "μW": 1, "mW": 10**3, "W": 10**6, "kW": 10**9, "MW": 10**12}
_DURATION_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MEASURE = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]+))? ?([A-Za-zµμ]+)", re.ASCII)
_DURATION = re.compile(r"([1-9][0-9]*)(ms|s|m|h|d)", re.ASCII)
_COUNT = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_SIGNED = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)
_MONEY = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]{1,6}))?", re.ASCII)
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2})(:00(?:\.0+)?)?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DIGITS = 40  # beyond any quantity; keeps int() on hostile digits cheap


class UnitError(ValueError):
    """The text is not a quantity of this kind; the message says what would be."""


def parse_count(text: str) -> int:
    """A decimal integer without sign, leading zero, exponent or underscore, at most 2^63-1."""
    if not _COUNT.fullmatch(text):
        raise UnitError(f"{shown(text)} is not a count; write a whole number such as 8")
    return _bounded(_int(text), text)


def parse_signed(text: str) -> int:
    """As `parse_count`, with a sign or without (priorities)."""
    if not _SIGNED.fullmatch(text):
        raise UnitError(f"{shown(text)} is not a whole number; write one such as 10, +10 or -5")
    value = _int(text)
    if abs(value) > MAX_QUANTITY:
        raise UnitError(f"{shown(text)} is beyond ±{MAX_QUANTITY}")
    return value


def parse_energy(text: str) -> MicroJoules:
    """Number and unit (`uJ µJ mJ J kJ MJ GJ Wh kWh MWh GWh`), exact to the microjoule."""
    found = _measured(text, _ENERGY_UJ)
    if found is None:
        raise UnitError(
            f"{shown(text)} is not an energy; write a number and one of uJ, mJ, J, kJ, MJ, GJ, Wh, kWh, MWh, GWh "
            "(case matters), such as 40 MJ"
        )
    value, exact = found
    if not exact:
        raise UnitError(f"{shown(text)} is not a whole number of microjoules; write fewer decimals")
    return MicroJoules(_bounded(value, text))


def parse_power(text: str) -> MicroWatts:
    """Number and unit (`uW µW mW W kW MW`), exact to the microwatt."""
    found = _measured(text, _POWER_UW)
    if found is None:
        raise UnitError(
            f"{shown(text)} is not a power; write a number and one of uW, mW, W, kW, MW (case matters), such as 120 W"
        )
    value, exact = found
    if not exact:
        raise UnitError(f"{shown(text)} is not a whole number of microwatts; write fewer decimals")
    return MicroWatts(_bounded(value, text))


def _measured(text: str, units: Mapping[str, int]) -> tuple[int, bool] | None:
    """The number in the smallest unit and whether it is exact; None when the text is no number and unit."""
    match = _MEASURE.fullmatch(text)
    if not match or match[3] not in units:
        return None
    whole, fraction = match[1], match[2] or ""
    value, rest = divmod(_int(whole + fraction) * units[match[3]], 10 ** len(fraction))
    return value, rest == 0


def format_energy(value: int) -> str:
    """The shortest exact text for people and files: `40 MJ`, `1.5 kJ`, `7 uJ`."""
    return _measure_text(value, ("GJ", "MJ", "kJ", "J", "mJ"), _ENERGY_UJ, "uJ")


def format_power(value: int) -> str:
    """The shortest exact text for people: `120 W`, `1.5 kW`, `7 uW`."""
    return _measure_text(value, ("MW", "kW", "W", "mW"), _POWER_UW, "uW")


def _measure_text(value: int, units: tuple[str, ...], scales: Mapping[str, int], least: str) -> str:
    for unit in units:
        scale = scales[unit]
        if abs(value) >= scale and (value * 1_000) % scale == 0:
            return f"{_scaled(value, scale)} {unit}"
    return f"{value} {least}" if value else f"0 {least[1:]}"


def parse_duration(text: str) -> DurationMs:
    """`[1-9][0-9]*` and one of `ms s m h d`: no sign, space, fraction or second unit."""
    match = _DURATION.fullmatch(text)
    if not match:
        raise UnitError(
            f"{shown(text)} is not a duration; write a whole number from 1 and one of ms, s, m, h, d, such as 6h"
        )
    return DurationMs(_bounded(_int(match[1]) * _DURATION_MS[match[2]], text))


def format_duration(value: int) -> str:
    """The largest single unit that holds it exactly: `6h`, `90s`, `500ms`."""
    for unit in ("d", "h", "m", "s"):
        if value and value % _DURATION_MS[unit] == 0:
            return f"{value // _DURATION_MS[unit]}{unit}"
    return f"{value}ms"


def parse_decimal(text: str) -> Decimal:
    """An exact decimal, as text without trailing zeros; the sign is kept, `-0` is `0`."""
    match = _DECIMAL.fullmatch(text)
    if not match or len(text) > _MAX_DIGITS:
        raise UnitError(f"{shown(text)} is not a decimal number; write one such as 1.5")
    fraction = (match[3] or "").rstrip("0")
    body = f"{match[2]}.{fraction}" if fraction else match[2]
    return Decimal(body if body == "0" else match[1] + body)


def decimal_ratio(value: str) -> tuple[int, int]:
    """A canonical decimal as (numerator, denominator), for exact comparison without floats."""
    whole, _, fraction = value.partition(".")
    return int(whole + fraction), 10 ** len(fraction)


def parse_money(text: str) -> MicroUsd:
    """Dollars per node-hour with at most six decimals, as micro-dollars: `20.00` is 20_000_000."""
    match = _MONEY.fullmatch(text)
    if not match:
        raise UnitError(f"{shown(text)} is not a rate; write dollars with at most six decimals, such as 20.00")
    return MicroUsd(_bounded(_int(match[1]) * 10**6 + int((match[2] or "").ljust(6, "0")), text))


def format_money(value: int) -> str:
    """Dollars with at least two decimals: `20.00`, `0.000001`."""
    whole, micros = divmod(value, 10**6)
    digits = f"{micros:06d}".rstrip("0").ljust(2, "0")
    return f"{whole}.{digits}"


def parse_time(text: str) -> UnixMinutes:
    """ISO 8601 on a minute with offset or `Z`, as whole Unix minutes."""
    match = _TIME.fullmatch(text)
    if not match:
        raise UnitError(
            f"{shown(text)} is not a time on a minute; write ISO 8601 with an offset, such as 2026-12-07T08:00Z"
        )
    offset = "+00:00" if match[4] == "Z" else match[4]
    try:
        moment = datetime.fromisoformat(f"{match[1]}T{match[2]}:00{offset}")
        minutes = (moment - _EPOCH) // timedelta(minutes=1)
    except (ValueError, OverflowError) as error:
        raise UnitError(f"{shown(text)} names no moment ({error})") from None
    if minutes < 0:
        raise UnitError(f"{shown(text)} is before 1970")
    return UnixMinutes(minutes)


def format_time(minutes: int) -> str:
    """`2026-12-07T08:00Z`."""
    return f"{_EPOCH + timedelta(minutes=minutes):%Y-%m-%dT%H:%M}Z"


def format_ms(at_ms: int) -> str:
    """`2026-12-07T08:00:05.250Z`. What no calendar holds, as a ledger's figure may be, is written as it is."""
    if not 0 <= at_ms <= LAST_MS:
        return f"{at_ms} ms after 1970"
    return f"{_EPOCH + timedelta(milliseconds=at_ms):%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def parse_date(text: str) -> str:
    """A calendar date `2026-12-31`, returned as written."""
    try:
        if _DATE.fullmatch(text):
            datetime.fromisoformat(text)
            return text
    except ValueError:
        pass
    raise UnitError(f"{shown(text)} is not a date; write one such as 2026-12-31")


def end_of_date_ms(date: str) -> UnixMs:
    """The first millisecond after `date` has ended in UTC."""
    day = datetime.fromisoformat(date).replace(tzinfo=UTC) - _EPOCH
    return UnixMs((day // timedelta(days=1) + 1) * 86_400_000)


def check_quantity(value: int, what: str) -> None:
    """Raise ValueError unless `value` is an int (not a bool) from 0 to 2^63-1."""
    if type(value) is not int or not 0 <= value <= MAX_QUANTITY:
        raise ValueError(f"{what} must be an integer from 0 to {MAX_QUANTITY}, not {value!r}")


def _int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise UnitError(f"{shown(digits)} has too many digits; the largest figure is {MAX_QUANTITY}")
    return int(digits)


def _bounded(value: int, text: str) -> int:
    if value > MAX_QUANTITY:
        raise UnitError(f"{shown(text)} is larger than any figure kept here (2^63-1)")
    return value


def _scaled(value: int, scale: int) -> str:
    whole, rest = divmod(value, scale)
    if rest == 0:
        return str(whole)
    return f"{whole}.{rest * 1_000 // scale:03d}".rstrip("0")


def shown(text: str) -> str:
    """A user's text for a message: quoted, cut at 40 characters, and escaped where a terminal would act on it."""
    cut = text if len(text) <= 40 else text[:37] + "..."
    return f"`{''.join(item if item.isprintable() else ascii(item)[1:-1] for item in cut)}`"
