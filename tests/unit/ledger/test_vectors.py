"""The pinned bytes, held to libraries that are not ours."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from fleetctl.ledger.crosscheck import disagreements
from fleetctl.ledger.identifiers import LedgerId
from fleetctl.ledger.keys import PublicKey
from fleetctl.ledger.verify import verify
from tests.vectors.build_ledger import OUT, build

VECTORS: dict[str, Any] = json.loads(OUT.read_text())
STREAMS = sorted(VECTORS["streams"])
STEWARD_KEY = PublicKey(bytes.fromhex(VECTORS["keys"]["root-steward"]["public"]))


def test_the_file_is_what_its_builder_makes() -> None:
    assert OUT.read_text() == build()


def signed_over(envelope: bytes, key: str) -> dict[str, Any]:
    """Check one envelope with cbor2 and cryptography alone, and return its core."""
    tagged = cbor2.loads(envelope)
    protected, unprotected, payload, signature = tagged.value
    assert tagged.tag == 18 and dict(unprotected) == {}
    kid = cbor2.loads(protected)[4].decode()
    assert dict(cbor2.loads(protected)) == {1: -8, 4: kid.encode()}
    structure = cbor2.dumps(["Signature1", protected, b"", payload])
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(VECTORS["keys"][key]["public"])).verify(signature, structure)
    core = cbor2.loads(payload)
    assert cbor2.dumps(core, canonical=True) == payload
    return dict(core)


@pytest.mark.parametrize("ledger", STREAMS)
def test_streams_under_other_libraries(ledger: str) -> None:
    """pool/1 §6.5: a receipt verifies under a tool that has never heard of Pool. readings A67: what is hashed, and genesis."""
    prev = sha256(f"pool/1 genesis\n{ledger}".encode()).digest()
    assert VECTORS["genesis"][ledger] == prev.hex()
    for index, item in enumerate(VECTORS["streams"][ledger]):
        core = signed_over(bytes.fromhex(item["entry"]), "root-steward")
        assert (core["seq"], core["prev"], core["steward"]) == (index, prev, "root-steward")
        prev = sha256(bytes.fromhex(item["core"])).digest()
        assert item["address"] == prev.hex()
        assert list(core) == sorted(core, key=lambda key: (len(key), key))


@pytest.mark.parametrize("ledger", STREAMS)
@pytest.mark.clause("pool/1 §7.13")
def test_streams_verify_and_pycose_agrees(ledger: str) -> None:
    data = b"".join(bytes.fromhex(item["entry"]) for item in VECTORS["streams"][ledger])
    assert verify(data, ledger=LedgerId(ledger), key=STEWARD_KEY).length == len(VECTORS["streams"][ledger])
    assert disagreements(data, ledger=LedgerId(ledger), key=STEWARD_KEY) == []


def test_key_order_of_a_core() -> None:
    """A65: length first, which for text is also the order of the encodings."""
    core = cbor2.loads(bytes.fromhex(VECTORS["streams"]["root-steward/entitlements"][0]["core"]))
    assert list(core) == [
        *("seq", "prev", "at_ms", "claim", "class", "event", "grade", "devices", "steward"),
        *("borrowed_uj", "entitlement", "reserved_uj", "pool_receipt"),
    ]


def test_receipt_and_checkpoint_under_other_libraries() -> None:
    last = VECTORS["streams"]["root-steward/entitlements"][-1]
    receipt = signed_over(bytes.fromhex(VECTORS["receipt"]), "witness-a")
    assert (receipt["pool_witness"], receipt["length"], receipt["head"].hex()) == ("1", 5, last["address"])
    checkpoint = signed_over(bytes.fromhex(VECTORS["checkpoint"]), "root-steward")
    assert (checkpoint["pool_checkpoint"], checkpoint["length"], checkpoint["claims"]) == ("1", 4, 3)
