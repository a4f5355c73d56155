"""A witness over HTTP: `ports.Witness` by httpx. What it answers is hostile input until its signature holds."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from fleetctl.api.witnessing import UNREACHABLE, ask, fetch, receipt_of
from fleetctl.clock import SystemClock
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, Unreachable
from fleetctl.ledger.fetching import MAX_FETCHED
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.ledger.receipts import MAX_RECEIPT
from fleetctl.units import shown

if TYPE_CHECKING:
    import httpx

BAD_URL = code(
    "witness-url",
    "A witness's address is not an http or https URL",
    trigger="a witness URL of another scheme, without a host, or with a password, query or fragment in it",
)

_NEVER_IN_URL: Final = re.compile(r"[^!-~]|[@?#]")  # blanks, what is not ASCII, passwords, queries, fragments
_ERRNO: Final = re.compile(r"^\[Errno -?[0-9]+\] ")
_MAX_ANSWER: Final = 4 * MAX_RECEIPT
_HEADERS: Final = {"Accept": "application/cbor, application/cose", "Accept-Encoding": "identity"}


class HttpWitness:
    """A witness at a URL. `key` is what its receipts must verify under, from the user's configuration."""

    def __init__(
        self, *, id: str, url: str, key: PublicKey, co_located: bool = False, timeout_ms: int = 10_000
    ) -> None:
        """`timeout_ms` bounds one exchange. Raises BadInput for a URL that is none."""
        self._id = id
        self._url = _checked(url)
        self._key = key
        self._co_located = co_located
        self._timeout_s = timeout_ms / 1_000
        self._client: httpx.Client | None = None

    @property
    def id(self) -> str:
        return self._id

    @property
    def key(self) -> PublicKey:
        return self._key

    @property
    def co_located(self) -> bool:
        return self._co_located

    def head(self, ledger: str) -> bytes | None:
        """Its newest receipt for the ledger, unverified; None while it has signed none.

        Raises Unreachable, and NotVerified with its reason when it refuses.
        """
        status, body = self._exchange("GET", f"/v1/witness/{quote(ledger, safe='')}/head", None)
        return receipt_of(self._id, status, body)

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        """As `ports.Witness.advance`."""
        return ask(
            self._post,
            key=self._key,
            witness=self._id,
            ledger=ledger,
            old_length=old_length,
            old_head=old_head,
            entries=entries,
        )

    def fetch(self, ledger: str, start: int, stop: int, signer: Signer) -> Sequence[bytes]:
        """As `ports.Witness.fetch`. The request's time is the machine's, whatever time the engine is told."""
        return fetch(
            self._post_fetch,
            witness=self._id,
            ledger=ledger,
            start=start,
            stop=stop,
            signer=signer,
            clock=SystemClock(),
        )

    def close(self) -> None:
        """Let its connections go; it can be used again."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _post(self, body: bytes) -> tuple[int, bytes]:
        return self._exchange("POST", "/v1/witness", body)

    def _post_fetch(self, body: bytes) -> tuple[int, bytes]:
        return self._exchange("POST", "/v1/witness/entries", body, most=MAX_FETCHED)

    def _exchange(self, method: str, path: str, body: bytes | None, *, most: int = _MAX_ANSWER) -> tuple[int, bytes]:
        import httpx

        headers = _HEADERS if body is None else {**_HEADERS, "Content-Type": "application/cbor"}

        def exchanged(client: httpx.Client) -> tuple[int, bytes]:
            with client.stream(method, self._url + path, content=body, headers=headers) as response:
                return response.status_code, self._read(response, most)

        try:
            return self._in_time(exchanged)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = _ERRNO.sub("", str(error)) or type(error).__name__
            raise Unreachable(UNREACHABLE.at(f"{self._id} at {self._url}: {said}; {self._advice()}")) from error

    def _in_time(self, exchanged: Callable[[httpx.Client], tuple[int, bytes]]) -> tuple[int, bytes]:
        """One exchange, given up when its time is over: a timeout of the socket begins anew with every byte that drips in.

        It runs in a thread of its own, which ends with the connection or the process.
        """
        answer: SimpleQueue[tuple[int, bytes] | BaseException] = SimpleQueue()
        client = self._connected()

        def run() -> None:
            try:
                answer.put(exchanged(client))
            except BaseException as error:  # noqa: BLE001 - whatever it is goes to the one who waits
                answer.put(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            found = answer.get(timeout=self._timeout_s)
        except Empty:
            self._client = None  # its connection is in use for as long as the other side likes
            raise Unreachable(
                UNREACHABLE.at(f"{self._id} at {self._url} did not finish its answer in time; {self._advice()}")
            ) from None
        if isinstance(found, BaseException):
            raise found
        return found

    def _advice(self) -> str:
        """How to get an answer. What listens on this machine only was made by `init`, and is started by one command."""
        parts = urlsplit(self._url)
        if parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost") and parts.port:
            start = f"start it with `fleetctl witness serve --id {self._id} --listen {parts.netloc}`"
        else:
            start = "see that it runs and that this is its URL"
        return f"{start}, then run `fleetctl ledger witness`"

    def _read(self, response: httpx.Response, most: int) -> bytes:
        """The body as it came, within bounds of size."""
        received = bytearray()
        for piece in response.iter_raw():
            received += piece
            if len(received) > most:
                raise Unreachable(UNREACHABLE.at(f"{self._id} at {self._url} answers without end; check its URL"))
        return bytes(received)

    def _connected(self) -> httpx.Client:
        import httpx

        if self._client is None:
            # A redirect would let whoever answers choose where the entries go.
            self._client = httpx.Client(timeout=self._timeout_s, follow_redirects=False)
        return self._client


def _checked(url: str) -> str:
    """`url` without a slash at its end. Raises BadInput, without showing what stands before an `@`."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole or _NEVER_IN_URL.search(url):
        told = shown(url.rpartition("@")[2][:200])
        raise BadInput(BAD_URL.at(f"{told} is no witness's address; write one such as https://witness.example:8443"))
    return url.rstrip("/")
