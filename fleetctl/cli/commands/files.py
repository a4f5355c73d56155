"""Fleet files: validate."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fleetctl.cli.command import Settings, command
from fleetctl.cli.output import emit, write
from fleetctl.diagnostics import Diagnostic
from fleetctl.render.diagnostics import (
    diagnostics_document,
    github_annotations,
    validation_json,
    validation_verdict,
)


@command("validate", formats=("text", "json", "github"))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Warnings fail too.")
def validate(settings: Settings, paths: tuple[Path, ...], strict: bool) -> int:
    """Check fleet files: syntax, schema, rules across objects, lints. Works offline and reports every problem in one run.

    Each PATH is a fleet of its own: a folder or one file.

    \b
    Example:
      fleetctl validate fleets/eu-prod
    """
    from fleetctl.config.load import load_fleet

    found: list[Diagnostic] = []
    objects = files = 0
    for path in paths:
        result = load_fleet(path)
        found += result.diagnostics
        files += len(result.files)
        objects += len(result.fleet.objects) if result.fleet is not None else 0
        if settings.format == "github":
            write(github_annotations(result.diagnostics, _shown_folder(path)))
    failed = any(strict or item.severity == "error" for item in found)
    if settings.format != "github":
        verdict = validation_verdict(found, failed=failed, objects=objects, files=files)
        emit(
            settings,
            lambda: [*diagnostics_document(found), verdict],
            lambda: validation_json(found, failed=failed),
        )
    return 1 if failed else 0


def _shown_folder(path: Path) -> str:
    """The folder that a fleet's files are relative to, as annotations need it: from the current folder."""
    folder = path if path.is_dir() else path.parent
    return Path(os.path.relpath(folder)).as_posix()
