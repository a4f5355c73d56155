"""The first commits of a repository, kept in the user's cache: finding them walks its whole history.

They follow from the commit that they were found for, whose hash says everything before it, so what is kept never ages.
As with fleets (`cli.remembering`) only what looks takes them from there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from fleetctl.canonical import sha256_hex
from fleetctl.cli.files import make_folder, read_regular, replace_whole
from fleetctl.errors import Unreachable

_MAX_BYTES = 64 * 1024
_KEPT = re.compile(r"fleetctl-roots/1(?: (?:[0-9a-f]{40}|[0-9a-f]{64})){2,}\n", re.ASCII)


def read_roots(repository: Path) -> tuple[str, list[str]] | None:
    """A commit that was looked at before and its first commits; None when nothing is kept."""
    try:
        kept = read_regular(_file(repository), _MAX_BYTES).decode("ascii")
    except (Unreachable, ValueError):
        return None
    if not _KEPT.fullmatch(kept):
        return None
    _, commit, *roots = kept.split()
    return commit, roots


def keep_roots(repository: Path, commit: str, roots: list[str]) -> None:
    """Keep them, if the folder can be written to."""
    kept = " ".join(["fleetctl-roots/1", commit, *roots]) + "\n"
    if not _KEPT.fullmatch(kept) or len(kept) > _MAX_BYTES:
        return
    file = _file(repository)
    try:
        make_folder(file.parent)
        replace_whole(file, kept.encode("ascii"))
    except Unreachable:
        pass


def _file(repository: Path) -> Path:
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("fleetctl", appauthor=False)) / "roots"
    return folder / sha256_hex(os.fsencode(os.path.realpath(repository)))[:32]
