"""The report of `fleetctl ledger verify` (cli.md "Verifying a ledger")."""

from __future__ import annotations

import json

import pytest

from fleetctl.errors import BadInput, NotVerified
from fleetctl.ledger import chain, receipts
from fleetctl.ledger.audit import TAIL_NOTE, audit, with_journal
from fleetctl.ledger.report import Bounds, Report, parse_resume
from tests.support.ledgers import (
    AT_MS,
    ENTITLEMENTS,
    JOURNAL,
    STEWARD,
    WITNESS,
    admitted,
    applied,
    history,
    join,
    released,
    seal_all,
    signer,
)

USAGE = seal_all(history(2))
CONFIG = seal_all([applied(0), applied(1, pins=USAGE[1].head), applied(2, pins=USAGE[3].head)], ledger=JOURNAL)
CO_LOCATED = signer("witness-file")
ROSTER = [
    receipts.WitnessKey(witness=WITNESS.kid, key=WITNESS.public_key),
    receipts.WitnessKey(witness=CO_LOCATED.kid, key=CO_LOCATED.public_key, co_located=True),
]


def usage_report(data: bytes = join(USAGE), **more: object) -> Report:
    return audit(data, ledger=ENTITLEMENTS, key=STEWARD.public_key, now_ms=AT_MS, roster=ROSTER, **more)  # type: ignore[arg-type]  # shorthand


def journal_report(data: bytes = join(CONFIG)) -> Report:
    return audit(data, ledger=JOURNAL, key=STEWARD.public_key, now_ms=AT_MS, roster=ROSTER)


def test_the_json_of_a_good_ledger() -> None:
    sealed = receipts.issue(USAGE[-1].head, at_ms=AT_MS, signer=WITNESS)
    assert usage_report(receipts=[sealed]).to_json() == {
        "result": "ok",
        "ledger": "root-steward/entitlements",
        "length": 4,
        "head": USAGE[-1].address.hex(),
        "grade": "witnessed",
        "co_located": False,
        "witnessed_length": 4,
        "first_fault": None,
        "axes": {axis: {"ok": True} for axis in ("authenticity", "canonicity", "sequence", "claims")},
        "receipts": [{"witness": "witness-a", "length": 4, "verdict": "witnessed"}],
        "usage": {
            "team-0": {"spent_uj": 900, "reserved_uj": 0, "devices": 0, "grade": "HwShunt"},
            "team-1": {"spent_uj": 901, "reserved_uj": 0, "devices": 0, "grade": "HwShunt"},
        },
    }


@pytest.mark.clause("pool/1 §7.10", "pool/1 §6.4 (1)")
def test_the_json_of_a_failed_ledger_derives_nothing() -> None:
    answer = usage_report(join(USAGE)[:-1]).to_json()
    assert answer["first_fault"] == {"index": 3, "axis": "authenticity", "code": "bad-frame"}
    assert "usage" not in answer and json.loads(json.dumps(answer)) == answer


@pytest.mark.clause("pool/1 §7.16", "pool/1 §6.8 (1)")
def test_a_self_attested_report_says_what_it_cannot_see() -> None:
    """A63: a dropped tail is undetectable from the chain, and the output says so."""
    short = usage_report(join(USAGE[:3]))
    assert short.ok and short.to_json()["notes"] == [TAIL_NOTE]


@pytest.mark.clause("pool/1 §7.16", "pool/1 §6.8 (1)")
def test_a_co_located_witness_never_raises_the_grade() -> None:
    own = receipts.issue(USAGE[-1].head, at_ms=AT_MS, signer=CO_LOCATED)
    answer = usage_report(receipts=[own]).to_json()
    assert (answer["grade"], answer["co_located"], answer["result"]) == ("self-attested", True, "ok")
    assert answer["receipts"] == [{"witness": "witness-file", "length": 4, "verdict": "witnessed"}]
    both = usage_report(receipts=[own, receipts.issue(USAGE[1].head, at_ms=AT_MS, signer=WITNESS)]).to_json()
    assert (both["grade"], both["witnessed_length"], both["co_located"]) == ("witnessed-to", 2, False)


def test_a_co_located_fork_still_fails() -> None:
    forged = receipts.issue(
        chain.Head(ledger=ENTITLEMENTS, length=2, address=bytes(32)), at_ms=AT_MS, signer=CO_LOCATED
    )
    assert not usage_report(receipts=[forged]).ok


def test_the_journal_stands_beside_the_entitlements() -> None:
    both = with_journal(usage_report(), journal_report(), join(CONFIG))
    answer = both.to_json()
    assert answer["result"] == "ok"
    journal = answer["journal"]
    assert isinstance(journal, dict) and journal["ledger"] == JOURNAL and "usage" not in journal
    assert set(journal) - {"notes"} == set(answer) - {"notes", "usage", "journal"}


def test_either_stream_fails_both() -> None:
    broken = join(CONFIG)[:-1]
    answer = with_journal(usage_report(), journal_report(broken), broken).to_json()
    assert answer["result"] == "failed" and "usage" not in answer
    broken = join(USAGE)[:-1]
    assert with_journal(usage_report(broken), journal_report(), join(CONFIG)).to_json()["result"] == "failed"


@pytest.mark.parametrize(
    "entitlements",
    [USAGE[:3], seal_all([*history(1), admitted("c1", reserved_uj=5), released("c1")])],
    ids=["cut", "rewritten"],
)
def test_the_journal_pins_the_entitlement_ledger(entitlements: list[chain.Sealed]) -> None:
    """ledger.md: one witnessed journal head also pins the entitlement ledger."""
    data = join(entitlements)
    both = with_journal(usage_report(data), journal_report(), join(CONFIG))
    assert both.verification.ok and both.to_json()["reasons"] == ["journal-disagrees"]
    with pytest.raises(NotVerified) as refused:
        both.require()
    assert refused.value.exit_code == 3


def test_a_journals_time_never_falls() -> None:
    sealed = seal_all([applied(0, at_ms=AT_MS), applied(1, at_ms=AT_MS - 1)], ledger=JOURNAL)
    answer = journal_report(join(sealed)).to_json()
    assert answer["first_fault"] == {"index": 1, "axis": "claims", "code": "time-reversed"}


def test_resume_takes_the_json_of_the_last_verification() -> None:
    before = with_journal(usage_report(join(USAGE[:2])), journal_report(join(CONFIG[:2])), join(CONFIG[:2])).to_json()
    last = parse_resume(json.loads(json.dumps(before)), ENTITLEMENTS)
    assert usage_report(bounds=Bounds(resume=last)).to_json()["resumed_from"] == 2
    assert parse_resume(before, JOURNAL).length == 2


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"result": "failed", "ledger": ENTITLEMENTS, "length": 2, "head": "00" * 32},
        {"result": "ok", "ledger": JOURNAL, "length": 2, "head": "00" * 32},
        {"result": "ok", "ledger": ENTITLEMENTS, "length": -1, "head": "00" * 32},
        {"result": "ok", "ledger": ENTITLEMENTS, "length": True, "head": "00" * 32},
        {"result": "ok", "ledger": ENTITLEMENTS, "length": 2, "head": "zz" * 32},
        {"result": "ok", "ledger": ENTITLEMENTS, "length": 2, "head": "00"},
        {"result": "ok", "ledger": ENTITLEMENTS, "length": 2},
    ],
)
def test_another_resume_file_is_refused(document: object) -> None:
    with pytest.raises(BadInput) as refused:
        parse_resume(document, ENTITLEMENTS)
    assert refused.value.code == "bad-resume-file"


def test_require_names_every_failure() -> None:
    sealed = receipts.issue(USAGE[-1].head, at_ms=AT_MS, signer=WITNESS)
    report = usage_report(join(USAGE[:2]), receipts=[sealed], bounds=Bounds(min_length=4))
    assert report.to_json()["reasons"] == ["below-min-length", "receipt-failed"]
    with pytest.raises(NotVerified) as refused:
        report.require()
    assert [item.code.name for item in refused.value.diagnostics] == ["below-min-length", "receipt-failed"]
    assert usage_report().require().ok
