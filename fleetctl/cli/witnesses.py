"""The witnesses of an engine, from the user's configuration, the flag and the environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.cli.command import Settings
from fleetctl.cli.folders import Folders
from fleetctl.cli.userconfig import EngineEntry, WitnessEntry, read_config, remember_witnesses
from fleetctl.clock import Clock
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, SafetyRefused, Tampered, Usage

if TYPE_CHECKING:
    from fleetctl.ledger.keys import PublicKey, SeedSigner
    from fleetctl.ledger.receipts import Receipt
    from fleetctl.ports import Store, Witness
    from fleetctl.store.witness_state import SqliteWitnessState

WITNESS_UNKNOWN = code(
    "witness-key-unknown",
    "Nothing says which key a witness signs with",
    trigger="a witness in the configuration or in --witness has no public key there and is not in the engine's settings",
)
WITNESS_AMBIGUOUS = code(
    "witness-ambiguous",
    "Nothing says which witness is at this address",
    trigger="--witness URL where the engine knows no witness or several; `--witness ID=URL,ID=URL` says which",
)
NOTHING_TO_REMEMBER = code(
    "no-witness-to-remember",
    "No witness is named that could be remembered",
    trigger="`ledger witness --remember` without --witness",
    exit_code=64,
)
NO_TABLE = code(
    "engine-without-table",
    "The user's configuration has no table for the engine",
    trigger="`ledger witness --remember` on an engine that only --state names",
)
_FILE = "file:"
_NEXT = re.compile(r",(?=[A-Za-z0-9][A-Za-z0-9._:-]{0,127}=)", re.ASCII)


def open_witnesses(
    settings: Settings, entry: EngineEntry | None, folders: Folders, store: Store, clock: Clock, *, every: bool = False
) -> tuple[Witness, ...]:
    """The witnesses to ask: those that the flag or the environment names, else every configured one that the engine's settings name.

    One that the settings do not name was replaced, and its word would count for nothing; with `every` it is asked all the
    same, for the settings of a state that was set back may be from before it. Connects to nothing yet.
    """
    known = entry.witnesses if entry is not None else ()
    try:
        roster = _roster(store)
    except Tampered:
        if settings.witness is not None or any(item.public_key is None for item in known):
            raise
        roster = {}  # whoever opens the engine says what is wrong with it
    if settings.witness is not None:
        known = tuple(_named(item, known, roster) for item in _several(settings.witness))
    elif roster and not every:
        known = tuple(item for item in known if item.id in roster)
    return tuple(_open(item, roster, folders, clock) for item in known)


def _several(text: str) -> list[str]:
    """`ID=URL,ID=URL` in its parts. A comma within a URL is one."""
    return _NEXT.split(text)


def remember(settings: Settings, engine: str, store: Store) -> tuple[str, ...]:
    """Write the witnesses that `--witness` names into the engine's table of the user's configuration. Returns their ids.

    Raises Usage without `--witness`, BadInput where nothing says which witness is meant, or the table cannot be written.
    """
    from fleetctl.cli.folders import user_folders

    if settings.witness is None:
        raise Usage(NOTHING_TO_REMEMBER.at("give the witnesses with --witness ID=URL,ID=URL"))
    path, roster = user_folders().config_file, _roster(store)
    entry = read_config(path).get(engine)
    if entry is None:
        raise BadInput(NO_TABLE.at(f"{path} has no table for {engine}, which `--state` names; add one by hand"))
    found = [_named(item, entry.witnesses, roster) for item in _several(settings.witness)]
    remember_witnesses(path, engine, found)
    return tuple(item.id for item in found)


def named(text: str) -> tuple[str, str]:
    """The id, empty when it is not said, and the URL in `ID=URL` or `URL`."""
    id, equals, url = text.partition("=")
    return ("", text) if not equals or "/" in id or ":" in id else (id, url)


def _named(text: str, known: tuple[WitnessEntry, ...], roster: dict[str, str]) -> WitnessEntry:
    id, url = named(text)
    entries = {name: WitnessEntry(id=name, url="") for name in roster} | {item.id: item for item in known}
    if not id and len(trusted := roster or entries) == 1:
        id = next(iter(trusted))
    found = entries.get(id)
    if found is None:
        raise BadInput(
            WITNESS_AMBIGUOUS.at(
                f"{f'no witness is called {id}' if id else 'write ID=URL'}; known here are: {', '.join(sorted(entries)) or 'none'}. "
                "Name one of them in --witness (or FLEETCTL_WITNESS), or none"
            )
        )
    return replace(found, url=url)


def _open(item: WitnessEntry, roster: dict[str, str], folders: Folders, clock: Clock) -> Witness:
    if item.url.startswith(_FILE):
        return open_file_witness(folders.witness(item.url.removeprefix(_FILE) or item.id), item.id, clock)
    from fleetctl.api.witness_client import HttpWitness

    return HttpWitness(id=item.id, url=item.url, key=_key(item, roster))


def open_file_witness(folder: Path, id: str, clock: Clock) -> Witness:
    """A witness in process: its state and its private key lie here. Raises SafetyRefused, Unreachable."""
    from fleetctl.api.witness_file import FileWitness

    state, signer = open_witness_state(folder, id)
    return FileWitness(state=state, signer=signer, clock=clock)


def open_witness_state(folder: Path, id: str) -> tuple[SqliteWitnessState, SeedSigner]:
    """A witness's memory and key. Raises SafetyRefused when they are missing or do not belong together, Unreachable."""
    from fleetctl.cli.making import STATE_FILE, WITNESS_KEY
    from fleetctl.ledger.identifiers import check_identifier
    from fleetctl.ledger.keyfiles import load_private_key
    from fleetctl.store.witness_state import WITNESS_MISSING, SqliteWitnessState

    check_identifier(id, "witness")
    if not folder.is_dir():
        raise SafetyRefused(
            WITNESS_MISSING.at(f"{folder} does not exist; make the witness with `fleetctl witness init`")
        )
    signer = load_private_key(folder / WITNESS_KEY, id)
    return SqliteWitnessState.open(folder / STATE_FILE, witness=id, own_key=signer.public_key), signer


def signed_heads(folder: Path, id: str, ledgers: Sequence[str]) -> list[Receipt]:
    """The newest receipts of a witness that lives here, for those of the ledgers that it knows."""
    from fleetctl.ledger.identifiers import parse_ledger_id
    from fleetctl.ledger.receipts import read_receipt

    state, _ = open_witness_state(folder, id)
    try:
        found = [state.known(parse_ledger_id(ledger)) for ledger in ledgers]
    finally:
        state.close()
    return [read_receipt(item.receipt)[0] for item in found if item is not None]


def _key(item: WitnessEntry, roster: dict[str, str]) -> PublicKey:
    from fleetctl.ledger.keyfiles import load_public_key
    from fleetctl.ledger.keys import public_key

    if item.public_key is not None:
        return load_public_key(item.public_key)
    if item.id not in roster:
        raise BadInput(
            WITNESS_UNKNOWN.at(
                f"witness {item.id} has no public key in the configuration, nor in the engine's settings; give its `public_key` "
                "beside its url in config.toml, or leave it out"
            )
        )
    return public_key(bytes.fromhex(roster[item.id]))


def _roster(store: Store) -> dict[str, str]:
    from fleetctl.engine.receipts import earlier_witnesses, read_settings

    with store.read() as reader:
        return {**earlier_witnesses(reader), **read_settings(reader).witnesses}
