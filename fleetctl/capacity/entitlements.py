"""Entitlements as objects: the tree of pool/1 §2.1 and when a node of it may leave."""

from __future__ import annotations

from fleetctl.capacity.refusals import INVALID_INPUT, INVALID_STATE, refuse
from fleetctl.capacity.rules import Case, dropped, refuse_cycle, require, require_tenant
from fleetctl.model.bodies import EntitlementBody
from fleetctl.model.changes import Changes
from fleetctl.units import UnixMs, format_energy


class EntitlementRules:
    """A forest: parents exist, no cycles, limit at or above guarantee (readings A17, A70)."""

    def check(self, case: Case) -> Changes:
        body: EntitlementBody = case.body
        require_tenant(case, body.tenant, "tenant", or_any=True)
        if body.limit_uj is not None and body.limit_uj < body.guarantee_uj:
            refuse(
                INVALID_INPUT,
                f"the limit of {case.label}, {format_energy(body.limit_uj)}, is below its guarantee of "
                f"{format_energy(body.guarantee_uj)}; raise the limit or lower the guarantee",
                case.label,
            )
        if body.parent is not None:
            require(case, "entitlement", body.parent, "parent")
            refuse_cycle(case, "entitlement", body.parent)
            if body.period_ms is not None:
                refuse(INVALID_INPUT, f"`period` belongs to root entitlements; {case.label} has a parent", case.label)
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        use = case.working.snapshot.usage.of_entitlement(case.after.id)
        if use.open_claims:
            refuse(
                INVALID_STATE,
                f"{case.label} has {use.open_claims} open claim(s) holding {use.devices} device(s); release them first",
                case.label,
            )
        children = case.working.referring_to("entitlement", case.after.id, "entitlement")
        if children:
            names = ", ".join(item.label for item in children[:3])
            refuse(INVALID_STATE, f"{case.label} still has children ({names}); move or remove them first", case.label)
        return dropped(case)
