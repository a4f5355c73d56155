"""What loading a fleet gives, and what it may be told of machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from fleetctl.canonical import Digest
from fleetctl.diagnostics import Diagnostic
from fleetctl.errors import BadInput, SafetyRefused
from fleetctl.frozen import dataclass
from fleetctl.model.declared import Fleet, LoadedFleet
from fleetctl.model.ids import FleetName


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPool:
    """What is known of a pool's machines: how many there are of a resource, and the GPU families that they report."""

    resources: Mapping[str, int]
    families: frozenset[str] = frozenset()


KnownPools = Mapping[str, KnownPool]
"""By pool key; `fleet/key` for a pool of another fleet."""

Inventory = Callable[[FleetName], KnownPools]
"""What is known of the machines of the pools that a fleet names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What a path says: a fleet when there is no error, and all diagnostics in reading order.

    `files` are digests by file name; `externals` the references to objects of other fleets, as (section, `fleet/key`).
    """

    fleet: Fleet | None
    diagnostics: tuple[Diagnostic, ...]
    files: Mapping[str, Digest] = field(default_factory=dict)
    externals: tuple[tuple[str, str], ...] = ()

    def loaded(self) -> LoadedFleet:
        """The fleet for a plan. Raises SafetyRefused when the source is missing, empty or unreadable, else BadInput."""
        if self.fleet is not None:
            return LoadedFleet(fleet=self.fleet, files=self.files)
        errors = [item for item in self.diagnostics if item.severity == "error"]
        unsafe = any(item.code.exit_code == SafetyRefused.exit_code for item in errors)
        raise (SafetyRefused if unsafe else BadInput)(errors)
