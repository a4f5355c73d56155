"""Sites. A site is never removed by a plan: leaving the files releases it."""

from __future__ import annotations

from fleetctl.capacity.refusals import ACCESS_DENIED, INVALID_STATE, refuse
from fleetctl.capacity.rules import Case, require_tenant
from fleetctl.model.bodies import SiteBody
from fleetctl.model.changes import Changes
from fleetctl.model.ids import ROOT_TENANT
from fleetctl.units import UnixMs


class SiteRules:
    """A site has one owner; only root makes sites for somebody else."""

    def check(self, case: Case) -> Changes:
        body: SiteBody = case.body
        require_tenant(case, body.tenant, "tenant")
        if body.tenant != case.actor_tenant and case.actor_tenant != ROOT_TENANT:
            refuse(ACCESS_DENIED, f"tenant `{case.actor_tenant}` cannot make a site for `{body.tenant}`", case.label)
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        refuse(INVALID_STATE, f"{case.label} is not removed by a plan; list it under `release`", case.label)
