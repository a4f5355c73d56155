"""A whole-ledger audit: streams, receipts and bounds into the one report that `fleetctl ledger verify` prints (cli.md "Verifying a ledger").

What no reader can see is said in the report: entries cut from the tail of a ledger that nobody witnessed, and a rollback to an older
prefix together with its older receipt, unless a bound given from outside contradicts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fleetctl.ledger import cose
from fleetctl.ledger.documents import DOCUMENT_MISSING, Documents, named_documents
from fleetctl.ledger.entries import BadCore, JournalEvent, Recovered, Rotated, decode_core
from fleetctl.ledger.identifiers import LedgerId, stream_of
from fleetctl.ledger.keys import PublicKey
from fleetctl.ledger.receipts import (
    FAILING,
    LOST,
    Judged,
    WitnessKey,
    clock_warnings,
    covered_by_key,
    grading,
    judge,
)
from fleetctl.ledger.report import (
    BELOW_MIN_LENGTH,
    CROSS_CHECK_FAILED,
    JOURNAL_DISAGREES,
    RECEIPT_FAILED,
    RESUME_MISMATCH,
    Bounds,
    Reason,
    Report,
)
from fleetctl.ledger.verify import Verification, examine
from fleetctl.ledger.windows import ROTATION_BROKEN, Window, Windows, faults_of_windows

TAIL_NOTE = (
    "self-attested: the steward's own signatures only; entries cut from the end, or a whole history rewritten by the steward, "
    "would not show"
)


def audit(
    data: bytes,
    *,
    ledger: LedgerId,
    key: PublicKey,
    now_ms: int,
    receipts: Sequence[bytes] = (),
    roster: Sequence[WitnessKey] = (),
    other_steward_keys: Sequence[PublicKey] = (),
    required: int = 1,
    bounds: Bounds | None = None,
    cross_check: bool = False,
    processes: int | None = None,
) -> Report:
    """Verify one stream and weigh what speaks for it. Raises BadInput for arguments that cannot be used, nothing for what is in `data`.

    `other_steward_keys` are keys the steward had or has besides `key`: a witness may hold none of them. `required` independent
    witnesses, counted by key, make the ledger a witnessed one.
    """
    bounds = bounds or Bounds()
    seen = examine(data, ledger=ledger, key=key, processes=processes)
    judged = judge(
        receipts,
        seen,
        steward_keys=(key, *other_steward_keys),
        roster=roster,
        now_ms=now_ms,
        max_age_ms=bounds.max_receipt_age_ms,
    )
    grade = grading(judged, seen.length, required)
    reasons = [*_bound_reasons(seen, bounds), *_receipt_reasons(judged)]
    if cross_check:
        reasons += _cross_check_reasons(data, seen, key)
    notes = clock_warnings(judged)
    if grade.grade == "self-attested":
        notes.insert(0, TAIL_NOTE)
    if required > 1:
        notes += _required_notes(judged, seen.length, required)
    resumed_from = bounds.resume.length if bounds.resume else None
    return Report(
        verification=seen,
        receipts=tuple(judged),
        grading=grade,
        reasons=tuple(reasons),
        notes=tuple(notes),
        resumed_from=resumed_from,
    )


def with_journal(
    entitlements: Report,
    journal: Report,
    journal_data: bytes,
    documents: Documents | None = None,
    *,
    data: bytes = b"",
    windows: Sequence[tuple[Report, bytes]] = (),
) -> Report:
    """All streams in one report. Every journal entry also pins the entitlement ledger as it stood; they must tell one story.

    `documents` are those beside the journal, which then must hold every one that it names. `data` are the bytes of `entitlements`,
    `windows` the closed windows before it with theirs, oldest first.
    """
    if documents is not None and journal.verification.ok:
        journal = replace(journal, reasons=(*journal.reasons, *_document_reasons(journal_data, documents)))
    given_up = _given_up(journal_data) if journal.verification.ok else set()
    windows = [(_excused(item) if item.verification.ledger in given_up else item, held) for item, held in windows]
    streams = [(entitlements, data), *windows]
    reasons = entitlements.reasons
    if journal.verification.ok and all(report.verification.ok for report, _ in streams):
        found = {
            report.verification.ledger: Window(verification=report.verification, data=held) for report, held in streams
        }
        reasons = (*reasons, *_pin_reasons(found, journal_data))
        if not reasons:
            reasons = (*reasons, *_window_reasons(found, entitlements.verification.ledger, journal_data))
    return replace(entitlements, journal=journal, reasons=reasons, windows=tuple(report for report, _ in windows))


def journal_file(number: int) -> str:
    """Where a bundle has the `number`th journal, from 0, that a recovery closed."""
    return f"journals/{number:04d}.cborseq"


def with_earlier(journal: Report, data: bytes, earlier: Sequence[tuple[Report, bytes]], documents: Documents) -> Report:
    """A journal that a recovery opened, with those before it, oldest first: each goes on from the one before it, as its first entry says.

    Of those before, documents that are missing count too; what witnesses signed beyond them is what was lost.
    """
    reasons, before = list(journal.reasons), None
    for report, held in (*earlier, (journal, data)):
        wrong = _does_not_go_on(before, report.verification.ledger, held, documents)
        if wrong and report.verification.ok:
            reasons.append(Reason(code=JOURNAL_DISAGREES.name, detail=wrong))
        if report is not journal and report.verification.ok:
            reasons += _document_reasons(held, documents)
        before = report.verification
    return replace(journal, reasons=tuple(reasons), windows=tuple(_excused(report) for report, _ in earlier))


def _does_not_go_on(before: Verification | None, ledger: LedgerId, data: bytes, documents: Documents) -> str | None:
    """Why a journal does not go on from the one before it; None when it does, or is the first and has none."""
    first = next(journal_events(data), None)
    if before is None:
        return None if stream_of(ledger) == "journal" else f"{ledger} goes on from a journal that is not here"
    if first is None or not isinstance(first[1], Recovered):
        return f"{ledger} was opened by no recovery"
    try:
        kept = json.loads(documents(first[1].evidence[0].hex()) or b"")["journal"]
        said = (kept["ledger"], kept["length"], kept["head"])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return f"{ledger} names no account of what was lost"
    if said != (before.ledger, before.length, before.head.hex()):
        return f"{ledger} goes on from {said[0]} at {said[1]}, and {before.ledger} has {before.length} entries here, or another head"
    return None


def _bound_reasons(seen: Verification, bounds: Bounds) -> list[Reason]:
    reasons = []
    if bounds.min_length is not None and seen.length < bounds.min_length:
        detail = (
            f"{seen.ledger} has the length {seen.length} where {bounds.min_length} is expected: entries are missing"
        )
        reasons.append(Reason(code=BELOW_MIN_LENGTH.name, detail=detail))
    last = bounds.resume
    if last is not None and last.length > seen.length:
        detail = (
            f"{seen.ledger} had {last.length} entries when last verified and has {seen.length} now: it was truncated"
        )
        reasons.append(Reason(code=RESUME_MISMATCH.name, detail=detail))
    elif last is not None and seen.head_at(last.length) != last.head:
        detail = f"{seen.ledger} has another head at {last.length} than when last verified: its history was rewritten"
        reasons.append(Reason(code=RESUME_MISMATCH.name, detail=detail))
    return reasons


def _receipt_reasons(judged: Sequence[Judged]) -> list[Reason]:
    return [
        Reason(
            code=RECEIPT_FAILED.name,
            detail=f"receipt {index + 1} by {item.receipt.witness if item.receipt else 'nobody known'}: "
            f"{item.verdict}; {item.detail}",
        )
        for index, item in enumerate(judged)
        if item.verdict in FAILING
    ]


def _required_notes(judged: Sequence[Judged], length: int, required: int) -> list[str]:
    """How many of the required witnesses are there, where they are not."""
    covering = sum(covered >= length for covered in covered_by_key(judged).values())
    if covering >= required:
        return []
    return [f"{covering} of {required} required witnesses, counted by key, cover all {length} entries"]


def _cross_check_reasons(data: bytes, seen: Verification, key: PublicKey) -> list[Reason]:
    from fleetctl.ledger.crosscheck import disagreements

    known = {fault.index for fault in seen.faults if fault.axis == "authenticity"}
    found = [index for index in disagreements(data, ledger=seen.ledger, key=key) if index not in known]
    if not found or seen.fault_count > len(seen.faults):
        return []
    detail = f"pycose does not verify entry {found[0]} of {seen.ledger} ({len(found)} in all); report this as a defect"
    return [Reason(code=CROSS_CHECK_FAILED.name, detail=detail)]


def _pin_reasons(streams: Windows, journal_data: bytes) -> list[Reason]:
    """The first journal entry whose pinned length and head are not those of its entitlement stream.

    Of a stream that a recovery gave up entries are missing, and the journal says so.
    """
    given_up = _given_up(journal_data)
    for index, event in journal_events(journal_data):
        seen = streams.get(event.ledger)
        if seen is not None and event.ledger not in given_up:
            n, found = event.ledger_length, seen.verification
            if n > found.length or found.head_at(n) != event.ledger_head:
                what = "entries are missing" if n > found.length else "its history was rewritten"
                detail = f"journal entry {index} pins {event.ledger} at length {n}, which this stream is not: {what}"
                return [Reason(code=JOURNAL_DISAGREES.name, detail=detail)]
    return []


def _given_up(journal_data: bytes) -> set[LedgerId]:
    """Entitlement ledgers that a recovery closed with entries missing."""
    in_force: LedgerId | None = None
    found: set[LedgerId] = set()
    for _, event in journal_events(journal_data):
        if isinstance(event, Recovered) and in_force is not None and event.ledger != in_force:
            found.add(in_force)
        in_force = event.to_ledger if isinstance(event, Rotated) else event.ledger
    return found


def _excused(report: Report) -> Report:
    """A stream that a recovery gave up: what witnesses signed beyond or beside it is what was lost, and the journal says so."""
    found = [item for item in report.receipts if item.verdict in LOST]
    kept = [item for item in report.reasons if item.code != RECEIPT_FAILED.name]
    wrong = _receipt_reasons([item for item in report.receipts if item.verdict not in LOST])
    notes = [f"given up by a recovery, which the journal tells of: {item.detail}" for item in found]
    return replace(report, reasons=(*kept, *wrong), notes=(*report.notes, *notes))


def _window_reasons(streams: Windows, current: LedgerId, journal_data: bytes) -> list[Reason]:
    """Where the windows do not follow from each other as the journal's rotations say."""
    faults = faults_of_windows(journal_events(journal_data), streams, current=current)
    return [Reason(code=ROTATION_BROKEN.name, detail=fault) for fault in faults]


def _document_reasons(journal_data: bytes, documents: Documents) -> list[Reason]:
    """The documents that are missing, all of them in one reason."""
    missing = [
        (index, digest.hex())
        for index, event in journal_events(journal_data)
        for digest in named_documents(event)
        if documents(digest.hex()) is None
    ]
    if not missing:
        return []
    index, digest = missing[0]
    detail = f"journal entry {index} names document {digest}, which is missing or was changed ({len(missing)} in all)"
    return [Reason(code=DOCUMENT_MISSING.name, detail=detail)]


def journal_events(journal_data: bytes) -> Iterator[tuple[int, JournalEvent]]:
    """The events of a journal, up to the first that cannot be read."""
    offset = index = 0
    while offset < len(journal_data):
        try:
            envelope = cose.read(journal_data, offset)
            event = decode_core(envelope.payload, "journal").event
        except (cose.BadEnvelope, BadCore):
            return
        if isinstance(event, JournalEvent):
            yield index, event
        offset, index = envelope.end, index + 1
