"""The index tables beside what they are an index of: where they differ, and how to write them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from fleetctl.engine.context import Engine, usage_stream
from fleetctl.engine.fold import Fold, QuotaKey, fold_journal
from fleetctl.engine.streams import usage_claims, verify_stream
from fleetctl.ledger.identifiers import kind_of
from fleetctl.model.changes import QuotaRow
from fleetctl.model.live import ObjectKey
from fleetctl.model.operational import ClaimRow
from fleetctl.ports import Reader, Writer

_Key = TypeVar("_Key", bound=tuple[str, ...])


def rebuild(engine: Engine, wait_ms: int = 60_000) -> int:
    """Write the index tables again from ledgers and documents. Returns the number of journal entries folded.

    Quota rows that the end of an offer left behind stay as they are where that can be, else they are lowered to what is
    in use now. Raises Tampered when ledgers or documents do not verify.
    """
    with engine.store.write(wait_ms) as tx:
        return rebuild_in(engine, tx)


def rebuild_in(engine: Engine, tx: Writer, new_from: int | None = None) -> int:
    """As `rebuild`, in an open transaction. Events of journal entries from the place `new_from` on are added; where there are no
    events at all, those of every entry.
    """
    fold = fold_journal(engine, tx)
    claims = [row for stream in _usage_streams(engine, tx) for row in _claims(engine, tx, stream)]
    quotas = _quotas(fold, tx)
    first = 0 if not tx.events(0, 1) else new_from
    tx.clear_index()
    tx.drop_objects(fold.tombstones.values())
    tx.put_objects(fold.objects().values())
    tx.put_quotas(quotas)
    tx.put_authz(fold.authz.values())
    for step in fold.steps:
        tx.index_journal(step.entry, step.touched, step.plan)
        if first is not None and step.entry >= first:
            tx.add_events(step.events, step.at_ms)
    for fleet, record in fold.fleets.items():
        tx.put_fleet(fleet, record)
    tx.put_claims(claims)
    return len(fold.steps)


def differences(engine: Engine, reader: Reader) -> list[str]:
    """Every row of an index table that is not what ledgers and documents stand for: objects as `kind/key`, else with the table's name.

    Raises Tampered when ledgers or documents do not verify.
    """
    fold = fold_journal(engine, reader)
    claims = _claims_off(engine, reader)
    return sorted({*_objects_off(fold, reader), *_rows_off(fold, reader), *claims, *_reservations_off(engine, reader)})


def _objects_off(fold: Fold, reader: Reader) -> Iterator[str]:
    stored = {(item.kind, item.id): item for item in reader.objects()}
    folded = fold.objects()
    for key in stored.keys() | folded.keys():
        if stored.get(key) != folded.get(key):
            yield (stored.get(key) or folded[key]).label
    for key, digest in reader.stored_digests():
        if digest != fold.digests.get(key):
            yield f"digest of {key[0]} {key[1]}"
    yield from _off("tombstone", {(stone.kind, stone.id): stone for stone in reader.tombstones()}, fold.tombstones)


def _rows_off(fold: Fold, reader: Reader) -> Iterator[str]:
    quotas = {(row.pool, row.tenant, row.resource): row.maximum for row in reader.quotas()}
    expected = {
        key: quotas[key] if key in fold.left and key in quotas and 0 <= quotas[key] <= fold.left[key] else maximum
        for key, maximum in fold.quotas.items()
    }
    yield from _off("quota", quotas, expected)
    yield from _off("authorization", {(row.pool, row.tenant): row for row in reader.authz()}, fold.authz)
    yield from _off(
        "fleet",
        {(name,): record for name, record in reader.fleets()},
        {(name,): record for name, record in fold.fleets.items()},
    )
    touching: dict[ObjectKey, list[int]] = {}
    for step in fold.steps:
        if step.plan is not None and reader.applied_entry(step.plan) != step.entry:
            yield f"applied plan {step.plan}"
        for key in step.touched:
            touching.setdefault(key, []).append(step.entry)
    for key, entries in touching.items():
        if list(reader.journal_touching(*key)) != entries:
            yield f"journal index {key[0]} {key[1]}"


def _claims_off(engine: Engine, reader: Reader) -> Iterator[str]:
    for stream in _usage_streams(engine, reader):
        stored = {(stream, row.claim): row for row in reader.claims(stream)}
        yield from _off("claim", stored, {(stream, row.claim): row for row in _claims(engine, reader, stream)})


def _reservations_off(engine: Engine, reader: Reader) -> Iterator[str]:
    """Running reservations whose claim the ledger does not hold open with the same figures: both are written by one command."""
    opened = verify_stream(engine, reader, usage_stream(reader)).fold
    assert opened is not None, "the stream in force holds usage"
    claims = opened.open_claims
    for item in reader.reservations():
        if item.state == "active" and item.claim is not None:
            claim = claims.get(item.claim)
            if claim is None or (claim.entitlement, claim.devices) != (item.entitlement, item.gpus):
                yield f"reservation {item.id}"


def _off(table: str, stored: Mapping[_Key, object], folded: Mapping[_Key, object]) -> Iterator[str]:
    for key in stored.keys() | folded.keys():
        if stored.get(key) != folded.get(key):
            yield f"{table} {' '.join(key)}"


def _usage_streams(engine: Engine, reader: Reader) -> list[str]:
    return [item.stream for item in reader.streams() if kind_of(engine.ledger(item.stream)) == "entitlements"]


def _claims(engine: Engine, reader: Reader, stream: str) -> list[ClaimRow]:
    verify_stream(engine, reader, stream)
    return list(usage_claims(engine, reader, stream))


def _quotas(fold: Fold, reader: Reader) -> list[QuotaRow]:
    """The rows of the fold, those left behind as they were found or, where that cannot be, as they would be left now."""
    stored = {(row.pool, row.tenant, row.resource): row.maximum for row in reader.quotas()}
    booked = dict(reader.booked())

    def maximum(key: QuotaKey) -> int:
        most, found = fold.left.get(key), stored.get(key)
        if most is None:
            return fold.quotas[key]
        if found is not None and 0 <= found <= most:
            return found
        use = booked.get(key[:2])
        return min(most, use.resources.get(key[2], 0) if use else 0)

    return [QuotaRow(pool=key[0], tenant=key[1], resource=key[2], maximum=maximum(key)) for key in fold.quotas]
