"""Arguments that are fleets or plans, and what is known of where a fleet's files come from."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.cli.command import Settings
from fleetctl.cli.files import read_bytes
from fleetctl.cli.gitfacts import git_facts
from fleetctl.cli.output import warn
from fleetctl.cli.wiring import open_engine
from fleetctl.errors import BadInput, Tampered
from fleetctl.frozen import dataclass

if TYPE_CHECKING:
    from fleetctl.config.loaded import Inventory, KnownPools, LoadResult
    from fleetctl.engine.context import Engine
    from fleetctl.engine.planning import Source
    from fleetctl.model.declared import Fleet
    from fleetctl.model.ids import FleetName


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A fleet that can be planned, and where its files come from."""

    fleet: Fleet
    source: Source


def is_fleet(argument: Path) -> bool:
    """A folder, or a name that ends in `.yaml` or `.yml`, is a fleet; anything else is a plan (cli.md)."""
    return argument.is_dir() or argument.suffix in (".yaml", ".yml")


def is_missing_folder(argument: Path) -> bool:
    """Nothing is there, and the name is a folder's: a missing fleet, which is an empty source (pins, exit 3)."""
    return not argument.suffix and not os.path.lexists(argument)


@contextmanager
def fleet_and_engine(
    settings: Settings, path: Path, *, seals: bool = False, looks: bool = False
) -> Iterator[tuple[Loaded, Engine]]:
    """The fleet at a path and its engine, open as by `open_engine`. What is wrong in the files is said first.

    `looks`: nothing is done by what is found, so that files which have not changed may be taken from the user's cache.
    Raises as `load` and `open_engine`.
    """
    with ExitStack() as stack:
        opened: list[Engine] = []

        def inventory(fleet: str) -> KnownPools:
            opened.append(stack.enter_context(open_engine(settings, near=path, seals=seals)))
            return known_pools(opened[0], fleet)

        loaded = load(path, inventory, looks=looks)
        yield loaded, opened[0]


def known_pools(engine: Engine, fleet: str) -> KnownPools:
    """The machines of every pool by the name that the files of `fleet` have for it: its key, or `other-fleet/key`.

    A state that cannot be read says nothing here: what follows will say that.
    """
    from fleetctl.capacity.gpu_names import family_of
    from fleetctl.config.loaded import KnownPool

    gpus: dict[str, int] = {}
    families: dict[str, set[str]] = {}
    try:
        with engine.store.read() as reader:
            for node in reader.nodes():
                gpus[node.pool] = gpus.get(node.pool, 0) + node.gpus
                family = family_of(node.product or "")
                families.setdefault(node.pool, set()).update([family] if family is not None else [])
            pools = [found for id in gpus if (found := reader.object("pool", id)) is not None]
    except Tampered:
        return {}
    return {
        pool.key if pool.fleet == fleet else f"{pool.fleet}/{pool.key}": KnownPool(
            resources={"gpu": gpus[pool.id]}, families=frozenset(families[pool.id])
        )
        for pool in pools
        if pool.fleet is not None
    }


def load(path: Path, inventory: Inventory | None = None, *, looks: bool = False) -> Loaded:
    """The fleet at a path, its warnings said on standard error.

    Raises SafetyRefused when the source is missing, empty or unreadable, BadInput for what is wrong in it.
    """
    from fleetctl.engine.planning import Source

    result = _remembered(path, inventory) if looks and inventory is not None else _loaded(path, inventory)
    loaded = result.loaded()
    warn(item for item in result.diagnostics if item.severity == "warning")
    facts = git_facts(path, loaded.files, looks=looks)
    source = Source(commit=facts.commit, origin=facts.origin, is_ancestor=facts.is_ancestor)
    return Loaded(fleet=loaded.fleet, source=source)


def _loaded(path: Path, inventory: Inventory | None) -> LoadResult:
    from fleetctl.config.load import load_fleet

    return load_fleet(path, inventory=inventory)


def _remembered(path: Path, inventory: Inventory) -> LoadResult:
    """The fleet as it was last loaded, if its files and what is known of machines are what they were then."""
    from fleetctl.canonical import sha256_hex
    from fleetctl.cli.remembering import Remembering
    from fleetctl.cli.usercache import allowed
    from fleetctl.config.discover import read_files
    from fleetctl.config.remembered import recall, remember

    files, unreadable = read_files(path)
    digests = {item.name: sha256_hex(item.data) for item in files}
    cache = None if unreadable or not allowed() else Remembering(path, digests)
    known: list[KnownPools] = []

    def once(fleet: FleetName) -> KnownPools:
        if not known:
            known.append(inventory(fleet))
        return known[0]

    kept = None if cache is None else cache.read()
    result = None if kept is None else recall(kept, digests, once)
    if result is not None:
        return result
    from fleetctl.config.load import load_files

    result = load_files(files, unreadable, alone=path.is_file(), inventory=once)
    if cache is not None and result.fleet is not None:
        cache.write(remember(result, result.fleet, known[0]))
    return result


def read_plan_bytes(path: Path) -> bytes:
    """A plan file's bytes, one more than a plan may have at most. Raises Unreachable, BadInput for a fleet."""
    from fleetctl.plan.planfile import MAX_BYTES, UNREADABLE

    if is_fleet(path):
        mend = f"write its plan with `fleetctl plan {shlex.quote(str(path))} -o plan.json` and name that"
        raise BadInput(UNREADABLE.at(f"{path} is a fleet, not a plan; {mend}"))

    return read_bytes(path, MAX_BYTES)
