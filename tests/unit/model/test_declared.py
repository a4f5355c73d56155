"""The digest of a declared fleet (issue: "the digest is invariant"): what counts and what does not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fleetctl.diagnostics import Span
from tests.support.worlds import fleet, redeclared

OBJECTS: Mapping[str, Mapping[str, Any]] = {
    "tenant/acme": {},
    "site/fra1": {},
    "pool/p1": {"ownerQuota": {"gpu": 8, "vcpu": 4}, "policy": {"b": 1, "a": {"y": 1, "x": 2}}},
    "offer/p1/acme": {},
    "entitlement/e": {},
    "market-pool/m": {},
}
FLEET = fleet(
    OBJECTS,
    accept=[{"danger": "share:fleet/eu", "until": "2026-12-31"}, "remove:pool/p1"],
    ignore=[{"object": "pool/p1", "field": "policy.a"}, {"object": "pool/p1", "field": "labels"}],
    release=["pool/old", "pool/older"],
)


@pytest.mark.parametrize("seed", range(5))
def test_order_does_not_count(seed: int) -> None:
    shuffle = random.Random(seed)

    def shuffled(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(shuffle.sample(items, len(items)))

    other = replace(
        FLEET,
        objects=shuffled(FLEET.objects),
        accept=shuffled(FLEET.accept),
        ignore_drift=shuffled(FLEET.ignore_drift),
        release=shuffled(FLEET.release),
    )
    assert other.digest() == FLEET.digest()


def test_places_and_order_of_keys_do_not_count() -> None:
    span = Span("b.yaml", 9, 1)
    moved = replace(
        FLEET,
        objects=tuple(redeclared(item, span=span) for item in FLEET.objects),
        accept=tuple(replace(item, span=span) for item in FLEET.accept),
    )
    assert moved.digest() == FLEET.digest()
    policy = {"a": {"x": 2, "y": 1}, "b": 1}
    again = fleet({**OBJECTS, "pool/p1": {"ownerQuota": {"vcpu": 4, "gpu": 8}, "policy": policy}})
    assert again.digest() == replace(FLEET, accept=(), ignore_drift=(), release=()).digest()


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "other"},
        {"protect": True},
        {"adopt": "pool_x"},
        {"gpuModel": "H200"},
        {"policy": {"a": {"x": 2, "y": True}, "b": 1}},
        {"ownerQuota": {"gpu": 8}},
    ],
)
def test_what_an_object_holds_counts(fields: Mapping[str, Any]) -> None:
    plain = fleet(OBJECTS)
    assert fleet({**OBJECTS, "pool/p1": {**OBJECTS["pool/p1"], **fields}}).digest() != plain.digest()


def test_what_the_fleet_says_counts() -> None:
    plain = fleet(OBJECTS)
    others = [
        fleet(OBJECTS, name="us"),
        fleet({}),
        fleet(OBJECTS, accept=["share:fleet/eu"]),
        fleet(OBJECTS, accept=[{"danger": "share:fleet/eu", "until": "2026-12-31"}]),
        fleet(OBJECTS, release=["pool/old"]),
        fleet(OBJECTS, ignore=[{"object": "pool/p1", "field": "labels"}]),
        fleet({**OBJECTS, "market-pool/m": {"explicitOnly": True}}),
    ]
    assert len({item.digest() for item in [plain, *others]}) == len(others) + 1
