"""Making what is never made by accident: an engine with its keys, a witness with its own, and the files of a new fleet."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl import __version__
from fleetctl.cli import templates
from fleetctl.cli.actor import local_actor
from fleetctl.cli.files import PATH_UNWRITABLE
from fleetctl.cli.folders import Folders
from fleetctl.cli.pin import NAME as PIN_NAME
from fleetctl.cli.pin import is_engine_id, pin_text, read_pin
from fleetctl.cli.userconfig import EngineEntry, WitnessEntry, add_engine, read_config
from fleetctl.clock import Clock
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, SafetyRefused, Unreachable
from fleetctl.frozen import dataclass
from fleetctl.model.ids import EngineId, is_name, ulid_id

if TYPE_CHECKING:
    from fleetctl.ledger.keys import PublicKey

ENGINE_PINNED = code(
    "engine-pinned",
    "The folder is pinned to another engine",
    trigger="`init` in a folder whose `fleetctl.toml` names an engine, without --engine or with another one",
    exit_code=3,
)
BAD_ENGINE_ID = code(
    "engine-id",
    "An engine's id is not of the form eng_…",
    trigger="`init --engine` with an id that is not `eng_` and up to 64 letters, digits, `_` or `-`",
)
ENGINE_CONFIGURED = code(
    "engine-configured",
    "There is an engine of this id already",
    trigger="`init --engine` with an id that the user's configuration or state folder has",
    exit_code=3,
)
STATE_FILE, PRIVATE_KEY, PUBLIC_KEY = "state.db", "steward.pem", "steward.pub.pem"
WITNESS_KEY, WITNESS_PUBLIC_KEY = "witness.pem", "witness.pub.pem"
_PORT_FIRST, _PORTS = 20_000, 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A new engine: its id, its configuration, its folder, and the files that were added to the fleet's folder."""

    engine: str
    entry: EngineEntry
    folder: Path
    witness: WitnessEntry
    files: tuple[str, ...]

    @property
    def serve(self) -> str:
        """The command that starts the witness."""
        return serve_command(self.witness)


def make_engine(
    folder: Path, folders: Folders, *, engine: str | None, steward: str, clock: Clock, test_clock: bool, example: bool
) -> Made:
    """A new engine for a folder, with a witness that is not started. Overwrites nothing.

    Raises SafetyRefused where there is an engine already, BadInput for a bad id, Unreachable.
    """
    id = _engine_id(folder, engine, clock)
    home = folders.engine(id)
    if home.exists() or id in read_config(folders.config_file):
        raise SafetyRefused(
            ENGINE_CONFIGURED.at(f"{id} is in {folders.config_file} or {home} already; choose another --engine")
        )
    witness = own_witness(folders, id)
    with undone(home), undone(folders.witness(witness.id)):
        folders.make(home)
        key = make_key(home / PRIVATE_KEY, home / PUBLIC_KEY, steward)
        witness_key = make_witness(folders, witness.id, {steward: [key]})
        entry = EngineEntry(
            id=id,
            state=f"sqlite:{home / STATE_FILE}",
            steward=steward,
            steward_key=home / PRIVATE_KEY,
            steward_public_key=home / PUBLIC_KEY,
            witnesses=(witness,),
        )
        _fill(entry, clock, test_clock, {witness.id: witness_key.hex()})
        folders.make(folders.config)
        with _added_files(folder, id, example) as files:
            add_engine(folders.config_file, entry)
    return Made(engine=id, entry=entry, folder=folder, witness=witness, files=files)


def check_engine_id(wanted: str | None) -> str | None:
    """The id itself, or None when a new one is to be made. Raises BadInput for what is none."""
    if wanted is not None and not is_engine_id(wanted):
        raise BadInput(BAD_ENGINE_ID.at(f"`{wanted[:80]}` is no engine id; write one such as eng_demo"))
    return wanted


def own_witness(folders: Folders, engine: str) -> WitnessEntry:
    """The witness that is made with an engine, for trying things out: it lies on the engine's machine and is not started."""
    id = f"witness-{engine[4:]}"
    key = folders.witness(id) / WITNESS_PUBLIC_KEY
    return WitnessEntry(id=id, url=f"http://127.0.0.1:{_port(engine)}", public_key=key)


def serve_command(witness: WitnessEntry) -> str:
    """The command that starts a witness that was made here."""
    return f"fleetctl witness serve --id {witness.id} --listen {witness.url.removeprefix('http://')}"


def make_witness(folders: Folders, id: str, stewards: Mapping[str, Sequence[PublicKey]]) -> PublicKey:
    """A witness's key and its empty memory, with the keys that each steward has or had; returns the public key.

    Raises SafetyRefused when there is one, BadInput for a bad name or roster, Unreachable.
    """
    from fleetctl.ledger.identifiers import check_identifier
    from fleetctl.store.witness_state import SqliteWitnessState

    home = folders.witness(check_identifier(id, "witness"))
    with undone(home):
        folders.make(home)
        key = make_key(home / WITNESS_KEY, home / WITNESS_PUBLIC_KEY, id)
        SqliteWitnessState.init(home / STATE_FILE, witness=id, own_key=key, stewards=stewards).close()
    return key


def make_key(private: Path, public: Path, kid: str) -> PublicKey:
    """A new key pair. Raises BadInput where a file is, Unreachable."""
    from fleetctl.ledger.keyfiles import create_private_key, create_public_key

    key = create_private_key(private, kid, os.urandom(32)).public_key
    create_public_key(public, key)
    return key


def _engine_id(folder: Path, wanted: str | None, clock: Clock) -> str:
    check_engine_id(wanted)
    pin = folder / PIN_NAME
    if pin.exists():
        pinned = read_pin(pin).engine
        if pinned != wanted:
            raise SafetyRefused(
                ENGINE_PINNED.at(
                    f"{pin} names {pinned}: get its state and keys from whoever made it, or make an engine of the same "
                    f"id with --engine {pinned} if it is yours to make"
                )
            )
    return wanted or ulid_id("engine", clock.now_ms(), os.urandom(10))


def _port(engine: str) -> int:
    """Where its witness listens: the same for one id, so that nothing needs to be told twice."""
    return _PORT_FIRST + int.from_bytes(sha256(engine.encode()).digest()[:4], "big") % _PORTS


def _fill(entry: EngineEntry, clock: Clock, test_clock: bool, witnesses: dict[str, str]) -> None:
    from fleetctl.engine.context import Engine
    from fleetctl.engine.initial import initialise
    from fleetctl.ledger.keyfiles import load_private_key
    from fleetctl.model.bodies import SettingsBody
    from fleetctl.store.sqlite import SqliteStore

    assert entry.steward_key is not None, "a new engine has its key here"
    signer = load_private_key(entry.steward_key, entry.steward)
    store = SqliteStore.create(entry.state.removeprefix("sqlite:"))
    try:
        made = Engine(
            id=EngineId(entry.id),
            store=store,
            steward=entry.steward,
            steward_key=signer.public_key,
            clock=clock,
            actor=local_actor(),
            entropy=os.urandom,
            signer=signer,
        )
        initialise(made, SettingsBody(witnesses=witnesses), test_clock=test_clock)
    finally:
        store.close()


@contextmanager
def _added_files(folder: Path, engine: str, example: bool) -> Iterator[tuple[str, ...]]:
    """Files to begin with, where there are none; taken away again when the context fails: a pin without its engine would
    stand in the way of the next try.
    """
    wanted = {PIN_NAME: pin_text(engine)}
    if example and not any(folder.glob("*.y*ml")):
        wanted["fleet.yaml"] = templates.fleet_file(_fleet_name(folder))
    if example:
        wanted[".github/workflows/fleetctl.yml"] = templates.workflow_file(__version__)
    added: list[str] = []
    try:
        for name, text in wanted.items():
            if _add_file(folder / name, text):
                added.append(name)
        yield tuple(added)
    except BaseException:
        for name in added:
            (folder / name).unlink(missing_ok=True)
        raise


def _add_file(path: Path, text: str) -> bool:
    """Whether the file was added; one that is there stays as it is. Raises Unreachable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise Unreachable(PATH_UNWRITABLE.at(f"{path}: {error.strerror}; check the folder")) from None
    return True


def _fleet_name(folder: Path) -> str:
    name = re.sub(r"[^a-z0-9-]+", "-", folder.resolve().name.lower()).strip("-")[:63]
    return name if is_name(name) else "my-fleet"


@contextmanager
def undone(folder: Path) -> Iterator[None]:
    """Remove a folder that was made inside the context when the context fails."""
    was_there = folder.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            shutil.rmtree(folder, ignore_errors=True)
        raise
