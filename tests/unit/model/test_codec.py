"""The one canonical form of every object (pins: "Canonical JSON of an object")."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.canonical import canonical_json
from fleetctl.model import bodies as b
from fleetctl.model.codec import CodecError, attribute_of, decode, encode, field_names, unwide, wide
from fleetctl.model.ids import KINDS, Kind
from fleetctl.units import MAX_QUANTITY, DurationMs, MicroJoules, MicroUsd, UnixMinutes
from tests.support.bodies import kinds_and_bodies

WIDE = 2**53 + 1

FORMS: list[tuple[Kind, b.Body, Mapping[str, Any]]] = [
    ("tenant", b.TenantBody(parent="root"), {"parent": "root"}),
    ("tenant", b.TenantBody(parent="root", description="été"), {"parent": "root", "description": "été"}),
    (
        "site",
        b.SiteBody(kind="shared", region="eu-central", tenant="root"),
        {"kind": "shared", "region": "eu-central", "tenant": "root"},
    ),
    (
        "pool",
        b.PoolBody(site="fra1", pool_class="metal-host", gpu_model="H100"),
        {
            "site": "fra1",
            "class": "metal-host",
            "gpuModel": "H100",
            "sharing": "exclusive",
            "agent": "bcd",
            "policy": {},
            "ownerQuota": {"gpu": 2147483647},
            "labels": {},
        },
    ),
    (
        "pool",
        b.PoolBody(
            site="fra1",
            pool_class="provider",
            gpu_model="H100",
            agent="none",
            provider_account_id="pacct_1",
            owner_quota={"gpu": WIDE, "vcpu": 0},
            policy={"maxPendingMs": 1},
        ),
        {
            "site": "fra1",
            "class": "provider",
            "gpuModel": "H100",
            "sharing": "exclusive",
            "agent": "none",
            "providerAccountId": "pacct_1",
            "policy": {"maxPendingMs": 1},
            "ownerQuota": {"gpu": "9007199254740993", "vcpu": 0},
            "labels": {},
        },
    ),
    (
        "offer",
        b.OfferBody(pool="p1", to="acme", quota={"gpu": 32}),
        {"pool": "p1", "to": "acme", "quota": {"gpu": 32}, "priority": 0, "includeDescendants": False},
    ),
    (
        "entitlement",
        b.EntitlementBody(tenant="acme", guarantee_uj=MicroJoules(WIDE), guarantee_devices=8),
        {
            "tenant": "acme",
            "guarantee": {"energyUj": "9007199254740993", "devices": 8},
            "overQuotaWeight": 0,
            "priority": 0,
        },
    ),
    (
        "entitlement",
        b.EntitlementBody(
            tenant="any",
            guarantee_uj=MicroJoules(0),
            guarantee_devices=0,
            parent="top",
            limit_uj=MicroJoules(5),
            period_ms=DurationMs(86_400_000),
            priority=-WIDE,
        ),
        {
            "parent": "top",
            "tenant": "any",
            "guarantee": {"energyUj": 0, "devices": 0},
            "overQuotaWeight": 0,
            "limit": {"energyUj": 5},
            "priority": "-9007199254740993",
            "periodMs": 86400000,
        },
    ),
    ("market-pool", b.MarketPoolBody(), {"kind": "market"}),
    (
        "procurement",
        b.ProcurementBody(
            market_pool="dev",
            instance_sku="sea-3-h100",
            nodes=2,
            window_ms=DurationMs(7_200_000),
            max_rate=MicroUsd(20_000_000),
        ),
        {
            "marketPool": "dev",
            "instanceSku": "sea-3-h100",
            "nodes": 2,
            "windowMs": 7200000,
            "maxRateMicrousd": 20000000,
        },
    ),
    (
        "order",
        b.OrderBody(
            side="buy", pool="dev", nodes=1, start_at=UnixMinutes(1), end_at=UnixMinutes(2), max_rate=MicroUsd(3)
        ),
        {
            "side": "buy",
            "pool": "dev",
            "nodes": 1,
            "startAtMin": 1,
            "endAtMin": 2,
            "maxRateMicrousd": 3,
            "standing": False,
        },
    ),
    (
        "transfer",
        b.TransferBody(
            from_pool="dev",
            to_pool="prod",
            start_at=UnixMinutes(1),
            end_at=UnixMinutes(2),
            nodes=4,
            instance_sku="isku_1",
        ),
        {"from": "dev", "to": "prod", "startAtMin": 1, "endAtMin": 2, "nodes": 4, "instanceSku": "isku_1"},
    ),
    (
        "settings",
        b.SettingsBody(co_located=("b", "a", "a")),
        {
            "shareThresholdPercent": 10,
            "requiredApprovals": 0,
            "approvers": {},
            "requiredWitnesses": 0,
            "witnesses": {},
            "coLocated": ["a", "b"],
            "attestors": [],
        },
    ),
]


@pytest.mark.parametrize(("kind", "body", "form"), FORMS)
def test_the_form_of_each_kind(kind: Kind, body: b.Body, form: Mapping[str, Any]) -> None:
    """File names, units in the names, defaults written out, absent fields absent, wide integers as text, sets sorted."""
    assert encode(kind, body) == form
    assert set(form) <= set(field_names(kind))


def test_every_kind_has_a_form_here() -> None:
    assert {kind for kind, _, _ in FORMS} == set(KINDS)


@given(item=kinds_and_bodies())
def test_round_trip(item: tuple[Kind, b.Body]) -> None:
    kind, body = item
    text = canonical_json(encode(kind, body))
    again = decode(kind, json.loads(text))
    assert again == body
    assert canonical_json(encode(kind, again)) == text


@given(item=kinds_and_bodies())
def test_no_number_that_readers_of_json_would_round(item: tuple[Kind, b.Body]) -> None:
    kind, body = item

    def check(value: Any) -> None:
        assert value is not None and not isinstance(value, float)
        if isinstance(value, dict):
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)
        elif isinstance(value, int):
            assert abs(value) < 2**53

    check(encode(kind, body))


@given(item=kinds_and_bodies(), data=st.data())
def test_another_field_more_or_less_is_no_body(item: tuple[Kind, b.Body], data: st.DataObject) -> None:
    kind, body = item
    form = encode(kind, body)
    with pytest.raises(CodecError, match="unknown field"):
        decode(kind, {**form, "colour": "red"})
    name = data.draw(st.sampled_from(sorted(form)))
    rest = {key: value for key, value in form.items() if key != name}
    try:
        assert name not in encode(kind, decode(kind, rest))  # optional: absent is another body, and stays absent
    except CodecError as error:
        assert name in str(error) or "missing" in str(error)


@given(item=kinds_and_bodies(), data=st.data())
def test_a_value_of_another_type_is_no_body(item: tuple[Kind, b.Body], data: st.DataObject) -> None:
    kind, body = item
    form: dict[str, Any] = encode(kind, body)
    name = data.draw(st.sampled_from(sorted(form)))
    odd = data.draw(st.sampled_from([None, 1.5, [None], ["x", 5], {"x": None}, {"gpu": 1.5}, {"gpu": True}, object()]))
    if name == "policy":
        return  # what a policy holds is the validators' business
    with pytest.raises(CodecError):
        decode(kind, {**form, name: odd})


@pytest.mark.parametrize(
    "form", ["5", "+5", " 5", "5 ", "05", "9007199254740991", "-0", "1_0", "٣", "", "0x10", "1" * 41]
)
def test_text_that_is_no_wide_integer(form: str) -> None:
    with pytest.raises(ValueError, match=r"canonical form|literal"):
        unwide(form)


@pytest.mark.parametrize("value", [0, -1, 2**53 - 1, -(2**53) + 1, 2**53, -(2**53), MAX_QUANTITY, 10**39])
def test_wide_integers(value: int) -> None:
    form = wide(value)
    assert unwide(form) == value
    assert isinstance(form, str) is (abs(value) >= 2**53)


@pytest.mark.parametrize("form", [2**53, True, 1.0, None, ["5"]])
def test_no_integers(form: Any) -> None:
    with pytest.raises(ValueError, match="canonical form"):
        unwide(form)


_OFFER = {"pool": "p", "to": "t", "quota": {}, "priority": 0, "includeDescendants": False}
_ENTITLEMENT = {"tenant": "t", "guarantee": {"energyUj": 0, "devices": 0}, "overQuotaWeight": 0, "priority": 0}
_ORDER = {"side": "buy", "pool": "p", "nodes": 1, "startAtMin": 1, "endAtMin": 2, "standing": False}
_PROCUREMENT = {"marketPool": "p", "instanceSku": "s", "nodes": 1, "windowMs": 1, "maxRateMicrousd": 1}

BOUNDS: list[tuple[str, Kind, Mapping[str, Any], str]] = [
    ("better-compute B24", "offer", {**_OFFER, "priority": 1001}, "priority"),
    ("better-compute B24", "offer", {**_OFFER, "priority": -1001}, "priority"),
    ("better-compute B24", "offer", {**_OFFER, "priority": 1.5}, "priority"),
    ("better-compute B24", "offer", {**_OFFER, "priority": True}, "priority"),
    ("fleet-files: Counts", "offer", {**_OFFER, "quota": {"gpu": -1}}, "quota.gpu"),
    ("fleet-files: Counts", "offer", {**_OFFER, "quota": {"gpu": str(2**63)}}, "quota.gpu"),
    ("fleet-files: Counts", "offer", {**_OFFER, "quota": {"": 1}}, "resource"),
    ("fleet-files: Counts", "offer", {**_OFFER, "quota": {"g\n": 1}}, "resource"),
    ("fleet-files: Counts", "offer", {**_OFFER, "quota": {"é": 1}}, "resource"),
    ("better-compute 4A", "offer", {**_OFFER, "onBudgetExceeded": "stop"}, "stop-new"),
    ("pool/1 A29", "entitlement", {**_ENTITLEMENT, "priority": str(2**63)}, "priority"),
    ("pool/1 A29", "entitlement", {**_ENTITLEMENT, "guarantee": {"energyUj": -1, "devices": 0}}, "energy"),
    ("pool/1 A29", "entitlement", {**_ENTITLEMENT, "guarantee": {"energyUj": 0}}, "devices"),
    ("canonical form", "entitlement", {**_ENTITLEMENT, "limit": {}}, "limit"),
    ("canonical form", "entitlement", {**_ENTITLEMENT, "limit": {"energyUj": 5, "devices": 1}}, "devices"),
    ("fleet-files: Durations", "entitlement", {**_ENTITLEMENT, "periodMs": 0}, "period"),
    ("fleet-files: Durations", "entitlement", {**_ENTITLEMENT, "periodMs": -1}, "period"),
    ("sf-compute C34", "order", {**_ORDER, "nodes": 2147483648}, "nodes"),
    ("sf-compute C34", "order", {**_ORDER, "nodes": 0}, "nodes"),
    ("sf-compute C11", "order", {**_ORDER, "endAtMin": 1}, "endAt"),
    ("sf-compute C11", "order", {**_ORDER, "endAtMin": 0}, "endAt"),
    ("sf-compute C01", "order", {**_ORDER, "startAtMin": -1}, "startAt"),
    ("fleet-files: Times", "order", {**_ORDER, "endAtMin": b.LAST_MINUTE + 1}, "10000"),
    ("sf-compute C18", "order", {**_ORDER, "maxRateMicrousd": -1}, "maxRate"),
    ("sf-compute C18", "order", {**_ORDER, "minRateMicrousd": str(2**63)}, "minRate"),
    ("sf-compute C28", "procurement", {**_PROCUREMENT, "windowMs": 0}, "window"),
    ("sf-compute C28", "procurement", {**_PROCUREMENT, "maxRateMicrousd": -1}, "maxRate"),
    ("better-compute B20", "pool", {"class": "Metal-Host"}, "class"),
    ("plan-apply: settings", "settings", {"shareThresholdPercent": 0}, "shareThresholdPercent"),
    ("plan-apply: settings", "settings", {"shareThresholdPercent": 101}, "shareThresholdPercent"),
]


@pytest.mark.parametrize(("clause", "kind", "form", "says"), BOUNDS)
def test_what_no_body_holds(clause: str, kind: Kind, form: Mapping[str, Any], says: str) -> None:
    if kind == "pool":
        form = {**encode("pool", b.PoolBody(site="s", pool_class="metal-host", gpu_model="H100")), **form}
    if kind == "settings":
        form = {**encode("settings", b.SettingsBody()), **form}
    with pytest.raises(CodecError, match=says):
        decode(kind, form)


def test_attributes_behind_names() -> None:
    assert attribute_of("pool", "class") == "pool_class"
    assert attribute_of("transfer", "from") == "from_pool"
    for kind in KINDS:
        for name in (*b.BODY_TYPES[kind].REFERENCES, *b.BODY_TYPES[kind].IMMUTABLE):
            assert attribute_of(kind, name) in b.BODY_TYPES[kind].__dataclass_fields__
    with pytest.raises(KeyError):
        attribute_of("pool", "colour")
