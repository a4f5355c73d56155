"""What a decision changes: rows to write, in one transaction. Made by `capacity.decide`, written by the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fleetctl.canonical import Json
from fleetctl.frozen import dataclass
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import LiveObject, Tombstone


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRow:
    """The maximum of one resource for one tenant in one pool; a missing row grants 0."""

    pool: ObjectId
    tenant: str
    resource: str
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthzRow:
    """A pool's row in the authorization projection of one tenant (seed: end of "Offerings")."""

    pool: ObjectId
    tenant: str
    gpu_model: str
    pool_class: str
    sharing: str
    region: str
    owned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, in the seed's words (`pool.created`). `tenant` is whose view it belongs to."""

    type: str
    object: str
    tenant: str
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Rows to write for one command, in this order: objects, quotas, authorization rows, events."""

    put: tuple[LiveObject, ...] = ()
    drop: tuple[Tombstone, ...] = ()
    """Objects that end to exist, as what stays of them."""
    quotas: tuple[QuotaRow, ...] = ()
    authz: tuple[AuthzRow, ...] = ()
    authz_removed: tuple[tuple[ObjectId, str], ...] = ()
    """(pool id, tenant)."""
    events: tuple[Event, ...] = ()
