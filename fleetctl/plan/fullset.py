"""A manifest is the full set of quota rows: what stands beyond it on the live side becomes an explicit 0 (readings B06)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from fleetctl.model.bodies import Body, OfferBody, PoolBody
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import LiveObject, Snapshot


def against_live(body: Body, live: LiveObject) -> Body:
    """A declared body with an explicit 0 for each resource that only the live object names."""
    if isinstance(body, OfferBody):
        was = cast(OfferBody, live.body()).quota
        return replace(body, quota=_with_zeros(body.quota, was))
    if isinstance(body, PoolBody):
        was = cast(PoolBody, live.body()).owner_quota
        return replace(body, owner_quota=_with_zeros(body.owner_quota, was))
    return body


def against_rows(body: Body, snapshot: Snapshot) -> Body:
    """A new offer with an explicit 0 for each row above 0 that an earlier offer to the tenant left behind."""
    if not isinstance(body, OfferBody):
        return body
    rows = snapshot.quotas.get((ObjectId(body.pool), body.to), {})
    left = {resource: maximum for resource, maximum in rows.items() if maximum}
    return replace(body, quota=_with_zeros(body.quota, left)) if left else body


def _with_zeros(quota: Mapping[str, int], was: Mapping[str, int]) -> Mapping[str, int]:
    return {**dict.fromkeys(was, 0), **quota}
