"""A verification for people: one line for what is alike, and what to do where a key is missing or wrong."""

from __future__ import annotations

from typing import Any

from fleetctl.ledger import receipts
from fleetctl.ledger.audit import audit, with_journal
from fleetctl.ledger.report import Report
from fleetctl.render.ledger import report_document
from fleetctl.render.text import to_text
from tests.support.ledgers import (
    AT_MS,
    ENTITLEMENTS,
    JOURNAL,
    STEWARD,
    WITNESS,
    applied,
    history,
    join,
    seal_all,
    signer,
)

USAGE = seal_all(history(20))
CONFIG = seal_all([applied(0), applied(1, pins=USAGE[1].head)], ledger=JOURNAL)
ROSTER = [receipts.WitnessKey(witness=WITNESS.kid, key=WITNESS.public_key)]
ISSUED = [receipts.issue(item.head, at_ms=AT_MS, signer=WITNESS) for item in USAGE]


def usage_report(data: bytes = join(USAGE), **more: Any) -> Report:
    known: dict[str, Any] = {"key": STEWARD.public_key, "roster": ROSTER, "receipts": ISSUED} | more
    return audit(data, ledger=ENTITLEMENTS, now_ms=AT_MS, **known)


def text(report: Report) -> str:
    return to_text(report_document(report), columns=400)


def test_receipts_are_told_by_the_furthest_of_each_verdict() -> None:
    page = text(usage_report(receipts=ISSUED[::-1]))
    length = len(USAGE)
    assert f"receipts      witnessed at {length} by witness-a\n" in page
    assert f"              prefix at {length - 1} by witness-a, and {length - 2} more\n" in page


def test_a_length_that_is_witnessed_is_told_once() -> None:
    assert "grade         witnessed-to 3\n" in text(usage_report(receipts=ISSUED[:3]))


def test_receipts_under_no_known_key_say_what_is_missing() -> None:
    page = text(usage_report(roster=[]))
    assert page.count("give --witness-key witness-a=PUB") == 1


def test_faults_that_are_alike_are_counted_and_a_wrong_key_is_guessed() -> None:
    page = text(usage_report(key=signer("somebody-else").public_key, receipts=[]))
    assert f"entry 0 and {len(USAGE) - 1} more, authenticity, step 4: bad-signature" in page
    assert "see that it is this steward's" in page


def test_a_good_ledger_beside_a_bad_journal_is_not_blamed() -> None:
    bad = join(CONFIG)[:-3]
    journal = audit(bad, ledger=JOURNAL, key=STEWARD.public_key, now_ms=AT_MS)
    page = text(with_journal(usage_report(), journal, bad))
    assert "root-steward/entitlements verifies, and the journal beside it does not: " in page
    assert "root-steward/journal FAILS verification: " in page
