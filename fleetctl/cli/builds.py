"""From the options of single commands to what the engine builds: typed bodies, references resolved under the lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

from fleetctl.canonical import Json
from fleetctl.cli.command import Settings
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import (
    OWNER_QUOTA_DEFAULT,
    Agent,
    Body,
    OfferBody,
    PoolBody,
    PoolClass,
    Sharing,
    SiteBody,
    SiteKind,
    TenantBody,
)

if TYPE_CHECKING:
    from fleetctl.engine.calls import Build, Nothing
    from fleetctl.engine.context import Engine
    from fleetctl.model.live import LiveObject, Snapshot
    from fleetctl.model.operation import Operation

CLASSES: tuple[str, ...] = get_args(PoolClass)
SHARINGS: tuple[str, ...] = get_args(Sharing)
AGENTS: tuple[str, ...] = get_args(Agent)
SITE_KINDS: tuple[str, ...] = get_args(SiteKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPool:
    """The options of `pools create`."""

    key: str
    site: str
    pool_class: PoolClass
    gpu_model: str
    sharing: Sharing
    agent: Agent | None
    provider_account: str | None
    policy: Mapping[str, Json]
    owner_quota: Mapping[str, int]
    name: str | None


def new_pool(engine: Engine, settings: Settings, wanted: NewPool) -> Build:
    """A pool on a site that is named by id or key."""
    from fleetctl.cli.wiring import acting_tenant
    from fleetctl.engine.builders import creation, find

    def build(snapshot: Snapshot) -> Operation | Nothing:
        body = PoolBody(
            site=find(snapshot, "site", wanted.site).id,
            pool_class=wanted.pool_class,
            gpu_model=wanted.gpu_model,
            sharing=wanted.sharing,
            agent=wanted.agent or ("none" if wanted.pool_class == "provider" else "bcd"),
            provider_account_id=wanted.provider_account,
            policy=wanted.policy,
            owner_quota=wanted.owner_quota or dict(OWNER_QUOTA_DEFAULT),
        )
        name = wanted.name or wanted.key
        return creation(engine, "pool", body, tenant=acting_tenant(settings), key=wanted.key, name=name)(snapshot)

    return build


def new_offer(pool: str, tenant: str, quota: Mapping[str, int], fields: Mapping[str, Any]) -> Build:
    """An offer of a pool that is named by id or key."""
    from fleetctl.engine.builders import find, offering

    def build(snapshot: Snapshot) -> Operation | Nothing:
        where = find(snapshot, "pool", pool)
        return offering(OfferBody(pool=where.id, to=tenant, quota=quota, **fields), where.key)(snapshot)

    return build


def pool_update(pool: str, policy: Mapping[str, Json] | None, gpu_model: str | None) -> Build:
    """A new policy, a new GPU model, or both."""

    def edit(_snapshot: Snapshot, live: LiveObject) -> Body:
        body = cast(PoolBody, live.body())
        wanted = body.policy if policy is None else policy
        return replace(body, policy=wanted, gpu_model=gpu_model or body.gpu_model)

    return _change("pool", pool, edit)


def quota_change(pool: str, tenant: str, quota: Mapping[str, int]) -> Build:
    """Quota rows of a tenant in a pool: the owner's are fields of the pool, others of the offer."""
    from fleetctl.capacity.refusals import NOT_FOUND, refuse
    from fleetctl.capacity.rules import QUOTA_SET
    from fleetctl.engine.builders import find
    from fleetctl.engine.calls import Nothing

    def build(snapshot: Snapshot) -> Operation | Nothing:
        where = find(snapshot, "pool", pool)
        if tenant == where.tenant:
            return _change("pool", where.id, _owner_quota(quota))(snapshot)
        for item in snapshot.objects.values():
            if item.kind == "offer" and _is_offer(item, where.id, tenant):
                found = _change("offer", item.id, _offer_quota(quota))(snapshot)
                return found if isinstance(found, Nothing) else replace(found, reason=QUOTA_SET)
        refuse(
            NOT_FOUND, f"{where.label} is not offered to {tenant}; offer it with `fleetctl pools offer`", where.label
        )

    return build


def new_tenant(engine: Engine, settings: Settings, name: str, parent: str, description: str | None) -> Build:
    from fleetctl.cli.wiring import acting_tenant
    from fleetctl.engine.builders import creation

    body = TenantBody(parent=parent, description=description)
    return creation(engine, "tenant", body, tenant=acting_tenant(settings), key=name, name=name)


def new_site(engine: Engine, settings: Settings, name: str, kind: SiteKind, region: str, owner: str | None) -> Build:
    from fleetctl.cli.wiring import acting_tenant
    from fleetctl.engine.builders import creation

    tenant = acting_tenant(settings)
    body = SiteBody(kind=kind, region=region, tenant=owner or tenant)
    return creation(engine, "site", body, tenant=tenant, key=name, name=name)


def _change(kind: Any, id: str, edit: Callable[[Snapshot, LiveObject], Body]) -> Build:
    from fleetctl.engine.builders import change

    return change(kind, id, edit)


def _owner_quota(quota: Mapping[str, int]) -> Callable[[Snapshot, LiveObject], Body]:
    def edit(_snapshot: Snapshot, live: LiveObject) -> Body:
        body = cast(PoolBody, live.body())
        return replace(body, owner_quota={**body.owner_quota, **quota})

    return edit


def _offer_quota(quota: Mapping[str, int]) -> Callable[[Snapshot, LiveObject], Body]:
    def edit(_snapshot: Snapshot, live: LiveObject) -> Body:
        body = cast(OfferBody, live.body())
        return replace(body, quota={**body.quota, **quota})

    return edit


def _is_offer(item: LiveObject, pool: str, tenant: str) -> bool:
    body = cast(OfferBody, item.body())
    return body.pool == pool and body.to == tenant
