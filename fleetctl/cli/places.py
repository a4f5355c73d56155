"""An engine's state in another place: restored, moved, copied."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.cli.actor import local_actor
from fleetctl.cli.command import Settings
from fleetctl.cli.files import temporary_folder
from fleetctl.cli.folders import user_folders
from fleetctl.cli.making import (
    ENGINE_CONFIGURED,
    PRIVATE_KEY,
    PUBLIC_KEY,
    check_engine_id,
    make_key,
    make_witness,
    own_witness,
    undone,
)
from fleetctl.cli.userconfig import EngineEntry, WitnessEntry, add_engine, read_config, set_state
from fleetctl.cli.wiring import ENGINE_MISMATCH, locate, now_clock, open_engine, sqlite_path
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, FleetctlError, SafetyRefused
from fleetctl.frozen import dataclass
from fleetctl.model.ids import EngineId, ulid_id

if TYPE_CHECKING:
    from fleetctl.engine.context import Engine
    from fleetctl.engine.receipts import Witnessed
    from fleetctl.ports import StoredReceipt
    from fleetctl.store.sqlite import SqliteStore

SET_BACK = "set-back"
ALREADY_THERE = code(
    "state-already-there",
    "The state is there already",
    trigger="`state move` to the place where the state is",
)


def restore_state(settings: Settings, file: Path, wait_ms: int, accept: Sequence[str] = ()) -> tuple[str, int, bool]:
    """Put a backup in the place of the state, when it is this engine's and no witness knows more, or that is accepted.

    Receipts that the state itself holds speak for a witness that does not answer; they go over into the backup, so that nothing
    is appended to what was set back. Returns the engine's id, the length of its journal, and whether a witness knows more.
    Raises SafetyRefused, Unreachable, Busy.
    """
    from fleetctl.engine.context import journal_stream
    from fleetctl.engine.streams import read_usages, verify_stream
    from fleetctl.store.sqlite import check_file, restore_file

    check_file(file)
    target = locate(settings)
    path = sqlite_path(target.state)
    wanted = target.id or _engine_at(path)
    with open_engine(replace(settings, state=f"sqlite:{file.resolve()}"), witnessed=True) as backup:
        if wanted not in (None, backup.id) or _engine_at(path) not in (None, backup.id):
            raise SafetyRefused(
                ENGINE_MISMATCH.at(f"{file} is a backup of {backup.id}, the state at {path} is of {wanted}")
            )
        with backup.store.read() as reader:
            read_usages(backup, reader)
            length = verify_stream(backup, reader, journal_stream(reader)).length
        (receipts, witnesses), id = _known_at(path), backup.id
        behind = _set_back(backup, receipts, witnesses, accept)
    with ExitStack() as stack:
        if behind:
            file = stack.enter_context(_knowing(file, path.parent, receipts, witnesses, wait_ms))
        restore_file(file, path, wait_ms)
    return id, length, behind


@contextmanager
def _knowing(
    file: Path, beside: Path, receipts: Sequence[StoredReceipt], witnesses: Mapping[str, str], wait_ms: int
) -> Iterator[Path]:
    """A copy of a backup with what the state that goes knows of witnesses in it, so that there is no moment without."""
    from fleetctl.engine.context import META_EARLIER
    from fleetctl.store.sqlite import SqliteStore

    with temporary_folder(beside) as folder:
        copy = folder / "state.db"
        with closing(SqliteStore.open(file, read_only=True)) as store:
            store.backup(str(copy))
        with closing(SqliteStore.open(copy)) as store, store.write(wait_ms) as tx:
            for item in receipts:
                tx.put_receipt(item)
            tx.set_meta(META_EARLIER, json.dumps(witnesses))
        yield copy


def _set_back(
    backup: Engine, receipts: Sequence[StoredReceipt], witnesses: Mapping[str, str], accept: Sequence[str]
) -> bool:
    """Whether a witness knows more than a backup, and that is accepted. Raises SafetyRefused where it is not."""
    from fleetctl.engine.receipts import ROLLED_BACK
    from fleetctl.engine.witnessing import refuse_rollback

    try:
        refuse_rollback(backup, [(item.stream, item.sealed) for item in receipts], witnesses)
    except SafetyRefused as error:
        danger = f"{SET_BACK}:engine/{backup.id}"
        if error.code != ROLLED_BACK.name:
            raise
        if danger in accept:
            return True
        mend = f"Restore the newest copy; if there is none, put this one there with `--accept {danger}` and recover the rest"
        raise SafetyRefused(replace(item, detail=f"{item.detail}. {mend}") for item in error.diagnostics) from None
    return False


def move_state(settings: Settings, url: str) -> tuple[str, Witnessed]:
    """Close the state in favour of `url`, copy it there, open the copy, tell the configuration, and have the last entry
    countersigned. Returns the id, and how far the ledgers are witnessed.

    A move that was cut short goes on where it was. Raises SafetyRefused, BadInput, Unreachable.
    """
    from fleetctl.engine.moving import close, reopen
    from fleetctl.engine.witnessing import witness_heads

    target = sqlite_path(url).resolve()
    with open_engine(settings, seals=True) as engine:
        if sqlite_path(locate(settings).state).resolve() == target:
            raise BadInput(ALREADY_THERE.at(f"{target} is where engine {engine.id} is; name another place"))
        close(engine, f"sqlite:{target}")
        if not _is_copy(engine, target):
            engine.store.backup(str(target))
        id = engine.id
    with open_engine(replace(settings, state=f"sqlite:{target}"), seals=True) as moved:
        reopen(moved)
        set_state(user_folders().config_file, id, f"sqlite:{target}")
        return id, witness_heads(moved)


def _is_copy(engine: Engine, path: Path) -> bool:
    """Whether a file is the copy that an earlier move of this closed state made. False when there is no file."""
    from fleetctl.store.sqlite import SqliteStore

    if not path.exists():
        return False
    store = SqliteStore.open(path, read_only=True)
    try:
        with store.read() as there, engine.store.read() as here:
            return list(there.streams()) == list(here.streams()) and there.meta("engine") == engine.id
    finally:
        store.close()


def _engine_at(path: Path) -> str | None:
    """The id of the engine whose state is at a path; None when there is none that can be read."""
    from fleetctl.engine.context import META_ENGINE
    from fleetctl.store.sqlite import SqliteStore

    try:
        store = SqliteStore.open(path, read_only=True)
    except FleetctlError:
        return None
    try:
        with store.read() as reader:
            return reader.meta(META_ENGINE)
    finally:
        store.close()


def _known_at(path: Path) -> tuple[list[StoredReceipt], dict[str, str]]:
    """The receipts of a state and the witnesses (id, hexadecimal key) that it names; none when it is not there or cannot be read."""
    from fleetctl.engine.receipts import earlier_witnesses, read_settings
    from fleetctl.store.sqlite import SqliteStore

    try:
        store = SqliteStore.open(path, read_only=True)
    except FleetctlError:
        return [], {}
    try:
        with store.read() as reader:
            return list(reader.receipts()), {**earlier_witnesses(reader), **read_settings(reader).witnesses}
    except FleetctlError:
        return [], {}
    finally:
        store.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A new engine with another one's configuration. `required` is how many witnesses its settings ask for."""

    entry: EngineEntry
    objects: int
    required: int

    @property
    def witness(self) -> WitnessEntry:
        """The one that was made with it, and is not started."""
        return self.entry.witnesses[0]


def copy_state(settings: Settings, url: str, engine: str | None, steward: str | None) -> Copied:
    """A new engine at `url` with this one's configuration and, as it seals with a new key, a witness of its own: those of this one
    do not know it.

    Raises SafetyRefused when there is one, BadInput, Unreachable.
    """
    from fleetctl.engine.moving import copy_into
    from fleetctl.engine.receipts import read_settings
    from fleetctl.store.sqlite import SqliteStore

    folders, clock = user_folders(), now_clock(settings)
    id = check_engine_id(engine) or ulid_id("engine", clock.now_ms(), os.urandom(10))
    home = folders.engine(id)
    if home.exists() or id in read_config(folders.config_file):
        raise SafetyRefused(ENGINE_CONFIGURED.at(f"{id} is in use already; choose another --engine"))
    path = sqlite_path(url).resolve()
    witness = own_witness(folders, id)
    with open_engine(settings) as source, undone(home), undone(folders.witness(witness.id)):
        store = SqliteStore.create(path)
        try:
            folders.make(home)
            name = steward or f"steward-{id[4:]}"
            key = make_key(home / PRIVATE_KEY, home / PUBLIC_KEY, name)
            witness_key = make_witness(folders, witness.id, {name: [key]})
            entry = EngineEntry(
                id=id,
                state=f"sqlite:{path}",
                steward=name,
                steward_key=home / PRIVATE_KEY,
                steward_public_key=home / PUBLIC_KEY,
                witnesses=(witness,),
            )
            fresh = _fresh(entry, store, source)
            objects = copy_into(source, fresh, {witness.id: witness_key.hex()})
            with store.read() as reader:
                required = read_settings(reader).required_witnesses
        finally:
            store.close()
        add_engine(folders.config_file, entry)
    return Copied(entry=entry, objects=objects, required=required)


def _fresh(entry: EngineEntry, store: SqliteStore, source: Engine) -> Engine:
    from fleetctl.ledger.keyfiles import load_private_key

    assert entry.steward_key is not None, "a new engine has its key here"
    signer = load_private_key(entry.steward_key, entry.steward)
    return replace(
        source,
        id=EngineId(entry.id),
        store=store,
        steward=entry.steward,
        steward_key=signer.public_key,
        actor=local_actor(),
        signer=signer,
        witnesses=(),
    )
