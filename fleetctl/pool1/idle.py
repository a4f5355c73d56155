"""Reclaiming capacity from work that is not working (pool/1 §2.7). Unknown is not idle, and only `Idle` permits reclamation."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from fractions import Fraction

from fleetctl.frozen import dataclass
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.preemption import check_distinct
from fleetctl.units import check_quantity


class IdleVerdict(Enum):
    """Four answers; a workload with no verdict is no candidate, not the last one."""

    IDLE = "Idle"
    WORKING = "Working"
    NO_VERDICT = "NoVerdict"
    NOTHING_HELD = "NothingHeld"


class Why(Enum):
    """The test that settled the verdict."""

    NOTHING_HELD = "nothing-held"
    UNCONFIGURED = "unconfigured"
    WINDOW_SHORT = "window-short"
    ESTIMATOR = "estimator"
    ZERO_WEIGHT = "zero-weight"
    BELOW = "below"
    NOT_BELOW = "not-below"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdlePolicy:
    """The window that a verdict must rest on, in milliseconds, and the mean power below which work is idle, in microwatts.

    Both are properties of devices that nobody here guesses: a policy without them, or with a window of 0, reclaims nothing.
    """

    window_ms: int | None = None
    threshold_uw: int | None = None

    def __post_init__(self) -> None:
        if self.window_ms is not None:
            check_quantity(self.window_ms, "window_ms")
        if self.threshold_uw is not None:
            check_quantity(self.threshold_uw, "threshold_uw")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a running workload holds and spent over the time it was observed.

    `weight_zero` marks a share that attribution gave to weight 0: it is no evidence of anything (A53).
    """

    id: str
    devices: int
    observed_ms: int
    energy_uj: int
    grade: Grade
    weight_zero: bool = False

    def __post_init__(self) -> None:
        check_quantity(self.devices, "devices")
        check_quantity(self.observed_ms, "observed_ms")
        check_quantity(self.energy_uj, "energy_uj")


def mean_uw(observed: Observed) -> Fraction | None:
    """Mean power in microwatts, exact; None for an empty window, which has no rate rather than a rate of 0."""
    return Fraction(observed.energy_uj * 1_000, observed.observed_ms) if observed.observed_ms else None


def judge(policy: IdlePolicy, observed: Observed) -> tuple[IdleVerdict, Why]:
    """The verdict on one workload. The order is the standard's; a later test never rescues an earlier refusal (A51)."""
    # 1 nothing held, nothing to reclaim
    if observed.devices == 0:
        return IdleVerdict.NOTHING_HELD, Why.NOTHING_HELD
    # 2 the window: a policy of none is unconfigured, exactly as long is enough (A49, A50)
    if not policy.window_ms:
        return IdleVerdict.NO_VERDICT, Why.UNCONFIGURED
    rate = mean_uw(observed)
    if rate is None or observed.observed_ms < policy.window_ms:
        return IdleVerdict.NO_VERDICT, Why.WINDOW_SHORT
    # 3 the grade, before the value meets any threshold
    if not observed.grade.observed:
        return IdleVerdict.NO_VERDICT, Why.ESTIMATOR
    if observed.weight_zero:
        return IdleVerdict.NO_VERDICT, Why.ZERO_WEIGHT
    # 4 the rate, strictly below (A48)
    if policy.threshold_uw is None:
        return IdleVerdict.NO_VERDICT, Why.UNCONFIGURED
    if rate < policy.threshold_uw:
        return IdleVerdict.IDLE, Why.BELOW
    return IdleVerdict.WORKING, Why.NOT_BELOW


def reclamation_order(policy: IdlePolicy, workloads: Iterable[Observed]) -> list[Observed]:
    """The idle ones, lowest rate first, ties by id (A52); everybody else is absent.

    Raises BadInput for two workloads of one id.
    """
    found = list(workloads)
    check_distinct(item.id for item in found)
    idle = [item for item in found if judge(policy, item)[0] is IdleVerdict.IDLE]
    return sorted(idle, key=lambda item: (mean_uw(item) or 0, item.id))
