"""Live objects: flat states, digests, tombstones' labels (pins: "Canonical JSON of an object", "Kinds")."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.canonical import canonical_json
from fleetctl.model.bodies import Body
from fleetctl.model.codec import CodecError, decode, encode
from fleetctl.model.ids import KINDS, EngineId, Kind, ObjectId
from fleetctl.model.live import (
    PROTECTABLE,
    LiveObject,
    Snapshot,
    Tombstone,
    flat_state,
    object_from_json,
    same,
    split_state,
    state_digest,
    state_of,
)
from tests.support.bodies import kinds_and_bodies, policy_values

POOL = LiveObject(
    kind="pool",
    id=ObjectId("pool_x"),
    tenant="root",
    fleet="eu",
    key="p1",
    name="p1",
    version=3,
    protect=True,
    body_json='{"site":"s"}',
    last_applied_json='{"name":"p1"}',
)


def _by_hand(item: LiveObject) -> bytes:
    """SHA-256 over the canonical JSON of everything the object holds; absent parts are absent."""
    whole: dict[str, Any] = {
        "kind": item.kind,
        "id": item.id,
        "tenant": item.tenant,
        "key": item.key,
        "name": item.name,
        "version": item.version,
        "protect": item.protect,
        "archived": item.archived,
        "explicitOnly": item.explicit_only,
        "body": json.loads(item.body_json),
    }
    if item.fleet is not None:
        whole["fleet"] = item.fleet
    if item.last_applied_json is not None:
        whole["lastApplied"] = json.loads(item.last_applied_json)
    return hashlib.sha256(canonical_json(whole).encode("utf-8")).digest()


@given(item=kinds_and_bodies(), name=st.text(max_size=20), fleet=st.none() | st.text(max_size=9), applied=st.booleans())
def test_a_digest_covers_everything(item: tuple[Kind, Body], name: str, fleet: str | None, applied: bool) -> None:
    kind, body = item
    live = LiveObject(
        kind=kind,
        id=ObjectId("x"),
        tenant=name,
        fleet=fleet,
        key=name,
        name=name,
        version=7,
        body_json=canonical_json(encode(kind, body)),
        last_applied_json=canonical_json(state_of(kind, body, name=name)) if applied else None,
    )
    assert live.digest() == _by_hand(live)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "site"},
        {"id": "pool_y"},
        {"tenant": "acme"},
        {"fleet": "us"},
        {"fleet": None},
        {"key": "p2"},
        {"name": "p2"},
        {"version": 4},
        {"protect": False},
        {"archived": True},
        {"explicit_only": True},
        {"body_json": '{"site":"t"}'},
        {"last_applied_json": '{"name":"p2"}'},
        {"last_applied_json": None},
    ],
)
def test_a_digest_differs_by_each_part(change: dict[str, Any]) -> None:
    other = replace(POOL, **change)
    assert other.digest() != POOL.digest()
    assert other.digest() == _by_hand(other)


def test_the_state_digest_is_ordered_by_kind_and_id() -> None:
    objects = [replace(POOL, kind=kind, id=ObjectId(id)) for kind in ("site", "pool") for id in ("b", "a")]
    expected = hashlib.sha256(
        b"".join(item.digest() for item in sorted(objects, key=lambda item: (item.kind, item.id)))
    ).digest()
    for seed in range(4):
        random.Random(seed).shuffle(objects)
        snapshot = Snapshot(engine=EngineId("eng_x"), objects={(item.kind, item.id): item for item in objects})
        assert snapshot.state_digest() == expected
    assert state_digest([]) == hashlib.sha256(b"").digest()


@given(item=kinds_and_bodies(), name=st.text(max_size=20), protect=st.booleans(), explicit_only=st.booleans())
def test_a_state_comes_apart_as_it_was_put_together(
    item: tuple[Kind, Body], name: str, protect: bool, explicit_only: bool
) -> None:
    kind, body = item
    state = state_of(kind, body, name=name, protect=protect, explicit_only=explicit_only)
    assert ("protect" in state) is (kind in PROTECTABLE)
    assert ("explicitOnly" in state) is (kind == "market-pool")
    parts = split_state(kind, state)
    assert parts.name == name
    assert parts.protect is (protect and kind in PROTECTABLE)
    assert parts.explicit_only is (explicit_only and kind == "market-pool")
    assert decode(kind, parts.body) == body
    assert parts.body_json == canonical_json(encode(kind, body))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flag", ["protect", "explicitOnly"])
def test_a_flag_that_the_kind_lacks_stays_in_the_body(kind: Kind, flag: str) -> None:
    has = kind in PROTECTABLE if flag == "protect" else kind == "market-pool"
    state = flat_state(kind, name="x", protect=False, explicit_only=False, body={})
    if has:
        assert flag in state
        with pytest.raises(ValueError, match="flags"):
            split_state(kind, {name: value for name, value in state.items() if name != flag})
        return
    parts = split_state(kind, {**state, flag: True})
    assert (parts.protect, parts.explicit_only) == (False, False)
    with pytest.raises(CodecError):
        decode(kind, parts.body)


@pytest.mark.parametrize("state", [{}, {"name": 5, "protect": False}, {"name": "x", "protect": 1}, {"name": "x"}])
def test_a_state_without_name_or_flags(state: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="flags"):
        split_state("pool", state)


@given(value=policy_values)
def test_a_value_is_the_same_as_itself_read_again(value: Any) -> None:
    assert same(value, json.loads(canonical_json(value)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        (0, False),
        ("1", 1),
        ([1], [True]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1, 2], [2, 1]),
        ([], {}),
        (None, {}),
    ],
)
def test_values_that_differ(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not same(other, one)
    assert not same({"x": [one]}, {"x": [other]})


def test_an_object_comes_back_from_its_json() -> None:
    whole = {
        "kind": "pool",
        "id": "pool_x",
        "tenant": "root",
        "fleet": "eu",
        "key": "p1",
        "name": "p1",
        "version": 3,
        "protect": True,
        "archived": False,
        "explicitOnly": False,
        "body": {"site": "s"},
        "lastApplied": {"name": "p1"},
    }
    assert object_from_json(whole) == POOL


def test_labels() -> None:
    assert POOL.label == "pool/p1"
    stone = Tombstone(kind="offer", id=ObjectId("offer_x"), version=1, key="p1/acme", name="acme")
    assert stone.label == "offer/p1/acme"


def test_settings_have_defaults_while_nothing_was_set() -> None:
    assert Snapshot(engine=EngineId("eng_x")).settings().share_threshold_percent == 10
