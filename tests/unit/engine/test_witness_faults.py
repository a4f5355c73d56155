"""A witness with every fault, over real HTTP: the commit stands, it is said plainly, and once it behaves the rest is done.

The good part is the witness service as a process of its own; what misbehaves is a server in front of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.api.witness_client import HttpWitness
from fleetctl.clock import SystemClock
from fleetctl.engine import claims
from fleetctl.engine.apply import Unwitnessed
from fleetctl.engine.context import Engine
from fleetctl.engine.ledgers import Given, audit_engine
from fleetctl.errors import SafetyRefused
from fleetctl.ledger.cbor import encode
from fleetctl.ledger.chain import Head
from fleetctl.ledger.identifiers import parse_ledger_id
from fleetctl.ledger.receipts import issue
from fleetctl.ledger.witness import BUSY, read_request
from fleetctl.pool1.grade import Grade
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support import recoveries as tr
from tests.support.ledgers import AT_MS
from tests.support.misbehaving import Exchange, Fault, Misbehaving, honest, misbehaving
from tests.support.witnesses import WITNESS, init_state, service


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[Misbehaving]:
    folder = tmp_path / "witness"
    init_state(folder, [te.STEWARD])
    with service(folder) as started, misbehaving(started.url) as server:
        yield server


def engine_of(folder: Path, server: Misbehaving, required: int = 0) -> Engine:
    """An engine whose witness is reached through `server`, and is not waited for long."""
    witness = HttpWitness(id=WITNESS.kid, url=server.url, key=WITNESS.public_key, timeout_ms=700)
    settings = tw.witnessed_by(WITNESS, required=required)
    return te.new_engine(folder / "engine", settings, witnesses=(witness,), clock=SystemClock())


# -------------------------------------------------------------------------------------------------------- faults


def never(exchange: Exchange) -> None:
    """Takes the request and says nothing, for as long as the other side waits."""
    while exchange.connection.recv(1):
        pass


def drip(head: bytes, drop: bytes) -> Fault:
    """Begins, and then sends one drop at a time: no single wait is ever long."""

    def fault(exchange: Exchange) -> None:
        exchange.connection.sendall(head)
        while True:
            exchange.connection.sendall(drop)
            time.sleep(0.05)

    return fault


def hang_up(exchange: Exchange) -> None:
    """Closes the connection instead of an answer."""


def swallow(exchange: Exchange) -> None:
    """The witness signs, and its answer is lost on the way."""
    exchange.forward()


def half(exchange: Exchange) -> None:
    answer = exchange.forward()
    exchange.connection.sendall(answer[: len(answer) - 20])


def saying(status: int, body: bytes = b"", **headers: str) -> Fault:
    return lambda exchange: exchange.say(status, body, **headers)


def raw(data: bytes) -> Fault:
    return lambda exchange: exchange.connection.sendall(data)


def endless(exchange: Exchange) -> None:
    exchange.connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        exchange.connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


CONFLICT = encode({"error": "not-from-known", "detail": "no", "length": 7, "head": b"h" * 32})
HTML = b"<html><title>Log in to the network</title></html>"

FAULTS: dict[str, Fault] = {
    "slow": never,
    "drips its headers": drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"a"),
    "drips its body": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", b"\0"),
    "drips in chunks": drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n\0\r\n"),
    "hangs up": hang_up,
    "cuts its answer short": half,
    "signs and loses the answer": swallow,
    "garbage": saying(200, b"\xff\x00garbage" * 20),
    "nothing": saying(200),
    "no content": saying(204),
    "a page": saying(200, HTML, Content_Type="text/html"),
    "a refusal that is a page": saying(403, HTML, Content_Type="text/html"),
    "huge": saying(200, b"x" * 5_000_000),
    "a length that it does not keep": saying(200, b"x", Content_Length="1000000"),
    "without end": endless,
    "another protocol": raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "headers without end": raw(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 300_000 + b"\r\n\r\n"),
    "a redirect": saying(307, Location="http://127.0.0.1:1/elsewhere"),
    "a permanent redirect": saying(308, Location="https://elsewhere.example/v1/witness"),
    "conflict for ever": saying(409, CONFLICT, Content_Type="application/cbor"),
    "busy for ever": saying(429, BUSY.body, Content_Type="application/cbor"),
    "an internal error": saying(500, b"oops"),
    "a gateway's error": saying(502, HTML),
    "compressed": saying(200, b"\x1f\x8b\x08" + b"\0" * 1_000, Content_Encoding="gzip"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_whatever_it_does_the_commit_stands_and_the_rest_is_done_later(
    faulty: Misbehaving, tmp_path: Path, name: str
) -> None:
    engine = engine_of(tmp_path, faulty, required=1)
    faulty.fault = FAULTS[name]
    with pytest.raises(Unwitnessed) as caught:
        te.applied(engine, te.one_pool())
    receipt = caught.value.receipt
    assert (receipt.result, receipt.entry, receipt.witnessed.grade) == ("applied", 0, "self-attested")
    assert receipt.witnessed.covering == 0 and receipt.witnessed.notes
    assert all(note.isprintable() and len(note) < 700 for note in receipt.witnessed.notes)
    claims.admit(
        engine,
        claim="c1",
        entitlement="ent",
        gang_size=1,
        devices_per_member=1,
        estimate_uj=1,
        grade=Grade.ESTIMATOR,
    )
    te.check_whole(engine)
    assert audit_engine(replace(engine, witnesses=())).ok  # nothing of it was kept
    faulty.fault = honest
    found = te.witness(engine)
    assert (found.grade, found.covering, found.notes) == ("witnessed", 1, ())
    assert audit_engine(engine).grading.grade == "witnessed"


def test_nobody_follows_a_redirect(faulty: Misbehaving, tmp_path: Path) -> None:
    """Whoever answers does not choose where the entries go."""
    with misbehaving(faulty.url) as elsewhere:
        engine = engine_of(tmp_path, faulty)
        faulty.fault = saying(307, Location=f"{elsewhere.url}/v1/witness")
        te.applied(engine, te.one_pool())
        assert elsewhere.requests == []


def test_a_witness_that_is_down(tmp_path: Path, faulty: Misbehaving) -> None:
    engine = engine_of(tmp_path, faulty)
    gone = HttpWitness(id=WITNESS.kid, url="http://127.0.0.1:1", key=WITNESS.public_key)
    receipt = te.applied(replace(engine, witnesses=(gone,)), te.one_pool())
    assert (receipt.result, receipt.witnessed.grade) == ("applied", "self-attested")
    assert any("http://127.0.0.1:1" in note for note in receipt.witnessed.notes)
    assert te.witness(engine).grade == "witnessed"


def test_one_that_is_asked_twice_answers_twice(faulty: Misbehaving, tmp_path: Path) -> None:
    """Whatever repeats a request on the way: the second answer is as good, and nothing moves twice."""

    def twice(exchange: Exchange) -> None:
        first = exchange.forward()
        second = exchange.forward()
        assert first.split(b" ")[1] == second.split(b" ")[1]
        exchange.connection.sendall(second)

    faulty.fault = twice
    engine = engine_of(tmp_path, faulty)
    for gpus in range(1, 4):
        assert te.applied(engine, te.one_pool(gpus), require_witness=True).witnessed.grade == "witnessed"
    assert audit_engine(engine).ok


def test_one_that_signs_an_older_head(faulty: Misbehaving, tmp_path: Path) -> None:
    """Its old receipts counted for what they cover; they are no answer for the new head."""
    engine = engine_of(tmp_path, faulty)
    answers: dict[bool, bytes] = {}

    def keeping(exchange: Exchange) -> None:
        answer = exchange.forward()
        if exchange.posts and b"journal" in exchange.request:
            answers[True] = answer
        exchange.connection.sendall(answer)

    faulty.fault = keeping
    te.applied(engine, te.one_pool(1))

    def older(exchange: Exchange) -> None:
        exchange.connection.sendall(answers[True] if exchange.posts else exchange.forward())

    faulty.fault = older
    receipt = te.applied(engine, te.one_pool(2))
    assert (receipt.result, receipt.witnessed.grade, receipt.witnessed.covering) == ("applied", "witnessed-to", 0)
    assert any("asked was root-steward/journal at 2" in note for note in receipt.witnessed.notes)
    assert audit_engine(engine).ok
    faulty.fault = honest
    assert te.witness(engine).grade == "witnessed"


def test_one_that_signs_two_heads_at_one_length(faulty: Misbehaving, tmp_path: Path) -> None:
    """The second receipt is kept as evidence for whoever audits, and stops nothing here."""
    engine = engine_of(tmp_path, faulty)

    def lying(exchange: Exchange) -> None:
        if not exchange.posts:
            return honest(exchange)
        request = read_request(exchange.request.partition(b"\r\n\r\n")[2])
        length = request.old_length + len(request.entries)
        lie = Head(ledger=request.ledger, length=length, address=b"L" * 32)
        exchange.forward()
        exchange.say(200, issue(lie, at_ms=AT_MS, signer=WITNESS), Content_Type="application/cose")

    faulty.fault = lying
    receipt = te.applied(engine, te.one_pool())
    assert (receipt.result, receipt.witnessed.grade) == ("applied", "self-attested")
    kept = [note for note in receipt.witnessed.notes if "kept as document" in note]
    assert len(kept) == 2
    faulty.fault = honest
    assert te.witness(engine).grade == "witnessed"
    with engine.store.read() as reader:
        proofs = [json.loads(data) for _, data in reader.documents() if b'"contradicts"' in data]
        good = [item.sealed for item in reader.receipts("journal")]
    lies = [bytes.fromhex(proof["receipt"]) for proof in proofs if proof["contradicts"] == "root-steward/journal"]
    assert {proof["verdict"] for proof in proofs} == {"fork"}
    # Both together convict it, wherever they are shown.
    report = audit_engine(engine, Given(receipts=lies)).journal
    assert report is not None and not report.ok and good
    assert {item.verdict for item in report.receipts if item.receipt and item.receipt.length == 1} == {
        "witness-equivocation"
    }


def test_one_whose_head_is_another_history_is_refused_before_anything_is_done(
    faulty: Misbehaving, tmp_path: Path
) -> None:
    engine = engine_of(tmp_path, faulty)
    te.applied(engine, te.one_pool())
    lie = Head(ledger=parse_ledger_id("root-steward/journal"), length=1, address=b"L" * 32)
    faulty.fault = saying(200, issue(lie, at_ms=AT_MS, signer=WITNESS))
    before = te.dump(tmp_path / "engine")
    with pytest.raises(SafetyRefused, match="state-rolled-back"):
        te.applied(engine, te.one_pool(2))
    assert te.dump(tmp_path / "engine") == before


def test_a_lost_answer_is_asked_for_again_and_nothing_is_shown_twice(faulty: Misbehaving, tmp_path: Path) -> None:
    engine = engine_of(tmp_path, faulty)
    faulty.fault = swallow
    assert te.applied(engine, te.one_pool()).witnessed.grade == "self-attested"
    faulty.fault = honest
    faulty.requests.clear()
    assert te.witness(engine).grade == "witnessed"
    assert te.witness(engine).grade == "witnessed"
    assert sum(request.startswith(b"POST") for request in faulty.requests) <= 4


def test_a_long_history_goes_in_chunks_over_a_line_that_breaks(faulty: Misbehaving, tmp_path: Path) -> None:
    """Each chunk is a legal advance: what was signed before the line broke need not be shown again."""
    engine = engine_of(tmp_path, faulty)
    slow = HttpWitness(id=WITNESS.kid, url=faulty.url, key=WITNESS.public_key, timeout_ms=20_000)
    engine = replace(engine, witnesses=(slow,))
    faulty.fault = hang_up
    te.applied(engine, te.one_pool())
    te.append_claims(engine, 2_300)
    seen: list[int] = []

    def breaking(exchange: Exchange) -> None:
        if exchange.posts and b"entitlements" in exchange.request[:400]:
            seen.append(len(exchange.request))
            if len(seen) == 2:
                return
        honest(exchange)

    faulty.fault = breaking
    assert te.witness(engine).grade == "self-attested"
    assert len(seen) == 2
    found = te.witness(engine)
    assert (found.grade, found.notes) == ("witnessed", ())


def test_a_refusal_that_lies_about_where_it_is(faulty: Misbehaving, tmp_path: Path) -> None:
    """409 with a head of nobody's: not followed, and asked again a few times at most."""
    engine = engine_of(tmp_path, faulty)
    faulty.fault = saying(409, CONFLICT, Content_Type="application/cbor")
    te.applied(engine, te.one_pool())
    assert sum(request.startswith(b"POST") for request in faulty.requests) < 12


def test_an_entry_that_it_is_said_to_give_back_is_verified(faulty: Misbehaving, tmp_path: Path) -> None:
    """`ledger recover` takes nothing on a witness's word: what is not the steward's, or does not link, is left out."""
    past = tr.past(tmp_path / "past")
    engine = past.restored(witnesses=())
    witness = HttpWitness(id=WITNESS.kid, url=faulty.url, key=WITNESS.public_key, timeout_ms=700)
    engine = replace(engine, witnesses=(witness,))
    for body in (b"", b"\xff" * 50, past.replica().entries[0][:-5], b"x" * 8_000_000):

        def giving(exchange: Exchange, body: bytes = body) -> None:
            exchange.say(200, body, Content_Type="application/cbor-seq")

        faulty.fault = giving
        before = te.dump(te.state_of(engine).parent)
        with pytest.raises(SafetyRefused, match="unaccepted-loss"):
            tr.recovered(engine, replace(past.replica(), entries=()))
        assert te.dump(te.state_of(engine).parent) == before
