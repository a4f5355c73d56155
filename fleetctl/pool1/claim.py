"""Claims and the figures that end them (pool/1 §2.4, §3, §6.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from fleetctl.frozen import dataclass
from fleetctl.pool1.grade import Grade, weakest
from fleetctl.units import check_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A request for a gang that starts together or not at all (§2.4).

    `estimate_uj` is the whole gang's energy in microjoules at `grade`; devices multiply by member, energy does not (A28).
    `claim_class` is the caller's word for comparable work, recorded when the claim is admitted.
    Raises ValueError for a figure that is no integer from 0 to 2^63-1 (A29).
    """

    entitlement: str
    gang_size: int
    devices_per_member: int
    estimate_uj: int
    grade: Grade
    claim_class: str | None = None
    devices: int = field(init=False)
    """`gang_size`·`devices_per_member`, exact; may exceed 64 bits, and is then denied."""

    def __post_init__(self) -> None:
        check_quantity(self.gang_size, "gang_size")
        check_quantity(self.devices_per_member, "devices_per_member")
        check_quantity(self.estimate_uj, "estimate_uj")
        object.__setattr__(self, "devices", self.gang_size * self.devices_per_member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """An energy figure in microjoules with its grade (§2.3)."""

    energy_uj: int
    grade: Grade

    def __post_init__(self) -> None:
        check_quantity(self.energy_uj, "energy_uj")


NOTHING_RAN = Figure(energy_uj=0, grade=Grade.ESTIMATOR)
"""What a claim that was admitted but never placed is released with (A77): known to be 0, read by nobody, no evidence."""


def charged(reserved_uj: int, reading: Figure | None) -> Figure:
    """What a release charges in place of the reservation (§6.2).

    The reading, over or under the estimate (A37, A39). Without one the reservation itself, as a guess (A38): 0 would turn
    "unknown" into a value, and the Estimator grade keeps it out of the evidence of §2.6.
    """
    return reading if reading is not None else Figure(energy_uj=reserved_uj, grade=Grade.ESTIMATOR)


def summed(figures: Iterable[Figure]) -> tuple[int, Grade]:
    """The exact sum of figures in microjoules, which may exceed 64 bits, and the weakest of their grades (A72).

    Raises ValueError for none.
    """
    found = list(figures)
    return sum(item.energy_uj for item in found), weakest(item.grade for item in found)
