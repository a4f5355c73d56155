"""A snapshot of an engine as a signed file: everything that a plan is compared with, and how far the ledgers were.

`{"formatVersion", "snapshot", "digest", "signature"}`, described by `schemas/snapshot.schema.json`. `digest` is the SHA-256 of
the snapshot's canonical JSON, `signature` the steward's statement over it in hexadecimal (`ledger.snapshot`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from fleetctl.canonical import Json, canonical_bytes, sha256_hex
from fleetctl.engine.context import Engine, check_identity, journal_stream
from fleetctl.engine.indexes import check_quotas
from fleetctl.engine.state import check_state, digests_of, load_snapshot
from fleetctl.engine.streams import head_of, read_usages, verify_stream
from fleetctl.errors import NotVerified
from fleetctl.ledger.chain import Head
from fleetctl.ledger.keys import PublicKey
from fleetctl.ledger.snapshot import (
    SNAPSHOT_UNVERIFIED,
    SnapshotStatement,
    read_snapshot_statement,
    seal_snapshot,
)
from fleetctl.model.codec import wide
from fleetctl.model.live import FleetRecord, LiveObject, Snapshot, Tombstone
from fleetctl.units import format_ms

FORMAT_VERSION = "1.0"


def snapshot_file(engine: Engine) -> bytes:
    """The engine as it is now, signed. Raises Tampered when it is not what was sealed, Unreachable without the private key."""
    signer, now = engine.sealing(), engine.clock.now_ms()
    with engine.store.read() as reader:
        check_identity(engine, reader)
        verify_stream(engine, reader, journal_stream(reader))
        usages = read_usages(engine, reader)
        snapshot = load_snapshot(engine, reader, usages)
        state = check_state(engine, reader, digests_of(snapshot.objects))
        check_quotas(snapshot)
        journal = head_of(engine, reader, journal_stream(reader))
    body = {
        "engine": engine.id,
        "steward": engine.steward,
        "time": format_ms(now),
        "state": state.hex(),
        "journal": _head(journal),
        "entitlements": _head(usages.head),
        **_contents(snapshot),
    }
    digest = sha256_hex(canonical_bytes(body))
    statement = SnapshotStatement(engine=engine.id, steward=engine.steward, digest=bytes.fromhex(digest), at_ms=now)
    whole = {
        "formatVersion": FORMAT_VERSION,
        "snapshot": body,
        "digest": digest,
        "signature": seal_snapshot(statement, signer).hex(),
    }
    return canonical_bytes(whole) + b"\n"


def verified_snapshot(data: bytes, *, steward: str, key: PublicKey) -> Mapping[str, Any]:
    """What a snapshot file says, once it is the steward's own word. Raises NotVerified."""
    try:
        whole = json.loads(data)
        body, signature = whole["snapshot"], bytes.fromhex(whole["signature"])
        digest = sha256_hex(canonical_bytes(body))
        engine = body["engine"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NotVerified(SNAPSHOT_UNVERIFIED.at(f"it is no snapshot file ({type(error).__name__})")) from None
    statement = read_snapshot_statement(signature, steward=steward, key=key)
    if (statement.digest.hex(), statement.engine) != (digest, engine):
        raise NotVerified(
            SNAPSHOT_UNVERIFIED.at(f"its content has the digest {digest}, signed is {statement.digest.hex()}")
        )
    return cast("Mapping[str, Any]", body)


def _contents(snapshot: Snapshot) -> dict[str, Json]:
    """Everything that a plan reads of an engine, each list in the order of its keys."""
    usage = snapshot.usage
    return {
        "objects": [_object(snapshot.objects[key]) for key in sorted(snapshot.objects)],
        "tombstones": [_tombstone(snapshot.tombstones[key]) for key in sorted(snapshot.tombstones)],
        "quotas": [
            {"pool": pool, "tenant": tenant, "resource": resource, "max": wide(maximum)}
            for (pool, tenant), rows in sorted(snapshot.quotas.items())
            for resource, maximum in sorted(rows.items())
        ],
        "fleets": {name: _fleet(record) for name, record in snapshot.fleets.items()},
        "booked": [
            {
                "pool": pool,
                "tenant": tenant,
                "reservations": use.reservations,
                "resources": {name: wide(amount) for name, amount in use.resources.items()},
            }
            for (pool, tenant), use in sorted(usage.booked.items())
        ],
        "inventoryGpus": {str(pool): gpus for pool, gpus in usage.inventory_gpus.items()},
        "usage": {
            entitlement: {
                "spentUj": wide(use.spent_uj),
                "reservedUj": wide(use.reserved_uj),
                "devices": wide(use.devices),
                "openClaims": use.open_claims,
            }
            for entitlement, use in usage.entitlements.items()
        },
    }


def _object(item: LiveObject) -> Json:
    return cast(Json, json.loads(item.canonical()))


def _tombstone(stone: Tombstone) -> Json:
    out: dict[str, Json] = {
        "kind": stone.kind,
        "id": stone.id,
        "version": stone.version,
        "key": stone.key,
        "name": stone.name,
    }
    if stone.fleet is not None:
        out["fleet"] = stone.fleet
    if stone.last_applied_json is not None:
        out["lastApplied"] = json.loads(stone.last_applied_json)
    return out


def _fleet(record: FleetRecord) -> Json:
    out: dict[str, Json] = {"entry": record.entry}
    if record.commit is not None:
        out["commit"] = record.commit
    if record.origin is not None:
        out["origin"] = {"root": record.origin[0], "path": record.origin[1]}
    return out


def _head(head: Head) -> dict[str, Json]:
    return {"ledger": head.ledger, "length": head.length, "head": head.address.hex()}
