"""Usage is derived, not stored (pool/1 §6.1): the fold of an entitlement stream into what each entitlement has spent, holds and reserved.

Which entitlements exist today is not asked here: a ledger stays valid when the tree no longer has a name in it.
One value is made per entry, so the small ones are named tuples, which cost a third of a frozen dataclass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Literal, NamedTuple

from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Admitted, Event, Released
from fleetctl.ledger.identifiers import GRADE_RANK, GRADES, Grade, LedgerId

ClaimCode = Literal["unadmitted-release", "double-release", "duplicate-admit"]

_ESTIMATOR = GRADE_RANK["Estimator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitlementUsage:
    """Figures of one entitlement: settled and reserved microjoules, devices held, and the weakest grade among the figures that count."""

    spent_uj: int
    reserved_uj: int
    devices: int
    grade: Grade


class OpenClaim(NamedTuple):
    """An admission that is not released: its reservation stands. `seq` is its entry's index."""

    entitlement: str
    workload_class: str | None
    reserved_uj: int
    borrowed_uj: int
    devices: int
    grade: Grade
    seq: int
    at_ms: int


class ClassEvidence(NamedTuple):
    """What releases of one class under one entitlement have shown (pool/1 §2.6).

    `seen` releases, of which `evidence` were observed (not Estimator); the least and greatest observed microjoules, both 0 without evidence.
    """

    seen: int
    evidence: int
    min_uj: int
    max_uj: int


@dataclasses.dataclass(slots=True)
class Tally:
    """The running figures of one entitlement. Settled figures only ever add; open ones come and go, so they are counted by grade."""

    spent_uj: int = 0
    reserved_uj: int = 0
    devices: int = 0
    settled_rank: int = -1
    open_hw: int = 0
    open_model: int = 0
    open_estimate: int = 0

    def count_open(self, grade: Grade, by: int) -> None:
        if grade == "ModelBased":
            self.open_model += by
        elif grade == "HwShunt":
            self.open_hw += by
        else:
            self.open_estimate += by

    def frozen(self) -> EntitlementUsage:
        open_rank = 2 if self.open_estimate else 1 if self.open_model else 0
        return EntitlementUsage(
            spent_uj=self.spent_uj,
            reserved_uj=self.reserved_uj,
            devices=self.devices,
            grade=GRADES[max(self.settled_rank, open_rank)],
        )


def _never(_claim: str) -> bool:
    return False


def claims_digest(ledger: LedgerId, claims: Iterable[str]) -> bytes:
    """The digest of all claim ids ever admitted, in order of admission: a chain of SHA-256 that starts at the ledger's id."""
    return _chained(sha256(f"pool/1 claims\n{ledger}".encode()).digest(), claims)


def _chained(start: bytes, claims: Iterable[str]) -> bytes:
    digest = start
    for claim in claims:
        digest = sha256(digest + claim.encode()).digest()
    return digest


class Fold:
    """The state of an entitlement stream after its first entries. Mutable; `apply` moves it by one event.

    `was_used` answers for claims admitted before a checkpoint, whose ids are kept in an index outside. The first `carried`
    entries re-admit what went on from the window before (`ledger.windows`): what such a claim is released at is the cost
    of a part of a run, and no evidence of what a run costs [ours].
    """

    __slots__ = ("_base_count", "_base_digest", "_carried", "_evidence", "_new", "_open", "_tallies", "_was_used")

    def __init__(self, ledger: LedgerId, carried: int = 0) -> None:
        self._carried = carried
        self._tallies: dict[str, Tally] = {}
        self._open: dict[str, OpenClaim] = {}
        self._evidence: dict[tuple[str, str], ClassEvidence] = {}
        self._new: dict[str, None] = {}
        self._was_used: Callable[[str], bool] = _never
        self._base_count = 0
        self._base_digest = claims_digest(ledger, ())

    @classmethod
    def restored(
        cls,
        ledger: LedgerId,
        *,
        tallies: dict[str, Tally],
        open_claims: dict[str, OpenClaim],
        evidence: dict[tuple[str, str], ClassEvidence],
        claims: int,
        digest: bytes,
        was_used: Callable[[str], bool],
        carried: int = 0,
    ) -> Fold:
        """The fold as a checkpoint holds it."""
        fold = cls(ledger, carried)
        fold._tallies, fold._open, fold._evidence = tallies, open_claims, evidence
        fold._base_count, fold._base_digest, fold._was_used = claims, digest, was_used
        return fold

    def apply(self, event: Event, seq: int) -> ClaimCode | None:
        """Move by one event, or leave everything alone and say what is inconsistent (pool/1 §6.4)."""
        if isinstance(event, Admitted):
            return self.admit(event.claim, _opened(event, seq))
        if isinstance(event, Released):
            return self.release(event.claim, event.spent_uj, event.grade)
        raise TypeError(f"`{event.EVENT}` moves no usage")

    def admit(self, claim: str, opened: OpenClaim) -> ClaimCode | None:
        """Reserve the claim's estimate."""
        if claim in self._new or self._was_used(claim):
            return "duplicate-admit"
        self._new[claim] = None
        self._open[claim] = opened
        tally = self._tallies.get(opened.entitlement)
        if tally is None:
            tally = self._tallies[opened.entitlement] = Tally()
        tally.reserved_uj += opened.reserved_uj
        tally.devices += opened.devices
        tally.count_open(opened.grade, 1)
        return None

    def release(self, claim: str, spent_uj: int, grade: Grade) -> ClaimCode | None:
        """Lift the reservation and charge the actual figure in its place (pool/1 §6.2)."""
        opened = self._open.pop(claim, None)
        if opened is None:
            return "double-release" if claim in self._new or self._was_used(claim) else "unadmitted-release"
        tally = self._tallies[opened.entitlement]
        tally.reserved_uj -= opened.reserved_uj
        tally.devices -= opened.devices
        tally.count_open(opened.grade, -1)
        tally.spent_uj += spent_uj
        rank = GRADE_RANK[grade]
        if rank > tally.settled_rank:
            tally.settled_rank = rank
        if opened.workload_class is not None and opened.seq >= self._carried:
            self._observe((opened.entitlement, opened.workload_class), spent_uj, rank < _ESTIMATOR)
        return None

    def _observe(self, key: tuple[str, str], spent_uj: int, observed: bool) -> None:
        before = self._evidence.get(key)
        seen, evidence = (before.seen, before.evidence) if before else (0, 0)
        least, most = (before.min_uj, before.max_uj) if before else (0, 0)
        if observed:
            least = min(least, spent_uj) if evidence else spent_uj
            most = max(most, spent_uj)
        self._evidence[key] = ClassEvidence(seen + 1, evidence + observed, least, most)

    def is_carried(self, claim: str) -> bool:
        """Whether an open claim went on from the window before."""
        return self._open[claim].seq < self._carried

    @property
    def usage(self) -> dict[str, EntitlementUsage]:
        """Every entitlement that the stream names, by name."""
        return {name: self._tallies[name].frozen() for name in sorted(self._tallies)}

    @property
    def open_claims(self) -> Mapping[str, OpenClaim]:
        """Claims admitted and not released, in order of admission: a view that moves with the fold."""
        return MappingProxyType(self._open)

    @property
    def evidence(self) -> Mapping[tuple[str, str], ClassEvidence]:
        """Evidence by (entitlement, class): a view that moves with the fold."""
        return MappingProxyType(self._evidence)

    @property
    def tallies(self) -> Iterator[tuple[str, Tally]]:
        """The running figures by name, for a checkpoint."""
        return iter(sorted(self._tallies.items()))

    @property
    def claims(self) -> int:
        """How many claims were ever admitted."""
        return self._base_count + len(self._new)

    @property
    def claims_digest(self) -> bytes:
        """The digest of all claim ids ever admitted, as `claims_digest` makes it."""
        return _chained(self._base_digest, self._new)

    def is_used(self, claim: str) -> bool:
        """Whether the claim was ever admitted."""
        return claim in self._new or self._was_used(claim)


def _opened(event: Admitted, seq: int) -> OpenClaim:
    return OpenClaim(
        entitlement=event.entitlement,
        workload_class=event.workload_class,
        reserved_uj=event.reserved_uj,
        borrowed_uj=event.borrowed_uj,
        devices=event.devices,
        grade=event.grade,
        seq=seq,
        at_ms=event.at_ms,
    )
