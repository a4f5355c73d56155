"""Measure one row, in a process of its own: `python -m benchmarks.one ROW`. Only `results.json` is written."""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.report import keep_row, row_module


def main(name: str) -> None:
    """Measure in a folder of its own, which is removed afterwards."""
    taken = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    load = f"{os.getloadavg()[0]:.1f}"
    with tempfile.TemporaryDirectory(prefix=f"bench-{name}-", ignore_cleanup_errors=True) as folder:
        row = row_module(name).measure(Path(folder))
    keep_row(name, row, taken, load)


if __name__ == "__main__":
    main(sys.argv[1])
