"""Fleet files: validate, fmt, import."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fleetctl.cli.command import Settings, command
from fleetctl.cli.output import emit, write
from fleetctl.cli.types import FILE_PATH
from fleetctl.diagnostics import Diagnostic
from fleetctl.render.diagnostics import (
    diagnostics_document,
    github_annotations,
    validation_json,
    validation_verdict,
)
from fleetctl.render.document import Items, Verdict
from fleetctl.render.words import counted


@command("validate", formats=("text", "json", "github"))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=FILE_PATH)
@click.option("--strict", is_flag=True, help="Warnings are errors.")
def validate(settings: Settings, paths: tuple[Path, ...], strict: bool) -> int:
    """Check fleet files: syntax, schema, rules across objects, lints. Works offline and reports every problem in one run.

    Each PATH is a fleet of its own: a folder or one file.

    \b
    Example:
      fleetctl validate fleets/eu-prod
    """
    from fleetctl.config.load import load_fleet

    found: list[Diagnostic] = []
    objects = files = external = 0
    for path in paths:
        result = load_fleet(path)
        told = [replace(item, severity="error") for item in result.diagnostics] if strict else result.diagnostics
        found += told
        files += len(result.files)
        objects += len(result.fleet.objects) if result.fleet is not None else 0
        external += len(result.externals)
        if settings.format == "github":
            write(github_annotations(told, _shown_folder(path)))
    failed = any(item.severity == "error" for item in found)
    if settings.format != "github":
        verdict = validation_verdict(found, failed=failed, objects=objects, files=files, external=external)
        emit(
            settings,
            lambda: [*diagnostics_document(found), verdict],
            lambda: validation_json(found, failed=failed, external=external),
        )
    return 1 if failed else 0


@command("fmt")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=FILE_PATH)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when a file is not in form.")
def fmt(settings: Settings, paths: tuple[Path, ...], check: bool) -> int:
    """Put fleet files in one form: indentation, spacing, line ends. Comments, order and meaning stay.

    \b
    Example:
      fleetctl fmt --check fleets/eu-prod
    """
    from fleetctl.cli.formatting import format_path

    found = [item for path in paths for item in format_path(path, check=check)]
    changed = [item for item in found if item.changed]
    word = "would change" if check else "changed"
    emit(
        settings,
        lambda: [
            *([Items([(f"{word} {item.file}", None) for item in changed])] if changed else []),
            Verdict(f"{len(changed)} of {counted(len(found), 'file')} {word}", "warn" if check and changed else "good"),
        ],
        lambda: {
            "result": "changed" if changed else "ok",
            "files": [{"file": str(item.file), "changed": item.changed} for item in found],
        },
    )
    return 1 if check and changed else 0


@command("import")
@click.argument("kind", metavar="[KIND]", required=False)
@click.argument("id", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="Every live object that no fleet owns, or that --fleet does.")
@click.option(
    "--fleet",
    metavar="NAME",
    help="The fleet that the YAML is for: it gets a header, and no adopt for its own. If absent, what it holds is "
    "for the fleet at --path, if there is one.",
)
@click.option("--out", "-o", metavar="FILE", type=FILE_PATH, help="A new file, instead of standard output.")
@click.option("--refresh", metavar="KIND/KEY", help="Bring this entry of the files at --path to what is live.")
@click.option("--path", type=FILE_PATH, default=".", show_default=True, help="The fleet.")
def import_(settings: Settings, kind: str | None, id: str | None, path: Path, **how: Any) -> None:
    """Write a live object, by KIND and ID or key (or as KIND/KEY), as the YAML that would declare it. Changes nothing
    live. A KIND is tenant, site, pool, offer, entitlement, market-pool, order or transfer.

    \b
    Example:
      fleetctl import pool pool-fra1-h100
      fleetctl import --refresh offer/pool-fra1-h100/acme --path fleets/eu-prod
    """
    from fleetctl.cli.imports import run_import

    run_import(settings, kind, id, path, **how)


def _shown_folder(path: Path) -> str:
    """The folder that a fleet's files are relative to, as annotations need it: from the current folder."""
    folder = path if path.is_dir() else path.parent
    return Path(os.path.relpath(folder)).as_posix()
