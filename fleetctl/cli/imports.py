"""What `import` was asked for, in its three ways: one object, all of them, one entry of the files."""

from __future__ import annotations

from pathlib import Path

import click

from fleetctl.cli.command import Settings
from fleetctl.cli.files import PATH_UNWRITABLE, write_whole
from fleetctl.cli.fleets import load
from fleetctl.cli.importing import as_json, import_objects, importable, refresh
from fleetctl.cli.output import emit, note
from fleetctl.cli.pin import NAME
from fleetctl.cli.queries import look
from fleetctl.cli.wiring import acting_tenant, open_engine
from fleetctl.errors import BadInput
from fleetctl.model.ids import Kind
from fleetctl.render.document import Lines, Verdict
from fleetctl.render.inert import inert


def run_import(
    settings: Settings,
    kind: str | None,
    id: str | None,
    path: Path,
    *,
    every: bool,
    fleet: str | None,
    out: Path | None,
    refresh: str | None,
) -> None:
    """Raises a usage error unless exactly one way was asked for; else as `import_objects` and `refresh`."""
    if kind is not None and id is None:
        kind, _, key = kind.partition("/")
        id = key or None
    if (kind is not None and id is not None) + every + (refresh is not None) != 1 or (kind is not None) != (
        id is not None
    ):
        raise click.UsageError("Give KIND and ID, or --all, or --refresh KIND/KEY.")
    if refresh is not None:
        _refresh(settings, path, refresh)
    else:
        _write(settings, _kind(kind), id, fleet, out, path)


def _kind(word: str | None) -> Kind | None:
    """Raises a usage error for what is no kind that files declare."""
    from fleetctl.config.filing import SECTION_OF

    if word is None:
        return None
    for kind, section in SECTION_OF.items():
        if word == kind:
            return kind
        if word == section:
            raise click.UsageError(f"`{word}` is a section of fleet files; the kind is `{kind}`.")
    raise click.UsageError(f"`{word[:80]}` is no kind; write one of {', '.join(SECTION_OF)}.")


def _refresh(settings: Settings, path: Path, label: str) -> None:
    loaded = load(path)
    with open_engine(settings, near=path) as engine:
        snapshot = look(engine, None).snapshot
    file, changed = refresh(path, loaded.fleet, snapshot, label)
    words = f"{file}: {label} is now what is live" if changed else f"{file}: {label} is what is live already"
    emit(
        settings,
        lambda: [Verdict(words, "good")],
        lambda: {"result": "ok", "yaml": file.read_text(encoding="utf-8"), "objects": [label], "file": str(file)},
    )


def _write(
    settings: Settings, kind: Kind | None, id: str | None, fleet: str | None, out: Path | None, path: Path
) -> None:
    from fleetctl.config.load import load_fleet
    from fleetctl.engine.builders import find

    with open_engine(settings) as engine:
        snapshot = look(engine, None).snapshot
    chosen = importable(snapshot, fleet) if kind is None or id is None else [find(snapshot, kind, id)]
    # The current folder only with a fleetctl.toml in it: elsewhere it may hold anything, and a lot of it.
    asked = path != Path() or (path / NAME).is_file()
    here = load_fleet(path).fleet if fleet is None and asked else None
    found = import_objects(
        snapshot,
        chosen,
        fleet=fleet if here is None else here.name,
        tenant=acting_tenant(settings),
        header=fleet is not None,
    )
    for label in found.missing:
        note(inert(f"note: it refers to {label}, which no fleet owns; import that too") + "\n")
    if out is not None:
        if out.exists():
            raise BadInput(PATH_UNWRITABLE.at(f"{out} exists; name a new file, nothing is overwritten"))
        write_whole(out, found.yaml.encode(), mode=0o644)
    emit(
        settings,
        lambda: (
            [Verdict(f"Wrote {out}", "good")] if out else [Lines([(line, None) for line in found.yaml.splitlines()])]
        ),
        lambda: dict(as_json(found, out)),
    )
