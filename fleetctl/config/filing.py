"""Live objects as fleet files write them: the way back from canonical form, for `import`.

What a file may leave out is left out. Energies, durations, rates and times are text in their units; decimals are `Number`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from fleetctl.canonical import Json
from fleetctl.frozen import dataclass
from fleetctl.model import bodies as b
from fleetctl.model.ids import Kind, is_name
from fleetctl.model.live import LiveObject
from fleetctl.model.policy_forms import to_json
from fleetctl.units import format_duration, format_energy, format_money, format_time

SECTION_OF: Mapping[Kind, str] = {
    "tenant": "tenants",
    "site": "sites",
    "pool": "pools",
    "offer": "offers",
    "entitlement": "entitlements",
    "market-pool": "marketPools",
    "order": "orders",
    "transfer": "transfers",
}
"""Where each kind is declared; a procurement is a part of its market pool, settings are in no file."""

ADOPTED = frozenset({"pool", "entitlement", "market-pool"})
"""Kinds whose live objects a file takes over by `adopt`."""

Resolve = Callable[[Kind, str], str]
"""(kind, id) to the reference that a file writes."""


class Number(str):
    """An exact number as text, written without quotes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An object's place and fields in a file."""

    section: str
    name: str
    fields: dict[str, Any]


def file_entry(
    live: LiveObject, resolve: Resolve, *, adopt: bool, procurements: list[LiveObject] | None = None
) -> Entry:
    """A live object as an entry. `adopt` adds its id, where its kind has that field. Raises KeyError for a kind in no file."""
    section, fields = SECTION_OF[live.kind], _FIELDS[live.kind](live, resolve)
    if live.protect:
        fields["protect"] = True
    if live.explicit_only:
        fields["explicitOnly"] = True
    if adopt and live.kind in ADOPTED:
        fields["adopt"] = str(live.id)
    if procurements:
        fields["procurements"] = {name_of(item): _procurement(item) for item in procurements}
    return Entry(section=section, name=name_of(live), fields={k: v for k, v in fields.items() if v is not None})


def grouped(entries: Iterable[Entry]) -> list[Entry]:
    """Offers of one name that differ in nothing but their pool become one entry over `pools`, as files write them."""
    out: list[Entry] = []
    places: dict[str, int] = {}
    for entry in entries:
        if entry.section == "offers":
            rest = {name: value for name, value in entry.fields.items() if name != "pool"}
            key = repr((entry.name, sorted(rest.items())))
            if key in places:
                held = out[places[key]].fields
                pools = [*held.get("pools", [held.get("pool")]), entry.fields["pool"]]
                out[places[key]] = replace(entry, fields=_over(rest, pools))
                continue
            places[key] = len(out)
        out.append(entry)
    return out


def _over(fields: dict[str, Any], pools: list[Any]) -> dict[str, Any]:
    return {"to": fields["to"], "pools": pools, **fields}


def name_of(live: LiveObject) -> str:
    """The object's name, or the nearest text that is a name in files."""
    if is_name(live.name):
        return live.name
    made = re.sub(r"[^a-z0-9-]+", "-", live.name.lower()).strip("-")[:63]
    return made if is_name(made) else "unnamed"


def _tenant(live: LiveObject, _resolve: Resolve) -> dict[str, Any]:
    body = cast(b.TenantBody, live.body())
    return {"idempotencyKey": _key(live), "parent": body.parent, "description": body.description}


def _site(live: LiveObject, _resolve: Resolve) -> dict[str, Any]:
    body = cast(b.SiteBody, live.body())
    return {
        "idempotencyKey": _key(live),
        "kind": body.kind,
        "region": body.region,
        "tenant": body.tenant,
        "description": body.description,
    }


def _pool(live: LiveObject, resolve: Resolve) -> dict[str, Any]:
    body = cast(b.PoolBody, live.body())
    agent = "none" if body.pool_class == "provider" else "bcd"
    return {
        "idempotencyKey": live.key,
        "site": resolve("site", body.site),
        "class": body.pool_class,
        "gpuModel": body.gpu_model,
        "sharing": _unless(body.sharing, "exclusive"),
        "agent": _unless(body.agent, agent),
        "providerAccountId": body.provider_account_id,
        "policy": policy_in_file(body.policy) or None,
        "ownerQuota": _unless(dict(body.owner_quota), dict(b.OWNER_QUOTA_DEFAULT)),
        "labels": dict(body.labels) or None,
        "description": body.description,
    }


def _offer(live: LiveObject, resolve: Resolve) -> dict[str, Any]:
    body = cast(b.OfferBody, live.body())
    return {
        "to": body.to,
        "pool": resolve("pool", body.pool),
        "quota": dict(body.quota),
        "priority": _unless(body.priority, 0),
        "includeDescendants": _unless(body.include_descendants, False),
        "onBudgetExceeded": body.on_budget_exceeded,
        "idempotencyKey": body.idempotency_key,
        "description": body.description,
    }


def _entitlement(live: LiveObject, resolve: Resolve) -> dict[str, Any]:
    body = cast(b.EntitlementBody, live.body())
    return {
        "idempotencyKey": live.key,
        "parent": None if body.parent is None else resolve("entitlement", body.parent),
        "tenant": body.tenant,
        "guarantee": {"energy": format_energy(body.guarantee_uj), "devices": body.guarantee_devices},
        "overQuotaWeight": _unless(body.over_quota_weight, 0),
        "limit": None if body.limit_uj is None else {"energy": format_energy(body.limit_uj)},
        "priority": _unless(body.priority, 0),
        "period": None if body.period_ms is None else format_duration(body.period_ms),
        "description": body.description,
    }


def _market_pool(live: LiveObject, _resolve: Resolve) -> dict[str, Any]:
    body = cast(b.MarketPoolBody, live.body())
    return {"idempotencyKey": live.key, "kind": _unless(body.kind, "market"), "description": body.description}


def _procurement(live: LiveObject) -> dict[str, Any]:
    body = cast(b.ProcurementBody, live.body())
    return {
        "instanceSku": body.instance_sku,
        "nodes": body.nodes,
        "window": format_duration(body.window_ms),
        "maxRate": Number(format_money(body.max_rate)),
    }


def _order(live: LiveObject, resolve: Resolve) -> dict[str, Any]:
    body = cast(b.OrderBody, live.body())
    return {
        "idempotencyKey": live.key,
        "side": body.side,
        "pool": resolve("market-pool", body.pool),
        "nodes": body.nodes,
        "startAt": format_time(body.start_at),
        "endAt": format_time(body.end_at),
        "maxRate": None if body.max_rate is None else Number(format_money(body.max_rate)),
        "minRate": None if body.min_rate is None else Number(format_money(body.min_rate)),
        "standing": _unless(body.standing, False),
        "instanceSku": body.instance_sku,
    }


def _transfer(live: LiveObject, resolve: Resolve) -> dict[str, Any]:
    body = cast(b.TransferBody, live.body())
    return {
        "idempotencyKey": live.key,
        "from": resolve("market-pool", body.from_pool),
        "to": resolve("market-pool", body.to_pool),
        "startAt": format_time(body.start_at),
        "endAt": format_time(body.end_at),
        "nodes": body.nodes,
        "instanceSku": body.instance_sku,
    }


def policy_in_file(policy: Mapping[str, Json]) -> dict[str, Any]:
    """A canonical policy as a file writes it."""
    return {name: _numbers(value) for name, value in to_json(policy).items()}


def _numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"$decimal"}:
            text = str(value["$decimal"])
            return Number(text if "." in text else f"{text}.0")  # without the point it would come back an integer
        return {name: _numbers(item) for name, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value


def _key(live: LiveObject) -> str | None:
    return None if live.key == name_of(live) else live.key


def _unless(value: Any, default: Any) -> Any:
    return None if value == default else value


_FIELDS: Mapping[Kind, Callable[[LiveObject, Resolve], dict[str, Any]]] = {
    "tenant": _tenant,
    "site": _site,
    "pool": _pool,
    "offer": _offer,
    "entitlement": _entitlement,
    "market-pool": _market_pool,
    "order": _order,
    "transfer": _transfer,
}
