"""The offering validator (seed: "Offerings"): to whom a pool may be offered. Used by the engine and, offline, by the file checks."""

from __future__ import annotations

from collections.abc import Collection

from fleetctl.capacity.refusals import NOT_OFFERABLE
from fleetctl.diagnostics import Diagnostic
from fleetctl.model.bodies import PoolBody


def offering_problem(
    pool: PoolBody,
    *,
    pool_label: str,
    offer_label: str,
    owner: str,
    to: str,
    include_descendants: bool,
    other_tenants: Collection[str],
) -> Diagnostic | None:
    """Why a pool may not be offered to `to`, or None.

    `other_tenants` are the tenants besides owner and `to` that hold an offer of the pool or still use it (readings B11).
    """
    if to == owner:
        return None
    if pool.sharing in ("timeslice", "mps"):
        return NOT_OFFERABLE.at(
            f"{pool_label} shares its GPUs by {pool.sharing}, which isolates nobody; it can be offered only to its "
            f"owner `{owner}`, not to `{to}`",
            subject=offer_label,
        )
    if pool.policy.get("singleTenant") is not True:
        return None
    if include_descendants:
        return NOT_OFFERABLE.at(
            f"{pool_label} is singleTenant and cannot be offered with includeDescendants; leave that out",
            subject=offer_label,
        )
    if other_tenants:
        return NOT_OFFERABLE.at(
            f"{pool_label} is singleTenant and is held by `{min(other_tenants)}` already; withdraw that offer and let "
            f"its reservations end before offering it to `{to}`",
            subject=offer_label,
        )
    return None
