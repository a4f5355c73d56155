"""Files in the user's cache folder. They save time and decide nothing: what is missing or cannot be kept is done without."""

from __future__ import annotations

import os
from pathlib import Path

from fleetctl.canonical import sha256_hex
from fleetctl.cli.files import make_folder, read_regular, replace_whole
from fleetctl.errors import Unreachable


def allowed() -> bool:
    """Whether anything may be remembered: not where `CI` is set, as it is on every build service."""
    return os.environ.get("CI", "").lower() in ("", "0", "false")


def cache_file(folder: str, about: Path, suffix: str = "") -> Path:
    """Where something is kept about a path, under whatever name that is reached."""
    import platformdirs

    name = sha256_hex(os.fsencode(os.path.realpath(about)))[:32]
    return Path(platformdirs.user_cache_dir("fleetctl", appauthor=False)) / folder / f"{name}{suffix}"


def read_kept(file: Path, at_most: int) -> bytes | None:
    """What is kept, cut off one byte past `at_most`; None when nothing is, or no regular file."""
    try:
        return read_regular(file, at_most)
    except Unreachable:
        return None


def keep(file: Path, data: bytes) -> None:
    """Keep it, if the folder can be written to."""
    try:
        make_folder(file.parent)
        replace_whole(file, data)
    except Unreachable:
        pass
