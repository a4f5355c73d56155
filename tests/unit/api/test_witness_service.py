"""The service over real HTTP: statuses in their order, media types, hostile bodies, a state that fails."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fleetctl.api.witness_service import listen_address, serve, witness_app
from fleetctl.clock import SystemClock
from fleetctl.errors import BadInput, SafetyRefused, Unreachable
from fleetctl.ledger.cbor import encode
from fleetctl.ledger.fetching import seal_fetch
from fleetctl.ledger.identifiers import LedgerId, parse_ledger_id
from fleetctl.ledger.receipts import SKEW_MS, read_receipt
from fleetctl.ledger.statement import seal_statement
from fleetctl.ledger.witness import MAX_BODY, build_request, parse_refusal
from tests.support.witnesses import (
    LEDGER,
    STEWARD,
    STRANGER,
    WITNESS,
    Service,
    chain,
    init_state,
    open_state,
    prefix,
    service,
)

CBOR = {"Accept": "application/cbor", "Content-Type": "application/cbor"}
KNOWN = chain(3)


class Answer:
    def __init__(self, status: int, media: str, body: bytes) -> None:
        self.status, self.media, self.body = status, media, body

    @property
    def json(self) -> dict[str, object]:
        assert self.media == "application/problem+json"
        found: dict[str, object] = json.loads(self.body)
        return found


def call(running: Service, method: str, path: str, body: object = None, headers: dict[str, str] = CBOR) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=20)
    try:
        connection.request(method, path, body=body, headers=headers)  # type: ignore[arg-type]  # bytes or an iterable of bytes
        response = connection.getresponse()
        return Answer(response.status, response.headers.get_content_type(), response.read())
    finally:
        connection.close()


def post(running: Service, body: object, headers: dict[str, str] = CBOR) -> Answer:
    return call(running, "POST", "/v1/witness", body, headers)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that knows three entries of `LEDGER`."""
    folder = tmp_path_factory.mktemp("witness")
    init_state(folder)
    with service(folder) as started:
        assert post(started, build_request(KNOWN.heads[0], KNOWN.entries)).status == 200
        yield started


BEFORE, AT = KNOWN.heads[0], KNOWN.head
FORK = chain(1, on=prefix(KNOWN, 2), mark="other")


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        (b"", 400, "unreadable"),
        (b"\xff" * 100, 400, "unreadable"),
        (encode({"ledger": LEDGER}), 400, "unreadable"),
        (b"x" * (MAX_BODY + 1), 413, "too-large"),
        (build_request(BEFORE, [b"x"] * 1_001), 413, "too-large"),
        (build_request(chain(0, ledger="nobody/entitlements").head, []), 404, "unknown-ledger"),  # type: ignore[arg-type]  # a LedgerId in form
        (build_request(AT, chain(1, on=KNOWN, signer=STRANGER).entries[-1:]), 403, "not-authentic"),
        (build_request(BEFORE, KNOWN.entries[1:]), 422, "not-linked"),
        (build_request(BEFORE, FORK.entries), 422, "contradiction"),
        (build_request(BEFORE, KNOWN.entries[:2]), 409, "not-from-known"),
    ],
)
def test_each_refusal_has_its_status_in_both_forms(running: Service, body: bytes, status: int, name: str) -> None:
    """ledger.md, "The witness": checked in this order."""
    found = post(running, body)
    assert (found.status, found.media) == (status, "application/cbor")
    refusal = parse_refusal(found.body)
    assert refusal.error == name
    shown = post(running, body, {"Content-Type": "application/cbor"}).json
    assert (shown["status"], shown["code"], shown["type"]) == (status, f"witness-{name}", "about:blank")
    assert shown["detail"] == refusal.detail and shown["title"]
    for field, value in (("index", refusal.index), ("length", refusal.length)):
        assert shown.get(field) == value
    assert shown.get("head") == (refusal.head.hex() if refusal.head else None)


def test_a_conflict_says_what_is_known(running: Service) -> None:
    refusal = parse_refusal(post(running, build_request(BEFORE, KNOWN.entries[:2])).body)
    assert (refusal.length, refusal.head) == (3, AT.address)
    assert refusal.receipt is not None and read_receipt(refusal.receipt)[1].signed_by(WITNESS.public_key)


def fetch(ledger: LedgerId = LEDGER, *, late_ms: int = 0, **changes: Any) -> bytes:
    """A steward's request for its entries, made now."""
    asked = {"start": 0, "witness": "w1", "at_ms": SystemClock().now_ms() + late_ms, "signer": STEWARD}
    return seal_fetch(ledger, **asked | changes)


LATER = SKEW_MS + 600_000
BAD_FETCHES: dict[str, tuple[Callable[[], bytes], int, str]] = {
    "nothing": (lambda: b"", 400, "unreadable"),
    "noise": (lambda: b"\xff" * 100, 400, "unreadable"),
    "too much": (lambda: b"x" * 100_000, 400, "unreadable"),
    "cut short": (lambda: fetch()[:-1], 400, "unreadable"),
    "another statement": (lambda: seal_statement({"pool_witness": "1", "ledger": LEDGER}, STEWARD), 400, "unreadable"),
    "another key": (lambda: fetch(signer=STRANGER), 403, "not-authentic"),
    "another name": (lambda: fetch(signer=WITNESS), 403, "not-authentic"),
    "another witness": (lambda: fetch(witness="w2"), 403, "not-authentic"),
    "an old one": (lambda: fetch(late_ms=-LATER), 403, "not-authentic"),
    "one of the future": (lambda: fetch(late_ms=LATER), 403, "not-authentic"),
    "another steward's": (lambda: fetch(parse_ledger_id("nobody/journal")), 404, "unknown-ledger"),
}


@pytest.mark.parametrize("what", BAD_FETCHES)
def test_entries_are_given_back_to_the_steward_alone(running: Service, what: str) -> None:
    body, status, name = BAD_FETCHES[what]
    found = call(running, "POST", "/v1/witness/entries", body())
    assert (found.status, found.media, parse_refusal(found.body).error) == (status, "application/cbor", name)


def test_entries_that_are_given_back(running: Service) -> None:
    for start, expected in ((0, KNOWN.entries), (2, KNOWN.entries[2:]), (3, ()), (2**63 - 1, ())):
        found = call(running, "POST", "/v1/witness/entries", fetch(start=start))
        assert (found.status, found.media, found.body) == (200, "application/cbor-seq", b"".join(expected))


@pytest.mark.parametrize("path", [LEDGER, "root-steward%2Fentitlements", "%72oot-steward/entitlements"])
def test_the_newest_receipt_percent_encoded_or_not(running: Service, path: str) -> None:
    found = call(running, "GET", f"/v1/witness/{path}/head")
    assert (found.status, found.media) == (200, "application/cose")
    receipt, statement = read_receipt(found.body)
    assert statement.signed_by(WITNESS.public_key)
    assert (receipt.length, receipt.head) == (3, AT.address)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("root-steward%2Fjournal", "witness-nothing-witnessed"),
        ("nobody%2Fjournal", "witness-unknown-ledger"),
        ("root-steward", "witness-unknown-ledger"),
        ("a/b/c/d", "witness-unknown-ledger"),
        ("..%2F..%2Fetc%2Fpasswd", "witness-unknown-ledger"),
        ("%ff%fe", "witness-unknown-ledger"),
        ("x" * 5_000, "witness-unknown-ledger"),
    ],
)
def test_heads_that_it_does_not_have(running: Service, path: str, code: str) -> None:
    found = call(running, "GET", f"/v1/witness/{path}/head", headers={})
    assert (found.status, found.json["code"]) == (404, code)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/witness", 405),
        ("DELETE", "/v1/witness", 405),
        ("POST", "/v1/witness/a/head", 405),
        ("GET", "/v1/witness/entries", 405),
    ],
)
def test_other_paths_and_methods(running: Service, method: str, path: str, status: int) -> None:
    found = call(running, method, path)
    assert (found.status, found.json["code"]) == (status, "http-no-route")


def test_hostile_bodies_are_refused_and_it_goes_on(running: Service) -> None:
    """Every single-byte change of a good request, and noise: a refusal with a reason, never a fault."""
    good = build_request(AT, chain(1, on=KNOWN).entries[-1:])
    source = random.Random(1)
    bodies = [good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :] for at in range(0, len(good), 3)]
    bodies += [good[:at] for at in range(0, len(good), 7)]
    bodies += [source.randbytes(source.randrange(300)) for _ in range(40)]
    bodies += [b"\x81" * 100_000, b"\xa1" * 100_000, b"\x9b" + b"\xff" * 8, b"\xbb" + b"\xff" * 8, good + b"\x00"]
    for body in bodies:
        found = post(running, body)
        assert found.status in (400, 403, 404, 409, 413, 422), body.hex()
        assert parse_refusal(found.body).detail
    assert read_receipt(call(running, "GET", f"/v1/witness/{LEDGER}/head").body)[0].length == 3


def test_a_body_without_end_is_cut_off(running: Service) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b"x" * 65_536

    found: Answer | None = None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        found = post(running, endless())
    assert found is None or found.status == 413
    assert sent < 100 * MAX_BODY
    assert call(running, "GET", f"/v1/witness/{LEDGER}/head").status == 200


def test_a_client_that_leaves_in_the_middle(running: Service) -> None:
    address = urlsplit(running.url)
    with socket.create_connection((address.hostname, address.port)) as raw:
        raw.sendall(b"POST /v1/witness HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
    assert call(running, "GET", f"/v1/witness/{LEDGER}/head").status == 200


def test_a_state_that_cannot_be_used_is_said_without_its_path(tmp_path: Path) -> None:
    init_state(tmp_path)
    with service(tmp_path) as broken:
        with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
            raw.execute("DROP TABLE heads")
        for found in (
            post(broken, build_request(BEFORE, KNOWN.entries), {}),
            call(broken, "GET", f"/v1/witness/{LEDGER}/head", headers={}),
        ):
            assert (found.status, found.json["code"]) == (503, "state-corrupt")
            assert str(tmp_path) not in found.body.decode()


def test_a_state_that_is_being_written_is_busy(tmp_path: Path) -> None:
    init_state(tmp_path)
    with (
        service(tmp_path) as running,
        contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw,
    ):
        raw.execute("BEGIN IMMEDIATE")
        found = post(running, build_request(BEFORE, KNOWN.entries))
        assert (found.status, parse_refusal(found.body).error) == (429, "busy")
        raw.execute("ROLLBACK")
        assert post(running, build_request(BEFORE, KNOWN.entries)).status == 200


def test_a_roster_with_its_own_key_is_not_served(tmp_path: Path) -> None:
    init_state(tmp_path)
    state = open_state(tmp_path)
    with pytest.raises(SafetyRefused, match="witness-holds-own-key"):
        witness_app(state=state, signer=STEWARD, clock=SystemClock())
    state.close()


def test_it_does_not_start_on_lost_state(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.witnesses", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode != 0 and done.stdout == "" and "witness-state-missing" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_where_it_cannot_listen(tmp_path: Path) -> None:
    init_state(tmp_path)
    state = open_state(tmp_path)
    app = witness_app(state=state, signer=WITNESS, clock=SystemClock())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for host, port in (("127.0.0.1", taken.getsockname()[1]), ("no.such.host.invalid", 1)):
            with pytest.raises(Unreachable, match="http-cannot-listen"):
                serve(app, host=host, port=port, announce=lambda url: None)
    state.close()


def test_addresses_to_listen_on() -> None:
    assert listen_address("127.0.0.1:0") == ("127.0.0.1", 0)
    assert listen_address("[::1]:8470") == ("::1", 8470)
    for text in ("", "8470", ":1", "host", "host:", "host:x", "host:65536", "host:-1", "host:١"):
        with pytest.raises(BadInput, match="http-listen-address"):
            listen_address(text)
