"""In what order running work yields (pool/1 §5). Evidence before declaration: who is known to spend badly goes first."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import TreeState
from fleetctl.units import MAX_QUANTITY, check_quantity, shown

DUPLICATE_WORKLOAD = code(
    "duplicate-workload",
    "Two workloads have the same id",
    trigger="pool1 preempt or idle with two workloads w1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A running claim: what it spent and completed so far, what it holds, and its entitlement's priority (A46).

    Raises ValueError for a figure that is no integer from 0 to 2^63-1, and for a priority beyond ±(2^63-1).
    """

    id: str
    entitlement: str
    priority: int
    spent_uj: int
    grade: Grade
    completed_units: int
    devices: int
    reserved_uj: int

    def __post_init__(self) -> None:
        check_quantity(self.spent_uj, "spent_uj")
        check_quantity(self.completed_units, "completed_units")
        check_quantity(self.devices, "devices")
        check_quantity(self.reserved_uj, "reserved_uj")
        if type(self.priority) is not int or abs(self.priority) > MAX_QUANTITY:
            raise ValueError(f"priority must be an integer within ±{MAX_QUANTITY}, not {self.priority!r}")

    @property
    def freed_uj(self) -> int:
        """What ending it gives back: the reservation less what it spent, at least 0 (A47)."""
        return max(0, self.reserved_uj - self.spent_uj)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Workloads in the order they yield, and which of them have no known cost: always the last ones."""

    order: tuple[Workload, ...]
    undefined: tuple[Workload, ...]


def realised_cost(workload: Workload) -> Fraction | None:
    """Spent microjoules per completed unit, exact (§5.1, A42); None, undefined, when nothing completed or nobody measured (A44)."""
    if workload.completed_units == 0 or not workload.grade.observed:
        return None
    return Fraction(workload.spent_uj, workload.completed_units)


def rank(workloads: Iterable[Workload]) -> Ranking:
    """The order of §5.2 over whatever it is given (A41).

    1. known cost, dearest first, a cost of 0 included (A43); 2. unknown cost, lowest priority first. Ties by id, ascending bytes,
    which is arbitrary (A45). Raises BadInput for two workloads of one id: the order would not be total.
    """
    found = list(workloads)
    check_distinct(workload.id for workload in found)
    known = [(-cost, item.id, item) for item in found if (cost := realised_cost(item)) is not None]
    unknown = [item for item in found if realised_cost(item) is None]
    known.sort(key=lambda entry: entry[:2])
    unknown.sort(key=lambda item: (item.priority, item.id))
    return Ranking(order=(*(item for _, _, item in known), *unknown), undefined=tuple(unknown))


def candidates(state: TreeState, entitlement: str, workloads: Iterable[Workload]) -> list[Workload]:
    """Extension (A41): only claims of entitlements past their guarantee, under the parent of `entitlement`, are ranked.

    The standard ranks whatever set it is given and exempts nobody. A root has no siblings, so there only its own claims remain.
    """
    node = state.nodes[entitlement]
    found = []
    for workload in workloads:
        other = state.nodes.get(workload.entitlement)
        if other is None or other.used_uj <= other.guarantee_uj:
            continue
        if other is node or (node.siblings is not None and other.siblings is node.siblings):
            found.append(workload)
    return found


def victims(order: Iterable[Workload], *, devices: int, energy_uj: int) -> list[Workload] | None:
    """The shortest prefix of an order that frees both needs (A47); None when all of it does not."""
    taken: list[Workload] = []
    for workload in order:
        if devices <= 0 and energy_uj <= 0:
            break
        taken.append(workload)
        devices -= workload.devices
        energy_uj -= workload.freed_uj
    return taken if devices <= 0 and energy_uj <= 0 else None


def check_distinct(ids: Iterable[str]) -> None:
    """Raise BadInput when an id comes twice."""
    seen: set[str] = set()
    for item in ids:
        if item in seen:
            raise BadInput(DUPLICATE_WORKLOAD.at(f"the id {shown(item)} is given to two workloads; give each its own"))
        seen.add(item)
