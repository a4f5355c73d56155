"""`results.json`, which keeps raw samples by row, and `RESULTS.md`, which is made from it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.rows import ROWS
from benchmarks.series import Line, Row, Series, from_json, to_json

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
REPORT = HERE / "RESULTS.md"

_ABOUT = """\
# Benchmark results

Written by `make bench` (`python -m benchmarks`) from `results.json`, which holds every sample. Both sides of a line run
in turn, in one go, on one machine; a figure is the median, with the least and the greatest beside it. The ratio is that
of the medians: *faster* and *rate* are to be at least the target, *at most* is to stay under it. Processor time
(user and system, child processes included) stands beside wall time, because other work on the machine disturbs it less.
Verdicts go by wall time. No test depends on any of this. The load before a row says how busy the machine was: where it
is above the number of cores, what runs on all of them (Terraform, `ledger verify`) loses most.
"""


def row_module(name: str) -> ModuleType:
    """The script of a row."""
    return importlib.import_module(f"benchmarks.rows.{name.replace('-', '_')}")


def read() -> dict[str, Any]:
    """What is kept: `machine` and `rows`."""
    if not RESULTS.exists():
        return {"machine": {}, "rows": {}}
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    return found


def keep_row(name: str, row: Row, taken: str, load: str) -> None:
    """Put a row's samples in place of its older ones."""
    kept = read()
    kept["rows"][name] = {
        "taken": taken,
        "load": load,
        "lines": [to_json(line) for line in row.lines],
        "notes": list(row.notes),
    }
    _write(kept)


def keep_machine(machine: dict[str, str]) -> None:
    """Put the machine in place of the older one."""
    _write(read() | {"machine": machine})


def write_report() -> str:
    """Write `RESULTS.md` and return it."""
    kept = read()
    parts = [_ABOUT, "\n| machine | |\n|---|---|\n"]
    parts += [f"| {name} | {value} |\n" for name, value in kept["machine"].items()]
    parts.append(
        "\n| what | ours | peer | ratio | processor time | target | verdict |\n|---|---|---|---|---|---|---|\n"
    )
    notes, cores = [], float(kept["machine"].get("cores", "inf"))
    for name in ROWS:
        if (row := kept["rows"].get(name)) is None:
            continue
        parts += [_table_line(row_module(name).WHAT, from_json(line)) for line in row["lines"]]
        busy = ", so that both sides waited for processors" if float(row["load"]) >= cores else ""
        taken = f"({row['taken']}, load {row['load']} at its start{busy})"
        notes.append(f"- `{name}` {taken}. {' '.join(row['notes'])}".rstrip())
    parts.append("\n" + "\n".join(notes) + "\n")
    text = "".join(parts)
    REPORT.write_text(text)
    return text


def _write(kept: dict[str, Any]) -> None:
    order = [name for name in ROWS if name in kept["rows"]]
    kept = {"machine": kept["machine"], "rows": {name: kept["rows"][name] for name in order}}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def _table_line(what: str, line: Line) -> str:
    target = {
        "faster": "≥ {}× faster",
        "rate": "≥ {}× the rate",
        "at-most": "≤ {}×",
        "under": "≤ {} s",
    }[line.goal].format("-" if line.target is None else f"{line.target:.3g}")
    cells = [
        f"{what}: {line.what}",
        f"{line.ours.name} {_figures(line.ours)}",
        f"{line.peer.name} {_figures(line.peer)}",
        _times(line.ratio),
        "" if line.cpu_ratio is None else _times(line.cpu_ratio),
        "" if line.target is None else target,
        line.verdict,
    ]
    return f"| {' | '.join(cells)} |\n"


def _figures(series: Series) -> str:
    low, high = min(series.values), max(series.values)
    if len(series.values) == 1:
        return f"{_figure(series.middle, series.unit)} (one run)"
    return f"{_figure(series.middle, series.unit)} ({_bare(low, series.unit)}-{_bare(high, series.unit)})"


def _figure(value: float, unit: str) -> str:
    return _bare(value, unit) + {"s": " s", "bytes": " MB", "/s": " /s"}[unit]


def _bare(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 1e6:,.0f}"
    return f"{value:,.0f}" if unit == "/s" else f"{value:.3g}" if value < 10 else f"{value:.1f}"


def _times(ratio: float) -> str:
    return f"{ratio:.3g}×" if ratio < 100 else f"{ratio:.0f}×"
