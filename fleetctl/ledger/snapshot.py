"""The steward's word for a snapshot of an engine: `{fleet_snapshot: "1", engine, steward, digest, at_ms}`, signed like an entry.

Whoever holds the file and the steward's public key knows that this engine said this at that time. It is no entry: nothing
chains it, and an older one stays true of its moment.
"""

from __future__ import annotations

from fleetctl.diagnostics import code
from fleetctl.errors import NotVerified
from fleetctl.frozen import dataclass
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.ledger.statement import BadStatement, read_statement, seal_statement

SNAPSHOT_UNVERIFIED = code(
    "snapshot-unverified",
    "A snapshot is not what its steward signed",
    trigger="a snapshot file that is no snapshot, was edited, or is signed by another key than the steward's",
    exit_code=3,
)
_MAX_BYTES = 4 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotStatement:
    """`digest` is the SHA-256 (32 bytes) of the snapshot's canonical JSON."""

    engine: str
    steward: str
    digest: bytes
    at_ms: int


def seal_snapshot(statement: SnapshotStatement, signer: Signer) -> bytes:
    """The statement, signed by the steward."""
    return seal_statement(
        {
            "fleet_snapshot": "1",
            "engine": statement.engine,
            "steward": statement.steward,
            "digest": statement.digest,
            "at_ms": statement.at_ms,
        },
        signer,
    )


def read_snapshot_statement(data: bytes, *, steward: str, key: PublicKey) -> SnapshotStatement:
    """The statement, when it is this steward's. Raises NotVerified for anything else."""
    try:
        statement = read_statement(data, max_bytes=_MAX_BYTES)
    except (BadStatement, IndexError) as error:
        raise NotVerified(SNAPSHOT_UNVERIFIED.at(f"its signature cannot be read: {error}")) from None
    if statement.kid != steward or not statement.signed_by(key):
        raise NotVerified(SNAPSHOT_UNVERIFIED.at(f"it is not signed by {steward} under the key that was given"))
    match statement.core:
        case {
            "fleet_snapshot": "1",
            "engine": str(engine),
            "steward": str(said),
            "digest": bytes(digest),
            "at_ms": int(at_ms),
        } if len(statement.core) == 5 and said == steward and len(digest) == 32:
            return SnapshotStatement(engine=engine, steward=said, digest=digest, at_ms=at_ms)
    raise NotVerified(SNAPSHOT_UNVERIFIED.at("what is signed is no statement about a snapshot"))
