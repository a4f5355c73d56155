"""What ends with a tenant (seed: end of "Update and archive"; readings B30): what stands in the way of it, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, cast

from fleetctl.capacity.offers import unoffered
from fleetctl.capacity.pools import archived
from fleetctl.capacity.refusals import PROTECTED, refuse_together
from fleetctl.capacity.rules import Case, tombstone_of
from fleetctl.diagnostics import Diagnostic, code
from fleetctl.model.bodies import Body, EntitlementBody, OfferBody, OrderBody, SiteBody, TenantBody, TransferBody
from fleetctl.model.changes import Changes, QuotaRow
from fleetctl.model.ids import KIND_RANK, Kind
from fleetctl.model.live import LiveObject
from fleetctl.units import UnixMs

TENANT_IN_USE = code(
    "tenant-in-use",
    "The tenant has what cannot end with it",
    trigger="`tenants delete` of a tenant that has tenants below it, entitlements, market pools, procurements, or orders and transfers whose window is not over",
    engine_code="INVALID_STATE",
)
REASON: Final = "tenant deleted"
"""The seed's `reason` of `pool.archived`."""

_MS_PER_MINUTE = 60_000
_STAND_IN_THE_WAY: Final[frozenset[Kind]] = frozenset(
    {"entitlement", "market-pool", "procurement", "order", "transfer"}
)


def tear_down(case: Case, now: UnixMs) -> Changes:
    """Everything that ends with a tenant, its own row included: sites go, pools are archived, offers withdrawn on both
    sides. No quota row of the tenant, nor of anybody in its pools, grants anything any more; what other tenants run in
    them runs to its end.

    Raises EngineRefused with everything that stands in the way, SafetyRefused when that is nothing but protection.
    """
    refuse_together(_obstacles(case, now))
    working, tenant = case.working, case.after
    pools = [item for item in _ordered(case, "pool") if item.tenant == tenant.key]
    owned = {item.id for item in pools}
    parts = [_retired(case, item) for item in pools]
    for offer in _ordered(case, "offer"):
        body = cast(OfferBody, working.body(offer))
        pool = working.get("pool", body.pool)
        if body.to == tenant.key and pool is not None and pool.id not in owned:
            # The rows are 0 rather than what is in use: the tenant's reservations end with it.
            parts.append(replace(unoffered(case, offer, body, pool), quotas=()))
    rows = [
        QuotaRow(pool=pool, tenant=whose, resource=resource, maximum=0)
        for pool, whose in working.quota_keys()
        if whose == tenant.key or pool in owned
        for resource in sorted(working.quota(pool, whose))
    ]
    gone = [item for item in _ordered(case, "site") if cast(SiteBody, working.body(item)).tenant == tenant.key]
    return Changes(
        put=tuple(item for part in parts for item in part.put),
        drop=(
            *(stone for part in parts for stone in part.drop),
            *(tombstone_of(item, case.actor_fleet) for item in (*gone, tenant)),
        ),
        quotas=tuple(rows),
        authz_removed=tuple(key for part in parts for key in part.authz_removed),
        events=tuple(event for part in parts for event in part.events),
    )


def _retired(case: Case, pool: LiveObject) -> Changes:
    """A pool of the tenant, archived unless it was before; its owner's authorization row ends too."""
    part = Changes() if pool.archived else archived(case.working, pool, case.actor_fleet, reason=REASON)
    return replace(part, quotas=(), authz_removed=(*part.authz_removed, (pool.id, pool.tenant)))


def _obstacles(case: Case, now: UnixMs) -> Iterator[Diagnostic]:
    """Each object that keeps the tenant, and how to mend that."""
    key, label = case.after.key, case.label
    for item in _ordered(case, "tenant"):
        if cast(TenantBody, case.working.body(item)).parent == key:
            yield TENANT_IN_USE.at(
                f"{item.label} is under {label}; delete it first with `fleetctl tenants delete {item.key}`, or give it "
                "another parent",
                subject=item.label,
            )
    for kind in sorted(_STAND_IN_THE_WAY, key=KIND_RANK.__getitem__):
        for item in _ordered(case, kind):
            body = case.working.body(item)
            if (item.tenant == key or _is_for(body, key)) and not _is_over(body, now):
                yield TENANT_IN_USE.at(f"{item.label} belongs to {label}; {_mend(item, body, key)}", subject=item.label)
    for item in _ordered(case, "pool"):
        if item.tenant == key and item.protect:
            yield PROTECTED.at(
                f"{item.label} would be archived with {label} and is protected; apply its entry with `protect: false` first",
                subject=item.label,
            )


def _is_for(body: Body, tenant: str) -> bool:
    return isinstance(body, EntitlementBody) and body.tenant == tenant


def _is_over(body: Body, now: UnixMs) -> bool:
    """Orders and transfers stay on record once their window has passed; there is nothing left to cancel."""
    return isinstance(body, (OrderBody, TransferBody)) and body.end_at * _MS_PER_MINUTE <= now


def _mend(item: LiveObject, body: Body, tenant: str) -> str:
    other = ", or give it another `tenant`" if _is_for(body, tenant) and item.tenant != tenant else ""
    if item.fleet is not None:
        return f"take it out of the files of fleet {item.fleet} and apply them{other}"
    return f"adopt it with `fleetctl import {item.kind} {item.id}`, then take it out of the files and apply them{other}"


def _ordered(case: Case, kind: Kind) -> list[LiveObject]:
    """Objects of a kind by key; ties by id, which is arbitrary."""
    return sorted(case.working.objects(kind), key=lambda item: (item.key, item.id))
