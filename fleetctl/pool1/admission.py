"""May this claim start? (pool/1 §4) The order of the tests is the standard's: another order gives other verdicts."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from fleetctl.frozen import dataclass
from fleetctl.pool1.claim import Claim
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import Node, Siblings, TreeState


class Outcome(Enum):
    """Queue is "not now", Deny is "never as written" (§4.5)."""

    ADMIT = "Admit"
    QUEUE = "Queue"
    DENY = "Deny"


class Reason(Enum):
    """Why a claim is not admitted. The first four deny; the rest queue, in this order (A23, A24)."""

    UNKNOWN_ENTITLEMENT = "unknown-entitlement"
    EMPTY_CLAIM = "empty-claim"
    DEVICES_EXCEED_GUARANTEE = "devices-exceed-guarantee"
    ENERGY_EXCEEDS_LIMIT = "energy-exceeds-limit"
    NEVER_FITS = "never-fits"
    GUARANTEE_EXHAUSTED = "guarantee-exhausted"
    LIMIT_REACHED = "limit-reached"
    SURPLUS_INSUFFICIENT = "surplus-insufficient"
    DEVICES_HELD = "devices-held"


class Basis(NamedTuple):
    """The figures a verdict rests on, as they were when it was made. A tuple, because every decision makes one.

    The sums are over all children of the parent, the entitlement itself included; they are 0 for a root.
    """

    guarantee_uj: int
    guarantee_devices: int
    limit_uj: int | None
    weight: int
    used_uj: int
    held: int
    root: bool
    sum_guarantee_uj: int
    sum_weight: int
    sum_unspent_uj: int

    @property
    def surplus_uj(self) -> int:
        """σ: what the siblings have not spent of their guarantees (§2.2)."""
        return 0 if self.root else self.sum_unspent_uj - max(0, self.guarantee_uj - self.used_uj)

    @property
    def share_uj(self) -> int:
        """⌊w·σ/W⌋, the weighted share of that surplus (§2.2); 0 for a root or a weight of 0 (A10, A30)."""
        return self.weight * self.surplus_uj // self.sum_weight if self.weight and not self.root else 0

    def may_borrow(self, grade: Grade) -> bool:
        """§4.4 rules 1 and 2, and a parent under which to borrow (A10)."""
        return grade is not Grade.ESTIMATOR and self.weight > 0 and not self.root

    def ceiling_uj(self, grade: Grade) -> int:
        """The most that any ledger state could admit at once (A13): the guarantee, and the share while no sibling spends anything."""
        if not self.may_borrow(grade):
            return self.guarantee_uj
        return self.guarantee_uj + self.weight * (self.sum_guarantee_uj - self.guarantee_uj) // self.sum_weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to a claim (§4.5, §4.6). `reasons` is empty for Admit, else all that apply, the primary one first.

    `borrowed_uj` is the part of this reservation above the guarantee and above what is used already (A09).
    """

    outcome: Outcome
    claim: Claim
    reasons: tuple[Reason, ...] = ()
    borrowed_uj: int = 0
    basis: Basis | None
    """None when the entitlement is unknown."""

    @property
    def admitted(self) -> bool:
        return self.outcome is Outcome.ADMIT

    @property
    def reserved_uj(self) -> int:
        """The claim's whole estimate when admitted (§3), else 0: a Queue or a Deny reserves nothing (§6.2)."""
        return self.claim.estimate_uj if self.admitted else 0

    @property
    def devices(self) -> int:
        """The devices taken: the whole gang's when admitted, else 0."""
        return self.claim.devices if self.admitted else 0

    @property
    def grade(self) -> Grade:
        """The grade of the estimate that the verdict rests on, reported with every reservation (§3)."""
        return self.claim.grade


def decide(state: TreeState, claim: Claim) -> Verdict:
    """The verdict on a claim as things stand; changes nothing. Constant time in the size of the tree (pool/1 §4).

    Its Admitted entry must be appended to the head it was decided on (A36).
    """
    node = state.nodes.get(claim.entitlement)
    # §4.1 resolution, then shape
    if node is None:
        return Verdict(outcome=Outcome.DENY, claim=claim, reasons=(Reason.UNKNOWN_ENTITLEMENT,), basis=None)
    basis = basis_of(node)
    if claim.devices < 1:
        return _refused(claim, basis, Outcome.DENY, Reason.EMPTY_CLAIM)
    # §4.2 impossibility before pendency: devices first (A15), an absent limit is no limit (A16)
    if claim.devices > basis.guarantee_devices:
        return _refused(claim, basis, Outcome.DENY, Reason.DEVICES_EXCEED_GUARANTEE)
    estimate = claim.estimate_uj
    if basis.limit_uj is not None and estimate > basis.limit_uj:
        return _refused(claim, basis, Outcome.DENY, Reason.ENERGY_EXCEEDS_LIMIT)
    # §4.5 what no ledger state could admit is not pending (A13); no look at usage (A14)
    if estimate > basis.guarantee_uj and estimate > basis.ceiling_uj(claim.grade):
        return _refused(claim, basis, Outcome.DENY, Reason.NEVER_FITS)
    over = basis.used_uj + estimate - basis.guarantee_uj
    fits_devices = basis.held + claim.devices <= basis.guarantee_devices
    # §4.3 inside both guarantees, at any grade
    if over <= 0 and fits_devices:
        return Verdict(outcome=Outcome.ADMIT, claim=claim, basis=basis)
    # §4.4 past the guarantee; devices bind there too (A22)
    reasons = _energy_reasons(basis, claim, over) if over > 0 else []
    if not fits_devices:
        reasons.append(Reason.DEVICES_HELD)
    if reasons:
        return _refused(claim, basis, Outcome.QUEUE, *reasons)
    borrowed = over - max(0, basis.used_uj - basis.guarantee_uj)
    return Verdict(outcome=Outcome.ADMIT, claim=claim, borrowed_uj=borrowed, basis=basis)


def _energy_reasons(basis: Basis, claim: Claim, over_uj: int) -> list[Reason]:
    """What keeps a claim that is `over_uj` past the guarantee from borrowing: §4.4's rules in their order."""
    if not basis.may_borrow(claim.grade):
        return [Reason.GUARANTEE_EXHAUSTED]
    reasons = []
    if basis.limit_uj is not None and basis.used_uj + claim.estimate_uj > basis.limit_uj:
        reasons.append(Reason.LIMIT_REACHED)
    # the borrowed part is cumulative: many small claims cannot defeat the share (A08)
    if over_uj > basis.share_uj:
        reasons.append(Reason.SURPLUS_INSUFFICIENT)
    return reasons


_NO_SIBLINGS = Siblings()


def basis_of(node: Node) -> Basis:
    """The figures of one entitlement as they stand: what it may spend, has in use, and could borrow."""
    siblings = node.siblings or _NO_SIBLINGS
    return Basis(
        node.guarantee_uj,
        node.guarantee_devices,
        node.limit_uj,
        node.weight,
        node.used_uj,
        node.held,
        node.siblings is None,
        siblings.guarantee_uj,
        siblings.weight,
        siblings.surplus_uj,
    )


def _refused(claim: Claim, basis: Basis, outcome: Outcome, *reasons: Reason) -> Verdict:
    return Verdict(outcome=outcome, claim=claim, reasons=reasons, basis=basis)


def apply(state: TreeState, verdict: Verdict) -> None:
    """Reserve what an Admit verdict grants (§3). Raises ValueError for any other verdict."""
    if not verdict.admitted:
        raise ValueError(f"a {verdict.outcome.value} reserves nothing")
    state.reserve(verdict.claim.entitlement, energy_uj=verdict.reserved_uj, devices=verdict.devices)
