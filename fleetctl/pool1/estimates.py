"""Earning an observed estimate from what comparable work has cost (pool/1 §2.6)."""

from __future__ import annotations

from collections.abc import Iterable

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.pool1.grade import Grade
from fleetctl.units import check_quantity, shown

DEFAULT_REQUIRED = 3
"""The standard's default count of evidence; a policy value, not a derived one."""

EMPTY_CLASS = code(
    "empty-class",
    "A class that says nothing is no class",
    trigger='pool1 derive or decide, or a claim, with class ""',
)
MIXED_CLASSES = code(
    "mixed-classes",
    "Observations of another class cannot be pooled into one figure",
    trigger="pool1 derive for class train with an observation of class eval",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One completed claim's actual figure, under the class that its Admitted entry recorded (A59).

    `entitlement` scopes the evidence (A57). Raises ValueError for a figure that is no integer from 0 to 2^63-1.
    """

    claim_class: str
    energy_uj: int
    grade: Grade
    entitlement: str | None = None

    def __post_init__(self) -> None:
        check_quantity(self.energy_uj, "energy_uj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A derived figure for the next run: a model, however its evidence was read, and no bound on what the work can cost.

    `spread_uj` is the least and the most of the evidence; `seen` counts observations, `evidence` those that are no guesses.
    """

    energy_uj: int
    spread_uj: tuple[int, int]
    seen: int
    evidence: int

    @property
    def grade(self) -> Grade:
        """Always ModelBased: a figure for the next run is a prediction (§2.6)."""
        return Grade.MODEL_BASED


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """Too little evidence: plenty seen and little evidence wants a meter, little seen wants patience (§2.6)."""

    seen: int
    evidence: int


def derive(
    claim_class: str, observations: Iterable[Observation], *, required: int = DEFAULT_REQUIRED
) -> Estimate | Declined:
    """The most that observed runs of the class have cost, at ModelBased, from at least `required` of them (0 counts as 1, A58).

    Guesses are seen and are no evidence. Classes are compared byte for byte (A59). Raises BadInput for an empty or blank class and
    for an observation of another one.
    """
    found = list(observations)
    check_class(claim_class)
    for item in found:
        if item.claim_class != claim_class:
            raise BadInput(
                MIXED_CLASSES.at(
                    f"an observation is of class {shown(item.claim_class)} and the estimate is for {shown(claim_class)}; leave it out"
                )
            )
    evidence = [item.energy_uj for item in found if item.grade.observed]
    spread = (min(evidence), max(evidence)) if evidence else (0, 0)
    return derive_counted(claim_class, seen=len(found), evidence=len(evidence), spread_uj=spread, required=required)


def derive_counted(
    claim_class: str, *, seen: int, evidence: int, spread_uj: tuple[int, int], required: int = DEFAULT_REQUIRED
) -> Estimate | Declined:
    """As `derive`, from a history that is counted already: `seen` runs of the class, `evidence` of them observed, their spread."""
    check_quantity(required, "required")
    check_class(claim_class)
    if evidence < max(1, required):
        return Declined(seen=seen, evidence=evidence)
    return Estimate(energy_uj=spread_uj[1], spread_uj=spread_uj, seen=seen, evidence=evidence)


def check_class(claim_class: str) -> None:
    """Raise BadInput for a class that says nothing: the absence of a class is not a class (§2.6, A59)."""
    if not claim_class.strip():
        raise BadInput(EMPTY_CLASS.at("the class is empty, which asserts nothing about the work; name one"))


def in_scope(
    history: Iterable[Observation], *, entitlement: str, claim_class: str, across_entitlements: bool = False
) -> list[Observation]:
    """The history that speaks for a claim: its class, and its entitlement's own runs unless the policy pools tenants (A57)."""
    return [
        item
        for item in history
        if item.claim_class == claim_class and (across_entitlements or item.entitlement == entitlement)
    ]
