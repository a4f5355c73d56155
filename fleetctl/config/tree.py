"""From the bytes of files to the node trees of their documents: scan, parse."""

from __future__ import annotations

from collections.abc import Sequence

from fleetctl.config.discover import FileBytes
from fleetctl.config.nodes import Mapping
from fleetctl.config.problems import Problems
from fleetctl.config.reader import Reader
from fleetctl.config.scan import Allowed, scan
from fleetctl.config.sources import Sources
from fleetctl.diagnostics import Diagnostic
from fleetctl.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTree:
    """What the files of a fleet say, before anything knows what a pool is.

    `incomplete` says that some file or document could not be read, so that what is missing may well exist.
    """

    documents: tuple[Mapping, ...]
    problems: Problems
    allowed: tuple[Allowed, ...]
    incomplete: bool

    @property
    def sources(self) -> Sources:
        return self.problems.sources


def grow_tree(files: Sequence[FileBytes], unreadable: Sequence[Diagnostic]) -> FleetTree:
    """Parse every file; all problems of all files, `unreadable` first, are in `problems`. Never raises for what is in them."""
    sources = Sources()
    problems = Problems(sources)
    problems.extend(unreadable)
    reader = Reader(problems)
    documents: list[Mapping] = []
    allowed: list[Allowed] = []
    for file in files:
        source = sources.add(file.name, file.data)
        scanned = scan(source, problems)
        allowed += scanned.allowed
        documents += reader.read(source, scanned)
    return FleetTree(
        documents=tuple(documents),
        problems=problems,
        allowed=tuple(allowed),
        incomplete=bool(unreadable) or reader.incomplete,
    )
