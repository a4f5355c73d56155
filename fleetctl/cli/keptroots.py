"""The first commits of a repository, kept in the user's cache: finding them walks its whole history.

They follow from the commit that they were found for, whose hash says everything before it, so what is kept never ages.
As with fleets (`cli.remembering`) only what looks takes them from there.
"""

from __future__ import annotations

import re
from pathlib import Path

from fleetctl.cli.usercache import cache_file, keep, read_kept

_MAX_BYTES = 64 * 1024
_KEPT = re.compile(r"fleetctl-roots/1(?: (?:[0-9a-f]{40}|[0-9a-f]{64})){2,}\n", re.ASCII)


def read_roots(repository: Path) -> tuple[str, list[str]] | None:
    """A commit that was looked at before and its first commits; None when nothing is kept."""
    kept = (read_kept(_file(repository), _MAX_BYTES) or b"").decode("ascii", "replace")
    if not _KEPT.fullmatch(kept):
        return None
    _, commit, *roots = kept.split()
    return commit, roots


def keep_roots(repository: Path, commit: str, roots: list[str]) -> None:
    """Keep them, if the folder can be written to."""
    kept = " ".join(["fleetctl-roots/1", commit, *roots]) + "\n"
    if _KEPT.fullmatch(kept) and len(kept) <= _MAX_BYTES:
        keep(_file(repository), kept.encode("ascii"))


def _file(repository: Path) -> Path:
    return cache_file("roots", repository)
