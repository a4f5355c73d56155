"""Operational state: what runs, as opposed to what is configured. Not part of the state digest."""

from __future__ import annotations

from typing import Literal

from fleetctl.frozen import dataclass
from fleetctl.model.ids import ObjectId
from fleetctl.units import check_quantity

ReservationState = Literal["pending", "active", "ended", "failed"]
EnergyGrade = Literal["HwShunt", "ModelBased", "Estimator"]

MAX_GPUS = 1_000_000
"""Of a node and of a reservation."""


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
    """Why it is pending or failed, or ended with something else, for people."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a running claim spent over the stretch of time that ended with its report (pool/1 §2.7).

    `weight_zero`: the figure is a share that attribution gave to weight 0, which is no evidence of anything (readings A53).
    Raises ValueError for a figure that is no integer from 0 to 2^63-1.
    """

    observed_ms: int
    energy_uj: int
    weight_zero: bool = False

    def __post_init__(self) -> None:
        check_quantity(self.observed_ms, "observed_ms")
        check_quantity(self.energy_uj, "energy_uj")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkReport:
    """The last that was said of a running claim: units completed and microjoules spent since it began, at a grade.

    Never in the ledger: what the claim is charged is the figure of its release. `observation` has the same grade; absent
    when nobody watched. Raises ValueError for a figure that is no integer from 0 to 2^63-1.
    """

    stream: str
    claim: str
    completed_units: int
    spent_uj: int
    grade: EnergyGrade
    at_ms: int
    observation: Observation | None = None

    def __post_init__(self) -> None:
        check_quantity(self.completed_units, "completed_units")
        check_quantity(self.spent_uj, "spent_uj")
        check_quantity(self.at_ms, "at_ms")
