"""Where a fleet's files come from, and which live values a plan would take back that files of no ancestor set.

The danger `revert` is about these; git has said what it knows when the plan was made, the journal says the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fleetctl.frozen import dataclass
from fleetctl.model.live import DIRTY, WHOLE, LiveObject, Snapshot
from fleetctl.model.operation import Operation
from fleetctl.plan.compare import changed_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where this fleet's files come from and how they relate to its last apply; absent parts are unknown.

    `last_commit` is the commit last applied (with `+dirty` when files were uncommitted), `ancestor` whether it is an
    ancestor of the files' commit, `origin` (root commit hash, path in the repository). Where files were uncommitted,
    `settled` and `settled_ancestor` are the same of the last apply whose files were not.
    """

    last_commit: str | None = None
    ancestor: bool | None = None
    settled: str | None = None
    settled_ancestor: bool | None = None
    origin: tuple[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """The parts that a plan's body holds."""
        out: dict[str, Any] = {}
        if self.last_commit is not None:
            out["lastApplied"] = {"commit": self.last_commit}
            if self.ancestor is not None:
                out["lastApplied"]["ancestor"] = self.ancestor
            if self.settled is not None:
                out["lastApplied"]["settled"] = _commit_json(self.settled, self.settled_ancestor)
        if self.origin is not None:
            out["origin"] = {"root": self.origin[0], "path": self.origin[1]}
        return out


def _commit_json(commit: str, ancestor: bool | None) -> dict[str, Any]:
    return {"commit": commit} if ancestor is None else {"commit": commit, "ancestor": ancestor}


def reverted(operations: Sequence[Operation], fleet: str, snapshot: Snapshot, provenance: Provenance) -> list[str]:
    """The objects on which values change that came from uncommitted files or from a commit that is no ancestor."""
    record = snapshot.fleets.get(fleet)
    if record is None or record.commit is None:
        return []
    dirty = record.commit.endswith(DIRTY)
    if not dirty and provenance.ancestor is not False:
        return []
    return [
        item.label
        for item in operations
        if item.verb != "create"
        and _was_applied(snapshot.objects.get((item.kind, item.id)))
        and (not dirty or _is_of_uncommitted(item, fleet, snapshot, provenance))
    ]


def _is_of_uncommitted(item: Operation, fleet: str, snapshot: Snapshot, provenance: Provenance) -> bool:
    """Whether a value that the operation changes came from uncommitted files, as far as anybody can tell.

    All others are those of the last apply of committed files, as long as its commit is an ancestor.
    """
    known = snapshot.uncommitted.get(fleet)
    if known is None or provenance.settled_ancestor is False:
        return True
    fields = known.fields.get((item.kind, item.id), frozenset())
    if item.verb in ("remove", "release", "adopt") or WHOLE in fields:
        return bool(fields)
    changed = {path for path, _, _ in changed_paths(item.before or {}, item.after or {})}
    return any(_meet(one, other) for one in changed for other in fields)


def _meet(one: str, other: str) -> bool:
    """Whether two dotted fields are one, or one lies inside the other."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _was_applied(live: LiveObject | None) -> bool:
    return live is not None and live.last_applied_json is not None
