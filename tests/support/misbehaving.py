"""A witness that misbehaves on the wire: a real server in front of a real witness, which passes on what it likes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(slots=True)
class Exchange:
    """One request, whole. `forward` has the real witness answer it."""

    connection: socket.socket
    request: bytes
    behind: str

    @property
    def posts(self) -> bool:
        return self.request.startswith(b"POST")

    def forward(self) -> bytes:
        """The real witness's whole answer, as bytes."""
        parts = urlsplit(self.behind)
        assert parts.hostname is not None and parts.port is not None
        with socket.create_connection((parts.hostname, parts.port)) as there:
            there.sendall(self.request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            received = bytearray()
            while piece := there.recv(65_536):
                received += piece
        return bytes(received)

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        """An answer with headers of one's own."""
        lines = [f"HTTP/1.1 {status} said", "Connection: close"]
        lines += [
            f"{name.replace('_', '-')}: {value}"
            for name, value in ({"Content_Length": str(len(body))} | headers).items()
        ]
        self.connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


Fault = Callable[[Exchange], None]


def honest(exchange: Exchange) -> None:
    """No fault: what the real witness says."""
    exchange.connection.sendall(exchange.forward())


@dataclass(slots=True)
class Misbehaving:
    """A running server. `fault` answers every request; it can be changed at any time."""

    url: str
    fault: Fault = honest
    requests: list[bytes] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)


@contextmanager
def misbehaving(behind: str) -> Iterator[Misbehaving]:
    """A server in front of the witness at `behind`, until the context ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Misbehaving(url=f"http://127.0.0.1:{listening.getsockname()[1]}")

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        def serve(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                request = _whole(connection)
                server.requests.append(request)
                server.fault(Exchange(connection, request, behind))

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server
        finally:
            server.stopped.set()
            listening.shutdown(socket.SHUT_RDWR)


def _whole(connection: socket.socket) -> bytes:
    received = bytearray()
    while b"\r\n\r\n" not in received:
        if not (piece := connection.recv(65_536)):
            return bytes(received)
        received += piece
    head, _, _ = bytes(received).partition(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(received) < len(head) + 4 + int(lengths[0] if lengths else 0):
        received += connection.recv(65_536)
    return bytes(received)
