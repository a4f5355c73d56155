"""Admissions decided again from exported data alone (pool/1 §4): the tree is the journal's, usage is the ledger's.

Every journal entry pins the entitlement ledger as it stood, so the chains have one order: what was declared when an entry was
appended is what the journal holds up to there. Queue and Deny are in no ledger (§6.2), so only admissions are decided again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from fleetctl.diagnostics import code
from fleetctl.engine.claims import entitlement_of
from fleetctl.engine.fold import Fold, advance, begin
from fleetctl.engine.records import Record
from fleetctl.errors import Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger.entries import Admitted, Event, Released, Rotated
from fleetctl.ledger.identifiers import LedgerId
from fleetctl.ledger.usage import Fold as UsageFold
from fleetctl.ledger.windows import carried_count
from fleetctl.model.ids import EngineId
from fleetctl.model.live import LiveObject, object_from_json, state_digest
from fleetctl.pool1.admission import Verdict, decide
from fleetctl.pool1.claim import Claim
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import Tree, TreeState
from fleetctl.pool1.wire import decide_json

FIRST_STATE_MISSING = code(
    "first-state-missing",
    "The bundle does not say what the engine started from",
    trigger="`ledger decisions` on a bundle whose journal begins after a state that none of its documents describes",
    exit_code=3,
)


NO_ENGINE = EngineId("exported")
"""No rule of capacity asks which engine it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecided:
    """One admission as it was sealed, and what pool/1 says of it on the tree and the usage of its moment.

    `carried`: a rotation admitted what was left of a claim; nothing was decided then.
    """

    ledger: LedgerId
    entry: int
    sealed: Admitted
    verdict: Verdict
    carried: bool
    given: Callable[[], dict[str, object]]
    """What `pool1 decide` takes for it; to be asked before the next one is made."""

    @property
    def agrees(self) -> bool:
        """Whether the entry holds what the verdict grants."""
        verdict, sealed = self.verdict, self.sealed
        granted = (verdict.admitted, verdict.reserved_uj, verdict.borrowed_uj, verdict.devices)
        return self.carried or granted == (True, sealed.reserved_uj, sealed.borrowed_uj, sealed.devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A verified bundle: its entitlement ledgers, one for each window, oldest first; the journal beside them; what the engine
    started from.
    """

    windows: Sequence[tuple[LedgerId, Iterable[tuple[int, Event]]]]
    journal: Sequence[Record]
    first: Sequence[LiveObject]


def redecided(found: Exported) -> Iterator[Redecided]:
    """Every admission, in order. Raises Tampered where documents do not fold to what the journal sealed."""
    fold = begin(NO_ENGINE, found.first)
    tree, done, later = _tree(fold), 0, [ledger for ledger, _ in found.windows]
    for ledger, entries in found.windows:
        later.remove(ledger)
        usage, state = UsageFold(ledger), TreeState(tree)
        carried = _carried_into(ledger, found.journal)
        for seq, event in entries:
            until = _until(found.journal, done, ledger, seq, later)
            for record in found.journal[done:until]:
                advance(fold, record)
            if until > done:
                tree, done = _tree(fold), until
                state = state.with_tree(tree)
            if isinstance(event, Admitted):
                yield _again(state, ledger, seq, event, carried=seq < carried)
            _move(state, usage, event)
            usage.apply(event, seq)


def _carried_into(ledger: LedgerId, journal: Iterable[Record]) -> int:
    """With how many claims of the window before it a rotation began a ledger."""
    return sum(
        carried_count(record.event)
        for record in journal
        if isinstance(record.event, Rotated) and record.event.to_ledger == ledger
    )


def _until(journal: Sequence[Record], done: int, ledger: LedgerId, seq: int, later: Sequence[LedgerId]) -> int:
    """How many journal entries were there when entry `seq` of a ledger was appended; `done` of them are known to be.

    Those that speak of an earlier window were, and those that saw no more than `seq` entries of this one.
    """
    while done < len(journal):
        event = journal[done].event
        if event.ledger in later or (event.ledger == ledger and event.ledger_length > seq):
            break
        done += 1
    return done


def _move(state: TreeState, usage: UsageFold, event: Event) -> None:
    """The event's effect on what is in use (§6.2). `usage` is the ledger before it."""
    if isinstance(event, Admitted):
        state.reserve(event.entitlement, energy_uj=event.reserved_uj, devices=event.devices)
    elif isinstance(event, Released):
        opened = usage.open_claims[event.claim]
        state.release(
            opened.entitlement, reserved_uj=opened.reserved_uj, devices=opened.devices, actual_uj=event.spent_uj
        )


def _again(state: TreeState, ledger: LedgerId, entry: int, sealed: Admitted, *, carried: bool) -> Redecided:
    claim = Claim(
        entitlement=sealed.entitlement,
        gang_size=1,
        devices_per_member=sealed.devices,
        estimate_uj=sealed.reserved_uj,
        grade=Grade(sealed.grade),
        claim_class=sealed.workload_class,
    )
    return Redecided(
        ledger=ledger,
        entry=entry,
        sealed=sealed,
        verdict=decide(state, claim),
        carried=carried,
        given=lambda: decide_json(state, claim),
    )


def first_objects(journal: Sequence[Record], documents: Iterable[bytes]) -> list[LiveObject]:
    """What the engine started from: the document whose objects have the digest that the journal's first entry sealed as the
    state before it. Raises Tampered when there is none.
    """
    wanted = journal[0].event.state_before if journal else None
    for data in documents:
        try:
            objects = [object_from_json(item) for item in json.loads(data)] if data[:1] == b"[" else []
            state = state_digest(((item.kind, item.id), item.digest()) for item in objects)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):  # a document of something else
            continue
        if state == wanted:
            return objects
    raise Tampered(
        FIRST_STATE_MISSING.at(
            "none of its documents describes the state before the journal's first entry, so the entitlements of that time "
            "are unknown; export it anew, and verify that"
        )
    )


def _tree(fold: Fold) -> Tree:
    return Tree(entitlement_of(item) for item in fold.objects().values() if item.kind == "entitlement")
