"""The tutorial's shell lines work, in their order, from nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
_SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_tutorial_runs(tmp_path: Path) -> None:
    lines = "".join(_SHELL.findall(TUTORIAL.read_text(encoding="utf-8")))
    assert lines.count("fleetctl ") > 5
    home = tmp_path / "home"
    folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "STATE", "CACHE", "DATA")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FLEETCTL_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", lines],
        cwd=tmp_path,
        env=inherited | folders | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
