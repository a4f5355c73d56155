"""What each kind of object holds, beside its identity and flags.

References are ids in live objects; in a declared fleet they are keys (`pool-fra1`) or `other-fleet/key`.
`REFERENCES` names the fields that are references, and their kind; tenants are named by their id, which is their key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from fleetctl.canonical import Json
from fleetctl.frozen import dataclass
from fleetctl.model.ids import Kind
from fleetctl.model.texts import RESOURCE
from fleetctl.units import MAX_QUANTITY, DurationMs, MicroJoules, MicroUsd, UnixMinutes, check_quantity, shown

SiteKind = Literal["shared", "dedicated", "custom"]
PoolClass = Literal["metal-host", "metal-dedicated", "vps-host", "provider"]
Sharing = Literal["exclusive", "mig", "timeslice", "mps"]
Agent = Literal["bcd", "none"]
BudgetAction = Literal["stop-new", "drain"]
MarketKind = Literal["market", "originating", "read_only"]
Side = Literal["buy", "sell"]

OWNER_QUOTA_DEFAULT: Mapping[str, int] = {"gpu": 2_147_483_647}
"""The seed's `ownerQuota` default: effectively unlimited whole GPUs."""
INT32_MAX = 2_147_483_647
PRIORITY_MAX = 1_000
LAST_MINUTE = 4_223_371_679
"""Unix minutes of 9999-12-31T23:59Z, the last one that people can be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantBody:
    """A tenant and its parent; the implicit root tenant has no object."""

    REFERENCES: ClassVar[Mapping[str, Kind]] = {}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset()

    parent: str
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteBody:
    """A place that pools live in; `tenant` owns it."""

    REFERENCES: ClassVar[Mapping[str, Kind]] = {}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset({"kind", "tenant"})

    kind: SiteKind
    region: str
    tenant: str
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBody:
    """One site, one GPU model, one sharing mode, one policy (seed: "What a pool is made of").

    `policy` is in canonical form (`model.policy_fields`); `owner_quota` maps resource to maximum.
    """

    REFERENCES: ClassVar[Mapping[str, Kind]] = {"site": "site"}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset({"site", "class", "sharing", "agent", "providerAccountId"})

    site: str
    pool_class: PoolClass
    gpu_model: str
    sharing: Sharing = "exclusive"
    agent: Agent = "bcd"
    provider_account_id: str | None = None
    policy: Mapping[str, Json] = field(default_factory=dict)
    owner_quota: Mapping[str, int] = field(default_factory=lambda: dict(OWNER_QUOTA_DEFAULT))
    description: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_quota(self.owner_quota)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferBody:
    """A pool made visible to a tenant, with a quota (seed: "Offerings"). Identity is (pool, tenant)."""

    REFERENCES: ClassVar[Mapping[str, Kind]] = {"pool": "pool"}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset({"pool", "to"})

    pool: str
    to: str
    quota: Mapping[str, int]
    priority: int = 0
    include_descendants: bool = False
    on_budget_exceeded: BudgetAction | None = None
    idempotency_key: str | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        _check_quota(self.quota)
        if type(self.priority) is not int or abs(self.priority) > PRIORITY_MAX:
            raise ValueError(f"priority must be from -{PRIORITY_MAX} to {PRIORITY_MAX}, not {self.priority!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitlementBody:
    """A node of the entitlement tree (pool/1 §2.1). `tenant` may be `any`."""

    REFERENCES: ClassVar[Mapping[str, Kind]] = {"parent": "entitlement"}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset()

    tenant: str
    guarantee_uj: MicroJoules
    guarantee_devices: int
    parent: str | None = None
    over_quota_weight: int = 0
    limit_uj: MicroJoules | None = None
    priority: int = 0
    period_ms: DurationMs | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        check_quantity(self.guarantee_uj, "guarantee.energy")
        check_quantity(self.guarantee_devices, "guarantee.devices")
        check_quantity(self.over_quota_weight, "overQuotaWeight")
        if self.limit_uj is not None:
            check_quantity(self.limit_uj, "limit.energy")
        if type(self.priority) is not int or abs(self.priority) > MAX_QUANTITY:
            raise ValueError(f"priority must be an integer within ±{MAX_QUANTITY}, not {self.priority!r}")
        if self.period_ms is not None:
            _check_duration(self.period_ms, "period")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketPoolBody:
    """A named container of an allocation schedule (seed: SF Compute "Pools")."""

    REFERENCES: ClassVar[Mapping[str, Kind]] = {}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset({"kind"})

    kind: MarketKind = "market"
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcurementBody:
    """A standing wish of a market pool: keep `nodes` over the next `window_ms` at up to `max_rate`."""

    REFERENCES: ClassVar[Mapping[str, Kind]] = {"marketPool": "market-pool"}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset({"marketPool"})

    market_pool: str
    instance_sku: str
    nodes: int
    window_ms: DurationMs
    max_rate: MicroUsd

    def __post_init__(self) -> None:
        _check_nodes(self.nodes)
        _check_duration(self.window_ms, "window")
        check_quantity(self.max_rate, "maxRate")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBody:
    """A buy or sell order over `[start_at, end_at)`."""

    REFERENCES: ClassVar[Mapping[str, Kind]] = {"pool": "market-pool"}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset(
        {
            "side",
            "pool",
            "nodes",
            "startAtMin",
            "endAtMin",
            "maxRateMicrousd",
            "minRateMicrousd",
            "standing",
            "instanceSku",
        }
    )

    side: Side
    pool: str
    nodes: int
    start_at: UnixMinutes
    end_at: UnixMinutes
    max_rate: MicroUsd | None = None
    min_rate: MicroUsd | None = None
    standing: bool = False
    instance_sku: str | None = None

    def __post_init__(self) -> None:
        _check_nodes(self.nodes)
        _check_window(self.start_at, self.end_at)
        for rate, what in ((self.max_rate, "maxRate"), (self.min_rate, "minRate")):
            if rate is not None:
                check_quantity(rate, what)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferBody:
    """Nodes moved between two market pools over `[start_at, end_at)`."""

    REFERENCES: ClassVar[Mapping[str, Kind]] = {"from": "market-pool", "to": "market-pool"}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset({"from", "to", "startAtMin", "endAtMin", "nodes", "instanceSku"})

    from_pool: str
    to_pool: str
    start_at: UnixMinutes
    end_at: UnixMinutes
    nodes: int
    instance_sku: str

    def __post_init__(self) -> None:
        _check_nodes(self.nodes)
        _check_window(self.start_at, self.end_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsBody:
    """What guards an engine; changed only by a journalled command.

    `approvers` and `witnesses` map key ids to public keys (64 hex digits); `co_located` names the witnesses whose
    private key lies beside the engine's, which never raise a grade. `attestors` are those that JoinService runs.
    """

    REFERENCES: ClassVar[Mapping[str, Kind]] = {}
    IMMUTABLE: ClassVar[frozenset[str]] = frozenset()

    share_threshold_percent: int = 10
    required_approvals: int = 0
    approvers: Mapping[str, str] = field(default_factory=dict)
    required_witnesses: int = 0
    witnesses: Mapping[str, str] = field(default_factory=dict)
    co_located: tuple[str, ...] = ()
    attestors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for value, what in (
            (self.required_approvals, "requiredApprovals"),
            (self.required_witnesses, "requiredWitnesses"),
        ):
            check_quantity(value, what)
        if not 1 <= self.share_threshold_percent <= 100:
            raise ValueError("shareThresholdPercent must be from 1 to 100")


Body = (
    TenantBody
    | SiteBody
    | PoolBody
    | OfferBody
    | EntitlementBody
    | MarketPoolBody
    | ProcurementBody
    | OrderBody
    | TransferBody
    | SettingsBody
)

BODY_TYPES: Mapping[Kind, type[Body]] = {
    "tenant": TenantBody,
    "site": SiteBody,
    "pool": PoolBody,
    "offer": OfferBody,
    "entitlement": EntitlementBody,
    "market-pool": MarketPoolBody,
    "procurement": ProcurementBody,
    "order": OrderBody,
    "transfer": TransferBody,
    "settings": SettingsBody,
}


def _check_quota(quota: Mapping[str, int]) -> None:
    for resource, maximum in quota.items():
        if not RESOURCE.fullmatch(resource):
            raise ValueError(f"{shown(resource)} is no name of a resource; write one such as gpu, gpu.mig or vcpu")
        check_quantity(maximum, f"quota.{resource}")


def _check_duration(value: int, what: str) -> None:
    check_quantity(value, what)
    if not value:
        raise ValueError(f"{what} must be longer than nothing")


def _check_nodes(nodes: int) -> None:
    if type(nodes) is not int or not 1 <= nodes <= INT32_MAX:
        raise ValueError(f"nodes must be from 1 to {INT32_MAX}, not {nodes!r}")


def _check_window(start: int, end: int) -> None:
    check_quantity(start, "startAt")
    if end <= start:
        raise ValueError("endAt must be after startAt")
    if end > LAST_MINUTE:
        raise ValueError("endAt must be before the year 10000")
