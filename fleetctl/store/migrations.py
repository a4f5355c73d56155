"""The schema, as numbered migrations. A released migration is never edited; a change is a new one at the end.

Types are written as placeholders, because the two databases name them differently and text must sort by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

SQLITE_TYPES: Final[Mapping[str, str]] = {"int": "INTEGER", "text": "TEXT", "bytes": "BLOB", "strict": " STRICT"}
POSTGRES_TYPES: Final[Mapping[str, str]] = {
    "int": "BIGINT",
    "text": 'TEXT COLLATE "C"',
    "bytes": "BYTEA",
    "strict": "",
}

_FIRST: Final = (
    "CREATE TABLE meta (name {text} PRIMARY KEY NOT NULL, value {text} NOT NULL){strict}",
    """CREATE TABLE objects (
        kind {text} NOT NULL, id {text} NOT NULL, tenant {text} NOT NULL, key {text} NOT NULL, name {text} NOT NULL,
        version {int} NOT NULL, body {text} NOT NULL, fleet {text}, protect {int} NOT NULL, archived {int} NOT NULL,
        explicit_only {int} NOT NULL, last_applied {text}, digest {bytes} NOT NULL, PRIMARY KEY (kind, id)){strict}""",
    """CREATE TABLE tombstones (
        kind {text} NOT NULL, id {text} NOT NULL, version {int} NOT NULL, key {text} NOT NULL, name {text} NOT NULL,
        fleet {text}, last_applied {text}, PRIMARY KEY (kind, id)){strict}""",
    """CREATE TABLE quotas (
        pool {text} NOT NULL, tenant {text} NOT NULL, resource {text} NOT NULL, maximum {int} NOT NULL,
        PRIMARY KEY (pool, tenant, resource)){strict}""",
    """CREATE TABLE authz_rows (
        pool {text} NOT NULL, tenant {text} NOT NULL, gpu_model {text} NOT NULL, pool_class {text} NOT NULL,
        sharing {text} NOT NULL, region {text} NOT NULL, owned {int} NOT NULL, PRIMARY KEY (pool, tenant)){strict}""",
    """CREATE TABLE fleets (
        fleet {text} PRIMARY KEY NOT NULL, entry {int} NOT NULL, commit_hash {text}, origin_root {text},
        origin_path {text}){strict}""",
    """CREATE TABLE events (
        seq {int} PRIMARY KEY NOT NULL, at_ms {int} NOT NULL, type {text} NOT NULL, object {text} NOT NULL,
        tenant {text} NOT NULL, data {text} NOT NULL){strict}""",
    """CREATE TABLE nodes (
        id {text} PRIMARY KEY NOT NULL, pool {text} NOT NULL, name {text} NOT NULL, gpus {int} NOT NULL,
        joined_at_ms {int} NOT NULL, product {text}, vram_gib {int}, vcpu {int}, memory_gib {int}){strict}""",
    """CREATE TABLE reservations (
        id {text} PRIMARY KEY NOT NULL, tenant {text} NOT NULL, pool {text} NOT NULL, gpus {int} NOT NULL,
        state {text} NOT NULL, created_at_ms {int} NOT NULL, key {text}, entitlement {text}, claim {text},
        ended_at_ms {int}, reason {text}, placement {text} NOT NULL){strict}""",
    "CREATE INDEX reservations_active ON reservations (pool, tenant, gpus) WHERE state = 'active'",
    """CREATE TABLE streams (
        stream {text} PRIMARY KEY NOT NULL, ledger {text} NOT NULL, length {int} NOT NULL, head {bytes} NOT NULL,
        closed {int} NOT NULL){strict}""",
    """CREATE TABLE entries (
        stream {text} NOT NULL REFERENCES streams (stream), seq {int} NOT NULL, sealed {bytes} NOT NULL,
        PRIMARY KEY (stream, seq)){strict}""",
    """CREATE TABLE journal_objects (
        kind {text} NOT NULL, id {text} NOT NULL, entry {int} NOT NULL, PRIMARY KEY (kind, id, entry)){strict}""",
    "CREATE TABLE applied_plans (plan {text} PRIMARY KEY NOT NULL, entry {int} NOT NULL UNIQUE){strict}",
    "CREATE TABLE documents (digest {text} PRIMARY KEY NOT NULL, content {bytes} NOT NULL){strict}",
    """CREATE TABLE receipts (
        stream {text} NOT NULL, sealed {bytes} NOT NULL, witness {text} NOT NULL, length {int} NOT NULL,
        head {bytes} NOT NULL, at_ms {int} NOT NULL, PRIMARY KEY (stream, sealed)){strict}""",
    """CREATE TABLE checkpoints (
        stream {text} PRIMARY KEY NOT NULL, length {int} NOT NULL, sealed {bytes} NOT NULL){strict}""",
    """CREATE TABLE claims (
        stream {text} NOT NULL, claim {text} NOT NULL, entitlement {text} NOT NULL, admitted_at {int} NOT NULL,
        released_at {int}, PRIMARY KEY (stream, claim)){strict}""",
    """CREATE TABLE reports (
        stream {text} NOT NULL, claim {text} NOT NULL, completed_units {int} NOT NULL, spent_uj {int} NOT NULL,
        grade {text} NOT NULL, at_ms {int} NOT NULL, observed_ms {int}, observed_uj {int}, weight_zero {int} NOT NULL,
        PRIMARY KEY (stream, claim)){strict}""",
)

Migration = tuple[str, ...]
"""The statements that lead from one schema version to the next."""
MIGRATIONS: Final[tuple[Migration, ...]] = (_FIRST,)
"""`MIGRATIONS[n]` leads from version n to version n + 1."""


def migrate(
    run: Callable[[str], object], migrations: Sequence[Migration], types: Mapping[str, str], version: int
) -> int:
    """Run what is missing after `version`, inside the caller's transaction; returns the version reached."""
    for statements in migrations[version:]:
        for statement in statements:
            run(statement.format_map(types))
    return max(version, len(migrations))
