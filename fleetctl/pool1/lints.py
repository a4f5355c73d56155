"""Remarks on trees and claims that change no verdict. All are extensions of ours, named as such wherever they show."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from fleetctl.frozen import dataclass
from fleetctl.pool1.claim import Claim
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import Entitlement, Tree


class Lint(Enum):
    """What is remarked on."""

    LIMIT_BELOW_GUARANTEE = "limit-below-guarantee"
    """A17: `may always spend` against `hard ceiling`; §4.3 never tests the limit."""
    PARENT_LIMIT_NOT_ENFORCED = "parent-limit-not-enforced"
    """A18: usage is charged to the claim's own entitlement, so a limit on its parent does not bind it."""
    INTERIOR_GUARANTEE = "interior-guarantee"
    """A19, A20: a parent's guarantee is budget beside its children's, and is lent to its siblings however busy they are."""
    ZERO_GUESS = "zero-guess"
    """A26: an estimate of 0 that nobody measured or modelled."""
    ESTIMATE_GRADED_AS_READING = "estimate-graded-as-reading"
    """A78: no counter can have been read for work that has not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One remark; `entitlement` is the node it is on."""

    lint: Lint
    entitlement: str


def tree_remarks(tree: Tree) -> Iterator[Remark]:
    """Remarks on every node, in the tree's order."""
    parents = {node.parent for node in tree}
    for node in tree:
        yield from _node_remarks(node, interior=node.id in parents)


def claim_remarks(claim: Claim) -> Iterator[Remark]:
    """Remarks on a claim's estimate."""
    if claim.estimate_uj == 0 and not claim.grade.observed:
        yield Remark(lint=Lint.ZERO_GUESS, entitlement=claim.entitlement)
    if claim.grade is Grade.HW_SHUNT:
        yield Remark(lint=Lint.ESTIMATE_GRADED_AS_READING, entitlement=claim.entitlement)


def _node_remarks(node: Entitlement, *, interior: bool) -> Iterator[Remark]:
    if node.limit_uj is not None and node.limit_uj < node.guarantee_uj:
        yield Remark(lint=Lint.LIMIT_BELOW_GUARANTEE, entitlement=node.id)
    if interior and node.limit_uj is not None:
        yield Remark(lint=Lint.PARENT_LIMIT_NOT_ENFORCED, entitlement=node.id)
    if interior and node.guarantee_uj > 0:
        yield Remark(lint=Lint.INTERIOR_GUARANTEE, entitlement=node.id)
