"""Market pools, procurements, orders and transfers as stored objects (seed: SF Compute "Pools")."""

from __future__ import annotations

from typing import cast

from fleetctl.capacity.refusals import INVALID_INPUT, INVALID_STATE, refuse
from fleetctl.capacity.rules import Case, dropped, require, require_key, require_own
from fleetctl.model.bodies import MarketPoolBody, OrderBody, ProcurementBody, TransferBody
from fleetctl.model.changes import Changes
from fleetctl.units import UnixMs, format_time

_MS_PER_MINUTE = 60_000


class MarketPoolRules:
    """An `explicitOnly` pool shrinks only by explicit acts: no procurement, no standing sell (readings C29)."""

    def check(self, case: Case) -> Changes:
        if case.after.explicit_only:
            for item in case.working.referring_to("market-pool", case.after.id, "procurement", "order"):
                body = case.working.body(item)
                if isinstance(body, ProcurementBody) or (isinstance(body, OrderBody) and _standing_sell(body)):
                    refuse(
                        INVALID_STATE,
                        f"{case.label} cannot be explicitOnly while {item.label} may touch it; remove that first",
                        case.label,
                    )
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        for item in case.working.referring_to("market-pool", case.after.id, "procurement", "order", "transfer"):
            body = case.working.body(item)
            if isinstance(body, ProcurementBody):
                refuse(INVALID_STATE, f"{case.label} still has {item.label}; remove it first", case.label)
            window = cast("OrderBody | TransferBody", body)
            if window.end_at * _MS_PER_MINUTE > now:
                refuse(
                    INVALID_STATE,
                    f"{case.label} is used by {item.label} until {format_time(window.end_at)}; cancel that first",
                    case.label,
                )
        return dropped(case)


class ProcurementRules:
    """One per market pool and SKU (readings C28); none on an `explicitOnly` pool."""

    def check(self, case: Case) -> Changes:
        body: ProcurementBody = case.body
        pool = require_own(case, "market-pool", body.market_pool, "marketPool")
        require_key(case, f"{pool.key}/{case.after.key.rpartition('/')[2]}")
        if pool.explicit_only:
            refuse(INVALID_STATE, f"{pool.label} is explicitOnly and takes no procurement", case.label)
        for item in case.working.referring_to("market-pool", pool.id, "procurement"):
            other = cast(ProcurementBody, case.working.body(item))
            if item.id != case.after.id and other.instance_sku == body.instance_sku:
                refuse(
                    INVALID_STATE,
                    f"{pool.label} already has {item.label} for {body.instance_sku}; change that one instead",
                    case.label,
                )
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        return dropped(case)


class OrderRules:
    """A buy names a maximum rate, a sell a minimum one; a standing sell never touches an `explicitOnly` pool."""

    def check(self, case: Case) -> Changes:
        body: OrderBody = case.body
        pool = require_own(case, "market-pool", body.pool, "pool")
        _refuse_past(case, body)
        kind = cast(MarketPoolBody, case.working.body(pool)).kind
        if kind == "read_only":
            refuse(INVALID_STATE, f"{pool.label} is read_only and takes no orders", case.label)
        wanted, foreign = (body.max_rate, body.min_rate) if body.side == "buy" else (body.min_rate, body.max_rate)
        if wanted is None or foreign is not None:
            word = "maxRate" if body.side == "buy" else "minRate"
            refuse(INVALID_INPUT, f"a {body.side} order such as {case.label} takes `{word}` and only that", case.label)
        if pool.explicit_only and _standing_sell(body):
            refuse(INVALID_STATE, f"{pool.label} is explicitOnly and takes no standing sell", case.label)
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        return dropped(case)


class TransferRules:
    """Nodes move between two different market pools (readings C24)."""

    def check(self, case: Case) -> Changes:
        body: TransferBody = case.body
        if body.from_pool == body.to_pool:
            refuse(INVALID_INPUT, f"{case.label} moves nodes from a pool to itself; name two pools", case.label)
        _refuse_past(case, body)
        require_own(case, "market-pool", body.from_pool, "from")  # `to` may be in another workspace
        for target, field in ((body.from_pool, "from"), (body.to_pool, "to")):
            found = require(case, "market-pool", target, field)
            if cast(MarketPoolBody, case.working.body(found)).kind == "read_only":
                refuse(INVALID_STATE, f"{found.label} is read_only and takes no transfers", case.label)
        return Changes()

    def remove(self, case: Case, now: UnixMs) -> Changes:
        return dropped(case)


def _refuse_past(case: Case, body: OrderBody | TransferBody) -> None:
    """A window that is over is nothing to begin (readings C24)."""
    if case.before is None and body.end_at * _MS_PER_MINUTE <= case.now:
        refuse(INVALID_STATE, f"the window of {case.label} ended at {format_time(body.end_at)}", case.label)


def _standing_sell(body: OrderBody) -> bool:
    return body.side == "sell" and body.standing
