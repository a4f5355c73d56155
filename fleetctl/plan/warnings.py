"""What a plan warns of: nothing here stops it."""

from __future__ import annotations

from typing import cast

from fleetctl.diagnostics import Diagnostic, code
from fleetctl.model.bodies import Body, OrderBody, TransferBody
from fleetctl.model.declared import Declared, Fleet, IgnoredDrift
from fleetctl.model.live import Snapshot
from fleetctl.plan.dangers import Provenance
from fleetctl.units import format_time

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
NO_HISTORY = code(
    "no-history",
    "The files have no git history to compare with",
    trigger="the fleet was applied before and the files are not in a git repository, so that `revert` and `origin` cannot be judged",
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
