"""One journal entry for each change of configuration, in the transaction that makes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fleetctl.canonical import Digest, sha256_hex
from fleetctl.engine.context import META_SCHEMA, Engine, journal_stream, usage_stream
from fleetctl.engine.journals import journal_history, place_in_force
from fleetctl.engine.streams import LEDGER_TAMPERED, head_of, last_at_ms
from fleetctl.errors import Tampered
from fleetctl.ledger.chain import Sealed, seal
from fleetctl.ledger.entries import JournalEvent, Migrated, Recovered
from fleetctl.model.live import ObjectKey
from fleetctl.ports import HeadMoved, Reader, Writer
from fleetctl.units import UnixMs

_FIRST_SCHEMA = 1
"""Of states made before any was noted."""


def sealing_time(engine: Engine, reader: Reader) -> UnixMs:
    """The time that an entry of this reading's transaction bears: the clock's, and never one before the last entry's.

    What is decided is decided at this time, so that a replay of the journal decides alike.
    """
    return UnixMs(max(engine.clock.now_ms(), last_at_ms(engine, reader, journal_stream(reader))))


def write_journal(
    engine: Engine,
    tx: Writer,
    event: type[JournalEvent],
    *,
    state_before: bytes,
    state_after: bytes,
    touched: Iterable[ObjectKey] = (),
    index_plan: str | None = None,
    at_ms: UnixMs | None = None,
    **fields: Any,
) -> int:
    """Seal and append one entry, with the entitlement ledger as it stands. `at_ms` is the `sealing_time` unless given.

    A migration of the schema that the journal does not know of yet is journalled first. Returns the entry's place in the
    journal. Raises Unreachable without the steward's key.
    """
    if event is not Recovered and (schema := _migrated_to(engine, tx)) is not None:  # `recovered` opens its journal
        _write(engine, tx, Migrated, state_before=state_before, state_after=state_before, at_ms=at_ms, schema=schema)
        tx.set_meta(META_SCHEMA, str(schema))
    place = _write(engine, tx, event, state_before=state_before, state_after=state_after, at_ms=at_ms, **fields)
    tx.index_journal(place, touched, index_plan)
    return place


def _migrated_to(engine: Engine, tx: Writer) -> int | None:
    """The schema version that a store was migrated to when it was opened, as long as no `migrated` says so.

    A store migrates itself, without a key; who seals next has verified the state, and says it.
    """
    version = tx.schema_version()
    if (tx.meta(META_SCHEMA) or str(_FIRST_SCHEMA)) == str(version):
        return None
    said = [event.schema for _, event in journal_history(engine, tx) if isinstance(event, Migrated)]
    return None if version == (said[-1] if said else _FIRST_SCHEMA) else version  # the note may have been edited


def _write(engine: Engine, tx: Writer, event: type[JournalEvent], *, at_ms: UnixMs | None, **fields: Any) -> int:
    stream = journal_stream(tx)
    usage = head_of(engine, tx, usage_stream(tx))
    sealed = seal(
        event(
            at_ms=sealing_time(engine, tx) if at_ms is None else at_ms,
            actor=engine.actor,
            ledger=usage.ledger,
            ledger_head=usage.address,
            ledger_length=usage.length,
            **fields,
        ),
        head_of(engine, tx, stream),
        engine.sealing(),
    )
    append_sealed(tx, stream, sealed)
    return place_in_force(engine, tx) + sealed.seq


def append_sealed(tx: Writer, stream: str, *sealed: Sealed) -> None:
    """Append entries, each sealed on the one before, by one compare-and-set on the head that the first was sealed on.

    Raises Tampered for a closed stream.
    """
    found = tx.stream(stream)
    assert found is not None, "a stream is opened before anything is sealed for it"
    try:
        tx.append(
            stream,
            expected_length=sealed[0].seq,
            expected_head=found.head,
            entries=[(item.data, item.address) for item in sealed],
        )
    except HeadMoved as moved:  # nobody else writes meanwhile, so it is not that another was faster
        raise Tampered(
            LEDGER_TAMPERED.at(
                f"the stream {stream} in force is closed at {moved.current.length}; compare with a backup"
            )
        ) from None


def keep_document(tx: Writer, content: bytes) -> Digest:
    """Keep a document under its digest. Raises Tampered when something else lies there already."""
    digest = sha256_hex(content)
    if tx.document(digest) is None:
        tx.put_document(digest, content)
    return digest
