"""Samples of both sides, their ratio, and the target it is held to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

RUNS = 5

Goal = Literal["faster", "rate", "at-most", "under"]
"""How a ratio is formed and held to its target.

`faster`: peer's figure / ours, at least the target (times). `rate`: ours / the peer's, at least the target (rates).
`at-most`: ours / the peer's, at most the target (times, bytes). `under`: our figure itself is at most the target; the
peer's stands beside it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One measured run."""

    wall_s: float
    cpu_s: float
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One side's figures, in the order they were taken. `unit` is `s`, `bytes` or `/s`.

    `cpu_s` is processor time, per thing done where the figures are rates; it may be empty.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    cpu_s: tuple[float, ...] = ()

    @property
    def middle(self) -> float:
        return median(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One comparison. Without a target it is told and not judged."""

    what: str
    ours: Series
    peer: Series
    goal: Goal
    target: float | None = None

    @property
    def ratio(self) -> float:
        """Of the medians, formed as `goal` says."""
        ours, peer = self.ours.middle, self.peer.middle
        return peer / ours if self.goal == "faster" else ours / peer

    @property
    def cpu_ratio(self) -> float | None:
        """The same of processor time, where both sides have it: how much more the other side spends, or how much we do."""
        if not (self.ours.cpu_s and self.peer.cpu_s):
            return None
        ours, peer = median(self.ours.cpu_s), median(self.peer.cpu_s)
        return peer / ours if self.goal in ("faster", "rate") else ours / peer

    @property
    def verdict(self) -> str:
        """`met`, or by how much it is missed, in percent of the target."""
        if self.target is None:
            return "no target"
        reached = self.ours.middle if self.goal == "under" else self.ratio
        short = 1 - reached / self.target if self.goal in ("faster", "rate") else reached / self.target - 1
        return "met" if short <= 0 else f"missed by {100 * short:.0f} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one script measured; `notes` say what a reader must know beside the figures."""

    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def alternate(*sides: Callable[[], Sample], runs: int = RUNS) -> list[list[Sample]]:
    """Run the sides in turn, `runs` times each; one list of samples per side."""
    taken: list[list[Sample]] = [[] for _ in sides]
    for _ in range(runs):
        for samples, side in zip(taken, sides, strict=True):
            samples.append(side())
    return taken


def times(name: str, samples: Iterable[Sample]) -> Series:
    """Wall times, with processor times beside them."""
    found = list(samples)
    return Series(
        name=name,
        unit="s",
        values=tuple(item.wall_s for item in found),
        cpu_s=tuple(item.cpu_s for item in found),
    )


def peaks(name: str, samples: Iterable[Sample]) -> Series:
    """Peak memory."""
    return Series(name=name, unit="bytes", values=tuple(float(item.peak_bytes) for item in samples))


def rates(name: str, count: int, samples: Iterable[Sample]) -> Series:
    """`count` things done in each sample's wall time."""
    found = list(samples)
    return Series(
        name=name,
        unit="/s",
        values=tuple(count / item.wall_s for item in found),
        cpu_s=tuple(item.cpu_s / count for item in found),
    )


def to_json(line: Line) -> dict[str, Any]:
    """The raw form kept in `results.json`."""
    return {
        "what": line.what,
        "goal": line.goal,
        "target": line.target,
        **{side: _series_json(series) for side, series in (("ours", line.ours), ("peer", line.peer))},
    }


def from_json(data: dict[str, Any]) -> Line:
    """The reverse of `to_json`."""
    return Line(
        what=data["what"],
        goal=data["goal"],
        target=data["target"],
        ours=_series(data["ours"]),
        peer=_series(data["peer"]),
    )


def _series_json(series: Series) -> dict[str, Any]:
    out: dict[str, Any] = {"name": series.name, "unit": series.unit, "values": list(series.values)}
    return out | ({"cpu_s": list(series.cpu_s)} if series.cpu_s else {})


def _series(data: dict[str, Any]) -> Series:
    return Series(
        name=data["name"],
        unit=data["unit"],
        values=tuple(data["values"]),
        cpu_s=tuple(data.get("cpu_s", ())),
    )
