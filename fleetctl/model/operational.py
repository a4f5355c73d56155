"""Operational state: what runs, as opposed to what is configured. Not part of the state digest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fleetctl.model.ids import ObjectId

ReservationState = Literal["pending", "active", "ended", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine in a pool. CPU and memory are what it has installed, in whole units."""

    id: ObjectId
    pool: ObjectId
    name: str
    gpus: int
    joined_at_ms: int
    product: str | None = None
    vram_gib: int | None = None
    vcpu: int | None = None
    memory_gib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A tenant's hold on whole GPUs of a pool; `claim` ties it to the entitlement ledger when one pays for it."""

    id: ObjectId
    tenant: str
    pool: ObjectId
    gpus: int
    state: ReservationState
    created_at_ms: int
    key: str | None = None
    entitlement: ObjectId | None = None
    claim: str | None = None
    ended_at_ms: int | None = None
    reason: str | None = None
    """Why it is pending or failed, for people."""
    placement: tuple[tuple[ObjectId, int], ...] = ()
    """(node id, GPUs) of an active one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """Index of one claim id of a stream; the ledger is the truth, this finds its entries. Ended claims stay."""

    stream: str
    claim: str
    entitlement: str
    admitted_at: int
    """Index of its Admitted entry."""
    released_at: int | None = None
    """Index of its Released entry; absent while the claim is open."""
