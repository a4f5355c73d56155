"""Windows of the entitlement ledger [ours, readings A05]: each is a stream of its own, and a rotation leads from one to the next.

pool/1 counts usage over one ledger and says nothing of a window's end. A rotation ends every claim that is open in the old
stream at its figure so far, in their order of admission, and admits what is left of each first in the new one. The journal's `rotated` entry
pins the old stream as it stood before (`ledger_length`) and as it was closed (`from_length`): the entries between are those
releases, and as many entries of the new stream are their admissions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from fleetctl.diagnostics import code
from fleetctl.frozen import dataclass
from fleetctl.ledger import cose, fastcore
from fleetctl.ledger.entries import Admitted, Event, JournalEvent, Recovered, Released, Rotated, decode_core
from fleetctl.ledger.identifiers import (
    GRADE_RANK,
    GRADES,
    MAX_IDENTIFIER,
    Grade,
    LedgerId,
    kind_of,
    ledger_id,
    steward_of,
    stream_of,
)
from fleetctl.ledger.usage import Fold, OpenClaim
from fleetctl.ledger.verify import Verification
from fleetctl.units import LAST_MS

ROTATION_BROKEN = code(
    "rotation-broken",
    "The windows of an entitlement ledger do not follow from each other",
    trigger="a closed ledger is longer or shorter than its rotation says or is missing, the next one does not begin with what was "
    "left of the open claims, or the journal goes on from another ledger",
    exit_code=3,
)

FIRST_WINDOW = "entitlements"
"""The stream of the first window; every later one is `entitlements:<window>`."""

_DAY_MS = 86_400_000
_WEEK_MS = 7 * _DAY_MS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERED = re.compile(r"(.+):([2-9]|[1-9][0-9]{1,17})", re.ASCII | re.DOTALL)
_ROOM = 20
"""Characters that the number of a claim that went on may need."""


# ------------------------------------------------------------------------------------------------------- names


def stream_name(window: str) -> str:
    """The stream of a window after the first."""
    return f"{FIRST_WINDOW}:{window}"


def window_name(at_ms: int, period_ms: int | None) -> str:
    """What a window that begins at `at_ms` is called unless somebody names it: `2026w50` for periods of whole weeks, `2026-12-07` for
    those of whole days and where there is none, else the minute in UTC.
    """
    if at_ms > LAST_MS:
        return str(at_ms)
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    if period_ms is None or period_ms % _DAY_MS == 0:
        year, week, _ = moment.isocalendar()
        weeks = period_ms is not None and period_ms % _WEEK_MS == 0
        return f"{year}w{week:02d}" if weeks else f"{moment:%Y-%m-%d}"
    return f"{moment:%Y-%m-%dT%H%MZ}"


def numbered(name: str, is_taken: Callable[[str], bool]) -> str:
    """`name`, or the first of `name.2`, `name.3`, … that is not taken."""
    number, found = 1, name
    while is_taken(found):
        number += 1
        found = f"{name}.{number}"
    return found


def name_of(ledger: LedgerId) -> str:
    """What a window is called: `2026w50`, and `entitlements` for the first."""
    return stream_of(ledger).removeprefix(f"{FIRST_WINDOW}:")


def file_of(number: int, ledger: LedgerId) -> str:
    """Where a bundle has a closed window, the `number`th from 0: `windows/0000-entitlements.cborseq`."""
    return f"windows/{number:04d}-{stream_of(ledger).replace(':', '_')}.cborseq"


def stem_of(claim: str) -> str | None:
    """What comes before the number of an id such as a claim that went on has: `c9` for `c9:2`. None for any other id."""
    match = _NUMBERED.fullmatch(claim)
    return match[1] if match else None


def successor(claim: str, *, carried: bool, is_taken: Callable[[str], bool]) -> str:
    """The id under which a claim goes on: `c9:2` after `c9`, then `c9:3`. `carried`: the claim itself went on already.

    A number that is taken is passed over. An id that leaves no room for a number goes on under its beginning and its digest.
    """
    match = _NUMBERED.fullmatch(claim) if carried else None
    stem, number = (match[1], int(match[2])) if match else (claim, 1)
    if len(stem) > MAX_IDENTIFIER - _ROOM:
        stem = f"{stem[: MAX_IDENTIFIER - _ROOM - 17]}-{sha256(stem.encode()).hexdigest()[:16]}"
    found = claim
    while found == claim or is_taken(found):
        number += 1
        found = f"{stem}:{number}"
    return found


# ------------------------------------------------------------------------------------------------ what goes over


def weaker(*grades: Grade) -> Grade:
    """The weakest of some grades: a sum or a difference is no better than its worst part (readings A72)."""
    return GRADES[max(GRADE_RANK[grade] for grade in grades)]


def remainder(opened: OpenClaim, spent_uj: int, grade: Grade) -> tuple[int, Grade]:
    """What is left of a reservation after `spent_uj` at `grade`, never negative, and at which grade."""
    return max(0, opened.reserved_uj - spent_uj), weaker(opened.grade, grade) if spent_uj else opened.grade


def most_borrowed(opened: OpenClaim, left_uj: int, grade: Grade) -> int:
    """What the rest of a claim may count as borrowed: never more than the claim did, and a guess borrows nothing (pool/1 §4.4)."""
    return 0 if grade == "Estimator" else min(opened.borrowed_uj, left_uj)


def readmitted(
    claim: str, opened: OpenClaim, *, spent_uj: int, grade: Grade, above_guarantee_uj: int, at_ms: int
) -> Admitted:
    """The admission under `claim` of what is left of an open claim. `above_guarantee_uj`: what of it lies past the guarantee in the new window."""
    left, graded = remainder(opened, spent_uj, grade)
    return Admitted(
        at_ms=at_ms,
        claim=claim,
        entitlement=opened.entitlement,
        workload_class=opened.workload_class,
        reserved_uj=left,
        borrowed_uj=min(above_guarantee_uj, most_borrowed(opened, left, graded)),
        devices=opened.devices,
        grade=graded,
    )


def carried_count(rotated: Rotated) -> int:
    """How many claims were open at a rotation."""
    return rotated.from_length - rotated.ledger_length


# -------------------------------------------------------------------------------------------------- verification


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One stream, verified by itself, and its bytes."""

    verification: Verification
    data: bytes


Windows = Mapping[LedgerId, Window]


def succession(journal: Iterable[tuple[int, JournalEvent]]) -> list[LedgerId]:
    """The entitlement ledgers that a journal has gone through, each once, oldest first; the last is in force. Empty for an empty
    journal.
    """
    found: dict[LedgerId, None] = {}
    for _, event in journal:
        found[event.ledger] = None
        if isinstance(event, Rotated):
            found[event.to_ledger] = None
    return list(found)


def faults_of_windows(
    journal: Iterable[tuple[int, JournalEvent]], windows: Windows, *, current: LedgerId
) -> Iterator[str]:
    """What is wrong with the rotations that a verified journal tells of, in words. `windows` are verified streams, `current` is in force.

    1 one ledger is in force at every entry, from `<steward>/entitlements` on · 2 a rotation goes from it to a new one that is there ·
    3 the old one ends where it was closed, and stood before as is said · 4 its last entries release the claims that were open, and no others · 5 the new
    one begins with what was left of each · 6 later entries pin it with them · 7 the last one is `current`.
    A recovery goes on from whatever it names.
    """
    in_force, carried = ledger_id(steward_of(current), FIRST_WINDOW), 0
    seen = {in_force}
    for index, event in journal:
        if isinstance(event, Recovered):
            if kind_of(event.ledger) != "entitlements" or steward_of(event.ledger) != steward_of(current):
                yield f"journal entry {index} goes on in {event.ledger}, which is no entitlement ledger of {steward_of(current)}"
                return
            in_force, carried = event.ledger, 0
            seen.add(in_force)
            continue
        if event.ledger != in_force:  # step 1
            yield f"journal entry {index} speaks of {event.ledger}, and {in_force} is in force"
            return
        if event.ledger_length < carried:  # step 6
            yield f"journal entry {index} pins {in_force} at the length {event.ledger_length}, and it began with {carried}"
        if isinstance(event, Rotated):
            wrong = _wrong_way(event, seen, windows)
            if wrong:
                yield f"journal entry {index} {wrong}"
                return
            old, new = windows[event.from_ledger], windows[event.to_ledger]
            yield from (f"journal entry {index}: {fault}" for fault in _faults(event, old, new, carried))
            in_force, carried = event.to_ledger, carried_count(event)
            seen.add(in_force)
    if in_force != current:  # step 7
        yield f"{in_force} is in force by the journal, and this is {current}"


def _wrong_way(event: Rotated, seen: set[LedgerId], windows: Windows) -> str | None:
    """Step 2."""
    old, new = event.from_ledger, event.to_ledger
    if old != event.ledger:
        return f"closes {old}, and {event.ledger} is in force"
    if new in seen or kind_of(new) != "entitlements" or steward_of(new) != steward_of(old):
        return f"goes on in {new}, which is no new entitlement ledger of {steward_of(old)}"
    if carried_count(event) < 0:
        return f"closes {old} at the length {event.from_length}, and it had {event.ledger_length} before"
    missing = [ledger for ledger in (old, new) if ledger not in windows]
    return f"rotates {old} to {new}, and {missing[0]} is not here" if missing else None


def _faults(event: Rotated, old: Window, new: Window, carried: int) -> Iterator[str]:
    """Steps 3 to 5. The old one itself began with `carried` claims of the window before it."""
    count, closed = carried_count(event), old.verification
    if closed.length != event.from_length or closed.head != event.from_head:  # step 3
        other = closed.length != event.from_length
        what = f"has {closed.length}: entries were cut or added" if other else "has another head there"
        yield f"{event.from_ledger} was closed at the length {event.from_length}, and {what}"
        return
    if closed.head_at(event.ledger_length) != event.ledger_head:  # step 3
        yield f"{event.from_ledger} had another head at the length {event.ledger_length}, before its claims were moved"
        return
    if new.verification.length < count:  # step 5
        yield f"{event.to_ledger} has the length {new.verification.length}, and began with {count} claims of {event.from_ledger}"
        return
    fold, last = _folded(old, event.ledger_length, carried)
    released = [found for found in last if isinstance(found, Released)]
    opened = dict(fold.open_claims)
    went_on = {claim for claim in opened if fold.is_carried(claim)}
    if [found.claim for found in released] != list(opened) or len(released) != len(last):  # step 4
        yield f"the last {count} entries of {event.from_ledger} do not release the {len(opened)} claims that were open"
        return
    for found, admitted in zip(released, _first(new, count), strict=True):
        wrong = _not_what_was_left(found, opened[found.claim], admitted, found.claim in went_on)
        if wrong:
            yield f"{event.to_ledger} does not begin with what was left of {found.claim}: {wrong}"


def _not_what_was_left(released: Released, opened: OpenClaim, admitted: Event, carried: bool) -> str | None:
    if not isinstance(admitted, Admitted):
        return f"it begins with `{admitted.EVENT}`"
    left, grade = remainder(opened, released.spent_uj, released.grade)
    expected = Admitted(
        at_ms=released.at_ms,
        claim=admitted.claim,
        entitlement=opened.entitlement,
        workload_class=opened.workload_class,
        reserved_uj=left,
        borrowed_uj=min(admitted.borrowed_uj, most_borrowed(opened, left, grade)),
        devices=opened.devices,
        grade=grade,
    )
    if admitted != expected:
        return f"it has {_shown(admitted)}, expected is {_shown(expected)}"
    stem = stem_of(admitted.claim)
    first = successor(released.claim, carried=carried, is_taken=lambda _: False)
    return None if stem == stem_of(first) else f"it goes on as {admitted.claim}"


def _shown(event: Admitted) -> str:
    parts = (
        event.claim,
        event.entitlement,
        event.workload_class or "no class",
        f"{event.reserved_uj} uJ {event.grade}",
    )
    return ", ".join((*parts, f"{event.borrowed_uj} uJ borrowed", f"{event.devices} devices", f"at {event.at_ms}"))


def _folded(window: Window, length: int, carried: int) -> tuple[Fold, Sequence[Event]]:
    """The fold of the first entries of a verified stream, and the events that follow."""
    ledger = window.verification.ledger
    fold, fast = Fold(ledger, carried), fastcore.reader(steward_of(ledger))
    offset, rest = 0, list[Event]()
    for index in range(window.verification.length):
        envelope = cose.read(window.data, offset)
        offset = envelope.end
        core = fast(envelope.payload) if index < length else None
        if core is not None:
            core.move(fold)
            continue
        event = decode_core(envelope.payload, "entitlements").event
        if index < length:
            fold.apply(event, index)
        else:
            rest.append(event)
    return fold, rest


def _first(window: Window, count: int) -> Iterator[Event]:
    """The first events of a verified stream."""
    offset = 0
    for _ in range(count):
        envelope = cose.read(window.data, offset)
        offset = envelope.end
        yield decode_core(envelope.payload, "entitlements").event
