"""The state of an engine: backup, restore, move, copy, rebuild."""

from __future__ import annotations

from pathlib import Path

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.making import serve_command
from fleetctl.cli.output import emit
from fleetctl.cli.places import Copied, copy_state, move_state, restore_state
from fleetctl.cli.types import DANGER, DURATION, FILE_PATH
from fleetctl.cli.wiring import open_engine
from fleetctl.render.attestation import attestation_facts, attestation_json, attestation_notes
from fleetctl.render.document import Block, Document, Facts, Paragraph, Verbatim, Verdict

_FILE = click.argument("file", type=FILE_PATH)


@click.group("state", cls=Group, no_args_is_help=True)
def state() -> None:
    """An engine's state as a whole. Keys are not in it: keep them apart."""


@command("backup")
@_FILE
def backup(settings: Settings, file: Path) -> None:
    """Copy the state into a new FILE while everything runs.

    \b
    Example:
      fleetctl state backup /backup/engine-2026-12-01.db
    """
    with open_engine(settings) as engine:
        engine.store.backup(str(file))
        id = engine.id
    emit(
        settings,
        lambda: [Verdict(f"Backed up {id} to {file}", "good")],
        lambda: {"result": "done", "engine": id, "file": str(file)},
    )


@command("restore")
@_FILE
@click.option("--accept", metavar="ID", multiple=True, type=DANGER, help="Take an old backup, to recover from.")
@click.option("--wait", metavar="DURATION", type=DURATION, default="60s", show_default=True, help="For a writer.")
def restore(settings: Settings, file: Path, accept: tuple[str, ...], wait: int) -> None:
    """Make the state what the backup FILE is. Asks the witness first, and refuses what it knows to be old; where that is
    accepted, nothing is appended before `fleetctl ledger recover` has brought back the rest.

    \b
    Example:
      fleetctl state restore /backup/engine-2026-12-01.db
    """
    id, length, behind = restore_state(settings, file, wait, accept)
    more = "A witness knows more than this state: bring it back with `fleetctl ledger recover`."
    emit(
        settings,
        lambda: [
            Verdict(f"Restored {id}: its journal has {length} entries", "warn" if behind else "good"),
            *([Paragraph(more, "warn")] if behind else []),
        ],
        lambda: {"result": "done", "engine": id, "journal_length": length} | ({"behind": True} if behind else {}),
    )


@command("move")
@click.argument("url")
def move(settings: Settings, url: str) -> int:
    """Move the state to another URL. The old one is sealed closed, so that nobody goes on with it by accident: exit 5 while a
    required witness has not countersigned that.

    \b
    Example:
      fleetctl state move sqlite:/srv/fleet/state.db
    """
    id, found = move_state(settings, url)
    emit(
        settings,
        lambda: [
            Verdict(f"Moved {id} to {url}; the old state is closed", "good"),
            Facts(attestation_facts(found)),
            *attestation_notes(found),
        ],
        lambda: {"result": "done", "engine": id, "state": url} | attestation_json(found),
    )
    return 0 if found.enough() else 5


@command("copy")
@click.argument("url")
@click.option("--engine", metavar="ID", help="The new engine's id; a new one if absent.")
@click.option("--steward", metavar="ID", help="The name that seals there; made from the id if absent.")
def copy(settings: Settings, url: str, engine: str | None, steward: str | None) -> None:
    """Make a second engine at URL with this one's configuration: new id, new key, new ledgers, no usage, no history, and a
    witness of its own that is not started.

    \b
    Example:
      fleetctl state copy sqlite:/srv/staging/state.db
    """
    made = copy_state(settings, url, engine, steward)
    emit(settings, lambda: _copied(made), lambda: _copied_json(made))


def _copied(made: Copied) -> Document:
    entry = made.entry
    facts = [
        ("state", entry.state),
        ("steward", f"{entry.steward}, key {entry.steward_key}"),
        ("witness", f"{made.witness.id}, not started"),
    ]
    blocks: list[Block] = [
        Verdict(f"Engine {entry.id} is ready, with {made.objects} objects", "good"),
        Facts(facts),
        Paragraph(
            "Witnesses know a steward by its key, so this engine has one of its own. Until it runs, ledgers are self-attested. "
            "Start it with:"
        ),
        Verbatim([serve_command(made.witness)]),
    ]
    if made.required > 1:
        blocks.append(
            Paragraph(
                f"Its settings require {made.required} witnesses: name the others with `fleetctl settings set witnesses`.",
                "warn",
            )
        )
    return blocks


def _copied_json(made: Copied) -> dict[str, object]:
    entry, witness = made.entry, made.witness
    return {
        "result": "done",
        "engine": entry.id,
        "state": entry.state,
        "steward": entry.steward,
        "objects": made.objects,
        "witness": {"id": witness.id, "url": witness.url, "serve": serve_command(witness)},
    }


@command("rebuild")
def rebuild(settings: Settings) -> None:
    """Write the tables again from the ledgers and the journal's documents, which are the truth.

    \b
    Example:
      fleetctl state rebuild
    """
    from fleetctl.engine.rebuild import rebuild as rebuild_tables

    with open_engine(settings, seals=True) as engine:
        entries = rebuild_tables(engine)
        id = engine.id
    emit(
        settings,
        lambda: [Verdict(f"Rebuilt {id} from {entries} journal entries", "good")],
        lambda: {"result": "done", "engine": id, "entries": entries},
    )


for _command in (backup, restore, move, copy, rebuild):
    state.add_command(_command)
