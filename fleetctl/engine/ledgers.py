"""The ledgers for readers outside: export, bundles, and the audit of the engine's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fleetctl.canonical import canonical_bytes
from fleetctl.engine.context import Engine, check_identity, journal_stream, usage_stream
from fleetctl.engine.journals import parts
from fleetctl.engine.receipts import read_settings, roster
from fleetctl.engine.streams import head_of, journal_events
from fleetctl.engine.witnessing import newest_answers
from fleetctl.frozen import dataclass
from fleetctl.ledger.audit import audit, journal_file, with_earlier, with_journal
from fleetctl.ledger.identifiers import LedgerId, ledger_id, stream_of
from fleetctl.ledger.keys import PublicKey, public_key
from fleetctl.ledger.receipts import WitnessKey, apart
from fleetctl.ledger.report import RESUME_MISMATCH, Bounds, Reason, Report
from fleetctl.ledger.windows import file_of, succession
from fleetctl.ports import Reader


def export_stream(engine: Engine, stream: str | None = None) -> bytes:
    """A CBOR sequence of sealed entries. `stream`: absent for the entitlement stream in force; `journal` for the journal in force."""
    with engine.store.read() as reader:
        check_identity(engine, reader)
        return _stream_bytes(reader, _stream(reader, stream))


def bundle(engine: Engine) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of everything an auditor needs: both streams, closed windows, journals that recoveries closed, receipts,
    documents, public keys as PEM and as COSE_Key, a table of names.
    """
    from fleetctl.ledger.keyfiles import cose_key, public_pem

    with engine.store.read() as reader:
        check_identity(engine, reader)
        settings = read_settings(reader)
        yield "entitlements.cborseq", _stream_bytes(reader, usage_stream(reader))
        yield "journal.cborseq", _stream_bytes(reader, journal_stream(reader))
        for number, part in enumerate(parts(engine, reader)[:-1]):
            yield journal_file(number), _stream_bytes(reader, part.stream)
        for number, ledger in enumerate(_closed(engine, reader)):
            yield file_of(number, ledger), _stream_bytes(reader, stream_of(ledger))
        for item in reader.receipts():
            yield f"receipts/{item.stream}-{item.witness}-{item.length}.cose".replace(":", "_"), item.sealed
        for digest, content in reader.documents():
            yield f"documents/{digest}.json", content
        keys = [("steward", engine.steward, engine.steward_key)]
        keys += [("witness", id, public_key(bytes.fromhex(key))) for id, key in settings.witnesses.items()]
        for whose, id, key in keys:
            yield f"keys/{whose}-{id}.pub.pem", public_pem(key)
            yield f"keys/{whose}-{id}.pub.cose", cose_key(key, id)
        yield "names.json", canonical_bytes(_names(engine, reader)) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an auditor of the engine's own ledgers knows from elsewhere; the engine's keys and names where nothing is given.

    `required` witnesses are asked for, or as many as the settings say when those are more. `bounds(ledger, beside)` are the bounds for a ledger; `beside` are the journal and closed windows. Keys of `roster` go before those that
    the settings have for the same witness.
    """

    key: PublicKey | None = None
    steward: str | None = None
    receipts: Sequence[bytes] = ()
    roster: Sequence[WitnessKey] = ()
    required: int = 0
    bounds: Callable[[LedgerId, bool], Bounds] = lambda _ledger, _beside: Bounds()


def audit_engine(engine: Engine, given: Given | None = None, *, cross_check: bool = False) -> Report:
    """Verify every stream of the engine from genesis, with the receipts that are kept or given and what its witnesses say now."""
    given = given or Given()
    with engine.store.read() as reader:
        check_identity(engine, reader)
        streams = _audited(engine, reader)
    answers = newest_answers(engine, streams)
    with engine.store.read() as reader:
        streams, earlier = _audited(engine, reader), [part.stream for part in parts(engine, reader)[:-1]]
        known = _roster(engine, reader, given)
        kept = [item.sealed for stream in (*streams, *earlier) for item in reader.receipts(stream)]
        receipts = apart(
            [*kept, *given.receipts, *(sealed for _, sealed in answers)],
            *(ledger_id(given.steward or engine.steward, stream) for stream in (*streams[1:], *earlier)),
        )
        (usage, data), (journal, journal_data), *others = [
            _audit(engine, reader, stream, given, speaking, known, cross_check)
            for stream, speaking in zip((*streams, *earlier), receipts, strict=True)
        ]
        windows, before = others[: len(streams) - 2], others[len(streams) - 2 :]
        journal = with_earlier(journal, journal_data, before, reader.document)
    return with_journal(usage, journal, journal_data, data=data, windows=windows)


def _audited(engine: Engine, reader: Reader) -> tuple[str, ...]:
    """The entitlement stream in force, the journal in force, closed windows."""
    closed = (stream_of(ledger) for ledger in _closed(engine, reader))
    return (usage_stream(reader), journal_stream(reader), *closed)


def _closed(engine: Engine, reader: Reader) -> list[LedgerId]:
    """The ledgers before the one in force by the journal in force, as whoever has its bundle sees them, as far as they are kept."""
    current = engine.ledger(usage_stream(reader))
    found = succession(event for event in journal_events(engine, reader, journal_stream(reader)))
    return [ledger for ledger in found if ledger != current and reader.stream(stream_of(ledger)) is not None]


def _audit(
    engine: Engine,
    reader: Reader,
    stream: str,
    given: Given,
    receipts: Sequence[bytes],
    known: Sequence[WitnessKey],
    cross_check: bool,
) -> tuple[Report, bytes]:
    """One stream's report, and its bytes."""
    data, head = _stream_bytes(reader, stream), head_of(engine, reader, stream)
    ledger = ledger_id(given.steward or engine.steward, stream)
    report = audit(
        data,
        ledger=ledger,
        key=given.key or engine.steward_key,
        now_ms=engine.clock.now_ms(),
        receipts=receipts,
        roster=known,
        required=max(given.required, read_settings(reader).required_witnesses, 1),
        bounds=given.bounds(ledger, stream != usage_stream(reader)),
        cross_check=cross_check,
    )
    found = report.verification
    if found.ok and (found.length, found.head) != (head.length, head.address):
        detail = (
            f"{head.ledger} ends at {found.length} with the head {found.head.hex()[:16]}…, the state says "
            f"{head.length} and {head.address.hex()[:16]}…: entries were cut or added in the database"
        )
        report = replace(report, reasons=(*report.reasons, Reason(code=RESUME_MISMATCH.name, detail=detail)))
    return report, data


def _roster(engine: Engine, reader: Reader, given: Given) -> list[WitnessKey]:
    named = {item.witness for item in given.roster}
    own = roster(read_settings(reader), engine.witnesses)
    return [*given.roster, *(item for item in own if item.witness not in named)]


def _stream(reader: Reader, stream: str | None) -> str:
    if stream is None:
        return usage_stream(reader)
    return journal_stream(reader) if stream == "journal" else stream


def _stream_bytes(reader: Reader, stream: str) -> bytes:
    return b"".join(reader.entries(stream))


def _names(engine: Engine, reader: Reader) -> dict[str, object]:
    objects = {
        item.id: {
            "kind": item.kind,
            "key": item.key,
            "name": item.name,
            **({"fleet": item.fleet} if item.fleet else {}),
        }
        for item in reader.objects()
        if item.kind != "settings"
    }
    gone = {
        stone.id: {"kind": stone.kind, "key": stone.key, "name": stone.name, "removed": True}
        for stone in reader.tombstones()
        if stone.id not in objects
    }
    steward = {"id": engine.steward, "engine": engine.id}
    settings = json.loads(canonical_bytes(dict(read_settings(reader).witnesses)))
    journals = [str(engine.ledger(part.stream)) for part in parts(engine, reader)]
    return {"objects": {**gone, **objects}, "steward": steward, "witnesses": settings, "journals": journals}
