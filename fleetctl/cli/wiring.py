"""The only place that builds things: which engine, its store, keys, clock, witnesses. Nothing of it comes from a repository.

An engine is found by `--state`, then FLEETCTL_STATE, then the nearest `fleetctl.toml` from the fleet or the current folder,
then the id in a plan; where two of them name different engines, that is refused. A missing engine is never made here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from fleetctl.cli.actor import check_tenant, local_actor
from fleetctl.cli.command import Settings
from fleetctl.cli.folders import Folders, user_folders
from fleetctl.cli.pin import Pin, nearest_pin
from fleetctl.cli.userconfig import EngineEntry, read_config
from fleetctl.clock import Clock, FixedClock, SystemClock
from fleetctl.diagnostics import Code, code
from fleetctl.errors import BadInput, SafetyRefused, Unreachable
from fleetctl.frozen import dataclass
from fleetctl.model.ids import EngineId

if TYPE_CHECKING:
    from fleetctl.engine.context import Engine
    from fleetctl.ledger.keys import PublicKey, SeedSigner

ENGINE_UNNAMED = code(
    "engine-unnamed",
    "Nothing says which engine",
    trigger="no --state, no FLEETCTL_STATE, no `fleetctl.toml` in this folder or above it, and no plan",
    exit_code=3,
)
ENGINE_UNKNOWN = code(
    "engine-unknown",
    "The user's configuration does not know this engine",
    trigger="`fleetctl.toml` or a plan names an engine that has no table in the user's `config.toml`",
    exit_code=3,
)
ENGINE_MISMATCH = code(
    "engine-mismatch",
    "Two places name different engines",
    trigger="--state, `fleetctl.toml` and the plan do not all name one engine",
    exit_code=3,
)
STATE_URL = code(
    "state-url",
    "This version cannot use a state at this address",
    trigger="a state URL that is not `sqlite:PATH`; `postgresql:` and `https:` come with a later version",
)
KEY_UNKNOWN = code(
    "steward-key-unknown",
    "Nothing says which key the steward seals with",
    trigger="an engine is opened by --state that the user's configuration does not know, without --steward-key",
)
NOW_REFUSED = code(
    "now-refused",
    "This engine takes its time from the machine",
    trigger="--now with a command that seals, on an engine that was not made with `init --test-clock`",
    exit_code=3,
)
_SQLITE = "sqlite:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Where an engine is. `id` is what is asked for; None when only `--state` names it."""

    state: str
    id: str | None
    entry: EngineEntry | None
    pin: Pin | None


@contextmanager
def open_engine(
    settings: Settings,
    *,
    near: Path | None = None,
    plan_engine: str | None = None,
    seals: bool = False,
    witnessed: bool = False,
    every_witness: bool = False,
) -> Iterator[Engine]:
    """The engine that everything names, open; closed at the end of the context.

    `near` is the fleet's folder (else the current one), `plan_engine` the engine in a plan. `seals` opens it for
    writing, with the private key and the witnesses; `witnessed` has the witnesses alone, `every_witness` those too that the
    settings do not name. Raises SafetyRefused, Unreachable, BadInput, Usage.
    """
    from fleetctl.cli.witnesses import open_witnesses
    from fleetctl.engine.context import META_ENGINE, META_STEWARD, META_TEST_CLOCK, Engine
    from fleetctl.store.sqlite import SqliteStore

    folders = user_folders()
    config = read_config(folders.config_file)
    located = _locate(settings, near or Path.cwd(), plan_engine, config, folders)
    store = SqliteStore.open(sqlite_path(located.state), read_only=not seals)
    try:
        with store.read() as reader:
            found, steward = reader.meta(META_ENGINE), reader.meta(META_STEWARD)
            test_clock = reader.meta(META_TEST_CLOCK) == "1"
        id = _checked_id(located, found)
        if settings.tenant is not None:
            check_tenant(store, settings.tenant)
        entry = located.entry or config.get(id)
        clock = _clock(settings, seals and not test_clock)
        steward = entry.steward if entry is not None else steward or ""
        key, signer = _keys(settings, entry, steward, id, seals)
        yield Engine(
            id=EngineId(id),
            store=store,
            steward=steward,
            steward_key=key,
            clock=clock,
            actor=local_actor(),
            entropy=os.urandom,
            signer=signer,
            witnesses=open_witnesses(settings, entry, folders, store, clock, every=every_witness)
            if seals or witnessed
            else (),
        )
    finally:
        store.close()


def locate(settings: Settings) -> Located:
    """Where the engine is that the settings and the current folder name, without opening it."""
    folders = user_folders()
    return _locate(settings, Path.cwd(), None, read_config(folders.config_file), folders)


def sqlite_path(url: str) -> Path:
    """The file of a `sqlite:PATH` URL. Raises BadInput for other schemes, with what can be used instead."""
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        return Path(url.removeprefix(_SQLITE))
    if url.startswith(("postgresql:", "postgres:", "https:", "http:")):
        raise BadInput(
            STATE_URL.at(f"a state at {url.partition(':')[0]}:// is not in this version of fleetctl; use sqlite:PATH")
        )
    example = f"sqlite:{url}" if url and ":" not in url else "sqlite:/var/lib/fleet/state.db"
    raise BadInput(STATE_URL.at(f"`{url[:200]}` is no state; write sqlite:PATH, such as {example[:200]}"))


def now_clock(settings: Settings) -> Clock:
    """The clock of a command that needs no engine."""
    return _clock(settings, refuse=False)


def acting_tenant(settings: Settings) -> str:
    """Who acts: `--as`, else the root tenant."""
    from fleetctl.model.ids import ROOT_TENANT

    return settings.tenant or ROOT_TENANT


def _locate(
    settings: Settings, near: Path, plan_engine: str | None, config: dict[str, EngineEntry], folders: Folders
) -> Located:
    pin = nearest_pin(near if near.is_dir() else near.parent)
    if settings.state is not None:
        return Located(state=settings.state, id=pin.engine if pin else None, entry=None, pin=pin)
    if pin is not None and plan_engine is not None and pin.engine != plan_engine:
        _refuse(ENGINE_MISMATCH, f"{pin.path} names {pin.engine}, the plan {plan_engine}; go to the plan's own folder")
    id = pin.engine if pin is not None else plan_engine
    if id is None:
        _refuse(
            ENGINE_UNNAMED,
            f"there is no fleetctl.toml in {near} or above it; go to the fleet's folder, name the state with "
            "--state sqlite:PATH, or make an engine with `fleetctl init`",
        )
    entry = config.get(id)
    if entry is None:
        _refuse(
            ENGINE_UNKNOWN,
            f"{folders.config_file} has no table for {id}; name its state with --state sqlite:PATH, or get its table "
            "from whoever made it. A new engine would not be this one",
        )
    return Located(state=entry.state, id=id, entry=entry, pin=pin)


def _checked_id(located: Located, found: str | None) -> str:
    if found is None:
        _refuse(ENGINE_UNKNOWN, f"{located.state} was never finished by `init`; make a new engine")
    if located.id is not None and located.id != found:
        named = f"{located.pin.path} names" if located.pin is not None else "asked for is"
        mend = f"leave --state away, or go to a folder whose fleetctl.toml names {found}"
        _refuse(ENGINE_MISMATCH, f"{named} {located.id}, the state at {located.state} is of {found}; {mend}")
    return found


def _keys(
    settings: Settings, entry: EngineEntry | None, steward: str, id: str, seals: bool
) -> tuple[PublicKey, SeedSigner | None]:
    from fleetctl.ledger.keyfiles import load_private_key, load_public_key

    public = entry.steward_public_key if entry is not None else None
    private = entry.steward_key if entry is not None else None
    signer: SeedSigner | None = None
    if settings.steward_key is not None:
        signer = load_private_key(Path(settings.steward_key), steward)
    elif private is not None and (seals or public is None) and private.exists():
        signer = load_private_key(private, steward)
    if public is not None:
        return load_public_key(public), signer
    if signer is None:
        raise Unreachable(
            KEY_UNKNOWN.at(
                f"engine {id} has no steward's key in the user's configuration; give the private one with --steward-key, "
                "or for reading and planning name the public one in config.toml as `steward_public_key`"
            )
        )
    return signer.public_key, signer


def _clock(settings: Settings, refuse: bool) -> Clock:
    if settings.now is None:
        return SystemClock()
    if refuse:
        raise SafetyRefused(
            NOW_REFUSED.at(
                "what it seals carries the machine's time; leave --now away, or use an engine made for tests"
            )
        )
    return FixedClock(settings.now)


def _refuse(kind: Code, detail: str) -> NoReturn:
    raise SafetyRefused(kind.at(detail))
