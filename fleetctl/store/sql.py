"""The statements of an engine's store, in the subset that SQLite and PostgreSQL share.

Named parameters (`:name`), ON CONFLICT and RETURNING. Flags are integers 0 and 1, times Unix milliseconds.
"""

from __future__ import annotations

from typing import Final


def upsert(table: str, key: tuple[str, ...], rest: tuple[str, ...]) -> str:
    """Insert a row, or replace what is not its key."""
    update = ", ".join(f"{name} = excluded.{name}" for name in rest)
    return f"{insert(table, key + rest)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {update}"


def insert(table: str, columns: tuple[str, ...]) -> str:
    """Insert a row."""
    values = ", ".join(f":{name}" for name in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"


META: Final = "SELECT value FROM meta WHERE name = :name"
PUT_META: Final = upsert("meta", ("name",), ("value",))

_OBJECT = (
    "SELECT kind, id, tenant, key, name, version, body, fleet, protect, archived, explicit_only, last_applied "
    "FROM objects"
)
OBJECTS: Final = f"{_OBJECT} ORDER BY kind, id"
OBJECT: Final = f"{_OBJECT} WHERE kind = :kind AND id = :id"
STORED_DIGESTS: Final = "SELECT kind, id, digest FROM objects ORDER BY kind, id"
PUT_OBJECT: Final = upsert(
    "objects",
    ("kind", "id"),
    (
        "tenant",
        "key",
        "name",
        "version",
        "body",
        "fleet",
        "protect",
        "archived",
        "explicit_only",
        "last_applied",
        "digest",
    ),
)
DROP_OBJECT: Final = "DELETE FROM objects WHERE kind = :kind AND id = :id"
TOMBSTONES: Final = "SELECT kind, id, version, key, name, fleet, last_applied FROM tombstones ORDER BY kind, id"
PUT_TOMBSTONE: Final = upsert("tombstones", ("kind", "id"), ("version", "key", "name", "fleet", "last_applied"))

QUOTAS: Final = "SELECT pool, tenant, resource, maximum FROM quotas ORDER BY pool, tenant, resource"
PUT_QUOTA: Final = upsert("quotas", ("pool", "tenant", "resource"), ("maximum",))

AUTHZ: Final = (
    "SELECT pool, tenant, gpu_model, pool_class, sharing, region, owned FROM authz_rows ORDER BY pool, tenant"
)
PUT_AUTHZ: Final = upsert("authz_rows", ("pool", "tenant"), ("gpu_model", "pool_class", "sharing", "region", "owned"))
DROP_AUTHZ: Final = "DELETE FROM authz_rows WHERE pool = :pool AND tenant = :tenant"

FLEETS: Final = "SELECT fleet, entry, commit_hash, origin_root, origin_path FROM fleets ORDER BY fleet"
PUT_FLEET: Final = upsert("fleets", ("fleet",), ("entry", "commit_hash", "origin_root", "origin_path"))

EVENTS: Final = "SELECT seq, at_ms, type, object, tenant, data FROM events WHERE seq > :since ORDER BY seq LIMIT :limit"
LAST_EVENT: Final = "SELECT COALESCE(MAX(seq), 0) FROM events"
ADD_EVENT: Final = insert("events", ("seq", "at_ms", "type", "object", "tenant", "data"))

NODES: Final = "SELECT id, pool, name, gpus, joined_at_ms, product, vram_gib, vcpu, memory_gib FROM nodes ORDER BY id"
PUT_NODE: Final = upsert(
    "nodes", ("id",), ("pool", "name", "gpus", "joined_at_ms", "product", "vram_gib", "vcpu", "memory_gib")
)
DROP_NODE: Final = "DELETE FROM nodes WHERE id = :id"
INVENTORY_GPUS: Final = "SELECT pool, CAST(SUM(gpus) AS BIGINT) FROM nodes GROUP BY pool ORDER BY pool"

_RESERVATION = (
    "SELECT id, tenant, pool, gpus, state, created_at_ms, key, entitlement, claim, ended_at_ms, reason, placement "
    "FROM reservations"
)
RESERVATIONS: Final = f"{_RESERVATION} ORDER BY created_at_ms, id"
RESERVATION: Final = f"{_RESERVATION} WHERE id = :id"
BOOKED: Final = (
    "SELECT pool, tenant, COUNT(*), CAST(SUM(gpus) AS BIGINT) FROM reservations WHERE state = 'active' "
    "GROUP BY pool, tenant ORDER BY pool, tenant"
)
PUT_RESERVATION: Final = upsert(
    "reservations",
    ("id",),
    (
        "tenant",
        "pool",
        "gpus",
        "state",
        "created_at_ms",
        "key",
        "entitlement",
        "claim",
        "ended_at_ms",
        "reason",
        "placement",
    ),
)

_STREAM = "SELECT stream, ledger, length, head, closed FROM streams"
STREAMS: Final = f"{_STREAM} ORDER BY stream"
STREAM: Final = f"{_STREAM} WHERE stream = :stream"
OPEN_STREAM: Final = insert("streams", ("stream", "ledger", "length", "head", "closed"))
CLOSE_STREAM: Final = "UPDATE streams SET closed = 1 WHERE stream = :stream"
MOVE_HEAD: Final = (
    "UPDATE streams SET length = length + :by, head = :address "
    "WHERE stream = :stream AND length = :length AND head = :head AND closed = 0 RETURNING length"
)
REWIND_HEAD: Final = "UPDATE streams SET length = :length, head = :head, closed = 0 WHERE stream = :stream"
DROP_ENTRIES: Final = "DELETE FROM entries WHERE stream = :stream AND seq >= :length"
ADD_ENTRY: Final = insert("entries", ("stream", "seq", "sealed"))
ENTRIES: Final = (
    "SELECT seq, sealed FROM entries WHERE stream = :stream AND seq >= :start AND seq < :stop ORDER BY seq LIMIT :limit"
)

JOURNAL_TOUCHING: Final = "SELECT entry FROM journal_objects WHERE kind = :kind AND id = :id ORDER BY entry"
TOUCH: Final = f"{insert('journal_objects', ('kind', 'id', 'entry'))} ON CONFLICT (kind, id, entry) DO NOTHING"
APPLIED_ENTRY: Final = "SELECT entry FROM applied_plans WHERE plan = :plan"
ADD_APPLIED: Final = insert("applied_plans", ("plan", "entry"))

DOCUMENT: Final = "SELECT content FROM documents WHERE digest = :digest"
DOCUMENTS: Final = "SELECT digest, content FROM documents WHERE digest > :after ORDER BY digest LIMIT :limit"
PUT_DOCUMENT: Final = f"{insert('documents', ('digest', 'content'))} ON CONFLICT (digest) DO NOTHING"

_RECEIPT = "SELECT stream, witness, length, head, at_ms, sealed FROM receipts"
_RECEIPT_ORDER = "ORDER BY stream, length, at_ms, witness, sealed"
RECEIPTS: Final = f"{_RECEIPT} {_RECEIPT_ORDER}"
RECEIPTS_OF: Final = f"{_RECEIPT} WHERE stream = :stream {_RECEIPT_ORDER}"
RECEIPTS_AT: Final = f"{_RECEIPT} WHERE stream = :stream AND length = :length {_RECEIPT_ORDER}"
PUT_RECEIPT: Final = (
    f"{insert('receipts', ('stream', 'sealed', 'witness', 'length', 'head', 'at_ms'))} "
    "ON CONFLICT (stream, sealed) DO NOTHING"
)

CHECKPOINT: Final = "SELECT sealed FROM checkpoints WHERE stream = :stream"
PUT_CHECKPOINT: Final = upsert("checkpoints", ("stream",), ("length", "sealed"))

_CLAIM = "SELECT stream, claim, entitlement, admitted_at, released_at FROM claims WHERE stream = :stream"
CLAIM: Final = f"{_CLAIM} AND claim = :claim"
CLAIMS: Final = f"{_CLAIM} ORDER BY admitted_at, claim"
PUT_CLAIM: Final = upsert("claims", ("stream", "claim"), ("entitlement", "admitted_at", "released_at"))

_REPORT_REST = ("completed_units", "spent_uj", "grade", "at_ms", "observed_ms", "observed_uj", "weight_zero")
_REPORT = f"SELECT stream, claim, {', '.join(_REPORT_REST)} FROM reports WHERE stream = :stream"
REPORT: Final = f"{_REPORT} AND claim = :claim"
REPORTS: Final = f"{_REPORT} ORDER BY claim"
PUT_REPORT: Final = upsert("reports", ("stream", "claim"), _REPORT_REST)
DROP_REPORT: Final = "DELETE FROM reports WHERE stream = :stream AND claim = :claim"

CLEAR_INDEX: Final = tuple(
    f"DELETE FROM {table}"
    for table in (
        "objects",
        "tombstones",
        "quotas",
        "authz_rows",
        "fleets",
        "journal_objects",
        "applied_plans",
        "claims",
        "checkpoints",
    )
)
"""Everything that is a fold of the ledgers and documents."""

WRITTEN: Final = "SELECT (SELECT COUNT(*) FROM meta) + (SELECT COUNT(*) FROM objects) + (SELECT COUNT(*) FROM streams)"
"""Zero while nothing but the schema was ever written."""
