"""What a rotation makes of open claims, and what a reader of the files holds it to. Cases are files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.ledger import chain
from fleetctl.ledger.audit import audit, with_journal
from fleetctl.ledger.entries import Admitted, Event, JournalEvent, Recovered, Released, Rotated
from fleetctl.ledger.identifiers import GRADES, MAX_IDENTIFIER, Grade, LedgerId, is_identifier, ledger_id
from fleetctl.ledger.report import Report
from fleetctl.ledger.usage import OpenClaim
from fleetctl.ledger.verify import verify
from fleetctl.ledger.windows import (
    Window,
    faults_of_windows,
    file_of,
    numbered,
    readmitted,
    remainder,
    stem_of,
    succession,
    successor,
    window_name,
)
from fleetctl.units import parse_duration, parse_time
from tests.support.ledgers import (
    AT_MS,
    ENTITLEMENTS,
    JOURNAL,
    STEWARD,
    admitted,
    applied,
    digest,
    join,
    released,
    seal_all,
)

NAMES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "cases" / "windows" / "names.json").read_text(encoding="utf-8")
)
SECOND = ledger_id(STEWARD.kid, "entitlements:w2")
THIRD = ledger_id(STEWARD.kid, "entitlements:w3")


# -------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("case", NAMES["windows"], ids=lambda case: f"{case['name']} {case['period']}")
def test_a_window_is_named_by_its_time(case: dict[str, Any]) -> None:
    period = None if case["period"] is None else parse_duration(case["period"])
    assert window_name(parse_time(case["at"]) * 60_000, period) == case["name"]


def test_a_time_that_no_calendar_has_still_gives_a_name() -> None:
    assert window_name(2**63 - 1, None) == str(2**63 - 1)


def test_a_name_that_was_used_gets_a_number() -> None:
    used = {"2026w50", "2026w50.2"}
    assert numbered("2026w50", used.__contains__) == "2026w50.3"
    assert numbered("2026w51", used.__contains__) == "2026w51"


@pytest.mark.parametrize("case", NAMES["successors"], ids=lambda case: f"{case['claim']} to {case['next']}")
def test_a_claim_goes_on_under_the_next_number(case: dict[str, Any]) -> None:
    found = successor(case["claim"], carried=case["carried"], is_taken=case["taken"].__contains__)
    assert found == case["next"]


@given(st.text("abc:.-_0123", min_size=1, max_size=MAX_IDENTIFIER).filter(lambda text: is_identifier(text) is not None))
def test_every_claim_has_successors_for_ever_and_no_two_alike(claim: str) -> None:
    seen, name = {claim}, successor(claim, carried=False, is_taken=lambda _: False)
    for _ in range(12):
        assert is_identifier(name) and name not in seen
        seen.add(name)
        later = successor(name, carried=True, is_taken=seen.__contains__)
        assert stem_of(later) == stem_of(name)
        name = later


def test_long_claims_that_begin_alike_do_not_meet() -> None:
    one, other = "x" * 127 + "1", "x" * 127 + "2"
    names = {successor(claim, carried=False, is_taken=lambda _: False) for claim in (one, other)}
    assert len(names) == 2 and all(is_identifier(name) for name in names)


# ------------------------------------------------------------------------------------------------ what goes over

FIGURES = st.integers(0, 2**63 - 1)


@pytest.mark.clause("pool/1 §7.3", "pool/1 §7.5", "pool/1 §4.4")
@given(FIGURES, FIGURES, FIGURES, st.sampled_from(GRADES), st.sampled_from(GRADES), st.integers(0, 2**64))
def test_what_is_left_is_never_negative_never_better_and_never_more(
    reserved: int, borrowed: int, spent: int, grade: Grade, read: Grade, above: int
) -> None:
    borrowed = 0 if grade == "Estimator" else min(borrowed, reserved)
    opened = OpenClaim("ml", "train", reserved, borrowed, 8, grade, 3, AT_MS)
    left, graded = remainder(opened, spent, read)
    event = readmitted("c:2", opened, spent_uj=spent, grade=read, above_guarantee_uj=above, at_ms=AT_MS)
    assert left == max(0, reserved - spent) == event.reserved_uj
    assert GRADES.index(graded) >= GRADES.index(grade)
    assert event.borrowed_uj <= min(left, borrowed, above)
    assert graded != "Estimator" or event.borrowed_uj == 0
    assert (event.devices, event.workload_class, event.entitlement) == (8, "train", "ml")


# ------------------------------------------------------------------------------------------------- verification


def rotated(entry: int, old: chain.Head, before: chain.Head, new: LedgerId, **changes: Any) -> Rotated:
    """The journal's entry for closing `old`, which stood at `before`."""
    values: dict[str, Any] = {
        "actor": "local:ada@host",
        "state_before": digest(f"state {entry}"),
        "state_after": digest(f"state {entry + 1}"),
        "ledger": before.ledger,
        "ledger_head": before.address,
        "ledger_length": before.length,
        "at_ms": AT_MS,
        "from_ledger": old.ledger,
        "from_length": old.length,
        "from_head": old.address,
        "to_ledger": new,
    }
    return Rotated(**(values | changes))


OPEN: list[Event] = [
    admitted("c1", reserved_uj=40, grade="HwShunt"),
    admitted("gone", reserved_uj=9),
    released("gone", spent_uj=9),
    admitted("c2", reserved_uj=50, borrowed_uj=20, devices=2, grade="HwShunt"),
]
CLOSING: list[Event] = [released("c1", spent_uj=15), released("c2", spent_uj=5)]
OPENING: list[Event] = [
    admitted("c1:2", reserved_uj=25, grade="HwShunt"),
    admitted("c2:2", reserved_uj=45, borrowed_uj=20, devices=2, grade="HwShunt"),
]
MORE: list[Event] = [admitted("c3"), released("c1:2", spent_uj=1)]
CLOSING_2: list[Event] = [released("c2:2", spent_uj=0, grade="Estimator"), released("c3", spent_uj=1_000_001)]
OPENING_2: list[Event] = [
    admitted("c2:3", reserved_uj=45, borrowed_uj=0, devices=2, grade="HwShunt"),
    admitted("c3:2", reserved_uj=0, grade="ModelBased"),
]


class Story:
    """Two rotations, told by whoever holds the steward's key: any part of it can be told otherwise.

    One that is told another `opening` of the second window ends there: what follows is about claims that it may not have.
    """

    def __init__(self, **told: Any) -> None:
        first = seal_all([*OPEN, *told.get("closing", CLOSING), *told.get("after", [])])
        before, closed = first[len(OPEN) - 1].head, first[len(OPEN) + len(CLOSING) - 1].head
        events: list[JournalEvent] = [
            applied(0, pins=before),
            rotated(1, closed, before, SECOND, **told.get("first", {})),
        ]
        self.data = {ENTITLEMENTS: join(first)}
        if "opening" in told:
            second = seal_all(told["opening"], ledger=SECOND)
            self.data[SECOND] = join(second)
            current = SECOND
        else:
            second = seal_all([*OPENING, *MORE, *CLOSING_2], ledger=SECOND)
            third = seal_all(told.get("opening_2", OPENING_2), ledger=THIRD)
            events += [
                applied(2, pins=second[3].head),
                rotated(3, second[-1].head, second[3].head, THIRD, **told.get("second", {})),
                applied(4, pins=third[-1].head),
                *told.get("later", []),
            ]
            self.data |= {SECOND: join(second), THIRD: join(third)}
            current = THIRD
        self.journal = told.get("journal", lambda events: events)(events)
        for ledger in told.get("lost", ()):
            del self.data[ledger]
        self.current = told.get("current", current)

    def windows(self) -> dict[LedgerId, Window]:
        return {
            ledger: Window(verification=verify(data, ledger=ledger, key=STEWARD.public_key), data=data)
            for ledger, data in self.data.items()
        }

    def faults(self) -> list[str]:
        return list(faults_of_windows(enumerate(self.journal), self.windows(), current=self.current))


def test_an_honest_story_of_two_rotations_has_no_fault() -> None:
    assert Story().faults() == []
    assert succession(enumerate(Story().journal)) == [ENTITLEMENTS, SECOND, THIRD]


def without(number: int, events: Sequence[Event]) -> list[Event]:
    return [event for index, event in enumerate(events) if index != number]


def changed(number: int, events: Sequence[Event], **changes: Any) -> list[Event]:
    return [replace(event, **changes) if index == number else event for index, event in enumerate(events)]


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "an entry after the rotation": ({"after": [admitted("late")]}, "closed at the length 6, and has 7"),
    "many entries after it": ({"after": [admitted("late"), released("late")]}, "closed at the length 6, and has 8"),
    "another head before it": ({"first": {"ledger_head": digest("x")}}, "had another head at the length 4"),
    "another head at the end": ({"first": {"from_head": digest("x")}}, "has another head"),
    "a shorter end": ({"first": {"from_length": 5}}, "closed at the length 5, and has 6"),
    "a longer end": ({"first": {"from_length": 7}}, "closed at the length 7, and has 6"),
    "a claim that was not released": (
        {"closing": [CLOSING[0], admitted("x")]},
        "do not release the 2 claims that were open",
    ),
    "releases in another order": ({"closing": CLOSING[::-1]}, "do not release the 2 claims that were open"),
    "fewer releases than are said to be": (
        {"first": {"ledger_length": 5, "ledger_head": seal_all([*OPEN, *CLOSING])[4].address}},
        "journal entry 1",
    ),
    "a claim left out of the new window": ({"opening": without(0, OPENING)}, "has the length 1"),
    "none of the claims": ({"opening": []}, "has the length 0"),
    "another claim in its place": ({"opening": [OPENING[1], admitted("x")]}, "c1: it has c2:2"),
    "a release in its place": ({"opening": [OPENING[0], released("c1:2")]}, "it begins with `released`"),
    "too little left": ({"opening": changed(0, OPENING, reserved_uj=24)}, "24 uJ"),
    "too much left": ({"opening": changed(0, OPENING, reserved_uj=26)}, "26 uJ"),
    "nothing taken off": ({"opening": changed(0, OPENING, reserved_uj=40)}, "40 uJ"),
    "another entitlement": ({"opening": changed(0, OPENING, entitlement="other")}, "other"),
    "another class": ({"opening": changed(0, OPENING, workload_class=None)}, "no class"),
    "more borrowed than before": ({"opening": changed(1, OPENING, borrowed_uj=21)}, "21 uJ borrowed"),
    "fewer devices": ({"opening": changed(1, OPENING, devices=1)}, "1 devices"),
    "a better grade": (
        {"closing": [CLOSING[0], released("c2", spent_uj=5, grade="Estimator")]},
        "expected is c2:2, ml, train, 45 uJ Estimator, 0 uJ borrowed",
    ),
    "another time": ({"opening": changed(0, OPENING, at_ms=AT_MS + 1)}, f"at {AT_MS + 1}"),
    "another claim's name": ({"opening": changed(0, OPENING, claim="c7:2")}, "it goes on as c7:2"),
    "the name that it had": ({"opening": changed(0, OPENING, claim="c1")}, "it goes on as c1"),
    "a number after a number": ({"opening_2": changed(0, OPENING_2, claim="c2:2:2")}, "it goes on as c2:2:2"),
    "another order": ({"opening": OPENING[::-1]}, "does not begin with what was left of c1"),
    "a second rotation with too much left": ({"opening_2": changed(1, OPENING_2, reserved_uj=1)}, "journal entry 3"),
    "a rotation that closes another ledger": ({"first": {"from_ledger": THIRD}}, f"closes {THIRD}"),
    "a rotation that leads to nowhere": (
        {"first": {"to_ledger": ledger_id(STEWARD.kid, "entitlements:w9")}},
        "entitlements:w9 is not here",
    ),
    "a rotation that leads back": ({"second": {"to_ledger": ENTITLEMENTS}}, "is no new entitlement ledger"),
    "a rotation that leads to itself": ({"first": {"to_ledger": ENTITLEMENTS}}, "is no new entitlement ledger"),
    "a rotation that leads to the journal": ({"first": {"to_ledger": JOURNAL}}, "is no new entitlement ledger"),
    "a rotation to somebody else's ledger": (
        {"first": {"to_ledger": ledger_id("somebody", "entitlements:w2")}},
        "is no new entitlement ledger",
    ),
    "a rotation that takes entries away": ({"first": {"ledger_length": 7}}, "it had 7 before"),
    "a rotation that was cut from the journal": ({"journal": lambda events: without(1, events)}, "is in force"),
    "the last rotation cut from the journal": (
        {"journal": lambda events: events[:3]},
        f"{SECOND} is in force by the journal, and this is {THIRD}",
    ),
    "a window that is not there": ({"lost": [ENTITLEMENTS]}, "is not here"),
    "a window in the middle that is not there": ({"lost": [SECOND]}, "is not here"),
    "another window said to be in force": ({"current": SECOND}, "is in force by the journal"),
    "an entry that goes back to a closed window": (
        {"later": [applied(5, pins=seal_all([*OPEN, *CLOSING])[-1].head)]},
        f"speaks of {ENTITLEMENTS}",
    ),
    "an entry that forgets the claims that went on": (
        {"later": [applied(5, pins=chain.empty(THIRD))]},
        "began with 2",
    ),
    "a first window that was never begun": (
        {"journal": lambda events: events[2:]},
        f"speaks of {SECOND}, and {ENTITLEMENTS} is in force",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_rotation_that_is_told_otherwise_is_found(lie: str) -> None:
    """A05: no joule counted twice, and none that goes missing between two windows."""
    told, expected = LIES[lie]
    found = Story(**told).faults()
    assert any(expected in fault for fault in found), found


def test_a_recovery_goes_on_from_what_it_names() -> None:
    """It closes a ledger with entries missing, and says so in plain sight: no rotation is asked of it."""
    lost, new = seal_all(OPEN), ledger_id(STEWARD.kid, "entitlements:r1")
    opened = seal_all([admitted("c1:2")], ledger=new)
    pins = chain.empty(new)
    recovered = Recovered(
        actor="local:ada@host",
        state_before=digest("s"),
        state_after=digest("s"),
        ledger=pins.ledger,
        ledger_head=pins.address,
        ledger_length=0,
        at_ms=AT_MS,
        evidence=(digest("account"),),
    )
    journal: list[JournalEvent] = [applied(0, pins=lost[-1].head), recovered, applied(2, pins=opened[-1].head)]
    windows = {new: Window(verification=verify(join(opened), ledger=new, key=STEWARD.public_key), data=join(opened))}
    assert list(faults_of_windows(enumerate(journal), windows, current=new)) == []


@pytest.mark.parametrize("ledger", [JOURNAL, ledger_id("somebody", "entitlements")])
def test_a_recovery_to_what_is_no_ledger_of_usage_is_a_fault(ledger: LedgerId) -> None:
    """Whatever a steward signs: a verifier says what is wrong, and does not fail."""
    story = Story()
    first = story.journal[0]
    recovered = Recovered(
        actor="local:ada@host",
        state_before=first.state_before,
        state_after=first.state_after,
        ledger=ledger,
        ledger_head=digest("x"),
        ledger_length=0,
        at_ms=AT_MS,
        evidence=(digest("account"),),
    )
    before = chain.Head(ledger=ledger, length=0, address=digest("x"))
    moved = rotated(2, before, before, ledger_id(STEWARD.kid, "entitlements:w9"))
    found = list(faults_of_windows(enumerate([first, recovered, moved]), story.windows(), current=THIRD))
    assert any("is no entitlement ledger of root-steward" in fault for fault in found)


LEDGERS = st.sampled_from([ENTITLEMENTS, SECOND, THIRD, JOURNAL, ledger_id("somebody", "entitlements")])
LENGTHS = st.one_of(st.integers(0, 8), st.just(2**63 - 1))
TOLD = st.fixed_dictionaries(
    {},
    optional={
        "ledger": LEDGERS,
        "ledger_length": LENGTHS,
        "from_ledger": LEDGERS,
        "from_length": LENGTHS,
        "to_ledger": LEDGERS,
    },
)


@given(first=TOLD, second=TOLD, lost=st.sets(st.sampled_from([ENTITLEMENTS, SECOND])), current=LEDGERS)
def test_whatever_a_steward_signs_is_judged(
    first: dict[str, Any], second: dict[str, Any], lost: set[LedgerId], current: LedgerId
) -> None:
    """A verifier never fails on what it reads, and only the true story has no fault."""
    honest = Story()
    story = Story(first=first, second=second, lost=lost)
    same = not lost and story.journal == honest.journal and current == THIRD
    assert (not list(faults_of_windows(enumerate(story.journal), story.windows(), current=current))) == same


def test_a_journal_that_goes_to_and_fro_names_each_ledger_once() -> None:
    there, back = chain.empty(SECOND), chain.empty(ENTITLEMENTS)
    journal = [applied(number, pins=pins) for number, pins in enumerate([back, there, back, there])]
    assert succession(enumerate(journal)) == [ENTITLEMENTS, SECOND]


# -------------------------------------------------------------------------------------------------------- audits


def audited(story: Story, edit: Callable[[dict[LedgerId, bytes]], None] = lambda _: None) -> Report:
    """What an auditor says of the story's files."""
    edit(story.data)
    reports = {
        ledger: audit(data, ledger=ledger, key=STEWARD.public_key, now_ms=AT_MS) for ledger, data in story.data.items()
    }
    journal = join(seal_all(story.journal, ledger=JOURNAL))
    return with_journal(
        reports[story.current],
        audit(journal, ledger=JOURNAL, key=STEWARD.public_key, now_ms=AT_MS),
        journal,
        data=story.data[story.current],
        windows=[
            (reports[item], story.data[item])
            for item in (ENTITLEMENTS, SECOND)
            if item in reports and item != story.current
        ],
    )


def test_an_audit_covers_every_window() -> None:
    report = audited(Story())
    assert report.require().ok
    found = report.to_json()
    windows = found["windows"]
    assert isinstance(windows, list)
    assert [item["ledger"] for item in windows] == [ENTITLEMENTS, SECOND]
    assert windows[0]["usage"]["ml"] == {"spent_uj": 29, "reserved_uj": 0, "devices": 0, "grade": "HwShunt"}


def test_a_fault_in_a_closed_window_fails_the_whole() -> None:
    def flip(data: dict[LedgerId, bytes]) -> None:
        held = bytearray(data[ENTITLEMENTS])
        held[-1] ^= 1
        data[ENTITLEMENTS] = bytes(held)

    report = audited(Story(), flip)
    assert not report.ok
    found = report.to_json()
    assert (found["result"], "usage" in found) == ("failed", False)


@pytest.mark.parametrize(
    "lie", ["nothing taken off", "a window that is not there", "the last rotation cut from the journal"]
)
def test_an_audit_names_what_does_not_follow(lie: str) -> None:
    told, expected = LIES[lie]
    report = audited(Story(**told))
    assert [item.code for item in report.reasons] == ["rotation-broken"] * len(report.reasons) != []
    assert any(expected in item.detail for item in report.reasons)


@pytest.mark.parametrize(("number", "cut"), [(0, -1), (1, -1)])
def test_a_window_cut_after_its_rotation_is_found_by_what_the_journal_pins(number: int, cut: int) -> None:
    """Step 3: whoever truncates a closed window leaves it shorter than the rotation says, and it still verifies by itself."""
    ledger = (ENTITLEMENTS, SECOND)[number]

    def shorten(data: dict[LedgerId, bytes]) -> None:
        events = {ENTITLEMENTS: [*OPEN, *CLOSING], SECOND: [*OPENING, *MORE, *CLOSING_2]}[ledger]
        data[ledger] = join(seal_all(events[:cut], ledger=ledger))

    report = audited(Story(), shorten)
    assert all(item.verification.ok for item in report.windows)
    assert [item.code for item in report.reasons] == ["rotation-broken"]


def test_bundles_have_a_place_for_each_window() -> None:
    assert file_of(0, ENTITLEMENTS) == "windows/0000-entitlements.cborseq"
    assert file_of(1, SECOND) == "windows/0001-entitlements_w2.cborseq"


def test_the_stories_are_honest_by_themselves() -> None:
    """Every lie is told in streams that verify: only together they are false."""
    for told, _ in LIES.values():
        story = Story(**told)
        assert all(isinstance(event, JournalEvent) for event in story.journal)
        assert set(story.windows()) == set(story.data)
        assert all(isinstance(event, Admitted | Released) for event in (*OPEN, *CLOSING, *OPENING))
