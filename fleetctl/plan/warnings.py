"""What a plan warns of: nothing here stops it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from fleetctl.diagnostics import Diagnostic, Span, code
from fleetctl.model.bodies import Body, OrderBody, TransferBody
from fleetctl.model.declared import Acceptance, Declared, Fleet, IgnoredDrift
from fleetctl.model.live import Snapshot
from fleetctl.model.operation import Operation
from fleetctl.plan.dangers import Danger
from fleetctl.plan.provenance import Provenance
from fleetctl.units import UnixMs, end_of_date_ms, format_time

PAST_WINDOW = code(
    "past-window",
    "The window is over",
    trigger="an order or a transfer is declared whose window has passed and which never existed in this engine",
    severity="warning",
)
RELEASE_NO_EFFECT = code(
    "release-no-effect",
    "A `release` entry names nothing that the fleet owns",
    trigger="`release` lists an object that is not bound to the fleet any more",
    severity="warning",
)
IGNORE_EXPIRED = code(
    "ignore-drift-expired",
    "An `ignoreDrift` entry is past its date",
    trigger="the day named by `until` has ended in UTC; the entry stops applying",
    severity="warning",
)
ACCEPT_EXPIRED = code(
    "accept-expired",
    "An `accept` entry is past its date",
    trigger="the day named by `until` has ended in UTC; the entry accepts nothing any more",
    severity="warning",
)
ACCEPT_UNUSED = code(
    "accept-unused",
    "`--accept` names a danger that the plan does not have",
    trigger="`plan --accept ID` where no danger of the plan has that id",
    severity="warning",
)
NEW_KEY = code(
    "pool-key-changed",
    "A pool goes and one like it comes under another key",
    trigger="one pool is archived and one is created that differs in nothing but key, name, policy and quota: with the old key it would be an update",
    severity="warning",
)
NO_HISTORY = code(
    "no-history",
    "The files have no git history to compare with",
    trigger="the fleet was applied before and the files are not in a git repository, so that `revert` and `origin` cannot be judged",
    severity="warning",
)
TENANT_MADE_ANEW = code(
    "tenant-made-anew",
    "A tenant that was deleted would be made again",
    trigger="files declare a tenant that `tenants delete` removed",
    severity="warning",
)


def idle_release(label: str, fleet: str) -> Diagnostic:
    """A `release` entry that has done its work, or never had any."""
    return RELEASE_NO_EFFECT.at(f"{label} is not bound to fleet {fleet}; remove the entry", subject=label)


def past_window(declared: Declared, body: Body) -> Diagnostic:
    """An order or transfer that came too late."""
    end = format_time(cast("OrderBody | TransferBody", body).end_at)
    return PAST_WINDOW.at(
        f"the window of {declared.label} ended at {end} and it never existed here; it is left out, remove it from the files",
        span=declared.span,
        subject=declared.label,
    )


def ignore_expired(entry: IgnoredDrift) -> Diagnostic:
    """An `ignoreDrift` entry that applies no more."""
    return IGNORE_EXPIRED.at(
        f"the entry for `{entry.field}` of {entry.object} ended on {entry.until}; renew it or remove it",
        span=entry.span,
        subject=entry.object,
    )


def history_warnings(fleet: Fleet, snapshot: Snapshot, where: Provenance) -> list[Diagnostic]:
    """Whether `revert` and `origin` could be judged."""
    record = snapshot.fleets.get(fleet.name)
    if record is None:
        return []
    unknown_ancestry = record.commit is not None and not record.commit.endswith("+dirty") and where.ancestor is None
    if where.origin is not None and not unknown_ancestry:
        return []
    return [
        NO_HISTORY.at(
            f"fleet {fleet.name} was applied before from {record.commit or 'files outside git'}; without history nobody "
            "can say whether this plan takes something back (plan from a full clone to know)",
            subject=f"fleet/{fleet.name}",
        )
    ]


def acceptance_warnings(
    declared: Iterable[Acceptance], flags: Iterable[str], dangers: Iterable[Danger], now: UnixMs
) -> list[Diagnostic]:
    """Acceptances that have no effect. One in the files that names no danger may wait for its change, and is not spoken of."""
    found = {danger.id for danger in dangers}
    ended = [item for item in declared if item.until is not None and now >= end_of_date_ms(item.until)]
    return [
        *(
            ACCEPT_EXPIRED.at(
                f"the acceptance of {item.danger} ended on {item.until}; renew it or remove it", span=item.span
            )
            for item in ended
        ),
        *(
            ACCEPT_UNUSED.at(f"`{id}` is no danger of this plan; {_dangers_of(found)}")
            for id in sorted(set(flags) - found)
        ),
    ]


def _dangers_of(found: set[str]) -> str:
    return f"it has {', '.join(sorted(found)[:5])}" if found else "it has none"


def new_keys(operations: Sequence[Operation], spans: Mapping[str, Span | None]) -> list[Diagnostic]:
    """Pools that are archived while just one pool like them is created; `spans` are the places of what is declared."""
    gone, come = (
        _by_make(item for item in operations if item.kind == "pool" and item.verb == verb)
        for verb in ("remove", "create")
    )
    return [
        NEW_KEY.at(
            f"{old[0].label} is archived and {come[make][0].label} is created in its place; if it is the same pool under "
            f"another name, write `idempotencyKey: {old[0].key}`, and it keeps its machines and what runs on them",
            span=spans.get(come[make][0].label),
            subject=come[make][0].label,
        )
        for make, old in gone.items()
        if len(old) == 1 and len(come.get(make, ())) == 1
    ]


def made_anew(operations: Sequence[Operation], spans: Mapping[str, Span | None]) -> list[Diagnostic]:
    """Tenants that were deleted and that the plan makes again: old files may not know of it."""
    return [
        TENANT_MADE_ANEW.at(
            f"{item.label} was deleted; this plan makes a new one of that name, with nothing of what the old one had. Take it "
            "out of the files if it shall stay deleted",
            span=spans.get(item.label),
            subject=item.label,
        )
        for item in operations
        if item.kind == "tenant" and item.verb == "create" and item.precondition.absent
    ]


def _by_make(pools: Iterable[Operation]) -> dict[tuple[object, ...], list[Operation]]:
    found: dict[tuple[object, ...], list[Operation]] = {}
    for item in pools:
        state = item.before or item.after or {}
        found.setdefault(tuple(state.get(name) for name in _MAKE), []).append(item)
    return found


_MAKE = ("site", "class", "gpuModel", "sharing", "providerAccountId")
