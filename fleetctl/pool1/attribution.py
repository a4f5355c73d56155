"""Dividing a device's energy among its occupants (pool/1 §2.5): exact, conserving, and graded as the model that it is."""

from __future__ import annotations

from collections.abc import Iterable

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.pool1.grade import Grade, divided
from fleetctl.units import check_quantity, shown

NO_OCCUPANTS = code(
    "no-occupants",
    "A device without occupants has nobody to attribute its energy to",
    trigger="pool1 attribute with an empty list of occupants, even for 0 uJ",
)
NO_WEIGHT = code(
    "no-weight",
    "Occupants that all weigh 0 give no basis to divide on",
    trigger="pool1 attribute with every weight 0",
)
DUPLICATE_OCCUPANT = code(
    "duplicate-occupant",
    "Two occupants of one device have the same id",
    trigger="pool1 attribute with two occupants a",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """Somebody on the device, with a weight in the operator's basis. Raises ValueError for a weight that is no integer from 0 to 2^63-1."""

    id: str
    weight: int

    def __post_init__(self) -> None:
        check_quantity(self.weight, "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """An occupant's part. `weight_zero` marks one that was given nothing whatever it spent: no evidence of idleness (A53)."""

    id: str
    energy_uj: int
    grade: Grade
    weight_zero: bool


def attribute(total_uj: int, grade: Grade, occupants: Iterable[Occupant]) -> tuple[Share, ...]:
    """The shares of a device's total, by occupant id ascending; they sum to it exactly.

    ⌊T·w/W⌋ each, what flooring left goes to the largest remainders, ties by id (A54). One occupant keeps the device's grade,
    two or more have it degraded, zero weights counted too (A55). Raises BadInput for no occupants, no weight, an id twice (A56).
    """
    check_quantity(total_uj, "total_uj")
    found = sorted(occupants, key=lambda occupant: occupant.id)
    weight = _total_weight(found)
    parts = [divmod(total_uj * occupant.weight, weight) for occupant in found]
    left = total_uj - sum(quotient for quotient, _ in parts)
    by_remainder = sorted(range(len(found)), key=lambda index: (-parts[index][1], found[index].id))
    # fewer are left than there are remainders above 0, so weight 0 never receives one
    topped = frozenset(by_remainder[:left])
    shared = divided(grade, len(found))
    return tuple(
        Share(
            id=occupant.id,
            energy_uj=parts[index][0] + (index in topped),
            grade=shared,
            weight_zero=occupant.weight == 0,
        )
        for index, occupant in enumerate(found)
    )


def _total_weight(occupants: list[Occupant]) -> int:
    """W, after the refusals; `occupants` are sorted by id."""
    if not occupants:
        raise BadInput(NO_OCCUPANTS.at("the device has no occupants; name who was on it, or leave the device out"))
    for one, other in zip(occupants, occupants[1:], strict=False):
        if one.id == other.id:
            raise BadInput(
                DUPLICATE_OCCUPANT.at(f"the id {shown(one.id)} is given to two occupants; give each its own")
            )
    weight = sum(occupant.weight for occupant in occupants)
    if weight == 0:
        raise BadInput(NO_WEIGHT.at("all occupants weigh 0; give at least one a weight above 0"))
    return weight
