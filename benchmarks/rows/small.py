"""A small example, whole process: what a person at a terminal waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.peers import terraform
from benchmarks.process import run
from benchmarks.series import Line, Row, alternate, times
from benchmarks.workspace import CHANGES, Workspace

WHAT = "three pools"
COUNT = 3
_LOADED = """\
import sys
before = set(sys.modules)
from fleetctl.cli.main import cli
try:
    cli.main(sys.argv[1:])
finally:
    sys.stderr.write("\\n" + " ".join(name for name in sys.modules if name not in before and name != "__main__"))
"""
"""Runs a command and says on the last line of standard error what it imported, in order."""
_IMPORT = """\
import gc, importlib
gc.disable()
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
"""
"""Without the collector, as in a command. Some parts of extensions have no name to import; they come with it."""


def measure(folder: Path) -> Row:
    ours = Workspace(folder / "fleetctl", COUNT)
    theirs = terraform.Terraform(folder / "terraform", COUNT)
    plans = alternate(lambda: ours.plan(CHANGES), lambda: theirs.plan(terraform.CHANGES))
    modules = _imported(ours)
    importing = _IMPORT.format(names=modules)
    imports = alternate(
        lambda: run([sys.executable, "-c", importing], cwd=folder, env=ours.env),
        lambda: run([sys.executable, "-c", "pass"], cwd=folder, env=ours.env),
    )
    return Row(
        lines=(
            Line(
                what="plan",
                ours=times("fleetctl plan", plans[0]),
                peer=times("terraform plan", plans[1]),
                goal="faster",
                target=1.0,
            ),
            Line(
                what="imports",
                ours=times("a process that imports what the plan does", imports[0]),
                peer=times("bare Python", imports[1]),
                goal="under",
                target=0.25,
            ),
        ),
        notes=(f"That plan imports {len(modules)} modules; the time of the bare interpreter is not taken off.",),
    )


def _imported(ours: Workspace) -> list[str]:
    argv = [sys.executable, "-c", _LOADED, "plan", "fleet", "-o", "other.json"]
    done = subprocess.run(argv, cwd=ours.folder, env=ours.env, check=True, capture_output=True, text=True)
    return done.stderr.splitlines()[-1].split()
