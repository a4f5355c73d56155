"""Derived ids (fleet-files: "Identity"; pins: "Kinds"), computed here by hand."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.canonical import canonical_json
from fleetctl.model.ids import KINDS, Kind, derive_id, is_key, is_key_of, is_name, ulid_id

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_PREFIX = {
    "site": "site_",
    "pool": "pool_",
    "offer": "offer_",
    "entitlement": "ent_",
    "market-pool": "pool_",
    "procurement": "proc_",
    "order": "ordr_",
    "transfer": "pxfr_",
}


def _by_hand(kind: str, tenant: str, caller: str, key: str) -> str:
    """26 characters of 5 bits, from the front of the digest of the JSON array."""
    text = json.dumps(["fleetctl-id/1", kind, tenant, caller, key], separators=(",", ":"), ensure_ascii=False)
    bits = "".join(f"{byte:08b}" for byte in hashlib.sha256(text.encode("utf-8")).digest())
    return _PREFIX[kind] + "".join(_CROCKFORD[int(bits[at : at + 5], 2)] for at in range(0, 130, 5))


def test_a_vector_that_was_written_down() -> None:
    """`printf '["fleetctl-id/1","pool","root","fleet/eu-prod","pool-fra1-h100"]' | sha256sum`, then base32."""
    digest = hashlib.sha256(b'["fleetctl-id/1","pool","root","fleet/eu-prod","pool-fra1-h100"]').hexdigest()
    assert digest == "cdcfa57b66c38958dd6fe9da69dba354b0d3b95d9de3fddd8ce005af2d7afddf"
    assert derive_id("pool", "root", "fleet/eu-prod", "pool-fra1-h100") == "pool_sq7tayv6re4nhqbfx7d6kpx3aj"


@pytest.mark.parametrize("kind", sorted(_PREFIX))
@given(tenant=st.text(max_size=20), caller=st.text(max_size=20), key=st.text(max_size=40))
def test_ids_are_what_the_pins_say(kind: str, tenant: str, caller: str, key: str) -> None:
    """Also for text that needs escapes: the array is canonical JSON."""
    assert derive_id(kind, tenant, caller, key) == _by_hand(kind, tenant, caller, key)
    assert canonical_json([kind, tenant, caller, key]) == json.dumps(
        [kind, tenant, caller, key], separators=(",", ":"), ensure_ascii=False
    )


def test_ids_differ_by_every_part() -> None:
    parts = [(kind, tenant, caller, "k") for kind in _PREFIX for tenant in ("root", "acme") for caller in ("a", "b")]
    assert len({derive_id(*item).partition("_")[2] for item in parts}) == len(parts)


def test_no_two_splits_of_one_text_meet() -> None:
    assert derive_id("pool", "a", "bc", "d") != derive_id("pool", "ab", "c", "d")
    assert derive_id("pool", 'a","b', "c", "d") != derive_id("pool", "a", 'b","c', "d")


def test_tenants_are_called_by_their_key_and_settings_are_one() -> None:
    assert derive_id("tenant", "root", "fleet/eu", "acme") == "acme"
    assert derive_id("settings", "root", "cli/root", "anything") == "settings"
    assert set(KINDS) == {*_PREFIX, "tenant", "settings"}


def test_a_ulid_sorts_by_its_time_and_has_26_characters() -> None:
    early, late = ulid_id("pool", 1, bytes(10)), ulid_id("pool", 2**47, b"\xff" * 10)
    assert early == "pool_0000000001" + "0" * 16
    assert early < late
    assert len(late) == len("pool_") + 26
    with pytest.raises(ValueError, match="entropy"):
        ulid_id("pool", 1, bytes(9))


@pytest.mark.parametrize("text", ["a", "0", "a-b", "a" * 63, "fra1-h100"])
def test_names(text: str) -> None:
    assert is_name(text)
    assert is_key(text)


@pytest.mark.parametrize("text", ["", "-a", "A", "a_b", "a.b", "a" * 64, "a b", "ä", "a\n", "\na", "а"])
def test_no_names(text: str) -> None:
    assert not is_name(text)


@pytest.mark.parametrize("text", ["A", "a.b_c#d-e", "0", "a" * 128])
def test_keys(text: str) -> None:
    assert is_key(text)


@pytest.mark.parametrize("text", ["", ".a", "-a", "_a", "#a", "a/b", "a" * 129, "a b", "ä", "a\n", "a\x00", "a,b"])
def test_no_keys(text: str) -> None:
    assert not is_key(text)


@pytest.mark.parametrize(
    ("kind", "key", "fits"),
    [
        ("pool", "p1", True),
        ("pool", "p1/acme", False),
        ("offer", "p1/acme", True),
        ("offer", "p1", False),
        ("offer", "p1/", False),
        ("offer", "/acme", False),
        ("offer", "a/b/c", False),
        ("procurement", "dev/proc", True),
        ("procurement", "dev", False),
        ("tenant", "acme", True),
    ],
)
def test_keys_of_kinds(kind: Kind, key: str, fits: bool) -> None:
    assert is_key_of(kind, key) is fits
