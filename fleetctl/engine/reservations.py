"""Reservations of whole GPUs on nodes joined by hand. A reservation and its claim are written by one command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn, cast

from fleetctl.capacity.placement import adds_capacity, free_nodes, place
from fleetctl.capacity.refusals import INVALID_INPUT, INVALID_STATE, NOT_FOUND
from fleetctl.diagnostics import Code, code
from fleetctl.engine.builders import find, refuse_unknown
from fleetctl.engine.claims import (
    Admission,
    Release,
    admit_in,
    check_class,
    entitlement_id,
    release_in,
    release_unread,
    tree_state,
)
from fleetctl.engine.context import Engine, check_identity, check_open
from fleetctl.engine.indexes import check_quotas
from fleetctl.engine.state import check_state, digests_of, load_snapshot
from fleetctl.engine.streams import Usages, read_usages
from fleetctl.engine.witnessing import refuse_rollback
from fleetctl.errors import EngineRefused
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import OfferBody, PoolBody
from fleetctl.model.changes import Event
from fleetctl.model.ids import ObjectId, cli_caller, derive_id, ulid_id
from fleetctl.model.live import LiveObject, Snapshot
from fleetctl.model.operational import MAX_GPUS, Node, Reservation
from fleetctl.pool1.admission import Outcome
from fleetctl.pool1.claim import Claim, Figure
from fleetctl.pool1.grade import Grade
from fleetctl.ports import Reader, Writer
from fleetctl.units import UnixMs

QUOTA_EXCEEDED = code(
    "quota-exceeded",
    "The tenant's quota in the pool does not hold this",
    trigger="a reservation of more GPUs than the quota row has left; a missing row grants 0",
    engine_code="INVALID_STATE",
)
KEY_REUSED = code(
    "reservation-key-reused",
    "The reservation key was used for something else",
    trigger="`reservations create` with the key of a reservation that differs in pool or GPUs",
    engine_code="CONFLICT",
)

WAIT_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a reservation will take from an entitlement: the claim's figures."""

    entitlement: str
    energy_uj: int
    grade: Grade
    workload_class: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """A reservation as it now is, and the answer to its claim when it made one. `existing`: the key was there before."""

    reservation: Reservation
    admission: Admission | None = None
    existing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A reservation that ended, and what its claim was charged."""

    reservation: Reservation
    release: Release | None


def join_node(
    engine: Engine,
    *,
    pool: str,
    name: str,
    gpus: int,
    product: str | None = None,
    vram_gib: int | None = None,
    vcpu: int | None = None,
    memory_gib: int | None = None,
    tenant: str | None = None,
) -> Node:
    """Add a machine to a pool by hand, one of `tenant`'s where it says. Joining again under the same name updates it.

    Raises EngineRefused for an unknown or archived pool, or a node with fewer GPUs than are booked on it.
    """
    with engine.store.write(WAIT_MS) as tx:
        snapshot = _open(engine, tx)[0]
        where = find(snapshot, "pool", pool)
        if tenant not in (None, where.tenant):
            refuse_unknown("pool", pool)
        if where.archived:
            _refuse(INVALID_STATE, f"{where.label} is archived and takes no machines", where.label)
        if not 1 <= gpus <= MAX_GPUS:
            _refuse(INVALID_INPUT, f"a node has from 1 to {MAX_GPUS} GPUs, not {gpus}", f"node/{name}")
        node = Node(
            id=derive_id("node", where.tenant, cli_caller(where.tenant), f"{where.id}/{name}"),
            pool=where.id,
            name=name,
            gpus=gpus,
            joined_at_ms=engine.clock.now_ms(),
            product=product,
            vram_gib=vram_gib,
            vcpu=vcpu,
            memory_gib=memory_gib,
        )
        held = sum(amount for id, amount in _placements(tx, where.id) if id == node.id)
        if gpus < held:
            _refuse(INVALID_STATE, f"{held} GPUs of node {name} are booked; it cannot have {gpus}", f"node/{name}")
        tx.put_node(node)
        return node


def leave_node(engine: Engine, node: str, *, tenant: str | None = None) -> Node:
    """Take a machine out of its pool, one of `tenant`'s where it says. Raises EngineRefused while reservations are on it."""
    with engine.store.write(WAIT_MS) as tx:
        pools = _open(engine, tx)[0].objects
        found = [
            item
            for item in tx.nodes()
            if node in (item.id, item.name) and tenant in (None, pools["pool", item.pool].tenant)
        ]
        if len(found) != 1:
            _refuse(NOT_FOUND, f"{len(found)} nodes have the id or name {node}; name one by id", f"node/{node}")
        held = sum(amount for id, amount in _placements(tx, found[0].pool) if id == found[0].id)
        if held:
            _refuse(
                INVALID_STATE, f"{held} GPUs of node {node} are booked; end those reservations first", f"node/{node}"
            )
        tx.drop_node(found[0].id)
        return found[0]


def create(
    engine: Engine, *, tenant: str, pool: str, gpus: int, estimate: Estimate | None = None, key: str | None = None
) -> Booked:
    """Reserve whole GPUs for a tenant, and admit its claim in the same transaction.

    What does not fit now is `pending`; a claim that can never fit fails it. Raises EngineRefused for a pool the tenant
    cannot see, a quota that does not hold it, a key used for something else, BadInput for a class that no ledger can hold,
    SafetyRefused where a witness knows more than this state.
    """
    check_class(estimate.workload_class if estimate is not None else None)
    refuse_rollback(engine)
    with engine.store.write(WAIT_MS) as tx:
        snapshot, usages = _open(engine, tx)
        where = _visible(snapshot, pool, tenant)
        if not 1 <= gpus <= MAX_GPUS:
            _refuse(INVALID_INPUT, f"a reservation holds from 1 to {MAX_GPUS} GPUs, not {gpus}", where.label)
        id = _id(engine, tenant, key)
        existing = tx.reservation(id)
        if existing is not None:
            return _again(existing, where, gpus)
        _check_quota(snapshot, where, tenant, gpus)
        draft = Reservation(
            id=id,
            tenant=tenant,
            pool=where.id,
            gpus=gpus,
            state="pending",
            created_at_ms=engine.clock.now_ms(),
            key=key,
        )
        booked = _place(engine, tx, snapshot, usages, draft, estimate)
        tx.put_reservation(booked.reservation)
        tx.add_events([_event("reservation.created", booked.reservation)], UnixMs(engine.clock.now_ms()))
        return booked


def end(engine: Engine, id: str, reading: Figure | None = None, *, tenant: str | None = None) -> Ended:
    """End a reservation, one of `tenant`'s where it says, and release its claim, with the actual figure or, without a reading, as reserved.

    Ending twice is nothing. Raises EngineRefused for an unknown one, SafetyRefused where a witness knows more than this state.
    """
    refuse_rollback(engine)
    with engine.store.write(WAIT_MS) as tx:
        _, usages = _open(engine, tx)
        found = tx.reservation(id)
        if found is None or tenant not in (None, found.tenant):
            _refuse(NOT_FOUND, f"there is no reservation {id}", f"reservation/{id}")
        if not is_running(found):
            return Ended(reservation=found, release=None)
        released = release_in(engine, tx, usages, found.claim, reading) if found.claim is not None else None
        return Ended(reservation=_ended(engine, tx, found, None), release=released)


def is_running(reservation: Reservation) -> bool:
    """Whether it holds or waits for GPUs."""
    return reservation.state in ("pending", "active")


def end_all(
    engine: Engine, tx: Writer, usages: Usages, running: Iterable[Reservation], reason: str
) -> tuple[Reservation, ...]:
    """End reservations in an open transaction, without readings: each claim is charged as reserved. `reason` is for people.

    Raises EngineRefused for one whose claim is not open.
    """
    found = list(running)
    release_unread(engine, tx, usages, (item.claim for item in found if item.claim is not None))
    return tuple(_ended(engine, tx, item, reason) for item in found)


def _ended(engine: Engine, tx: Writer, running: Reservation, reason: str | None) -> Reservation:
    ended = replace(running, state="ended", ended_at_ms=engine.clock.now_ms(), reason=reason)
    tx.put_reservation(ended)
    tx.add_events([_event("reservation.ended", ended)], UnixMs(engine.clock.now_ms()))
    return ended


def _open(engine: Engine, tx: Writer) -> tuple[Snapshot, Usages]:
    check_identity(engine, tx)
    check_open(tx)
    usages = read_usages(engine, tx)
    snapshot = load_snapshot(engine, tx, usages)
    check_state(engine, tx, digests_of(snapshot.objects))
    check_quotas(snapshot)
    return snapshot, usages


def _visible(snapshot: Snapshot, pool: str, tenant: str) -> LiveObject:
    """The pool, if the tenant owns it or holds an offer of it; matching is exact (readings B04, B08, B13)."""
    where = find(snapshot, "pool", pool)
    offered = any(
        item.kind == "offer" and (body := cast(OfferBody, item.body())).pool == where.id and body.to == tenant
        for item in snapshot.objects.values()
    )
    if where.archived or not (where.tenant == tenant or offered):
        refuse_unknown("pool", pool)
    sharing = cast(PoolBody, where.body()).sharing
    if sharing != "exclusive":
        _refuse(
            INVALID_STATE,
            f"{where.label} shares GPUs by {sharing}; whole GPUs are reserved in exclusive pools",
            where.label,
        )
    return where


def _check_quota(snapshot: Snapshot, where: LiveObject, tenant: str, gpus: int) -> None:
    maximum = snapshot.quotas.get((where.id, tenant), {}).get("gpu", 0)
    used = snapshot.usage.by_tenant(where.id, tenant).resources.get("gpu", 0)
    if used + gpus > maximum:
        _refuse(
            QUOTA_EXCEEDED,
            f"tenant {tenant} has {max(0, maximum - used)} of {maximum} GPUs left in {where.label}, {gpus} are asked for",
            where.label,
        )


def _place(
    engine: Engine, tx: Writer, snapshot: Snapshot, usages: Usages, draft: Reservation, estimate: Estimate | None
) -> Booked:
    where = cast(PoolBody, snapshot.objects["pool", draft.pool].body())
    if not adds_capacity(where.pool_class):
        why = "its machines are deployed whole, and add nothing that can be reserved"
        return Booked(reservation=replace(draft, reason=why))
    nodes = {item.id: item.gpus for item in tx.nodes() if item.pool == draft.pool}
    chosen = place(draft.gpus, free_nodes(nodes, _placements(tx, draft.pool)))
    if chosen is None:
        return Booked(reservation=replace(draft, reason="the pool has too few free GPUs"))
    if estimate is None:
        return Booked(reservation=replace(draft, state="active", placement=chosen))
    wanted = Claim(
        entitlement=entitlement_id(snapshot.objects.values(), estimate.entitlement),
        gang_size=1,
        devices_per_member=draft.gpus,
        estimate_uj=estimate.energy_uj,
        grade=estimate.grade,
        claim_class=estimate.workload_class,
    )
    tree = tree_state(snapshot.objects.values(), usages)
    admission = admit_in(engine, tx, usages, tree, draft.id, wanted)
    named = replace(draft, entitlement=ObjectId(wanted.entitlement))
    outcome = admission.verdict.outcome
    reasons = ", ".join(reason.value for reason in admission.verdict.reasons)
    if outcome is Outcome.ADMIT:
        return Booked(reservation=replace(named, state="active", placement=chosen, claim=draft.id), admission=admission)
    if outcome is Outcome.DENY:
        ended = engine.clock.now_ms()
        return Booked(
            reservation=replace(named, state="failed", reason=reasons, ended_at_ms=ended), admission=admission
        )
    return Booked(reservation=replace(named, reason=reasons), admission=admission)


def _placements(reader: Reader, pool: ObjectId) -> Iterable[tuple[ObjectId, int]]:
    for item in reader.reservations():
        if item.pool == pool and item.state == "active":
            yield from item.placement


def _id(engine: Engine, tenant: str, key: str | None) -> ObjectId:
    if key is None:
        return ulid_id("reservation", engine.clock.now_ms(), engine.entropy(10))
    return derive_id("reservation", tenant, cli_caller(tenant), key)


def _again(existing: Reservation, where: LiveObject, gpus: int) -> Booked:
    if existing.pool != where.id or existing.gpus != gpus:
        _refuse(
            KEY_REUSED,
            f"the key {existing.key} made {existing.id} with {existing.gpus} GPUs in {existing.pool}; use another key",
            f"reservation/{existing.id}",
        )
    return Booked(reservation=existing, existing=True)


def _event(type: str, reservation: Reservation) -> Event:
    return Event(
        type=type,
        object=f"reservation/{reservation.id}",
        tenant=reservation.tenant,
        data={"pool": reservation.pool, "gpus": reservation.gpus, "state": reservation.state},
    )


def _refuse(kind: Code, detail: str, subject: str) -> NoReturn:
    raise EngineRefused(kind.at(detail, subject=subject))
