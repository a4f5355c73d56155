"""`ports.Reader` and `ports.Writer` over any connection that runs the statements of `sql`.

Every query is read to its end before it is returned, so that nothing outlives the transaction; long ones go in pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from fleetctl.canonical import Digest, sha256_hex
from fleetctl.model.changes import AuthzRow, Event, QuotaRow
from fleetctl.model.ids import ObjectId
from fleetctl.model.live import FleetRecord, LiveObject, ObjectKey, Tombstone
from fleetctl.model.operational import ClaimRow, Node, Reservation, WorkReport
from fleetctl.model.usage import BookedUse
from fleetctl.ports import HeadMoved, StoredEvent, StoredReceipt, StreamHead
from fleetctl.store import rows, sql
from fleetctl.store.errors_table import row_unreadable
from fleetctl.units import MAX_QUANTITY

_PAGE = 1_000
_PAGE_OF_DOCUMENTS = 16  # a document may be a whole plan


class Connection(Protocol):
    """What a session needs of a database connection inside a transaction. Raises our errors only."""

    def rows(self, statement: str, values: Mapping[str, Any] = ...) -> list[rows.Row]: ...
    def run(self, statement: str, values: Mapping[str, Any] = ...) -> None: ...
    def run_many(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None: ...
    def schema_version(self) -> int: ...


class _Ended:
    """Stands where the connection was, once the transaction is over."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError("this transaction has ended; nothing can be read from it or written to it")


class SqlReader:
    """One consistent reading. Raises Tampered for rows that no engine wrote."""

    def __init__(self, connection: Connection) -> None:
        self._db = connection

    def end(self) -> None:
        """From here on every use is a RuntimeError."""
        self._db = _Ended()

    def meta(self, name: str) -> str | None:
        found = self._db.rows(sql.META, {"name": name})
        return found[0][0] if found else None

    def schema_version(self) -> int:
        return self._db.schema_version()

    def objects(self) -> list[LiveObject]:
        """In order of (kind, id)."""
        return rows.objects(self._db.rows(sql.OBJECTS))

    def object(self, kind: str, id: str) -> LiveObject | None:
        found = rows.objects(self._db.rows(sql.OBJECT, {"kind": kind, "id": id}))
        return found[0] if found else None

    def stored_digests(self) -> list[tuple[ObjectKey, bytes]]:
        found = self._db.rows(sql.STORED_DIGESTS)
        return [(rows.object_key(kind, id), digest) for kind, id, digest in found]

    def tombstones(self) -> list[Tombstone]:
        """Also of objects that were made again since."""
        return [rows.tombstone(row) for row in self._db.rows(sql.TOMBSTONES)]

    def quotas(self) -> list[QuotaRow]:
        return [rows.quota(row) for row in self._db.rows(sql.QUOTAS)]

    def authz(self) -> list[AuthzRow]:
        return [rows.authz(row) for row in self._db.rows(sql.AUTHZ)]

    def fleets(self) -> list[tuple[str, FleetRecord]]:
        return [rows.fleet(row) for row in self._db.rows(sql.FLEETS)]

    def events(self, since: int, limit: int) -> list[StoredEvent]:
        """Those with a sequence number greater than `since`, at most `limit`."""
        return [rows.event(row) for row in self._db.rows(sql.EVENTS, {"since": since, "limit": max(limit, 0)})]

    def nodes(self) -> list[Node]:
        return [rows.node(row) for row in self._db.rows(sql.NODES)]

    def reservations(self) -> list[Reservation]:
        """In order of creation; ties by id, which is arbitrary."""
        return [rows.reservation(row) for row in self._db.rows(sql.RESERVATIONS)]

    def reservation(self, id: str) -> Reservation | None:
        found = self._db.rows(sql.RESERVATION, {"id": id})
        return rows.reservation(found[0]) if found else None

    def booked(self) -> list[tuple[tuple[ObjectId, str], BookedUse]]:
        return [rows.booked(row) for row in self._db.rows(sql.BOOKED)]

    def inventory_gpus(self) -> list[tuple[ObjectId, int]]:
        return [rows.inventory(row) for row in self._db.rows(sql.INVENTORY_GPUS)]

    def streams(self) -> list[StreamHead]:
        return [rows.stream_head(row) for row in self._db.rows(sql.STREAMS)]

    def stream(self, stream: str) -> StreamHead | None:
        found = self._db.rows(sql.STREAM, {"stream": stream})
        return rows.stream_head(found[0]) if found else None

    def entries(self, stream: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """As stored: a missing one is for the ledger's verifier to find."""
        end = MAX_QUANTITY if stop is None else stop
        while start < end:
            values = {"stream": stream, "start": start, "stop": end, "limit": _PAGE}
            page = self._db.rows(sql.ENTRIES, values)
            yield from (sealed for _, sealed in page)
            if len(page) < _PAGE:
                return
            start = page[-1][0] + 1

    def journal_touching(self, kind: str, id: str) -> list[int]:
        return [entry for (entry,) in self._db.rows(sql.JOURNAL_TOUCHING, {"kind": kind, "id": id})]

    def applied_entry(self, plan: str) -> int | None:
        found = self._db.rows(sql.APPLIED_ENTRY, {"plan": plan})
        return found[0][0] if found else None

    def document(self, digest: str) -> bytes | None:
        """Raises Tampered when what is kept is not what its digest says."""
        found = self._db.rows(sql.DOCUMENT, {"digest": digest})
        if not found:
            return None
        content: bytes = found[0][0]
        if sha256_hex(content) != digest:
            raise row_unreadable(f"documents/{digest}", "its content has another digest")
        return content

    def documents(self) -> Iterator[tuple[Digest, bytes]]:
        """In order of digest, as stored: whoever examines them compares content and digest."""
        after = ""
        while page := self._db.rows(sql.DOCUMENTS, {"after": after, "limit": _PAGE_OF_DOCUMENTS}):
            yield from ((Digest(digest), content) for digest, content in page)
            after = page[-1][0]

    def receipts(self, stream: str | None = None, length: int | None = None) -> list[StoredReceipt]:
        """In order of stream, length and time. `length` is for one stream."""
        if stream is None:
            found = self._db.rows(sql.RECEIPTS)
        elif length is None:
            found = self._db.rows(sql.RECEIPTS_OF, {"stream": stream})
        else:
            found = self._db.rows(sql.RECEIPTS_AT, {"stream": stream, "length": length})
        return [rows.receipt(row) for row in found]

    def checkpoint(self, stream: str) -> bytes | None:
        found = self._db.rows(sql.CHECKPOINT, {"stream": stream})
        return found[0][0] if found else None

    def claim(self, stream: str, claim: str) -> ClaimRow | None:
        found = self._db.rows(sql.CLAIM, {"stream": stream, "claim": claim})
        return rows.claim(found[0]) if found else None

    def claims(self, stream: str) -> list[ClaimRow]:
        """In order of admission."""
        return [rows.claim(row) for row in self._db.rows(sql.CLAIMS, {"stream": stream})]

    def report(self, stream: str, claim: str) -> WorkReport | None:
        found = self._db.rows(sql.REPORT, {"stream": stream, "claim": claim})
        return rows.report(found[0]) if found else None

    def reports(self, stream: str) -> list[WorkReport]:
        """In order of claim id."""
        return [rows.report(row) for row in self._db.rows(sql.REPORTS, {"stream": stream})]


class SqlWriter(SqlReader):
    """A write transaction; it sees its own writes."""

    def set_meta(self, name: str, value: str) -> None:
        self._db.run(sql.PUT_META, {"name": name, "value": value})

    def put_objects(self, objects: Iterable[LiveObject]) -> None:
        self._db.run_many(sql.PUT_OBJECT, (rows.object_values(item) for item in objects))

    def drop_objects(self, tombstones: Iterable[Tombstone]) -> None:
        stones = list(tombstones)
        self._db.run_many(sql.PUT_TOMBSTONE, (rows.tombstone_values(stone) for stone in stones))
        self._db.run_many(sql.DROP_OBJECT, ({"kind": stone.kind, "id": stone.id} for stone in stones))

    def put_quotas(self, quotas: Iterable[QuotaRow]) -> None:
        self._db.run_many(sql.PUT_QUOTA, (rows.quota_values(row) for row in quotas))

    def put_authz(self, authz: Iterable[AuthzRow]) -> None:
        self._db.run_many(sql.PUT_AUTHZ, (rows.authz_values(row) for row in authz))

    def drop_authz(self, keys: Iterable[tuple[ObjectId, str]]) -> None:
        self._db.run_many(sql.DROP_AUTHZ, ({"pool": pool, "tenant": tenant} for pool, tenant in keys))

    def put_fleet(self, fleet: str, record: FleetRecord) -> None:
        self._db.run(sql.PUT_FLEET, rows.fleet_values(fleet, record))

    def add_events(self, events: Iterable[Event], at_ms: int) -> None:
        # Writers are serialised and no event is ever deleted, so the numbers rise without a gap in commit order.
        last: int = self._db.rows(sql.LAST_EVENT)[0][0]
        numbered = enumerate(events, start=last + 1)
        self._db.run_many(sql.ADD_EVENT, (rows.event_values(seq, at_ms, item) for seq, item in numbered))

    def put_node(self, node: Node) -> None:
        self._db.run(sql.PUT_NODE, rows.node_values(node))

    def drop_node(self, id: str) -> None:
        self._db.run(sql.DROP_NODE, {"id": id})

    def put_reservation(self, reservation: Reservation) -> None:
        self._db.run(sql.PUT_RESERVATION, rows.reservation_values(reservation))

    def open_stream(self, stream: str, ledger: str, genesis: bytes) -> None:
        """Raises SafetyRefused when the stream exists."""
        values = {"stream": stream, "ledger": ledger, "length": 0, "head": genesis, "closed": 0}
        self._db.run(sql.OPEN_STREAM, values)

    def close_stream(self, stream: str) -> None:
        self._db.run(sql.CLOSE_STREAM, {"stream": stream})

    def rewind(self, stream: str, length: int, head: bytes) -> None:
        self._db.run(sql.DROP_ENTRIES, {"stream": stream, "length": length})
        self._db.run(sql.REWIND_HEAD, {"stream": stream, "length": length, "head": head})

    def append(
        self, stream: str, *, expected_length: int, expected_head: bytes, entries: Sequence[tuple[bytes, bytes]]
    ) -> None:
        """A closed stream moves for nobody: HeadMoved says so in `current.closed`. LookupError without the stream."""
        head = entries[-1][1] if entries else expected_head
        moved = {
            "stream": stream,
            "length": expected_length,
            "head": expected_head,
            "by": len(entries),
            "address": head,
        }
        if not self._db.rows(sql.MOVE_HEAD, moved):
            current = self.stream(stream)
            if current is None:
                raise LookupError(f"no stream {stream!r} is open")
            raise HeadMoved(current)
        self._db.run_many(
            sql.ADD_ENTRY,
            (
                {"stream": stream, "seq": seq, "sealed": sealed}
                for seq, (sealed, _) in enumerate(entries, expected_length)
            ),
        )

    def index_journal(self, entry: int, touched: Iterable[ObjectKey], plan: str | None) -> None:
        """Raises SafetyRefused when the plan has an entry already."""
        self._db.run_many(sql.TOUCH, ({"kind": kind, "id": id, "entry": entry} for kind, id in touched))
        if plan is not None:
            self._db.run(sql.ADD_APPLIED, {"plan": plan, "entry": entry})

    def put_document(self, digest: Digest, content: bytes) -> None:
        """Raises ValueError when the digest is not the content's."""
        if sha256_hex(content) != digest:
            raise ValueError(f"document {digest} has content of another digest")
        self._db.run(sql.PUT_DOCUMENT, {"digest": digest, "content": content})

    def put_receipt(self, receipt: StoredReceipt) -> None:
        """Every receipt is kept; the same one twice is kept once."""
        self._db.run(sql.PUT_RECEIPT, rows.receipt_values(receipt))

    def put_checkpoint(self, stream: str, length: int, sealed: bytes) -> None:
        self._db.run(sql.PUT_CHECKPOINT, {"stream": stream, "length": length, "sealed": sealed})

    def put_claims(self, claims: Iterable[ClaimRow]) -> None:
        self._db.run_many(sql.PUT_CLAIM, map(rows.claim_values, claims))

    def put_report(self, report: WorkReport) -> None:
        self._db.run(sql.PUT_REPORT, rows.report_values(report))

    def drop_report(self, stream: str, claim: str) -> None:
        self._db.run(sql.DROP_REPORT, {"stream": stream, "claim": claim})

    def clear_index(self) -> None:
        for statement in sql.CLEAR_INDEX:
            self._db.run(statement)
