"""Usage is the fold of the stream (pool/1 §6.1, §6.2; rows A57 to A79 of readings/pool1.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.ledger.entries import Admitted, Event, Released
from fleetctl.ledger.identifiers import GRADES
from fleetctl.ledger.usage import ClassEvidence, EntitlementUsage, Fold, claims_digest
from fleetctl.ledger.verify import verify
from tests.support.ledgers import ENTITLEMENTS, STEWARD, admitted, applied, join, released, seal_all


def folded(*events: Event) -> Fold:
    fold = Fold(ENTITLEMENTS)
    for seq, event in enumerate(events):
        assert fold.apply(event, seq) is None
    return fold


def usage(**figures: object) -> dict[str, EntitlementUsage]:
    return {"ml": EntitlementUsage(**{"spent_uj": 0, "reserved_uj": 0, "devices": 0, **figures})}  # type: ignore[arg-type]  # shorthand


@pytest.mark.clause("pool/1 §7.11")
def test_release_charges_the_actual_figure_in_place_of_the_reservation() -> None:
    """§6.2, A76: reserved 100, preempted at 37."""
    events = (admitted("c1", reserved_uj=100), released("c1", spent_uj=37))
    assert folded(*events).usage == usage(spent_uj=37, grade="HwShunt")


@pytest.mark.clause("pool/1 §7.11")
def test_an_overrun_is_charged_what_it_cost() -> None:
    """§6.3."""
    assert folded(admitted("c1", reserved_uj=100), released("c1", spent_uj=500)).usage["ml"].spent_uj == 500


def test_an_open_admission_keeps_its_reservation() -> None:
    """§6.2."""
    fold = folded(admitted("c1", reserved_uj=40, devices=8, grade="Estimator"))
    assert fold.usage == usage(reserved_uj=40, devices=8, grade="Estimator")
    assert list(fold.open_claims) == ["c1"] and fold.open_claims["c1"].seq == 0


@pytest.mark.clause("pool/1 §7.3")
def test_the_weakest_grade_of_the_figures_that_count() -> None:
    """A72; a reservation's grade counts while it stands, a settled figure's for good."""
    guess = admitted("c1", reserved_uj=10, grade="Estimator")
    assert folded(guess).usage["ml"].grade == "Estimator"
    assert folded(guess, released("c1", spent_uj=10, grade="HwShunt")).usage["ml"].grade == "HwShunt"
    settled = (admitted("c2"), released("c2", spent_uj=1, grade="Estimator"), admitted("c3", grade="HwShunt"))
    assert folded(*settled).usage["ml"].grade == "Estimator"


def test_a_placement_that_failed_is_known_to_have_spent_nothing_and_is_no_evidence() -> None:
    """A77: seen 3, evidence 0."""
    events: list[Event] = []
    for number in range(3):
        events += [admitted(f"c{number}"), released(f"c{number}", spent_uj=0, grade="Estimator")]
    fold = folded(*events)
    assert fold.evidence == {("ml", "train"): ClassEvidence(seen=3, evidence=0, min_uj=0, max_uj=0)}
    assert fold.usage["ml"].spent_uj == 0


@pytest.mark.clause("pool/1 §7.21")
def test_evidence_counts_observed_figures_and_keeps_their_spread() -> None:
    """A58: HW 90, ES 500, HW 110, then MB 100."""
    figures = ((90, GRADES[0]), (500, GRADES[2]), (110, GRADES[0]), (100, GRADES[1]))
    events: list[Event] = []
    for number, (spent, grade) in enumerate(figures):
        events += [admitted(f"c{number}"), released(f"c{number}", spent_uj=spent, grade=grade)]
    fold = folded(*events)
    assert fold.evidence == {("ml", "train"): ClassEvidence(seen=4, evidence=3, min_uj=90, max_uj=110)}


@pytest.mark.clause("pool/1 §7.24")
def test_evidence_is_kept_by_entitlement_and_class_bytes() -> None:
    """A57, A59: one tenant's runs are not another's; `Train` is not `train`; no class is no evidence."""
    events: list[Event] = []
    for number, (entitlement, name) in enumerate((("a", "train"), ("b", "train"), ("a", "Train"), ("a", None))):
        events += [admitted(f"c{number}", entitlement=entitlement, workload_class=name), released(f"c{number}")]
    assert sorted(folded(*events).evidence) == [("a", "Train"), ("a", "train"), ("b", "train")]


def test_rotation_counts_no_joule_twice() -> None:
    """A05: c9 reserved 40, 15 spent at rotation; 25 re-admitted first in the new stream."""
    old = folded(admitted("c9", reserved_uj=40), released("c9", spent_uj=15))
    new = folded(admitted("c9:2", reserved_uj=25))
    assert (old.usage["ml"].spent_uj, old.usage["ml"].reserved_uj) == (15, 0)
    assert new.usage["ml"].reserved_uj == 25


def test_borrowed_as_sealed_is_reported_on_replay() -> None:
    """A79: derivable whatever the tree has become."""
    seen = verify(join(seal_all([admitted("c1", borrowed_uj=17)])), ledger=ENTITLEMENTS, key=STEWARD.public_key)
    assert seen.fold is not None and seen.fold.open_claims["c1"].borrowed_uj == 17


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ((released("c1"),), "unadmitted-release"),
        ((admitted("c1"), released("c1"), released("c1")), "double-release"),
        ((admitted("c1"), admitted("c1")), "duplicate-admit"),
        ((admitted("c1"), released("c1"), admitted("c1")), "duplicate-admit"),
    ],
)
@pytest.mark.clause("pool/1 §7.12", "pool/1 §6.4 (2)")
def test_an_inconsistent_event_moves_nothing(events: tuple[Event, ...], code: str) -> None:
    """§6.4, A62."""
    fold = folded(*events[:-1])
    before = (fold.usage, dict(fold.open_claims), dict(fold.evidence), fold.claims_digest)
    assert fold.apply(events[-1], len(events) - 1) == code
    assert (fold.usage, dict(fold.open_claims), dict(fold.evidence), fold.claims_digest) == before


def test_journal_events_move_no_usage() -> None:
    with pytest.raises(TypeError):
        Fold(ENTITLEMENTS).apply(applied(0), 0)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Consistent streams over a few entitlements, with claims left open."""
    events: list[Event] = []
    open_claims: list[str] = []
    for number in range(draw(st.integers(0, 25))):
        releases = draw(st.booleans())
        if open_claims and releases:
            claim = open_claims.pop(draw(st.integers(0, len(open_claims) - 1)))
            events.append(released(claim, spent_uj=draw(st.integers(0, 1_000)), grade=draw(st.sampled_from(GRADES))))
        else:
            open_claims.append(f"c{number}")
            events.append(
                admitted(
                    f"c{number}",
                    entitlement=draw(st.sampled_from(["a", "b", "c"])),
                    workload_class=draw(st.none() | st.sampled_from(["x", "y"])),
                    reserved_uj=draw(st.integers(0, 1_000)),
                    devices=draw(st.integers(1, 16)),
                    grade=draw(st.sampled_from(GRADES)),
                )
            )
    return events


def plain_sums(events: list[Event]) -> Iterator[tuple[str, EntitlementUsage]]:
    """Usage worked out from the definition, without running figures."""
    opened = {event.claim: event for event in events if isinstance(event, Admitted)}
    settled = {event.claim: event for event in events if isinstance(event, Released)}
    by_name: dict[str, list[Admitted]] = defaultdict(list)
    for event in opened.values():
        by_name[event.entitlement].append(event)
    for name, claims in sorted(by_name.items()):
        spent = [settled[claim.claim] for claim in claims if claim.claim in settled]
        held = [claim for claim in claims if claim.claim not in settled]
        counted: Sequence[Admitted | Released] = [*spent, *held]
        yield (
            name,
            EntitlementUsage(
                spent_uj=sum(item.spent_uj for item in spent),
                reserved_uj=sum(item.reserved_uj for item in held),
                devices=sum(item.devices for item in held),
                grade=GRADES[max(GRADES.index(item.grade) for item in counted)],
            ),
        )


@given(streams())
@pytest.mark.clause("pool/1 §7.10", "pool/1 §6.1")
def test_the_fold_is_the_sum_of_its_events(events: list[Event]) -> None:
    fold = folded(*events)
    assert list(fold.usage.items()) == list(plain_sums(events))
    ids = [event.claim for event in events if isinstance(event, Admitted)]
    assert fold.claims == len(ids) and fold.claims_digest == claims_digest(ENTITLEMENTS, ids)
