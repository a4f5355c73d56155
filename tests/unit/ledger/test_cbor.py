"""The strict reader reads exactly what the writer writes (ledger.md "Deterministic CBOR")."""

from __future__ import annotations

import io
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.ledger.cbor import IllFormed, Unreadable, decode, encode, skip

LEAVES = st.integers(0, 2**63 - 1) | st.binary(max_size=300) | st.text(max_size=300)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=30), inner, max_size=5),
    max_leaves=20,
)
FOREIGN: st.SearchStrategy[Any] = st.recursive(
    LEAVES | st.floats() | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.integers() | st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
def test_round_trip_and_agreement_with_cbor2(value: Any) -> None:
    data = encode(value)
    assert decode(data) == value
    assert data == cbor2.dumps(value, canonical=True)
    assert skip(data, 0, len(data)) == len(data)


@given(st.binary(max_size=60))
@pytest.mark.clause("pool/1 §7.14", "pool/1 §6.6")
def test_what_is_read_is_written_again_as_it_was(data: bytes) -> None:
    """No two byte strings share one value (pool/1 §6.6)."""
    try:
        value = decode(data)
    except Unreadable:
        return
    assert encode(value) == data


@given(VALUES, st.data())
def test_a_changed_byte_is_another_value_or_refused(value: Any, data: st.DataObject) -> None:
    good = encode(value)
    at = data.draw(st.integers(0, len(good) - 1))
    changed = good[:at] + bytes((data.draw(st.integers(0, 255)),)) + good[at + 1 :]
    try:
        assert changed == good or decode(changed) != value
    except Unreadable:
        pass


@given(FOREIGN)
def test_any_well_formed_item_is_followed_to_its_end(value: Any) -> None:
    data = cbor2.dumps(value)
    try:
        assert skip(data + b"\x00", 0, len(data) + 1) == len(data)
    except IllFormed as error:
        assert "nested" in str(error)
    with pytest.raises(IllFormed):
        skip(data[:-1], 0, len(data) - 1)


@given(st.binary(min_size=1, max_size=40))
def test_following_agrees_with_cbor2_on_what_is_well_formed(data: bytes) -> None:
    """Where both find an item they find the same end; what we follow and cbor2 does not is ill-typed, not ill-formed."""
    stream = io.BytesIO(data)
    try:
        cbor2.CBORDecoder(stream, read_size=1).decode()
        theirs = stream.tell()
    except Exception:  # noqa: BLE001 - cbor2 turns tags into objects, and each has its own errors
        return
    try:
        assert skip(data, 0, len(data)) == theirs
    except IllFormed as error:
        assert "nested" in str(error)


@pytest.mark.parametrize("value", [-1, 2**63, True, None, 1.5, {1: 2}, {"a": None}, [0.0], "\ud800"])
def test_the_writer_refuses_what_has_no_encoding(value: object) -> None:
    with pytest.raises(ValueError):
        encode(value)


def test_limits() -> None:
    deepest = 0
    for _ in range(16):
        deepest = [deepest]  # type: ignore[assignment]  # builds nested lists
    assert decode(encode(deepest)) == deepest
    with pytest.raises(Unreadable) as refused:
        decode(encode([deepest]))
    assert refused.value.code == "non-canonical"
    widest = {f"k{number:02}": 0 for number in range(64)}
    assert decode(encode(widest)) == widest
    with pytest.raises(Unreadable) as refused:
        decode(encode({**widest, "z": 0}))
    assert refused.value.code == "bad-schema"
