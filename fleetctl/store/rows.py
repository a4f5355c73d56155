"""Rows of the store as values of the model, and back. Columns come in the order of the statements in `sql`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from fleetctl.canonical import canonical_json
from fleetctl.model.changes import AuthzRow, Event, QuotaRow
from fleetctl.model.ids import KIND_RANK, Kind, ObjectId
from fleetctl.model.live import FleetRecord, LiveObject, ObjectKey, Tombstone
from fleetctl.model.operational import (
    MAX_GPUS,
    ClaimRow,
    EnergyGrade,
    Node,
    Observation,
    Reservation,
    ReservationState,
    WorkReport,
)
from fleetctl.model.usage import BookedUse
from fleetctl.ports import StoredEvent, StoredReceipt, StreamHead
from fleetctl.store.errors_table import row_unreadable
from fleetctl.units import LAST_MS

Row = tuple[Any, ...]
Values = Mapping[str, Any]

_RESERVATION_STATES = frozenset(get_args(ReservationState))
_GRADES = frozenset(get_args(EnergyGrade))
_MOST_SUMMED = MAX_GPUS * 1_000_000


def objects(found: Iterable[Row]) -> list[LiveObject]:
    """Raises Tampered for a kind that does not exist. Ten thousand rows are a matter of milliseconds: no parsing here."""
    known, out = KIND_RANK, list[LiveObject]()
    for kind, id, tenant, key, name, version, body, fleet, protect, archived, explicit_only, last_applied in found:
        if kind not in known:
            _kind("objects", kind, id)
        out.append(
            LiveObject(
                kind=kind,
                id=id,
                tenant=tenant,
                key=key,
                name=name,
                version=version,
                body_json=body,
                fleet=fleet,
                protect=protect != 0,
                archived=archived != 0,
                explicit_only=explicit_only != 0,
                last_applied_json=last_applied,
            )
        )
    return out


def object_values(item: LiveObject) -> Values:
    return {
        "kind": item.kind,
        "id": item.id,
        "tenant": item.tenant,
        "key": item.key,
        "name": item.name,
        "version": item.version,
        "body": item.body_json,
        "fleet": item.fleet,
        "protect": int(item.protect),
        "archived": int(item.archived),
        "explicit_only": int(item.explicit_only),
        "last_applied": item.last_applied_json,
        "digest": item.digest(),
    }


def object_key(kind: Any, id: Any) -> ObjectKey:
    """Raises Tampered for a kind that does not exist."""
    return _kind("objects", kind, id), id


def tombstone(row: Row) -> Tombstone:
    """Raises Tampered for a kind that does not exist."""
    kind, id, version, key, name, fleet, last_applied = row
    return Tombstone(
        kind=_kind("tombstones", kind, id),
        id=id,
        version=version,
        key=key,
        name=name,
        fleet=fleet,
        last_applied_json=last_applied,
    )


def tombstone_values(stone: Tombstone) -> Values:
    return {
        "kind": stone.kind,
        "id": stone.id,
        "version": stone.version,
        "key": stone.key,
        "name": stone.name,
        "fleet": stone.fleet,
        "last_applied": stone.last_applied_json,
    }


def quota(row: Row) -> QuotaRow:
    pool, tenant, resource, maximum = row
    return QuotaRow(pool=pool, tenant=tenant, resource=resource, maximum=maximum)


def quota_values(row: QuotaRow) -> Values:
    return {"pool": row.pool, "tenant": row.tenant, "resource": row.resource, "maximum": row.maximum}


def authz(row: Row) -> AuthzRow:
    pool, tenant, gpu_model, pool_class, sharing, region, owned = row
    return AuthzRow(
        pool=pool,
        tenant=tenant,
        gpu_model=gpu_model,
        pool_class=pool_class,
        sharing=sharing,
        region=region,
        owned=owned != 0,
    )


def authz_values(row: AuthzRow) -> Values:
    return {
        "pool": row.pool,
        "tenant": row.tenant,
        "gpu_model": row.gpu_model,
        "pool_class": row.pool_class,
        "sharing": row.sharing,
        "region": row.region,
        "owned": int(row.owned),
    }


def fleet(row: Row) -> tuple[str, FleetRecord]:
    name, entry, commit, root, path = row
    origin = None if root is None or path is None else (root, path)
    return name, FleetRecord(entry=entry, commit=commit, origin=origin)


def fleet_values(name: str, record: FleetRecord) -> Values:
    root, path = record.origin or (None, None)
    return {
        "fleet": name,
        "entry": record.entry,
        "commit_hash": record.commit,
        "origin_root": root,
        "origin_path": path,
    }


def event(row: Row) -> StoredEvent:
    """Raises Tampered when the event's data are not a JSON object."""
    seq, at_ms, kind, subject, tenant, data = row
    parsed = _parsed("events", str(seq), data)
    if not isinstance(parsed, dict):
        raise row_unreadable(f"events/{seq}", "its data are not a JSON object")
    _check_moments(f"events/{seq}", at_ms)
    return StoredEvent(seq=seq, at_ms=at_ms, event=Event(type=kind, object=subject, tenant=tenant, data=parsed))


def event_values(seq: int, at_ms: int, item: Event) -> Values:
    return {
        "seq": seq,
        "at_ms": at_ms,
        "type": item.type,
        "object": item.object,
        "tenant": item.tenant,
        "data": canonical_json(item.data),
    }


def inventory(row: Row) -> tuple[ObjectId, int]:
    """A pool and the GPUs of its nodes. Raises Tampered for a sum that no nodes have."""
    pool, gpus = row
    if not 1 <= gpus <= _MOST_SUMMED:
        raise row_unreadable("nodes", f"those of {pool} have {gpus} GPUs together")
    return pool, gpus


def booked(row: Row) -> tuple[tuple[ObjectId, str], BookedUse]:
    """What a tenant holds of a pool. Raises Tampered for a sum that no reservations have."""
    pool, tenant, count, gpus = row
    if not 1 <= gpus <= _MOST_SUMMED:
        raise row_unreadable("reservations", f"those of {tenant} in {pool} have {gpus} GPUs together")
    return (pool, tenant), BookedUse(reservations=count, resources={"gpu": gpus})


def node(row: Row) -> Node:
    """Raises Tampered for a number of GPUs that no node has, and a moment that never was."""
    id, pool, name, gpus, joined_at_ms, product, vram_gib, vcpu, memory_gib = row
    _check_gpus(f"nodes/{id}", gpus)
    _check_moments(f"nodes/{id}", joined_at_ms)
    return Node(
        id=id,
        pool=pool,
        name=name,
        gpus=gpus,
        joined_at_ms=joined_at_ms,
        product=product,
        vram_gib=vram_gib,
        vcpu=vcpu,
        memory_gib=memory_gib,
    )


def node_values(item: Node) -> Values:
    return {
        "id": item.id,
        "pool": item.pool,
        "name": item.name,
        "gpus": item.gpus,
        "joined_at_ms": item.joined_at_ms,
        "product": item.product,
        "vram_gib": item.vram_gib,
        "vcpu": item.vcpu,
        "memory_gib": item.memory_gib,
    }


def reservation(row: Row) -> Reservation:
    """Raises Tampered for an unknown state, a placement that is not a list of [node id, GPUs], and figures that cannot be."""
    id, tenant, pool, gpus, state, created_at_ms, key, entitlement, claim, ended_at_ms, reason, placement = row
    if state not in _RESERVATION_STATES:
        raise row_unreadable(f"reservations/{id}", f"no reservation has the state {state!r}")
    _check_gpus(f"reservations/{id}", gpus)
    _check_moments(f"reservations/{id}", created_at_ms, ended_at_ms)
    return Reservation(
        id=id,
        tenant=tenant,
        pool=pool,
        gpus=gpus,
        state=state,
        created_at_ms=created_at_ms,
        key=key,
        entitlement=entitlement,
        claim=claim,
        ended_at_ms=ended_at_ms,
        reason=reason,
        placement=_placement(id, placement),
    )


def reservation_values(item: Reservation) -> Values:
    return {
        "id": item.id,
        "tenant": item.tenant,
        "pool": item.pool,
        "gpus": item.gpus,
        "state": item.state,
        "created_at_ms": item.created_at_ms,
        "key": item.key,
        "entitlement": item.entitlement,
        "claim": item.claim,
        "ended_at_ms": item.ended_at_ms,
        "reason": item.reason,
        "placement": canonical_json(item.placement),
    }


def stream_head(row: Row) -> StreamHead:
    stream, ledger, length, head, closed = row
    return StreamHead(stream=stream, ledger=ledger, length=length, head=head, closed=closed != 0)


def receipt(row: Row) -> StoredReceipt:
    stream, witness, length, head, at_ms, sealed = row
    return StoredReceipt(stream=stream, witness=witness, length=length, head=head, at_ms=at_ms, sealed=sealed)


def receipt_values(item: StoredReceipt) -> Values:
    return {
        "stream": item.stream,
        "witness": item.witness,
        "length": item.length,
        "head": item.head,
        "at_ms": item.at_ms,
        "sealed": item.sealed,
    }


def claim(row: Row) -> ClaimRow:
    stream, id, entitlement, admitted_at, released_at = row
    return ClaimRow(stream=stream, claim=id, entitlement=entitlement, admitted_at=admitted_at, released_at=released_at)


def claim_values(item: ClaimRow) -> Values:
    return {
        "stream": item.stream,
        "claim": item.claim,
        "entitlement": item.entitlement,
        "admitted_at": item.admitted_at,
        "released_at": item.released_at,
    }


def report(row: Row) -> WorkReport:
    """Raises Tampered for an unknown grade, a negative figure, or half of an observation."""
    stream, claim, completed_units, spent_uj, grade, at_ms, observed_ms, observed_uj, weight_zero = row
    if grade not in _GRADES or (observed_ms is None) is not (observed_uj is None):
        raise row_unreadable(f"reports/{claim}", f"no report has the grade {grade!r} or half of an observation")
    try:
        observation = None
        if observed_ms is not None:
            observation = Observation(observed_ms=observed_ms, energy_uj=observed_uj, weight_zero=weight_zero != 0)
        return WorkReport(
            stream=stream,
            claim=claim,
            completed_units=completed_units,
            spent_uj=spent_uj,
            grade=grade,
            at_ms=at_ms,
            observation=observation,
        )
    except ValueError as error:
        raise row_unreadable(f"reports/{claim}", str(error)) from None


def report_values(item: WorkReport) -> Values:
    seen = item.observation
    return {
        "stream": item.stream,
        "claim": item.claim,
        "completed_units": item.completed_units,
        "spent_uj": item.spent_uj,
        "grade": item.grade,
        "at_ms": item.at_ms,
        "observed_ms": None if seen is None else seen.observed_ms,
        "observed_uj": None if seen is None else seen.energy_uj,
        "weight_zero": int(seen is not None and seen.weight_zero),
    }


def _check_gpus(where: str, gpus: int) -> None:
    if not 1 <= gpus <= MAX_GPUS:
        raise row_unreadable(where, f"it has {gpus} GPUs")


def _check_moments(where: str, *moments: int | None) -> None:
    for at_ms in moments:
        if at_ms is not None and not 0 <= at_ms <= LAST_MS:
            raise row_unreadable(where, f"{at_ms} is no moment in Unix milliseconds")


def _placement(id: str, text: str) -> tuple[tuple[ObjectId, int], ...]:
    parsed = _parsed("reservations", id, text)
    if not isinstance(parsed, list) or not all(_is_place(item) for item in parsed):
        raise row_unreadable(f"reservations/{id}", "its placement is not a list of [node, GPUs]")
    return tuple((ObjectId(where), gpus) for where, gpus in parsed)


def _is_place(item: object) -> bool:
    return isinstance(item, list) and [type(part) for part in item] == [str, int]


def _parsed(table: str, id: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise row_unreadable(f"{table}/{id}", "it holds text that is not JSON") from None


def _kind(table: str, kind: Any, id: str) -> Kind:
    if kind not in KIND_RANK:
        raise row_unreadable(f"{table}/{id}", f"no object has the kind {kind!r}")
    return cast(Kind, kind)
