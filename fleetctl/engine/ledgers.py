"""The ledgers for readers outside: export, bundles, and the audit of the engine's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from fleetctl.canonical import canonical_bytes
from fleetctl.engine.context import Engine, check_identity, journal_stream, usage_stream
from fleetctl.engine.streams import head_of
from fleetctl.engine.witnessing import read_settings, roster
from fleetctl.ledger.audit import RESUME_MISMATCH, Bounds, Reason, Report, audit, with_journal
from fleetctl.ledger.keys import public_key
from fleetctl.ports import Reader


def export_stream(engine: Engine, stream: str | None = None) -> bytes:
    """A CBOR sequence of sealed entries. `stream`: absent for the entitlement stream in force; `journal` for the journal."""
    with engine.store.read() as reader:
        check_identity(engine, reader)
        return _stream_bytes(reader, _stream(reader, stream))


def bundle(engine: Engine) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of everything an auditor needs: both streams, receipts, documents, public keys, a table of names."""
    from fleetctl.ledger.keyfiles import public_pem

    with engine.store.read() as reader:
        check_identity(engine, reader)
        settings = read_settings(reader)
        yield "entitlements.cborseq", _stream_bytes(reader, usage_stream(reader))
        yield "journal.cborseq", _stream_bytes(reader, journal_stream(reader))
        for item in reader.receipts():
            yield f"receipts/{item.stream}-{item.witness}-{item.length}.cose".replace(":", "_"), item.sealed
        for digest, content in reader.documents():
            yield f"documents/{digest}.json", content
        yield f"keys/steward-{engine.steward}.pub.pem", public_pem(engine.steward_key)
        for id, key in settings.witnesses.items():
            yield f"keys/witness-{id}.pub.pem", public_pem(public_key(bytes.fromhex(key)))
        yield "names.json", canonical_bytes(_names(engine, reader)) + b"\n"


def audit_engine(engine: Engine, bounds: Bounds | None = None, *, cross_check: bool = False) -> Report:
    """Verify both streams of the engine from genesis, with its receipts and the keys of its settings."""
    with engine.store.read() as reader:
        check_identity(engine, reader)
        known = roster(read_settings(reader), engine.witnesses)
        reports = []
        for stream in (usage_stream(reader), journal_stream(reader)):
            data = _stream_bytes(reader, stream)
            head = head_of(engine, reader, stream)
            report = audit(
                data,
                ledger=head.ledger,
                key=engine.steward_key,
                now_ms=engine.clock.now_ms(),
                receipts=[item.sealed for item in reader.receipts(stream)],
                roster=known,
                bounds=bounds if stream == usage_stream(reader) else _journal_bounds(bounds),
                cross_check=cross_check,
            )
            if report.verification.ok and report.verification.tip != head:
                found = report.verification
                detail = (
                    f"{head.ledger} ends at {found.length} with the head {found.head.hex()[:16]}…, the state says "
                    f"{head.length} and {head.address.hex()[:16]}…: entries were cut or added in the database"
                )
                report = replace(report, reasons=(*report.reasons, Reason(code=RESUME_MISMATCH.name, detail=detail)))
            reports.append((report, data))
    (usage, _), (journal, journal_data) = reports
    return with_journal(usage, journal, journal_data)


def _journal_bounds(bounds: Bounds | None) -> Bounds | None:
    """`--min-length` and `--resume` speak of the entitlement ledger; the age of receipts binds both."""
    return None if bounds is None else Bounds(max_receipt_age_ms=bounds.max_receipt_age_ms)


def _stream(reader: Reader, stream: str | None) -> str:
    if stream is None or stream == "entitlements":
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
    return {"objects": {**gone, **objects}, "steward": steward, "witnesses": settings}
