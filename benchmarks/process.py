"""One child process, run to its end and measured: wall time, processor time, peak memory, children included."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.series import Sample

_LAUNCHER = Path(__file__).with_name("launch.py")
SHOWN = 2_000
"""Characters of a failed process' output that are worth showing."""


class Failed(Exception):
    """A measured process did not do what it was started for, so that its time means nothing."""


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path,
    env: Mapping[str, str],
    expect: int = 0,
    says: str | None = None,
) -> Sample:
    """Run a program with its output in a file. Raises Failed unless it exits with `expect` and, if given, says `says`."""
    log, report = cwd / "output.txt", cwd / "usage.txt"
    launched = [sys.executable, "-I", "-S", _LAUNCHER, report, *argv]
    with log.open("wb") as out:
        subprocess.run(
            launched, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=True
        )
    code, wall, cpu, peak = report.read_text().split()
    said = log.read_text(errors="replace")
    if int(code) != expect or (says is not None and says not in said):
        wanted = f"exit {expect}" + (f" and {says!r}" if says else "")
        raise Failed(f"{' '.join(map(str, argv))}: exit {code}, wanted {wanted}\n{said[-SHOWN:]}")
    return Sample(wall_s=float(wall), cpu_s=float(cpu), peak_bytes=int(peak))


def fleetctl() -> list[str]:
    """The console script beside this interpreter: what users run."""
    script = Path(sys.executable).with_name("fleetctl")
    return [str(script)] if script.exists() else [sys.executable, "-m", "fleetctl"]


def peer_python() -> str:
    """The interpreter that has the peers installed: `BENCH_PEER_PYTHON`, else this one."""
    return os.environ.get("BENCH_PEER_PYTHON", sys.executable)


def clean_environment(home: Path) -> dict[str, str]:
    """This environment with empty user folders below `home`, without settings of fleetctl, Terraform or Python's own.

    As on a build service (`CI`), so that nothing that an earlier run left is used.
    """
    mine = ("FLEETCTL_", "TF_", "PYTHON", "XDG_", "GIT_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    for name in ("CONFIG", "STATE", "CACHE", "DATA"):
        folder = home / name.lower()
        folder.mkdir(parents=True, exist_ok=True)
        env[f"XDG_{name}_HOME"] = str(folder)
    return env | {"HOME": str(home), "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "CI": "1"}


def git(folder: Path, *arguments: str, env: Mapping[str, str]) -> None:
    """Run git in `folder`. Raises Failed."""
    if shutil.which("git") is None:
        raise Failed("the benchmarks keep fleets in git repositories, and there is no git here")
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, env=dict(env), check=True, capture_output=True)
