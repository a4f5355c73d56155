"""The grade of an energy figure (pool/1 §2.3): what produced it, and so how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Grade(Enum):
    """Strongest first. HwShunt and ModelBased are observed; Estimator is not."""

    HW_SHUNT = "HwShunt"
    MODEL_BASED = "ModelBased"
    ESTIMATOR = "Estimator"

    @property
    def observed(self) -> bool:
        """Whether somebody measured or modelled it (§2.3)."""
        return self is not Grade.ESTIMATOR


_WEAKNESS = {grade: rank for rank, grade in enumerate(Grade)}


def weakest(grades: Iterable[Grade]) -> Grade:
    """The grade of a figure made from several: the weakest of theirs, so that it never improves (§2.3, A72).

    Raises ValueError for none: a figure from nothing has no grade.
    """
    return max(grades, key=_WEAKNESS.__getitem__)


def divided(grade: Grade, occupants: int) -> Grade:
    """The grade of each share of a device's figure (§2.5): the division is a model, dividing by one is no division (A55)."""
    return Grade.MODEL_BASED if occupants > 1 and grade is Grade.HW_SHUNT else grade
