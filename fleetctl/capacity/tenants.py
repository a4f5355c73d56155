"""Tenants and the engine's settings. A tenant is never removed by a plan, which releases it: deleting it is a command."""

from __future__ import annotations

from fleetctl.capacity.refusals import ACCESS_DENIED, INVALID_STATE, refuse
from fleetctl.capacity.rules import Case, refuse_cycle, require_tenant
from fleetctl.capacity.teardown import tear_down
from fleetctl.model.bodies import TenantBody
from fleetctl.model.changes import Changes
from fleetctl.model.ids import ANY_TENANT, ROOT_TENANT
from fleetctl.units import UnixMs


class TenantRules:
    """The tree of tenants hangs from the implicit root."""

    def check(self, case: Case) -> Changes:
        body: TenantBody = case.body
        if case.after.key in (ROOT_TENANT, ANY_TENANT):
            refuse(INVALID_STATE, f"`{case.after.id}` is a word of fleetctl's own and no tenant's name", case.label)
        require_tenant(case, body.parent, "parent")
        if isinstance(case.was, TenantBody) and not _under(case, case.was.parent):
            refuse(ACCESS_DENIED, f"{case.label} is not under the acting tenant `{case.actor_tenant}`", case.label)
        if not _under(case, body.parent):
            refuse(
                ACCESS_DENIED,
                f"{case.label} would hang under `{body.parent}`, which is not under the acting tenant "
                f"`{case.actor_tenant}`",
                case.label,
            )
        refuse_cycle(case, "tenant", body.parent)
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        if case.actor_fleet is not None:
            refuse(
                INVALID_STATE,
                f"{case.label} is not removed by a plan; list it under `release`, and delete it with `fleetctl tenants "
                f"delete {case.after.key}`",
                case.label,
            )
        body = case.working.body(case.after)
        assert isinstance(body, TenantBody)
        if not _under(case, body.parent):
            refuse(ACCESS_DENIED, f"{case.label} is not under the acting tenant `{case.actor_tenant}`", case.label)
        return tear_down(case, now)


class SettingsRules:
    """One object per engine; its values are checked by its type."""

    def check(self, case: Case) -> Changes:
        if case.actor_tenant != ROOT_TENANT:
            refuse(ACCESS_DENIED, "only the root tenant changes the engine's settings", case.label)
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        refuse(INVALID_STATE, "the engine's settings cannot be removed", case.label)


def _under(case: Case, tenant: str) -> bool:
    """Whether `tenant` is the acting one or a descendant of it. What was walked once is known from then on."""
    known = case.working.descendants(case.actor_tenant)
    seen: set[str] = set()
    while tenant not in known:
        found = case.working.get("tenant", tenant)
        if found is None or tenant in seen:
            return False
        seen.add(tenant)
        body = case.working.body(found)
        assert isinstance(body, TenantBody)
        tenant = body.parent
    known |= seen
    return True
