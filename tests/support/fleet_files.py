"""Fleet folders made from case files: text, bytes, links, FIFOs, modes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BASE = """\
apiVersion: fleetctl/v1
fleet: eu-test
tenant: root
sites:
  fra1: {kind: shared, region: eu-central}
"""
"""`00-base.yaml` of every case that does not say `"base": false`."""


def make_folder(folder: Path, case: Mapping[str, Any]) -> Path:
    """Write a case's files below `folder`/fleet and return that path. Modes are set last, folders' after their files'."""
    root = folder / "fleet"
    root.mkdir()
    if case.get("base", True):
        (root / "00-base.yaml").write_text(BASE, encoding="utf-8")
    modes: list[tuple[Path, str]] = []
    for name, content in case["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_bytes(content.encode("utf-8"))
            continue
        _write(path, content)
        if "mode" in content:
            modes.append((path, content["mode"]))
    for path, mode in modes:
        path.chmod(int(mode, 8))
    return root


def _write(path: Path, content: Mapping[str, Any]) -> None:
    if "text" in content:
        path.write_bytes(content["text"].encode("utf-8"))
    elif "hex" in content:
        path.write_bytes(bytes.fromhex(content["hex"]))
    elif "repeat" in content:
        head, unit, times = content["repeat"]
        path.write_text(head + unit * times, encoding="utf-8")
    elif "link" in content:
        path.symlink_to(content["link"])
    elif "fifo" in content:
        os.mkfifo(path)
