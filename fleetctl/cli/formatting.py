"""`fmt`: fleet files in one form, or what would change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from fleetctl.cli.files import write_whole
from fleetctl.cli.fleets import is_fleet
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """A file, and whether its text is not the one form."""

    file: Path
    changed: bool


def format_path(path: Path, *, check: bool) -> Iterator[Formatted]:
    """Format every fleet file of a path; with `check` only say what would change.

    Raises a usage error for a file that is named and is no fleet file by its name: it may be a plan, or anything. Raises BadInput, before anything is written, for files that cannot be read as YAML, and for one that formatting would change
    the meaning of.
    """
    from fleetctl.config.discover import read_files
    from fleetctl.config.tree import grow_tree
    from fleetctl.config.yamlfiles import formatted

    if path.is_file() and not is_fleet(path):
        raise click.UsageError(f"{path} is no fleet file; name a folder, or a file *.yaml or *.yml.")
    tree = grow_tree(*read_files(path))
    errors = [item for item in tree.problems.sorted() if item.severity == "error"]
    if errors:
        raise BadInput(errors)
    folder = path if path.is_dir() else path.parent
    for source in tree.sources.files():
        before = source.text()
        after = formatted(before, source.name)
        file = folder / source.name
        if after != before and not check:
            write_whole(file, after.encode(), mode=file.stat().st_mode & 0o777)
        yield Formatted(file=file, changed=after != before)
