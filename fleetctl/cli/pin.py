"""`fleetctl.toml`: the one file of a repository that speaks of an engine, and all it may say is which one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NoReturn

from fleetctl.cli.files import read_regular
from fleetctl.diagnostics import code
from fleetctl.errors import SafetyRefused
from fleetctl.frozen import dataclass

NAME = "fleetctl.toml"
MAX_PIN = 64 * 1024
_ENGINE_ID = re.compile(r"eng_[A-Za-z0-9_-]{1,64}", re.ASCII)

PIN_REFUSED = code(
    "pin-refused",
    "`fleetctl.toml` says something that a repository may not say",
    trigger="`fleetctl.toml` holds another key than `engine`, or is not TOML",
    exit_code=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The engine that a folder's fleets are for."""

    engine: str
    path: Path


def nearest_pin(start: Path) -> Pin | None:
    """The pin in the folder or the nearest parent that has one. Raises SafetyRefused, Unreachable."""
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        path = candidate / NAME
        if path.is_file() or path.is_symlink():
            return read_pin(path)
    return None


def read_pin(path: Path) -> Pin:
    """Raises SafetyRefused for anything but `engine = "eng_…"`."""
    data = read_regular(path, MAX_PIN)
    if len(data) > MAX_PIN:
        _refuse(path, f"it is over {MAX_PIN} bytes")
    try:
        found = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        _refuse(path, f"it is not TOML: {error}")
    if others := sorted(found.keys() - {"engine"}):
        _refuse(
            path,
            f"`{others[0]}` has no place in it: where an engine is, its keys, witnesses and guards are the user's "
            "configuration and the engine's settings; remove the line",
        )
    engine = found.get("engine")
    if not isinstance(engine, str) or not is_engine_id(engine):
        _refuse(path, 'it must say `engine = "eng_…"`, the id that `fleetctl init` printed')
    return Pin(engine=engine, path=path)


def pin_text(engine: str) -> str:
    """The file that `init` writes."""
    return f'# Which engine these fleets are for. Where it is, and its keys, is in each user\'s own configuration.\nengine = "{engine}"\n'


def is_engine_id(text: str) -> bool:
    """`eng_` and letters, digits, `_` or `-`: it names a folder too."""
    return _ENGINE_ID.fullmatch(text) is not None


def _refuse(path: Path, detail: str) -> NoReturn:
    raise SafetyRefused(PIN_REFUSED.at(f"{path}: {detail}"))
