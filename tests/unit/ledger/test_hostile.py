"""No input makes a verifier raise anything but its own refusal, or use much memory or time (ledger.md "Verifying")."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetctl.errors import BadInput, NotVerified
from fleetctl.ledger import chain, checkpoint, receipts, witness
from fleetctl.ledger.audit import audit, with_journal
from fleetctl.ledger.verify import MAX_FAULTS, examine, verify
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
)

GOOD = seal_all(history(3))
RECEIPT = receipts.issue(GOOD[-1].head, at_ms=AT_MS, signer=WITNESS)
CHECKPOINT = checkpoint.seal_checkpoint(verify(join(GOOD), ledger=ENTITLEMENTS, key=STEWARD.public_key), STEWARD)
REQUEST = witness.build_request(chain.empty(ENTITLEMENTS), [item.data for item in GOOD])
ROSTER = [receipts.WitnessKey(witness=WITNESS.kid, key=WITNESS.public_key)]
STEWARDS = {STEWARD.kid: [STEWARD.public_key]}


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """Good bytes with some runs of them exchanged, doubled or left out, or nothing of them at all."""
    data = draw(st.sampled_from([good, good, good, b""]))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        patch = draw(st.binary(max_size=30) | st.just(data[start:end] * 2))
        data = data[:start] + patch + data[end:]
    return data


@given(damaged(join(GOOD)), st.lists(damaged(RECEIPT), max_size=3))
def test_audit_never_raises(data: bytes, given_receipts: list[bytes]) -> None:
    report = audit(
        data, ledger=ENTITLEMENTS, key=STEWARD.public_key, now_ms=AT_MS, receipts=given_receipts, roster=ROSTER
    )
    journal_data = join(seal_all([applied(1)], ledger=JOURNAL))
    journal = audit(journal_data, ledger=JOURNAL, key=STEWARD.public_key, now_ms=AT_MS)
    both = with_journal(report, journal, journal_data)
    assert both.to_json()["result"] == ("ok" if both.ok else "failed")
    if not report.ok:
        with pytest.raises(NotVerified):
            both.require()


@given(damaged(join(GOOD)))
def test_an_audit_with_the_second_opinion_never_raises_and_never_contradicts(data: bytes) -> None:
    report = audit(data, ledger=ENTITLEMENTS, key=STEWARD.public_key, now_ms=AT_MS, cross_check=True)
    assert report.reasons == ()


@given(damaged(CHECKPOINT))
def test_a_damaged_checkpoint_is_refused(data: bytes) -> None:
    try:
        opened = checkpoint.open_checkpoint(data, ledger=ENTITLEMENTS, key=STEWARD.public_key)
    except NotVerified:
        assert data != CHECKPOINT
    else:
        assert data == CHECKPOINT and opened.length == len(GOOD)


@given(damaged(REQUEST))
def test_the_witness_always_answers(body: bytes) -> None:
    outcome = witness.advance(body, stewards=STEWARDS, known=lambda _: None, signer=WITNESS, now_ms=AT_MS)
    assert outcome.status in (200, 400, 403, 404, 409, 422)
    if outcome.status != 200:
        refusal = witness.parse_refusal(outcome.body)
        assert refusal.error == outcome.code and outcome.after is None


@given(st.binary(max_size=200))
def test_refusals_are_parsed_or_refused(body: bytes) -> None:
    try:
        witness.parse_refusal(body)
    except ValueError:
        pass


def test_faults_are_counted_past_those_that_are_listed() -> None:
    data = b"\x80" * (MAX_FAULTS + 500)
    seen = examine(data, ledger=ENTITLEMENTS, key=STEWARD.public_key)
    assert len(seen.faults) == MAX_FAULTS and seen.fault_count == 2 * (MAX_FAULTS + 500)
    assert seen.length == MAX_FAULTS + 500


def test_a_million_receipts() -> None:
    """Row 119: bounded, but no fewer than 16."""
    many = [RECEIPT] * 16
    report = audit(join(GOOD), ledger=ENTITLEMENTS, key=STEWARD.public_key, now_ms=AT_MS, receipts=many, roster=ROSTER)
    assert report.grading.grade == "witnessed"
    with pytest.raises(BadInput) as refused:
        audit(b"", ledger=ENTITLEMENTS, key=STEWARD.public_key, now_ms=AT_MS, receipts=[RECEIPT] * 10**6)
    assert refused.value.code == "too-many-receipts"


HOSTILE = {
    "nested arrays": 'b"\\x81" * 4_000_000',
    "nested tags": 'b"\\xd2" * 4_000_000',
    "array that promises much": 'b"\\x9b" + b"\\xff" * 8',
    "array of many": 'b"\\x9a\\x00\\x3f\\xff\\xff" + b"\\x00" * 4_194_303',
    "bytes that promise much": 'b"\\xd2\\x84\\x5b\\x7f" + b"\\xff" * 7',
    "a frame over 4 MiB": 'b"\\xd2\\x84\\x5a\\x00\\x50\\x00\\x00" + bytes(5 * 2**20)',
    "core of nested arrays": 'sign_core(b"\\x81" * 4_000_000)',
    "core of many items": 'sign_core(b"\\x9a\\x00\\x3d\\x09\\x00" + bytes(4_000_000))',
    "core that promises a list": 'sign_core(b"\\x9a\\xff\\xff\\xff\\xff")',
    "core of many keys": 'sign_core(b"\\xba\\x00\\x01\\x86\\xa0" + b"".join(encode(f"{n:06}") + bytes(1) for n in range(100_000)))',
    "core of one long text": 'sign_core(encode({"seq": "a" * 4_000_000}))',
    "core of a long expression": 'sign_core(b"\\xd8\\x23" + encode("a|" * 60_000))',
    "core with a large map in each value": 'sign_core(encode([{f"{n:02}": n for n in range(64)}] * 60))',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_cost_little(name: str) -> None:
    """One second of processor time and 64 MiB beyond what the interpreter and the file itself need."""
    script = (
        "import resource\n"
        "from fleetctl.ledger.audit import audit\n"
        "from fleetctl.ledger.cbor import encode\n"
        "from tests.support.ledgers import *\n"
        f"data = {HOSTILE[name]}\n"
        "pages = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (pages + 64 * 2**20,) * 2)\n"
        "used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 2,) * 2)\n"
        "answer = audit(data, ledger=ENTITLEMENTS, key=STEWARD.public_key, now_ms=AT_MS).to_json()\n"
        "assert answer['result'] == 'failed', answer\n"
        "assert answer['first_fault']['index'] == 0, answer\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[3])


@settings(max_examples=20)
@given(st.integers(0, 2**63 - 1), st.binary(min_size=32, max_size=32))
def test_any_place_may_be_asked_for(length: int, head: bytes) -> None:
    body = witness.build_request(chain.Head(ledger=ENTITLEMENTS, length=length, address=head), [])
    outcome = witness.advance(body, stewards=STEWARDS, known=lambda _: None, signer=WITNESS, now_ms=AT_MS)
    assert outcome.status == 409
