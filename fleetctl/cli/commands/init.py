"""`init`: the only command that makes an engine."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fleetctl.cli.command import Settings, command
from fleetctl.cli.folders import user_folders
from fleetctl.cli.making import Made, make_engine
from fleetctl.cli.output import emit
from fleetctl.cli.types import FILE_PATH
from fleetctl.cli.wiring import now_clock
from fleetctl.render.document import Block, Document, Facts, Items, Paragraph, Verbatim, Verdict

_EXAMPLE = "fleet.yaml"


@command("init")
@click.argument("folder", metavar="[DIR]", type=FILE_PATH, default=".")
@click.option("--engine", metavar="ID", help="The engine's id, eng_…; a new one if absent.")
@click.option("--steward", metavar="ID", default="root-steward", show_default=True, help="The name that seals.")
@click.option("--test-clock", is_flag=True, help="Let sealing commands take --now: for tests and transcripts only.")
@click.option("--no-example", is_flag=True, help="Add no fleet and no workflow, only fleetctl.toml.")
def init(
    settings: Settings, folder: Path, engine: str | None, steward: str, test_clock: bool, no_example: bool
) -> None:
    """Make an engine for the fleets in DIR: state, keys, a witness that is not started, and files to begin with.

    Files that are there stay as they are.

    \b
    Example:
      fleetctl init first-fleet
    """
    made = make_engine(
        folder,
        user_folders(),
        engine=engine,
        steward=steward,
        clock=now_clock(settings),
        test_clock=test_clock,
        example=not no_example,
    )
    emit(settings, lambda: _document(made), lambda: _json(made))


def _document(made: Made) -> Document:
    entry = made.entry
    return [
        Verdict(f"Engine {made.engine} is ready", "good"),
        Facts(
            [
                ("state", entry.state),
                ("steward", f"{entry.steward}, key {entry.steward_key}"),
                ("witness", f"{made.witness.id}, not started"),
            ]
        ),
        Items([(f"added {made.folder / name}", None) for name in made.files]),
        *_first_plan(made),
        Paragraph("Until a witness runs, ledgers are self-attested. Start this one with:"),
        Verbatim([made.serve]),
    ]


def _first_plan(made: Made) -> list[Block]:
    if _EXAMPLE not in made.files:
        return []
    return [
        Paragraph("See what the example would make live, and apply it:"),
        Verbatim([f"fleetctl plan {shlex.quote(str(made.folder))}", f"fleetctl apply {shlex.quote(str(made.folder))}"]),
    ]


def _json(made: Made) -> dict[str, object]:
    return {
        "result": "ok",
        "engine": made.engine,
        "state": made.entry.state,
        "steward": made.entry.steward,
        "witness": {"id": made.witness.id, "url": made.witness.url, "serve": made.serve},
        "files": list(made.files),
    }
