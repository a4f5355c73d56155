"""A converted fleet to declared objects: names to keys, text to quantities, defaults written out.

Only objects that fit the schema come here, so a field that is there has its type; what a type cannot say (an energy
that is no whole number of microjoules, a time that names no moment) is reported at its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from fleetctl.config.codes import BAD_QUANTITY, OUT_OF_RANGE
from fleetctl.config.convert import plain_number
from fleetctl.config.places import Places
from fleetctl.config.policies import Policies, Policy
from fleetctl.config.problems import Problems
from fleetctl.config.references import KEY, References
from fleetctl.config.schema import Path
from fleetctl.diagnostics import Span, code
from fleetctl.frozen import dataclass
from fleetctl.model import bodies as b
from fleetctl.model.declared import Declared
from fleetctl.model.ids import Kind, ObjectId
from fleetctl.units import UnitError, UnixMinutes, format_time, parse_duration, parse_energy, parse_money, parse_time

EMPTY_WINDOW = code(
    "empty-window", "A window ends before it begins", trigger="an order or transfer whose endAt is not after startAt"
)

T = TypeVar("T")
Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A declared object with where it comes from: its section and name, its place, and a pool's policy as written.

    `place` is where its identity is written: its name, or the pool of an offer over many.
    """

    declared: Declared
    section: str
    name: str
    at: int
    place: int
    policy: Policy | None = None


@dataclasses.dataclass(slots=True, kw_only=True)
class Builder:
    """Makes objects of one fleet. `tenant` is the acting one."""

    places: Places
    references: References
    policies: Policies
    problems: Problems
    tenant: str

    def objects(self, section: str, content: Data) -> Iterator[Written]:
        """The objects of a section, in the order of the files."""
        make = _MAKERS[section]
        for name, data in content.items():
            at = self.places.key((section,), name)
            item = Item(builder=self, section=section, name=name, data=data, at=at, span=self.problems.sources.span(at))
            try:
                yield from make(item)
            except (UnitError, _Bad):
                continue  # reported
            except ValueError as error:
                self.problems.add(OUT_OF_RANGE, f"`{name}`: {error}", at)


class _Bad(Exception):
    """A value is wrong, and reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One object on its way from data to a body."""

    builder: Builder
    section: str
    name: str
    data: Data
    at: int
    span: Span

    def key(self) -> str:
        return self.builder.references.key(self.section, self.name)

    def at_field(self, *path: str) -> int:
        return self.builder.places.value((self.section, self.name, *path))

    def reference(self, section: str, field: str) -> str:
        return self.builder.references.resolve(section, self.data[field], partial(self.at_field, field))

    def tenant(self, field: str, *, or_any: bool = False) -> str:
        """A tenant's id; the acting tenant when the field is left out."""
        text = self.data.get(field)
        if text is None:
            return self.builder.tenant
        return self.builder.references.resolve_tenant(text, partial(self.at_field, field), or_any=or_any)

    def quantity(self, parse: Callable[[str], T], *path: str) -> T:
        """A quantity that must be there."""
        value: Any = self.data
        for step in path:
            value = value[step]
        try:
            return parse(value if isinstance(value, str) else plain_number(value))
        except UnitError as error:
            self.builder.problems.add(BAD_QUANTITY, str(error), self.at_field(*path))
            raise _Bad from None

    def optional(self, parse: Callable[[str], T], *path: str) -> T | None:
        """A quantity that may be left out."""
        value: Any = self.data
        for step in path:
            value = value.get(step)
            if value is None:
                return None
        return self.quantity(parse, *path)

    def written(
        self, kind: Kind, key: str, body: b.Body, *, policy: Policy | None = None, place: int | None = None
    ) -> Written:
        """The finished object, with the flags that its data gives. `place` is that of an offer's pool."""
        adopt = self.data.get("adopt")
        return Written(
            declared=Declared(
                kind=kind,
                key=key,
                name=self.name,
                body=body,
                protect=self.data.get("protect", False),
                explicit_only=self.data.get("explicitOnly", False),
                adopt=None if adopt is None else ObjectId(adopt),
                span=self.span,
            ),
            section=self.section,
            name=self.name,
            at=self.at,
            place=self.at if place is None else place,
            policy=policy,
        )

    def window(self) -> tuple[UnixMinutes, UnixMinutes]:
        """`startAt` and `endAt`, the first before the second."""
        start, end = self.quantity(parse_time, "startAt"), self.quantity(parse_time, "endAt")
        if start >= end:
            detail = f"`{self.name}` ends at {format_time(end)}, not after its start at {format_time(start)}"
            self.builder.problems.add(EMPTY_WINDOW, f"{detail}; write a later endAt", self.at_field("endAt"))
            raise _Bad
        return start, end


def _tenant(item: Item) -> Iterator[Written]:
    body = b.TenantBody(parent=item.tenant("parent"), description=item.data.get("description"))
    yield item.written("tenant", item.key(), body)


def _site(item: Item) -> Iterator[Written]:
    data = item.data
    body = b.SiteBody(
        kind=data["kind"], region=data["region"], tenant=item.tenant("tenant"), description=data.get("description")
    )
    yield item.written("site", item.key(), body)


def _pool(item: Item) -> Iterator[Written]:
    data = item.data
    policy = item.builder.policies.of_pool(item.builder.places.node((item.section, item.name, "policy")))
    body = b.PoolBody(
        site=item.reference("sites", "site"),
        pool_class=data["class"],
        gpu_model=data["gpuModel"],
        sharing=data.get("sharing", "exclusive"),
        agent=data.get("agent", "none" if data["class"] == "provider" else "bcd"),
        provider_account_id=data.get("providerAccountId"),
        policy=policy.body,
        owner_quota=data.get("ownerQuota", b.OWNER_QUOTA_DEFAULT),
        description=data.get("description"),
        labels=data.get("labels", {}),
    )
    yield item.written("pool", item.key(), body, policy=policy)


def _offer(item: Item) -> Iterator[Written]:
    """One offer for each pool, all under the entry's name; the key of each is `<pool key>/<tenant>`."""
    data = item.data
    to = item.tenant("to")
    pools: list[tuple[str, Path]] = [(pool, ("pools", index)) for index, pool in enumerate(data.get("pools", ()))]
    if "pool" in data:
        pools = [(data["pool"], ("pool",))]
    for pool, path in pools:
        place = item.builder.places.value((item.section, item.name, *path))
        reference = item.builder.references.resolve("pools", pool, partial(int, place))
        body = b.OfferBody(
            pool=reference,
            to=to,
            quota=data["quota"],
            priority=data.get("priority", 0),
            include_descendants=data.get("includeDescendants", False),
            on_budget_exceeded=data.get("onBudgetExceeded"),
            idempotency_key=data.get(KEY),
            description=data.get("description"),
        )
        yield item.written("offer", f"{reference.rpartition('/')[2]}/{to}", body, place=place)


def _entitlement(item: Item) -> Iterator[Written]:
    data = item.data
    body = b.EntitlementBody(
        tenant=item.tenant("tenant", or_any=True),
        guarantee_uj=item.quantity(parse_energy, "guarantee", "energy"),
        guarantee_devices=data["guarantee"]["devices"],
        parent=item.reference("entitlements", "parent") if "parent" in data else None,
        over_quota_weight=data.get("overQuotaWeight", 0),
        limit_uj=item.optional(parse_energy, "limit", "energy"),
        priority=data.get("priority", 0),
        period_ms=item.optional(parse_duration, "period"),
        description=data.get("description"),
    )
    yield item.written("entitlement", item.key(), body)


def _market_pool(item: Item) -> Iterator[Written]:
    data = item.data
    body = b.MarketPoolBody(kind=data.get("kind", "market"), description=data.get("description"))
    yield item.written("market-pool", item.key(), body)
    for name, wish in data.get("procurements", {}).items():
        path = ("procurements", name)
        at = item.builder.places.key((item.section, item.name, "procurements"), name)
        procurement = b.ProcurementBody(
            market_pool=item.key(),
            instance_sku=wish["instanceSku"],
            nodes=wish["nodes"],
            window_ms=item.quantity(parse_duration, *path, "window"),
            max_rate=item.quantity(parse_money, *path, "maxRate"),
        )
        declared = Declared(
            kind="procurement",
            key=f"{item.key()}/{name}",
            name=name,
            body=procurement,
            span=item.builder.problems.sources.span(at),
        )
        yield Written(declared=declared, section=item.section, name=item.name, at=at, place=at)


def _order(item: Item) -> Iterator[Written]:
    data = item.data
    start, end = item.window()
    body = b.OrderBody(
        side=data["side"],
        pool=item.reference("marketPools", "pool"),
        nodes=data["nodes"],
        start_at=start,
        end_at=end,
        max_rate=item.optional(parse_money, "maxRate"),
        min_rate=item.optional(parse_money, "minRate"),
        standing=data.get("standing", False),
        instance_sku=data.get("instanceSku"),
    )
    yield item.written("order", item.key(), body)


def _transfer(item: Item) -> Iterator[Written]:
    data = item.data
    start, end = item.window()
    body = b.TransferBody(
        from_pool=item.reference("marketPools", "from"),
        to_pool=item.reference("marketPools", "to"),
        start_at=start,
        end_at=end,
        nodes=data["nodes"],
        instance_sku=data["instanceSku"],
    )
    yield item.written("transfer", item.key(), body)


_MAKERS: Mapping[str, Callable[[Item], Iterator[Written]]] = {
    "tenants": _tenant,
    "sites": _site,
    "pools": _pool,
    "offers": _offer,
    "entitlements": _entitlement,
    "marketPools": _market_pool,
    "orders": _order,
    "transfers": _transfer,
}
