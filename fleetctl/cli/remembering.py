"""The user's cache of loaded fleets: one file for each path, used for what only looks (`plan`, `drift`), never in CI.

It saves time and decides nothing: a file that is missing, foreign, damaged or of other fleet files is as if there were none.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fleetctl import __version__
from fleetctl.canonical import Digest, sha256_hex
from fleetctl.cli.usercache import cache_file, keep, read_kept

MAX_BYTES: Final = 256 * 1024 * 1024
_FOLDERS: Final = ("", "config", "model", "capacity", "capacity/policy")
"""Where the code lies that makes a fleet out of files."""


class Remembering:
    """What is remembered of one path."""

    def __init__(self, path: Path, files: Mapping[str, Digest]) -> None:
        self._key = sha256_hex(
            "\n".join([_program(), os.path.realpath(path), *map(repr, files.items())]).encode("utf-8", "surrogatepass")
        )
        self._file = cache_file("fleets", path, ".json")

    def read(self) -> bytes | None:
        """What was kept for these very files, or None."""
        try:
            key, checksum, kept = (read_kept(self._file, MAX_BYTES) or b"").split(b"\n", 2)
        except ValueError:
            return None
        return kept if key == self._key.encode() and checksum == sha256_hex(kept).encode() else None

    def write(self, kept: bytes) -> None:
        """Keep it, if the folder can be written to."""
        if len(kept) <= MAX_BYTES // 2:
            keep(self._file, b"\n".join([self._key.encode(), sha256_hex(kept).encode(), kept]))


def _program() -> str:
    """This very code: its version, and when its files changed, which an installation in place does without a new one."""
    import fleetctl

    root = Path(fleetctl.__file__).parent
    total = hashlib.sha256(__version__.encode())
    for folder in _FOLDERS:
        with os.scandir(root / folder) as found:
            for entry in sorted(found, key=lambda item: item.name):
                if entry.name.endswith((".py", ".json")):
                    status = entry.stat()
                    total.update(f"{folder}/{entry.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return total.hexdigest()
