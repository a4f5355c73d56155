"""What `doctor` looks at: first what leads to the engine, then the engine itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.cli.command import Settings
from fleetctl.cli.folders import user_folders
from fleetctl.cli.userconfig import read_config
from fleetctl.cli.wiring import locate, open_engine
from fleetctl.engine.context import NO_KEY, WRONG_ENGINE
from fleetctl.engine.health import Check, checked, examine
from fleetctl.errors import FleetctlError, SafetyRefused, Unreachable

if TYPE_CHECKING:
    from fleetctl.engine.context import Engine


def checkup(settings: Settings) -> list[Check]:
    """Every check, until nothing further can be looked at. Raises nothing for what is wrong."""
    found = [checked("configuration", _configuration), checked("place", lambda: locate(settings).state)]
    if not all(item.ok for item in found):
        return found
    try:
        with open_engine(settings, witnessed=True) as engine:
            found.append(checked("steward's key", lambda: _key(settings, engine)))
            found += examine(engine)
    except FleetctlError as error:
        found.append(Check(name="engine", problems=error.diagnostics))
    return found


def _configuration() -> str:
    file = user_folders().config_file
    engines = read_config(file)
    return f"{file}: {', '.join(sorted(engines)) or 'no engine'}"


def _key(settings: Settings, engine: Engine) -> str:
    """The private key is there, closed to others, and the steward's. It is not kept."""
    from fleetctl.ledger.keyfiles import load_private_key

    entry = read_config(user_folders().config_file).get(engine.id)
    path = Path(settings.steward_key) if settings.steward_key is not None else entry.steward_key if entry else None
    if path is None or not path.exists():
        raise Unreachable(NO_KEY.at(f"the private key of steward {engine.steward} is not there; nothing can be sealed"))
    if load_private_key(path, engine.steward).public_key != engine.steward_key:
        raise SafetyRefused(
            WRONG_ENGINE.at(f"{path} is not the key of steward {engine.steward}; its public key differs")
        )
    return str(path)
