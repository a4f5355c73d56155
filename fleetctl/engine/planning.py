"""Planning over a live engine: one consistent reading, the pure planner, and the plan file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from fleetctl import __version__
from fleetctl.diagnostics import Diagnostic
from fleetctl.engine.context import Engine, check_identity, journal_stream
from fleetctl.engine.culprits import culprits
from fleetctl.engine.state import check_readable, check_state, digests_of, load_snapshot
from fleetctl.engine.streams import head_of, read_usages
from fleetctl.engine.uncommitted import settled_commit, with_uncommitted
from fleetctl.errors import EngineRefused, SafetyRefused, Tampered
from fleetctl.frozen import dataclass
from fleetctl.model.declared import Fleet
from fleetctl.model.live import DIRTY, ObjectKey, Snapshot
from fleetctl.plan.context import Surroundings, plan_context
from fleetctl.plan.dangers import check_sealable
from fleetctl.plan.planfile import PlanFile, plan_file
from fleetctl.plan.planner import REMOVED_LIVE, Plan, make_plan
from fleetctl.plan.provenance import Provenance
from fleetctl.ports import Reader


def _no_history(_commit: str) -> bool | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the files come from. `commit` carries `+dirty` when files are uncommitted; `origin` is (root commit hash, path).

    `is_ancestor(commit)` says whether a commit is an ancestor of the files' one; None when nobody can say.
    """

    commit: str | None = None
    origin: tuple[str, str] | None = None
    is_ancestor: Callable[[str], bool | None] = _no_history


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan with its file and the snapshot it was made on."""

    plan: Plan
    file: PlanFile
    snapshot: Snapshot


def read_snapshot(engine: Engine, reader: Reader) -> Snapshot:
    """The snapshot of one reading, its usage verified. Raises SafetyRefused for another engine's state, Tampered."""
    check_identity(engine, reader)
    return load_snapshot(engine, reader, read_usages(engine, reader))


def plan_fleet(engine: Engine, fleet: Fleet, source: Source, *, host: str, accept: Iterable[str] = ()) -> Planned:
    """Plan a fleet. Writes nothing and never blocks on an apply.

    Raises EngineRefused with every refusal, SafetyRefused for a protected object or more dangers than can be sealed,
    Tampered for an unverified ledger, or when nothing can be planned on a state that was edited.
    """
    with engine.store.read() as reader:
        snapshot = with_uncommitted(engine, reader, read_snapshot(engine, reader), fleet.name)
        journal = head_of(engine, reader, journal_stream(reader))
        edited = _edited(engine, reader, snapshot)
        now = engine.clock.now_ms()
        try:
            plan = make_plan(fleet, snapshot, now=now, provenance=provenance(fleet, snapshot, source), accept=accept)
        except (EngineRefused, SafetyRefused) as error:
            if edited:  # the edit comes first: it may be all that is wrong
                raise Tampered([*(replace(item, severity="error") for item in edited), *error.diagnostics]) from None
            raise
        check_sealable(plan.dangers)
        who = culprits(engine, reader, _drifted(plan))
    plan = replace(plan, warnings=(*plan.warnings, *edited))
    around = Surroundings(
        at=now,
        host=host,
        tool=f"fleetctl {__version__}",
        journal_length=journal.length,
        journal_head=journal.address,
        commit=source.commit,
        culprits=who,
    )
    return Planned(plan=plan, file=plan_file(plan, plan_context(plan, fleet, snapshot, around)), snapshot=snapshot)


def _drifted(plan: Plan) -> dict[ObjectKey, tuple[str, list[tuple[str | None, Any]]]]:
    """The fields of each object that moved on the live side, with what they are there; None for one that was removed there."""
    found: dict[ObjectKey, tuple[str, list[tuple[str | None, Any]]]] = {}
    for item in plan.operations:
        moved: list[tuple[str | None, Any]] = [
            (entry.field, entry.live) for entry in plan.fields.get(item.label, ()) if entry.cause != "change"
        ]
        if item.verb == "create" and item.reason == REMOVED_LIVE:
            moved = [(None, None)]
        if moved:
            found[item.kind, item.id] = (item.key, moved)
    return found


def _edited(engine: Engine, reader: Reader, snapshot: Snapshot) -> tuple[Diagnostic, ...]:
    """A warning when the live side is not what the journal sealed: an edit would look like drift, and `apply` refuses it.

    Raises Tampered when it cannot even be read.
    """
    try:
        check_state(engine, reader, digests_of(snapshot.objects))
    except Tampered as error:
        check_readable(snapshot.objects.values())
        return tuple(replace(item, severity="warning") for item in error.diagnostics)
    return ()


def provenance(fleet: Fleet, snapshot: Snapshot, source: Source) -> Provenance:
    """How the files relate to the fleet's last apply."""
    record = snapshot.fleets.get(fleet.name)
    last = None if record is None else record.commit
    ancestor = None if last is None else source.is_ancestor(last.removesuffix(DIRTY))
    settled = settled_commit(snapshot, fleet.name)
    return Provenance(
        last_commit=last,
        ancestor=ancestor,
        settled=settled,
        settled_ancestor=None if settled is None else source.is_ancestor(settled),
        origin=source.origin,
    )
