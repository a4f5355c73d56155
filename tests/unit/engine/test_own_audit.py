"""`ledger verify` of an engine's own ledgers: whatever the auditor knows from elsewhere counts, and witnesses are asked.

ledger.md, "The witness": "`ledger verify` takes `--min-length`, `--max-receipt-age` and `--resume FILE`, and can ask the
witness for its head."
"""

from __future__ import annotations

import json
from pathlib import Path

from fleetctl.engine.context import JOURNAL
from fleetctl.engine.ledgers import Given, audit_engine
from fleetctl.engine.streams import head_of
from fleetctl.ledger.chain import Head
from fleetctl.ledger.receipts import MAX_RECEIPTS, WitnessKey, issue
from fleetctl.ledger.report import Bounds, parse_resume
from fleetctl.ports import StoredReceipt
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support.ledgers import AT_MS, signer

ROSTER = tw.witnessed_by(tw.WITNESSES["witness-a"])


def test_a_full_rollback_is_seen_when_the_witness_is_asked(tmp_path: Path) -> None:
    """ledger-attacks 110: old prefix and old receipt; "all ok, unless … GET head says otherwise"."""
    witness = tw.InProcess()
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(witness,))
    te.applied(engine, te.one_pool(32))
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    te.applied(engine, te.one_pool(16))

    assert audit_engine(te.open_engine(backup)).ok
    assert audit_engine(te.open_engine(backup, witnesses=(tw.Down(witness),))).ok
    report = audit_engine(te.open_engine(backup, witnesses=(witness,)))
    assert not report.ok and report.verification.ok
    assert report.journal is not None
    assert [item.verdict for item in report.journal.receipts] == ["witnessed", "ahead"]


def test_receipts_are_told_by_the_ledger_that_they_speak_of(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(tw.InProcess(),))
    te.applied(engine, te.one_pool(32))
    third = Head(ledger=engine.ledger("journal:2"), length=1, address=b"\x01" * 32)
    report = audit_engine(
        engine, Given(receipts=[issue(third, at_ms=AT_MS, signer=tw.WITNESSES["witness-a"]), b"no receipt"])
    )
    assert [item.verdict for item in report.receipts] == ["witnessed", "wrong-ledger", "malformed"]
    assert report.journal is not None
    assert [item.verdict for item in report.journal.receipts] == ["witnessed", "malformed"]


def test_more_receipts_than_are_read_at_once_leave_the_oldest_out(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(tw.InProcess(),))
    te.applied(engine, te.one_pool(32))
    with engine.store.write(0) as tx:
        head = head_of(engine, tx, JOURNAL)
        for at_ms in range(AT_MS, AT_MS + MAX_RECEIPTS):
            sealed = issue(head, at_ms=at_ms, signer=tw.WITNESSES["witness-a"])
            tx.put_receipt(
                StoredReceipt(
                    stream=JOURNAL,
                    witness=f"w{at_ms}",
                    length=head.length,
                    head=head.address,
                    at_ms=at_ms,
                    sealed=sealed,
                )
            )
    journal = audit_engine(engine).journal
    assert journal is not None and journal.ok
    assert len(journal.receipts) == MAX_RECEIPTS


def test_keys_and_names_that_are_given_go_before_the_engines_own(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(tw.InProcess(),))
    te.applied(engine, te.one_pool(32))
    stranger = signer("stranger")

    def first(given: Given) -> tuple[str, str] | None:
        report = audit_engine(engine, given).journal
        assert report is not None
        fault = report.verification.first_fault
        return None if fault is None else (fault.axis, fault.code)

    assert first(Given(key=engine.steward_key, steward=engine.steward)) is None
    assert first(Given(key=stranger.public_key)) == ("authenticity", "bad-signature")
    assert first(Given(steward="somebody")) == ("authenticity", "bad-header")
    other = audit_engine(engine, Given(roster=[WitnessKey(witness="witness-a", key=stranger.public_key)]))
    assert [item.verdict for item in other.receipts] == ["bad-signature"]
    assert not other.ok


def test_the_last_verification_binds_both_ledgers(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine", ROSTER, witnesses=(tw.InProcess(),))
    te.applied(engine, te.one_pool(32))
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    te.applied(engine, te.one_pool(16))
    last = json.loads(json.dumps(audit_engine(engine).to_json()))

    given = Given(bounds=lambda ledger, _beside: Bounds(resume=parse_resume(last, ledger)))
    assert audit_engine(engine, given).ok
    report = audit_engine(te.open_engine(backup), given).to_json()
    assert report["result"] == "failed"
    journal = report["journal"]
    assert isinstance(journal, dict) and journal["reasons"] == ["resume-mismatch"]
