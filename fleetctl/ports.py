"""The seams: what the engine needs from a store and a witness (a signer is `ledger.keys.Signer`). Protocols and the rows they carry, no code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from fleetctl.canonical import Digest
from fleetctl.diagnostics import Diagnostic
from fleetctl.errors import NotVerified
from fleetctl.frozen import dataclass
from fleetctl.model.changes import AuthzRow, Event, QuotaRow
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import FleetRecord, LiveObject, ObjectKey, Tombstone
from fleetctl.model.operational import ClaimRow, Node, Reservation, WorkReport
from fleetctl.model.usage import BookedUse

if TYPE_CHECKING:  # the ledger's libraries load only where a ledger is used
    from fleetctl.ledger.keys import PublicKey, Signer
    from fleetctl.ledger.witness import Known


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHead:
    """Where a ledger stream stands. `stream` is `journal`, `entitlements` or `entitlements:<window>`."""

    stream: str
    ledger: str
    length: int
    head: bytes
    """Address of the last entry; the genesis sentinel while the stream is empty."""
    closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReceipt:
    """A witness receipt as it arrived, with what it says of itself for looking it up."""

    stream: str
    witness: str
    length: int
    head: bytes
    at_ms: int
    sealed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event with its place in the sequence."""

    seq: int
    at_ms: int
    event: Event


class Reader(Protocol):
    """One consistent reading of a store."""

    def meta(self, name: str) -> str | None: ...
    def schema_version(self) -> int: ...

    def objects(self) -> Iterable[LiveObject]: ...
    def object(self, kind: str, id: str) -> LiveObject | None: ...
    def stored_digests(self) -> Iterable[tuple[ObjectKey, bytes]]:
        """The digest kept beside each object, as stored (not recomputed)."""
        ...

    def tombstones(self) -> Iterable[Tombstone]: ...
    def quotas(self) -> Iterable[QuotaRow]: ...
    def authz(self) -> Iterable[AuthzRow]: ...
    def fleets(self) -> Iterable[tuple[str, FleetRecord]]: ...
    def events(self, since: int, limit: int) -> Sequence[StoredEvent]: ...

    def nodes(self) -> Iterable[Node]: ...
    def reservations(self) -> Iterable[Reservation]: ...
    def reservation(self, id: str) -> Reservation | None: ...
    def booked(self) -> Iterable[tuple[tuple[ObjectId, str], BookedUse]]:
        """Sums over live (pending excluded) reservations by (pool, tenant), under the resource `gpu`."""
        ...

    def inventory_gpus(self) -> Iterable[tuple[ObjectId, int]]:
        """GPUs of joined nodes by pool."""
        ...

    def streams(self) -> Sequence[StreamHead]: ...
    def stream(self, stream: str) -> StreamHead | None: ...
    def entries(self, stream: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Sealed entries `start <= seq < stop`, in order."""
        ...

    def journal_touching(self, kind: str, id: str) -> Sequence[int]:
        """Journal entries that moved the object, in order."""
        ...

    def applied_entry(self, plan: str) -> int | None:
        """The journal entry that applied the plan of this digest."""
        ...

    def document(self, digest: str) -> bytes | None: ...
    def documents(self) -> Iterable[tuple[Digest, bytes]]: ...
    def receipts(self, stream: str | None = None, length: int | None = None) -> Sequence[StoredReceipt]:
        """All, or those of a stream, or those of it at one length."""
        ...

    def checkpoint(self, stream: str) -> bytes | None: ...
    def claim(self, stream: str, claim: str) -> ClaimRow | None: ...
    def claims(self, stream: str) -> Iterable[ClaimRow]: ...
    def report(self, stream: str, claim: str) -> WorkReport | None: ...
    def reports(self, stream: str) -> Iterable[WorkReport]: ...


class Writer(Reader, Protocol):
    """A write transaction: everything or nothing."""

    def set_meta(self, name: str, value: str) -> None: ...
    def put_objects(self, objects: Iterable[LiveObject]) -> None:
        """Insert or replace, with the digest of each."""
        ...

    def drop_objects(self, tombstones: Iterable[Tombstone]) -> None:
        """Delete the objects and keep their tombstones, replacing older ones of the same object."""
        ...

    def put_quotas(self, rows: Iterable[QuotaRow]) -> None: ...
    def put_authz(self, rows: Iterable[AuthzRow]) -> None: ...
    def drop_authz(self, keys: Iterable[tuple[ObjectId, str]]) -> None: ...
    def put_fleet(self, fleet: str, record: FleetRecord) -> None: ...
    def add_events(self, events: Iterable[Event], at_ms: int) -> None: ...

    def put_node(self, node: Node) -> None: ...
    def drop_node(self, id: str) -> None: ...
    def put_reservation(self, reservation: Reservation) -> None: ...

    def open_stream(self, stream: str, ledger: str, genesis: bytes) -> None: ...
    def close_stream(self, stream: str) -> None: ...
    def rewind(self, stream: str, length: int, head: bytes) -> None:
        """Put a stream back to its first `length` entries, the last of which has the address `head`, and open it: for a recovery,
        which writes again in the same transaction what belongs behind them.
        """
        ...

    def append(
        self, stream: str, *, expected_length: int, expected_head: bytes, entries: Sequence[tuple[bytes, bytes]]
    ) -> None:
        """Add sealed entries, each with its address, by one compare-and-set on (length, head).

        Raises `HeadMoved` for the loser.
        """
        ...

    def index_journal(self, entry: int, touched: Iterable[ObjectKey], plan: str | None) -> None:
        """Remember which objects a journal entry moved, and which plan it applied."""
        ...

    def put_document(self, digest: Digest, content: bytes) -> None: ...
    def put_receipt(self, receipt: StoredReceipt) -> None: ...
    def put_checkpoint(self, stream: str, length: int, sealed: bytes) -> None: ...
    def put_claims(self, rows: Iterable[ClaimRow]) -> None: ...
    def put_report(self, report: WorkReport) -> None:
        """Keep it in the place of the claim's last one."""
        ...

    def drop_report(self, stream: str, claim: str) -> None: ...
    def clear_index(self) -> None:
        """Empty everything that is a fold of the ledgers and documents: objects, tombstones, quotas, authorization
        rows, fleets, journal index, claims, checkpoints. Entries, documents, receipts, nodes, reservations and reports stay.
        """
        ...


class HeadMoved(Exception):
    """A stream's head is not what the appender decided on; `current` is where it stands."""

    def __init__(self, current: StreamHead) -> None:
        super().__init__(f"{current.stream} is at {current.length}")
        self.current = current


class Store(Protocol):
    """A database of one engine. Readers never block on a writer."""

    def read(self) -> AbstractContextManager[Reader]: ...
    def write(self, wait_ms: int) -> AbstractContextManager[Writer]:
        """The one write transaction: commits at a normal exit of the context, else leaves nothing.

        Raises Busy when another writer holds it for longer than `wait_ms`.
        """
        ...

    def backup(self, target: str) -> None:
        """A consistent copy into a new file."""
        ...

    def close(self) -> None: ...


class Witness(Protocol):
    """Somebody with another key who countersigns heads."""

    @property
    def id(self) -> str: ...
    @property
    def key(self) -> PublicKey:
        """What its receipts must verify under, by the user's configuration."""
        ...

    @property
    def co_located(self) -> bool:
        """Whether its private key lies beside the engine's; such a witness never raises a grade."""
        ...

    def head(self, ledger: str) -> bytes | None:
        """Its newest receipt for the ledger, sealed; None while it has none. Raises Unreachable."""
        ...

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        """Show it the entries after `old_length` and get a sealed receipt for the last one.

        Raises Unreachable when it does not answer, WitnessElsewhere when it knows the ledger at another place,
        WitnessContradicts when it signs another head, NotVerified with the witness's reason when it refuses otherwise.
        """
        ...

    def fetch(self, ledger: str, start: int, stop: int, signer: Signer) -> Sequence[bytes]:
        """The entries `start <= seq < stop` that it was shown, unverified, as far as it keeps them. `signer` is the steward:
        nobody else is given any. Raises Unreachable, NotVerified.
        """
        ...


class WitnessElsewhere(NotVerified):
    """A witness does not know the ledger at the place it was asked to go on from.

    `length` and `head` are what it knows, `receipt` its sealed word for that (None when it has signed nothing). Where
    the ledger has that head at that length the asker only lags, and may ask again from there; else it is a fork.
    """

    def __init__(self, diagnostic: Diagnostic, *, length: int, head: bytes, receipt: bytes | None) -> None:
        super().__init__(diagnostic)
        self.length = length
        self.head = head
        self.receipt = receipt


class WitnessContradicts(NotVerified):
    """A witness answered with a receipt under its own key that is not for the head it was shown. `receipt` is its sealed word."""

    def __init__(self, diagnostic: Diagnostic, *, receipt: bytes) -> None:
        super().__init__(diagnostic)
        self.receipt = receipt


class WitnessState(Protocol):
    """What a witness remembers. Every change is on the disk before the call returns."""

    @property
    def stewards(self) -> Mapping[str, Sequence[PublicKey]]:
        """The roster: whose ledgers it countersigns, and the keys each may seal with."""
        ...

    def known(self, ledger: str) -> Known | None:
        """What it last signed for the ledger."""
        ...

    def move(
        self, ledger: str, before: Known | None, after: Known, *, start: int = 0, entries: Sequence[bytes] = ()
    ) -> bool:
        """Replace what is known by compare-and-set, and keep the entries that led there, the first of which has the index
        `start`; False, and nothing is kept, when it is not `before` any more. Raises Busy.
        """
        ...

    def entries(self, ledger: str, start: int, most: int) -> Sequence[bytes]:
        """Up to `most` of the entries that it was shown, from `start` on, without a gap."""
        ...

    def keep_evidence(self, ledger: str, evidence: bytes, at_ms: int) -> None:
        """Keep the proof of a contradiction. Raises Busy."""
        ...
