"""The client against servers that are no witness, or a bad one. Each is a real HTTP server."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fleetctl.api.witness_client import HttpWitness
from fleetctl.errors import BadInput, FleetctlError, NotVerified, Unreachable
from fleetctl.ledger.cbor import encode
from fleetctl.ledger.chain import Head
from fleetctl.ledger.keys import SeedSigner, Signer
from fleetctl.ledger.receipts import issue
from fleetctl.ledger.witness import BUSY
from fleetctl.ports import WitnessElsewhere
from tests.support.witnesses import LEDGER, OTHER, STEWARD, WITNESS, chain

SHOWN = chain(2)


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> Iterator[HttpWitness]:
    """A client of a server that answers every request as it is told."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                answer(self, body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def do_GET(self) -> None:
            answer(self, b"")

        def log_message(self, format: str, *values: object) -> None:
            """Nothing on the terminal."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that waits no more drops its connection: nothing on the terminal."""

    serving = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, args=(0.02,))
    thread.start()
    witness = HttpWitness(
        id="w1", url=f"http://127.0.0.1:{serving.server_port}/", key=WITNESS.public_key, timeout_ms=1_000
    )
    try:
        yield witness
    finally:
        witness.close()
        serving.shutdown()
        thread.join()
        serving.server_close()


def say(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler, bytes], None]:
    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def advance(witness: HttpWitness) -> bytes:
    return witness.advance(LEDGER, 0, SHOWN.heads[0].address, SHOWN.entries)


def error_of(answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> FleetctlError:
    with server(answer) as witness, pytest.raises(FleetctlError) as caught:
        advance(witness)
    return caught.value


def signed(head: Head, signer: Signer = WITNESS) -> bytes:
    return issue(head, at_ms=1, signer=signer)


def test_a_receipt_is_handed_on_as_it_came() -> None:
    with server(say(200, signed(SHOWN.head))) as witness:
        assert advance(witness) == signed(SHOWN.head)
        assert witness.head(LEDGER) == signed(SHOWN.head)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Log in to the network</html>",
        signed(SHOWN.heads[1]),
        signed(Head(ledger=LEDGER, length=2, address=b"\0" * 32)),
        signed(chain(2, ledger=LEDGER.replace("entitlements", "journalx")).head),  # type: ignore[arg-type]  # a LedgerId in form
        signed(SHOWN.head, SeedSigner("w1", b"?" * 32)),
        signed(SHOWN.head, OTHER),
        signed(SHOWN.head, STEWARD),
        signed(SHOWN.head)[:-1],
        signed(SHOWN.head) + b"\0",
    ],
)
def test_what_is_no_receipt_for_what_was_asked(body: bytes) -> None:
    error = error_of(say(200, body))
    assert isinstance(error, NotVerified) and error.code == "witness-bad-answer"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"oops"),
        (502, b"<html>bad gateway</html>"),
        (404, b'{"detail": "Not Found"}'),
        (403, b""),
        (302, b""),
        (204, b""),
        (409, b"\xa1"),
        (503, encode({"error": "tired", "detail": "later"})),
        (200, b"x" * 100_000),
        (400, b"x" * 100_000),
    ],
)
def test_what_is_no_witness_is_unreachable(status: int, body: bytes) -> None:
    error = error_of(say(status, body, Location="http://127.0.0.1:1/elsewhere"))
    assert type(error) is Unreachable and error.exit_code == 1


def test_a_refusal_keeps_its_reason_and_loses_its_control_characters() -> None:
    body = encode({"error": "not-linked", "detail": "\x1b[2Jgone\n" + "y" * 2_000, "index": 4})
    error = error_of(say(422, body))
    assert type(error) is NotVerified and error.code == "witness-not-linked" and error.exit_code == 3
    detail = error.diagnostics[0].detail
    assert "gone" in detail and detail.isprintable() and len(detail) < 600


def test_a_refusal_that_is_not_known_here() -> None:
    error = error_of(say(422, encode({"error": "moon-phase", "detail": "not today"})))
    assert type(error) is NotVerified and error.code == "witness-refused" and "not today" in error.diagnostics[0].detail


def test_a_conflict_carries_what_the_witness_knows() -> None:
    body = encode({"error": "not-from-known", "detail": "…", "length": 7, "head": b"h" * 32, "receipt": b"r"})
    error = error_of(say(409, body))
    assert isinstance(error, WitnessElsewhere)
    assert (error.length, error.head, error.receipt) == (7, b"h" * 32, b"r")


def test_a_witness_that_always_knows_more_is_not_asked_for_ever() -> None:
    asked: list[bytes] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        asked.append(body)
        at = ledger.heads[len(asked)]
        say(409, encode({"error": "not-from-known", "detail": "…", "length": at.length, "head": at.address}))(
            handler, b""
        )

    ledger = chain(20)
    with server(answer) as witness, pytest.raises(WitnessElsewhere):
        witness.advance(LEDGER, 0, ledger.heads[0].address, ledger.entries)
    assert len(asked) < 6


def test_a_busy_witness_is_asked_again() -> None:
    asked: list[bytes] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        asked.append(body)
        say(*((429, BUSY.body) if len(asked) < 4 else (200, signed(SHOWN.head))))(handler, body)

    with server(answer) as witness:
        assert advance(witness) == signed(SHOWN.head)
    assert len(asked) == 4 and len(set(asked)) == 1
    error = error_of(say(429, BUSY.body))
    assert type(error) is Unreachable and error.code == "witness-busy"


def test_compressed_answers_are_not_unpacked() -> None:
    error = error_of(say(200, gzip.compress(b"\0" * 10_000_000), Content_Encoding="gzip"))
    assert error.code in ("witness-bad-answer", "witness-unreachable")


def test_one_that_never_finishes() -> None:
    def silent(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        time.sleep(1.5)
        handler.close_connection = True

    def dripping(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(15):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.1)

    for answer in (silent, dripping):
        error = error_of(answer)
        assert type(error) is Unreachable and error.code == "witness-unreachable"


def test_nobody_there() -> None:
    with server(say(200, b"")) as witness:
        pass
    for ask in (advance, lambda client: client.head(LEDGER)):
        with pytest.raises(Unreachable, match="witness-unreachable") as caught:
            ask(witness)
        assert "http://127.0.0.1:" in caught.value.diagnostics[0].detail


@pytest.mark.parametrize(
    "url",
    [
        "",
        "witness.example",
        "ftp://witness.example",
        "file:/tmp/x",
        "http://",
        "https://user:secret@witness.example",
        "https://witness.example/?q=1",
        "https://witness.example/#x",
        "http://witness.example:99999",
        "http://witness.example:0",
        "http://[::1",
        "http://wit\nness.example",
        "http://wit ness.example",
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(BadInput, match="witness-url") as caught:
        HttpWitness(id="w1", url=url, key=WITNESS.public_key)
    assert "secret" not in str(caught.value)
