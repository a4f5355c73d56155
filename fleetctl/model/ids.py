"""Kinds, names, keys and ids.

A declared object is (kind, key), written `kind/key`. Its id is derived, so that a plan can name what does not exist yet.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from json.encoder import encode_basestring as _quoted
from typing import Final, Literal, NewType, get_args

Kind = Literal[
    "tenant", "site", "pool", "offer", "entitlement", "market-pool", "procurement", "order", "transfer", "settings"
]
ObjectId = NewType("ObjectId", str)
EngineId = NewType("EngineId", str)
FleetName = NewType("FleetName", str)
TenantId = NewType("TenantId", str)

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""Every kind; an object's creation needs only objects of kinds before its own (or of its own)."""
KIND_RANK: Final[dict[str, int]] = {kind: rank for rank, kind in enumerate(KINDS)}

ROOT_TENANT: Final = TenantId("root")
ANY_TENANT: Final = TenantId("any")
SETTINGS_ID: Final = ObjectId("settings")

# A market pool's prefix is the one of the seed (`pool_nuO4…`); the kind is part of the hash, so no two ids meet.
_PREFIX: Final[dict[str, str]] = {
    "site": "site_",
    "pool": "pool_",
    "offer": "offer_",
    "entitlement": "ent_",
    "market-pool": "pool_",
    "procurement": "proc_",
    "order": "ordr_",
    "transfer": "pxfr_",
    "instance-sku": "isku_",
    "reservation": "res_",
    "node": "node_",
    "engine": "eng_",
}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,127}", re.ASCII)
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [high + low for high in _CROCKFORD for low in _CROCKFORD]
_PAIR_SHIFTS = range(120, -1, -10)


def is_name(text: str) -> bool:
    """`[a-z0-9][a-z0-9-]{0,62}`, ASCII: what names in fleet files, fleets and tenants look like."""
    return _NAME.fullmatch(text) is not None


def is_key(text: str) -> bool:
    """`[A-Za-z0-9][A-Za-z0-9._#-]{0,127}`, ASCII: what idempotency keys look like."""
    return _KEY.fullmatch(text) is not None


def is_key_of(kind: Kind, key: str) -> bool:
    """Whether `key` has the form that keys of a kind have: `<pool key>/<tenant>` for offers and `<market pool
    key>/<name>` for procurements, one key for all others.
    """
    above, slash, below = key.partition("/")
    if kind in ("offer", "procurement"):
        return bool(slash) and is_key(above) and is_key(below)
    return is_key(key)


def object_name(kind: str, key: str) -> str:
    """`kind/key`, the way an object is written everywhere."""
    return f"{kind}/{key}"


@lru_cache(maxsize=1 << 16)
def derive_id(kind: str, tenant: str, caller: str, key: str) -> ObjectId:
    """The id of a keyed object: a prefix and 26 characters of lower-case Crockford base32 of SHA-256 over the
    canonical JSON array `["fleetctl-id/1", kind, tenant, caller, key]`. A tenant's id is its key.
    """
    if kind == "tenant":
        return ObjectId(key)
    if kind == "settings":
        return SETTINGS_ID
    named = f'["fleetctl-id/1",{_quoted(kind)},{_quoted(tenant)},{_quoted(caller)},{_quoted(key)}]'
    digest = hashlib.sha256(named.encode("utf-8")).digest()
    number = int.from_bytes(digest[:17], "big") >> 6  # 26 characters of 5 bits
    return ObjectId(_PREFIX[kind] + "".join([_PAIRS[(number >> shift) & 1023] for shift in _PAIR_SHIFTS]))


def ulid_id(kind: str, at_ms: int, entropy: bytes) -> ObjectId:
    """An id for an imperative creation without a key: prefix and a lower-case ULID of `at_ms` and 10 random bytes."""
    if len(entropy) != 10:
        raise ValueError("a ULID takes 10 bytes of entropy")
    number = (at_ms << 80) | int.from_bytes(entropy, "big")
    text = "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))
    return ObjectId(_PREFIX[kind] + text)


def fleet_caller(fleet: str) -> str:
    """The caller of every object a fleet declares."""
    return f"fleet/{fleet}"


def cli_caller(tenant: str) -> str:
    """The caller of an imperative command."""
    return f"cli/{tenant}"
