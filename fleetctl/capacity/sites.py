"""Sites. A site is never removed by a plan: leaving the files releases it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from fleetctl.capacity.offers import authz_row, offered_tenants
from fleetctl.capacity.refusals import ACCESS_DENIED, INVALID_STATE, refuse
from fleetctl.capacity.rules import Case, require_tenant
from fleetctl.model.bodies import PoolBody, SiteBody
from fleetctl.model.changes import AuthzRow, Changes
from fleetctl.model.ids import ROOT_TENANT
from fleetctl.units import UnixMs


class SiteRules:
    """A site has one owner; only root makes sites for somebody else."""

    def check(self, case: Case) -> Changes:
        body: SiteBody = case.body
        require_tenant(case, body.tenant, "tenant")
        if body.tenant != case.actor_tenant and case.actor_tenant != ROOT_TENANT:
            refuse(ACCESS_DENIED, f"tenant `{case.actor_tenant}` cannot make a site for `{body.tenant}`", case.label)
        if isinstance(case.was, SiteBody) and case.was.region != body.region:
            return Changes(authz=tuple(_moved_rows(case, body.region)))
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        refuse(INVALID_STATE, f"{case.label} is not removed by a plan; list it under `release`", case.label)


def _moved_rows(case: Case, region: str) -> Iterator[AuthzRow]:
    """The rows of the site's pools, for each owner and offered tenant: they carry the region (readings 4D)."""
    for pool in case.working.referring_to("site", case.after.id, "pool"):
        body = cast(PoolBody, case.working.body(pool))
        if not pool.archived:
            for tenant in dict.fromkeys([pool.tenant, *offered_tenants(case.working, pool)]):
                yield replace(authz_row(case.working, pool, body, tenant), region=region)
