"""Hypothesis strategies for the bodies of every kind, figures up to their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from fleetctl.model import bodies as b
from fleetctl.model.ids import Kind
from fleetctl.units import MAX_QUANTITY

_EDGES = [0, 1, 2**53 - 1, 2**53, 2**53 + 1, MAX_QUANTITY]
quantities = st.integers(0, MAX_QUANTITY) | st.sampled_from(_EDGES)
positive = st.integers(1, MAX_QUANTITY) | st.sampled_from(_EDGES[1:])
words = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12).filter(lambda text: text[0] != "-")
texts = st.text(max_size=30)
resources = st.sampled_from(["gpu", "gpu.mig", "gpu.slot", "vcpu", "memoryGiB", "example.com/x"])
quotas = st.dictionaries(resources, quantities, max_size=4)
nodes = st.integers(1, b.INT32_MAX)

policy_values: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8) | st.just({"$decimal": "1.5"}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
"""Canonical JSON as policies hold it in unknown fields."""


def _optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def _windows(make: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    ends = st.tuples(st.integers(0, b.LAST_MINUTE - 1), st.integers(1, 10**6)).map(
        lambda pair: (pair[0], min(pair[0] + pair[1], b.LAST_MINUTE))
    )
    return st.builds(lambda window, **rest: make(start_at=window[0], end_at=window[1], **rest), ends, **fields)


BODIES: Mapping[Kind, st.SearchStrategy[Any]] = {
    "tenant": st.builds(b.TenantBody, parent=words, description=_optional(texts)),
    "site": st.builds(
        b.SiteBody,
        kind=st.sampled_from(["shared", "dedicated", "custom"]),
        region=words,
        tenant=words,
        description=_optional(texts),
    ),
    "pool": st.builds(
        b.PoolBody,
        site=words,
        pool_class=st.sampled_from(["metal-host", "metal-dedicated", "vps-host", "provider"]),
        gpu_model=words,
        sharing=st.sampled_from(["exclusive", "mig", "timeslice", "mps"]),
        agent=st.sampled_from(["bcd", "none"]),
        provider_account_id=_optional(words),
        policy=st.dictionaries(st.text(max_size=8), policy_values, max_size=4),
        owner_quota=quotas,
        description=_optional(texts),
        labels=st.dictionaries(words, texts, max_size=3),
    ),
    "offer": st.builds(
        b.OfferBody,
        pool=words,
        to=words,
        quota=quotas,
        priority=st.integers(-1000, 1000),
        include_descendants=st.booleans(),
        on_budget_exceeded=_optional(st.sampled_from(["stop-new", "drain"])),
        idempotency_key=_optional(words),
        description=_optional(texts),
    ),
    "entitlement": st.builds(
        b.EntitlementBody,
        tenant=words,
        guarantee_uj=quantities,
        guarantee_devices=quantities,
        parent=_optional(words),
        over_quota_weight=quantities,
        limit_uj=_optional(quantities),
        priority=st.integers(-MAX_QUANTITY, MAX_QUANTITY),
        period_ms=_optional(positive),
        description=_optional(texts),
    ),
    "market-pool": st.builds(
        b.MarketPoolBody, kind=st.sampled_from(["market", "originating", "read_only"]), description=_optional(texts)
    ),
    "procurement": st.builds(
        b.ProcurementBody, market_pool=words, instance_sku=words, nodes=nodes, window_ms=positive, max_rate=quantities
    ),
    "order": _windows(
        b.OrderBody,
        side=st.sampled_from(["buy", "sell"]),
        pool=words,
        nodes=nodes,
        max_rate=_optional(quantities),
        min_rate=_optional(quantities),
        standing=st.booleans(),
        instance_sku=_optional(words),
    ),
    "transfer": _windows(b.TransferBody, from_pool=words, to_pool=words, nodes=nodes, instance_sku=words),
    "settings": st.builds(
        b.SettingsBody,
        share_threshold_percent=st.integers(1, 100),
        required_approvals=quantities,
        approvers=st.dictionaries(words, words, max_size=3),
        required_witnesses=quantities,
        witnesses=st.dictionaries(words, words, max_size=3),
        co_located=st.lists(words, max_size=3, unique=True).map(lambda items: tuple(sorted(items))),
        attestors=st.lists(words, max_size=3, unique=True).map(lambda items: tuple(sorted(items))),
    ),
}


@st.composite
def kinds_and_bodies(draw: st.DrawFn) -> tuple[Kind, b.Body]:
    """A kind and a body of it."""
    kind: Kind = draw(st.sampled_from(sorted(BODIES)))
    return kind, draw(BODIES[kind])
