"""The witness as a service: `POST /v1/witness`, `GET /v1/witness/{ledger}/head`, and `POST /v1/witness/entries` for a steward that
lost its own (ledger.md, "The witness").

A client that accepts `application/cbor` gets refusals in the form that `ledger.witness.parse_refusal` reads; everybody
else gets problem details. Bodies are read piece by piece and never beyond what a witness accepts.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fleetctl.api.problems import MEDIA_TYPE, problem
from fleetctl.api.witnessing import REFUSALS, REFUSED, answer, kept, newest
from fleetctl.clock import Clock
from fleetctl.diagnostics import Code, code
from fleetctl.errors import BadInput, FleetctlError, Unreachable
from fleetctl.ledger.keys import Signer
from fleetctl.ledger.witness import BUSY, MAX_BODY, Outcome, check_roster, parse_refusal
from fleetctl.ports import WitnessState
from fleetctl.units import shown

NO_ROUTE = code(
    "http-no-route",
    "The service has no such path or method",
    trigger="a request to a path, or with a method, that the service does not have",
)
BODY_TIMEOUT = code(
    "http-body-timeout",
    "The request's body did not arrive in time",
    trigger="a client that sends its body too slowly",
)
INTERNAL = code(
    "http-internal-error",
    "The service failed",
    trigger="a fault of the service; its log says more",
)
CANNOT_LISTEN = code(
    "http-cannot-listen",
    "The service cannot listen on its address",
    trigger="an address that is in use, not the machine's, or not allowed",
)
BAD_LISTEN = code(
    "http-listen-address",
    "An address to listen on is not HOST:PORT",
    trigger="`--listen` without a host or with a port outside 0 to 65535",
)

_LOG = logging.getLogger(__name__)
_BODY_TIMEOUT_S: Final = 20
_DECISIONS_AT_ONCE: Final = 8
_CONNECTIONS_AT_ONCE: Final = 64
_RECEIPT = "application/cose"
_SEQUENCE = "application/cbor-seq"


def witness_app(*, state: WitnessState, signer: Signer, clock: Clock) -> Starlette:
    """The service over a state. Raises SafetyRefused when the roster holds the witness's own key."""
    check_roster(state.stewards, signer.public_key)
    service = _Service(state, signer, clock)
    return Starlette(
        routes=[
            Route("/v1/witness", service.post, methods=["POST"]),
            Route("/v1/witness/entries", service.entries, methods=["POST"]),
            Route("/v1/witness/{ledger:path}/head", service.head, methods=["GET"]),
        ],
        exception_handlers={HTTPException: _no_route, FleetctlError: _failed, Exception: _broken},
    )


def serve(app: Starlette, *, host: str, port: int, announce: Callable[[str], object]) -> None:
    """Serve until a signal ends it. `announce` gets the URL once connections are accepted; port 0 takes a free one.

    Raises Unreachable when it cannot listen.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=_CONNECTIONS_AT_ONCE)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unreachable(CANNOT_LISTEN.at(f"{host}:{port}: {reason}; give another address with --listen")) from error
    shown = f"[{host}]" if family == socket.AF_INET6 else host
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        lifespan="off",
        server_header=False,
        limit_concurrency=_CONNECTIONS_AT_ONCE,
        timeout_graceful_shutdown=5,
    )
    with listening:
        announce(f"http://{shown}:{listening.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listening])


def listen_address(text: str) -> tuple[str, int]:
    """`HOST:PORT` or `[IPV6]:PORT`. Raises BadInput."""
    host, _, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535):
        raise BadInput(BAD_LISTEN.at(f"{shown(text)} is not HOST:PORT; write one such as 127.0.0.1:8470"))
    return host, int(port)


class _Service:
    def __init__(self, state: WitnessState, signer: Signer, clock: Clock) -> None:
        self._state = state
        self._signer = signer
        self._clock = clock
        self._deciding = 0

    async def post(self, request: Request) -> Response:
        body = await _bounded_body(request)
        if body is None:
            return _problem(408, BODY_TIMEOUT, f"it was not complete after {_BODY_TIMEOUT_S} s; send it faster")
        if self._deciding >= _DECISIONS_AT_ONCE:
            return _respond(request, BUSY)
        self._deciding += 1
        try:
            outcome = await run_in_threadpool(answer, body, state=self._state, signer=self._signer, clock=self._clock)
        finally:
            self._deciding -= 1
        return _respond(request, outcome)

    async def entries(self, request: Request) -> Response:
        body = await _bounded_body(request)
        if body is None:
            return _problem(408, BODY_TIMEOUT, f"it was not complete after {_BODY_TIMEOUT_S} s; send it faster")
        found = await run_in_threadpool(kept, body, witness=self._signer.kid, state=self._state, clock=self._clock)
        return _respond(request, found, _SEQUENCE)

    async def head(self, request: Request) -> Response:
        return _respond(request, await run_in_threadpool(newest, request.path_params["ledger"], state=self._state))


async def _bounded_body(request: Request) -> bytes | None:
    """The body, cut behind the first piece that goes beyond what is accepted (`advance` then says 413). None when it
    does not arrive.
    """
    received = bytearray()
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            async for piece in request.stream():
                received += piece
                if len(received) > MAX_BODY:
                    break
    except (TimeoutError, ClientDisconnect):
        return None
    return bytes(received)


def _respond(request: Request, outcome: Outcome, media_type: str = _RECEIPT) -> Response:
    headers = {"Cache-Control": "no-store", "Vary": "Accept"}
    if outcome.status == 429:
        headers["Retry-After"] = "1"
    if outcome.status == 413:
        headers["Connection"] = "close"  # the rest of the body is not waited for
    if outcome.status == 200:
        return Response(outcome.body, media_type=media_type, headers=headers)
    if "application/cbor" in request.headers.get("accept", ""):
        return Response(outcome.body, outcome.status, media_type="application/cbor", headers=headers)
    refusal = parse_refusal(outcome.body)
    more: dict[str, object] = {"index": refusal.index, "length": refusal.length}
    more |= {"head": refusal.head and refusal.head.hex(), "receipt": refusal.receipt and refusal.receipt.hex()}
    found = [REFUSALS.get(refusal.error, REFUSED).at(refusal.detail)]
    body = problem(outcome.status, found, **{name: value for name, value in more.items() if value is not None})
    return JSONResponse(body, outcome.status, media_type=MEDIA_TYPE, headers=headers)


def _problem(status: int, kind: Code, detail: str) -> Response:
    headers = {"Connection": "close"} if status == 408 else {}
    return JSONResponse(problem(status, [kind.at(detail)]), status, media_type=MEDIA_TYPE, headers=headers)


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return _problem(
        status, NO_ROUTE, "there are POST /v1/witness, POST /v1/witness/entries and GET /v1/witness/{ledger}/head"
    )


async def _failed(request: Request, error: Exception) -> Response:
    """A state that cannot be read or written. What its detail says of the machine stays on the machine."""
    _LOG.error("%s", error)
    found = error.diagnostics[0].code if isinstance(error, FleetctlError) else INTERNAL
    return _problem(503, found, "nothing was signed; try again when the witness's keeper has mended it")


async def _broken(request: Request, error: Exception) -> Response:
    return _problem(500, INTERNAL, "nothing was signed; tell the witness's keeper")
