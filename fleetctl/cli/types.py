"""Values of options as exact quantities. Text that is not one is a usage error that says what would be."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleetctl.canonical import is_digest
from fleetctl.units import (
    MAX_QUANTITY,
    UnitError,
    UnixMs,
    parse_duration,
    parse_energy,
    parse_money,
    parse_power,
    parse_time,
)

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # generic only for the type checker before click 8.4

_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
_MAX_DIGITS = len(str(MAX_QUANTITY))
_DANGER = re.compile(r"[a-z-]{1,40}:(?:ledger|[a-z-]{1,40}/[A-Za-z0-9._#/-]{1,300})", re.ASCII)


class Quantity(_ParamType):
    """An option's value read by one of the parsers of `units`."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except UnitError as error:
            self.fail(str(error), param, ctx)


class Count(click.IntRange):
    """A whole number in decimal digits alone, at most 2^63-1: no sign but a minus, no underscore, no digits of other scripts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str):
            if not _WHOLE.fullmatch(value):
                self.fail(f"`{value[:40]}` is not a whole number; write digits alone", param, ctx)
            digits = value.removeprefix("-").lstrip("0")
            if len(digits) > _MAX_DIGITS or int(digits or "0") > MAX_QUANTITY:
                self.fail(f"`{value[:40]}` is larger than any figure kept here (2^63-1)", param, ctx)
        return super().convert(value, param, ctx)


class _FilePath(click.Path):
    """A path as `pathlib.Path`. The empty one, such as a shell's unset variable, is not the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty; write `.` for the current folder", param, ctx)
        return super().convert(value, param, ctx)


def _digest(text: str) -> str:
    if not is_digest(text):
        raise UnitError(f"`{text[:70]}` is not a digest; write all of its 64 lower-case hex digits")
    return text


def _danger(text: str) -> str:
    if not _DANGER.fullmatch(text):
        raise UnitError(f"`{text[:120]}` is no danger; write its id as the plan shows it, such as share:fleet/eu-prod")
    return text


def _time(text: str) -> UnixMs:
    return UnixMs(parse_time(text) * 60_000)


FILE_PATH = _FilePath()
ENERGY = Quantity("energy", parse_energy)
POWER = Quantity("power", parse_power)
DURATION = Quantity("duration", parse_duration)
MONEY = Quantity("rate", parse_money)
TIME = Quantity("time", _time)
DIGEST = Quantity("digest", _digest)
DANGER = Quantity("danger", _danger)
GRADE = click.Choice(("HwShunt", "ModelBased", "Estimator"))
