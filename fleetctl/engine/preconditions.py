"""Whether what a plan was made against is still there: step 8 of `apply`, and who owns what its operations change."""

from __future__ import annotations

from fleetctl.diagnostics import Diagnostic, code
from fleetctl.engine.uncommitted import settled_commit
from fleetctl.errors import SafetyRefused, Stale
from fleetctl.model.ids import Kind, ObjectId
from fleetctl.model.live import Snapshot
from fleetctl.model.operation import Operation
from fleetctl.plan.compare import same
from fleetctl.plan.planfile import PlanFile
from fleetctl.ports import Reader

FOREIGN_PLAN = code(
    "foreign-plan",
    "The plan was made for another engine or fleet",
    trigger="apply or check is given a plan whose engine is not the one that is open, or whose operations are on objects that its fleet does not own",
    exit_code=3,
)
FALSE_PLAN = code(
    "plan-false",
    "The plan says of an object what never was",
    trigger="an operation's `before` differs from the live object at the very version that it was planned against",
    exit_code=3,
)
STALE_PLAN = code(
    "stale-plan",
    "The ground under the plan has moved",
    trigger="an object that the plan touches was changed, made or removed since it was planned",
    exit_code=4,
)
STALE_SOURCE = code(
    "stale-source",
    "The fleet was applied again since the plan was made",
    trigger="the plan was made against another last apply of the fleet than the one that is live",
    exit_code=4,
)


def check_source(snapshot: Snapshot, file: PlanFile) -> None:
    """The fleet's last apply is the one that the plan was made after. Raises Stale."""
    record = snapshot.fleets.get(file.body.fleet)
    live = None if record is None else record.commit
    settled = settled_commit(snapshot, file.body.fleet)
    if (live, settled) != (file.body.provenance.last_commit, file.body.provenance.settled):
        raise Stale(
            STALE_SOURCE.at(
                f"fleet {file.body.fleet} was last applied from {live or 'no known commit'}, the plan was made after "
                f"{file.body.provenance.last_commit or 'none'}; plan again"
            )
        )


def check_operations(snapshot: Snapshot, reader: Reader, file: PlanFile) -> None:
    """Every precondition holds, and what the plan changes is its fleet's. Raises Stale, SafetyRefused."""
    gone = [item for item in file.body.operations if not _holds(item, snapshot)]
    if gone:
        raise Stale(_moved(item, snapshot, reader) for item in gone)
    _check_before(snapshot, file)
    _check_owned(snapshot, file)  # part of step 2, which needs the lock to know who owns what


def _holds(item: Operation, snapshot: Snapshot) -> bool:
    found = snapshot.objects.get((item.kind, item.id))
    wants = item.precondition
    if not all(_there(snapshot, id) for id in wants.requires):
        return False
    if wants.version is not None:
        return found is not None and found.version == wants.version
    stone = snapshot.tombstones.get((item.kind, item.id))
    return found is None and (stone.version if stone else 0) == wants.absent


def _check_before(snapshot: Snapshot, file: PlanFile) -> None:
    """What the plan shows as `before` is what is live: dangers are judged by it. Raises SafetyRefused."""
    for item in file.body.operations:
        live = snapshot.objects.get((item.kind, item.id))
        if live is not None and not same(item.before, live.state()):
            raise SafetyRefused(
                FALSE_PLAN.at(
                    f"the plan's `before` of {item.label} is not what version {live.version} holds; make the plan again "
                    "with `fleetctl plan`",
                    subject=item.label,
                )
            )


def _check_owned(snapshot: Snapshot, file: PlanFile) -> None:
    """What the plan changes is its fleet's, at the versions that it was planned against. Raises SafetyRefused."""
    for item in file.body.operations:
        live = snapshot.objects.get((item.kind, item.id))
        if live is not None and item.verb != "adopt" and live.fleet != file.body.fleet:
            owner = f"fleet {live.fleet}" if live.fleet is not None else "no fleet"
            raise SafetyRefused(
                FOREIGN_PLAN.at(
                    f"{item.label} belongs to {owner}, the plan is for fleet {file.body.fleet}; make the plan again with "
                    "`fleetctl plan`",
                    subject=item.label,
                )
            )


def _there(snapshot: Snapshot, id: ObjectId) -> bool:
    """Whether an object of another fleet that the operation names is still live."""
    kinds: tuple[Kind, ...] = ("site", "pool", "entitlement", "market-pool")
    found = (snapshot.objects.get((kind, id)) for kind in kinds)
    return any(item is not None and not item.archived for item in found)


def _moved(item: Operation, snapshot: Snapshot, reader: Reader) -> Diagnostic:
    found = snapshot.objects.get((item.kind, item.id))
    entries = reader.journal_touching(item.kind, item.id)
    by = f" by journal entry {entries[-1]}" if entries else ""
    now = f"is at version {found.version}" if found is not None else "does not exist"
    wants = item.precondition
    planned = f"version {wants.version}" if wants.version is not None else "its absence"
    return STALE_PLAN.at(
        f"{item.label} {now}, moved{by}; the plan was made against {planned}. Plan again", subject=item.label
    )
