"""Offers: a pool in another tenant's view, with its quota rows and its authorization row (seed: "Offerings")."""

from __future__ import annotations

from typing import cast

from fleetctl.canonical import Json
from fleetctl.capacity.identity import refuse_second_offer
from fleetctl.capacity.offering import offering_problem
from fleetctl.capacity.refusals import INVALID_STATE, NOT_FOUND, NOT_OFFERABLE, refuse, refuse_all
from fleetctl.capacity.rules import QUOTA_SET, Case, require_key, require_tenant, tombstone_of
from fleetctl.capacity.working import Working
from fleetctl.model.bodies import OfferBody, PoolBody, SiteBody
from fleetctl.model.changes import AuthzRow, Changes, Event, QuotaRow
from fleetctl.model.codec import wide
from fleetctl.model.live import LiveObject
from fleetctl.units import UnixMs


class OfferRules:
    """Only the pool's owner offers it; offering again updates the row and the quota."""

    def check(self, case: Case) -> Changes:
        body: OfferBody = case.body
        pool = _owned_pool(case, body)
        require_tenant(case, body.to, "to")
        require_key(case, f"{pool.key}/{body.to}")
        for item in case.working.referring_to("pool", pool.id, "offer"):
            if item.id != case.after.id and cast(OfferBody, case.working.body(item)).to == body.to:
                refuse_second_offer(item, case.label)
        pool_body = cast(PoolBody, case.working.body(pool))
        problem = offering_problem(
            pool_body,
            pool_label=pool.label,
            offer_label=case.label,
            owner=pool.tenant,
            to=body.to,
            include_descendants=body.include_descendants,
            other_tenants=tenants_holding(case.working, pool) - {body.to},
        )
        refuse_all([problem] if problem else [])
        return Changes(
            quotas=quota_rows(case.working, pool, body),
            authz=(authz_row(case.working, pool, pool_body, body.to),),
            events=(_event(_happened(case), pool, body, {r: wide(m) for r, m in sorted(body.quota.items())}),),
        )

    def remove(self, case: Case, now: UnixMs) -> Changes:
        body = cast(OfferBody, case.working.body(case.after))
        pool = case.working.get("pool", body.pool)
        if pool is None:
            refuse(NOT_FOUND, f"the pool of {case.label} does not exist", case.label)
        if body.to == pool.tenant:
            refuse(INVALID_STATE, f"{pool.label} cannot be unoffered from its owner `{body.to}`", case.label)
        return unoffered(case, case.after, body, pool)


def unoffered(case: Case, offer: LiveObject, body: OfferBody, pool: LiveObject) -> Changes:
    """The end of an offer: its tenant's rows drop to what is in use, and it sees the pool no more (readings B02)."""
    return Changes(
        drop=(tombstone_of(offer, case.actor_fleet),),
        quotas=lowered_quotas(case.working, pool, body.to),
        authz_removed=((pool.id, body.to),),
        events=(_event("pool.unoffered", pool, body),),
    )


def tenants_holding(working: Working, pool: LiveObject) -> set[str]:
    """Tenants besides the owner that hold an offer of the pool or still have live reservations in it (readings B11)."""
    holders = {cast(OfferBody, working.body(item)).to for item in working.referring_to("pool", pool.id, "offer")}
    holders |= {
        tenant
        for (where, tenant), use in working.snapshot.usage.booked.items()
        if where == pool.id and use.reservations
    }
    return holders - {pool.tenant}


def offered_tenants(working: Working, pool: LiveObject) -> list[str]:
    """The tenants that hold an offer of the pool, the owner among them if it does, by name."""
    return sorted(cast(OfferBody, working.body(item)).to for item in working.referring_to("pool", pool.id, "offer"))


def quota_rows(working: Working, pool: LiveObject, body: OfferBody) -> tuple[QuotaRow, ...]:
    """The rows of an offer: named resources are written, unnamed rows stay as they are (readings B06)."""
    return tuple(
        QuotaRow(pool=pool.id, tenant=body.to, resource=resource, maximum=maximum)
        for resource, maximum in sorted(body.quota.items())
        if working.quota(pool.id, body.to).get(resource) != maximum
    )


def lowered_quotas(working: Working, pool: LiveObject, tenant: str) -> tuple[QuotaRow, ...]:
    """A tenant's rows lowered to what is in use: never raised (readings B02)."""
    used = working.snapshot.usage.by_tenant(pool.id, tenant).resources
    return tuple(
        QuotaRow(pool=pool.id, tenant=tenant, resource=resource, maximum=min(maximum, used.get(resource, 0)))
        for resource, maximum in sorted(working.quota(pool.id, tenant).items())
        if maximum > used.get(resource, 0)
    )


def authz_row(working: Working, pool: LiveObject, body: PoolBody, tenant: str) -> AuthzRow:
    """The pool's row in a tenant's authorization projection."""
    site = working.get("site", body.site)
    return AuthzRow(
        pool=pool.id,
        tenant=tenant,
        gpu_model=body.gpu_model,
        pool_class=body.pool_class,
        sharing=body.sharing,
        region=cast(SiteBody, working.body(site)).region if site is not None else "",
        owned=tenant == pool.tenant,
    )


def _owned_pool(case: Case, body: OfferBody) -> LiveObject:
    pool = case.working.get("pool", body.pool)
    if pool is None or pool.tenant != case.actor_tenant:
        refuse(NOT_FOUND, f"pool {body.pool} does not exist for tenant `{case.actor_tenant}`", case.label)
    if pool.archived:
        refuse(NOT_OFFERABLE, f"{pool.label} is archived and cannot be offered", case.label)
    return pool


def _happened(case: Case) -> str:
    """`quota.updated` is from `quotas.set` alone; a declared change offers again (seed: "The pools API")."""
    return "quota.updated" if case.reason == QUOTA_SET else "pool.offered"


def _event(type: str, pool: LiveObject, body: OfferBody, quota: dict[str, Json] | None = None) -> Event:
    data: dict[str, Json] = {"toTenantId": body.to}
    if quota is not None:
        data["quota"] = quota
    return Event(type=type, object=pool.label, tenant=pool.tenant, data=data)
