"""Arguments that are fleets or plans, and what is known of where a fleet's files come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.cli.files import read_bytes
from fleetctl.cli.gitfacts import git_facts
from fleetctl.cli.output import warn

if TYPE_CHECKING:
    from fleetctl.engine.planning import Source
    from fleetctl.model.declared import Fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A fleet that can be planned, and where its files come from."""

    fleet: Fleet
    source: Source


def is_fleet(argument: Path) -> bool:
    """A folder, or a name that ends in `.yaml` or `.yml`, is a fleet; anything else is a plan (cli.md)."""
    return argument.is_dir() or argument.suffix in (".yaml", ".yml")


def load(path: Path) -> Loaded:
    """The fleet at a path, its warnings said on standard error.

    Raises SafetyRefused when the source is missing, empty or unreadable, BadInput for what is wrong in it.
    """
    from fleetctl.config.load import load_fleet
    from fleetctl.engine.planning import Source

    result = load_fleet(path)
    loaded = result.loaded()
    warn(item for item in result.diagnostics if item.severity == "warning")
    facts = git_facts(path, loaded.files)
    source = Source(commit=facts.commit, origin=facts.origin, is_ancestor=facts.is_ancestor)
    return Loaded(fleet=loaded.fleet, source=source)


def read_plan_bytes(path: Path) -> bytes:
    """A plan file's bytes, one more than a plan may have at most. Raises Unreachable."""
    from fleetctl.plan.planfile import MAX_BYTES

    return read_bytes(path, MAX_BYTES)
