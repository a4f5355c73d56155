"""Pools: create, update, archive (seed: "Create a pool", "Update and archive")."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from fleetctl.canonical import Json, canonical_json
from fleetctl.capacity.offers import authz_row, lowered_quotas, offered_tenants, tenants_holding
from fleetctl.capacity.policy import pool_words, validate_policy
from fleetctl.capacity.refusals import NOT_FOUND, NOT_OFFERABLE, PROVIDER_ACCOUNT, refuse
from fleetctl.capacity.rules import Case, tombstone_of
from fleetctl.capacity.working import Working
from fleetctl.diagnostics import Diagnostic
from fleetctl.errors import EngineRefused
from fleetctl.model.bodies import OfferBody, PoolBody, SiteBody
from fleetctl.model.changes import Changes, Event, QuotaRow
from fleetctl.model.codec import wide
from fleetctl.model.ids import ROOT_TENANT
from fleetctl.model.live import LiveObject
from fleetctl.units import UnixMs


class PoolRules:
    """A pool lives on a site of its owner; class, agent and account go together; the policy passes its validators."""

    def check(self, case: Case) -> Changes:
        body: PoolBody = case.body
        site = _owned_site(case, body)
        problem = provider_problem(body, case.label)
        if problem is not None:
            raise EngineRefused(problem)
        if not isinstance(case.was, PoolBody) or case.was.gpu_model != body.gpu_model:
            _check_words(case, body)
        if not isinstance(case.was, PoolBody) or case.was.policy != body.policy or case.was.gpu_model != body.gpu_model:
            _check_policy(case, body, site)
        if case.before is None:
            return _created(case, body)
        _check_single_tenant(case, body)
        return _updated(case, cast(PoolBody, case.was), body)

    def remove(self, case: Case, now: UnixMs) -> Changes:
        return archived(case.working, case.after, case.actor_fleet)


def provider_problem(body: PoolBody, label: str) -> Diagnostic | None:
    """The provider rules (readings B20): `provider` needs an account and `agent: none`, other classes have no account."""
    if body.pool_class != "provider":
        if body.provider_account_id is None:
            return None
        return PROVIDER_ACCOUNT.at(
            f"{label} is of class {body.pool_class} and takes no providerAccountId; remove it, or use class provider",
            subject=label,
        )
    if body.provider_account_id is None:
        return PROVIDER_ACCOUNT.at(f"{label} is of class provider and needs its providerAccountId", subject=label)
    if body.agent != "none":
        return PROVIDER_ACCOUNT.at(
            f"{label} is of class provider and is reached through an API only; set `agent: none`", subject=label
        )
    return None


def archived(working: Working, pool: LiveObject, actor_fleet: str | None, reason: str | None = None) -> Changes:
    """Retire a pool: offers go, offered tenants' quotas drop to what is in use, the owner's row stays (B13, B14).

    `reason` is why, for the event, where it was not the owner's own wish.
    """
    offers = working.referring_to("pool", pool.id, "offer")
    tenants = sorted(cast(OfferBody, working.body(item)).to for item in offers)
    quotas = tuple(row for tenant in tenants if tenant != pool.tenant for row in lowered_quotas(working, pool, tenant))
    after = LiveObject(
        kind=pool.kind,
        id=pool.id,
        tenant=pool.tenant,
        fleet=pool.fleet,
        key=pool.key,
        name=pool.name,
        version=pool.version + 1,
        archived=True,
        body_json=pool.body_json,
        # As with a tombstone: what a fleet retired itself is not drift of its own.
        last_applied_json=None if pool.fleet == actor_fleet else pool.last_applied_json,
    )
    data: dict[str, Json] = {"unoffered": [tenant for tenant in tenants if tenant != pool.tenant]}
    if reason is not None:
        data["reason"] = reason
    return Changes(
        put=(after,),
        drop=tuple(tombstone_of(item, actor_fleet) for item in offers),
        quotas=quotas,
        authz_removed=tuple((pool.id, tenant) for tenant in tenants if tenant != pool.tenant),
        events=(Event(type="pool.archived", object=pool.label, tenant=pool.tenant, data=data),),
    )


def _owned_site(case: Case, body: PoolBody) -> SiteBody:
    site = case.working.get("site", body.site)
    site_body = None if site is None else cast(SiteBody, case.working.body(site))
    if site_body is None or site_body.tenant != case.actor_tenant:
        refuse(NOT_FOUND, f"site {body.site} does not exist for tenant `{case.actor_tenant}`", case.label)
    return site_body


def _check_words(case: Case, body: PoolBody) -> None:
    """A command may say what no fleet file may; the engine takes neither (readings 4B)."""
    problems = list(
        pool_words(gpu_model=body.gpu_model, pool_class=body.pool_class, sharing=body.sharing, agent=body.agent)
    )
    if problems:
        raise EngineRefused(item.code.at(item.detail, subject=case.label) for item in problems)


def _check_policy(case: Case, body: PoolBody, site: SiteBody) -> None:
    platform = case.after.tenant == ROOT_TENANT
    key = (canonical_json(body.policy), body.pool_class, body.sharing, body.gpu_model, site.kind, platform)
    problems = case.working.once(
        key,
        lambda: validate_policy(
            body.policy,
            pool_class=body.pool_class,
            sharing=body.sharing,
            gpu_model=body.gpu_model,
            site_kind=site.kind,
            platform_owned=platform,
            attestors=frozenset(case.working.settings().attestors),
            billing_configured=case.working.snapshot.billing_configured,
        ),
    )
    errors = [item for item in problems if item.severity == "error"]
    if errors:
        raise EngineRefused(item.code.at(f"policy: {item.detail}", subject=case.label) for item in errors)


def _check_single_tenant(case: Case, body: PoolBody) -> None:
    """Turning singleTenant on counts offers and tenants that still use the pool (readings B10, B11)."""
    if body.policy.get("singleTenant") is not True or cast(PoolBody, case.was).policy.get("singleTenant") is True:
        return
    holders = tenants_holding(case.working, case.after)
    offers = case.working.referring_to("pool", case.after.id, "offer")
    wide_open = [item for item in offers if cast(OfferBody, case.working.body(item)).include_descendants]
    if len(holders) > 1 or wide_open:
        why = f"tenants {', '.join(sorted(holders))} hold it" if len(holders) > 1 else "an offer includes descendants"
        refuse(NOT_OFFERABLE, f"{case.label} cannot become singleTenant while {why}; withdraw those offers", case.label)


def _created(case: Case, body: PoolBody) -> Changes:
    pool = case.after
    return Changes(
        quotas=_owner_rows(case.working, pool, body),
        authz=(authz_row(case.working, pool, body, pool.tenant),),
        events=(Event(type="pool.created", object=pool.label, tenant=pool.tenant),),
    )


def _updated(case: Case, was: PoolBody, body: PoolBody) -> Changes:
    pool = case.after
    rows = _owner_rows(case.working, pool, body)
    tenants = [pool.tenant, *offered_tenants(case.working, pool)]
    events: list[Event] = []
    # A change of nothing but the owner's rows is what `quotas.set` does (seed: "The pools API").
    if not rows or replace(was, owner_quota=body.owner_quota) != body:
        events.append(Event(type="pool.updated", object=pool.label, tenant=pool.tenant))
    if rows:
        quota: Json = {row.resource: wide(row.maximum) for row in rows}
        events.append(Event(type="quota.updated", object=pool.label, tenant=pool.tenant, data={"quota": quota}))
    return Changes(
        quotas=rows,
        authz=tuple(authz_row(case.working, pool, body, tenant) for tenant in dict.fromkeys(tenants)),
        events=tuple(events),
    )


def _owner_rows(working: Working, pool: LiveObject, body: PoolBody) -> tuple[QuotaRow, ...]:
    have = working.quota(pool.id, pool.tenant)
    return tuple(
        QuotaRow(pool=pool.id, tenant=pool.tenant, resource=resource, maximum=maximum)
        for resource, maximum in sorted(body.owner_quota.items())
        if have.get(resource) != maximum
    )
