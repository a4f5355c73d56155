"""Give an engine a long entitlement ledger, sealed for real: `python -m benchmarks.fill STATE KEY ENTRIES TAIL`.

A checkpoint lies `TAIL` entries before the end, as on an engine in use. In a process of its own, because it takes memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmarks.chains import chain, events
from fleetctl.clock import SystemClock
from fleetctl.engine.context import ENTITLEMENTS, META_ENGINE, META_STEWARD, Engine
from fleetctl.engine.streams import keep_checkpoint, read_usages
from fleetctl.ledger.chain import Sealed
from fleetctl.ledger.entries import Admitted, Event, Released
from fleetctl.ledger.keyfiles import load_private_key
from fleetctl.model.ids import EngineId
from fleetctl.model.operational import ClaimRow
from fleetctl.ports import Writer
from fleetctl.store.sqlite import SqliteStore

BATCH = 20_000


def fill(engine: Engine, entries: int, tail: int) -> None:
    """Append in batches, and seal a checkpoint `tail` entries before the end."""
    sealed = chain(entries, engine.sealing(), engine.ledger(ENTITLEMENTS))
    both = zip(sealed, events(entries), strict=True)
    left = entries - tail
    admitted_at: dict[str, ClaimRow] = {}
    while left:
        with engine.store.write(0) as tx:
            _append(tx, islice(both, min(left, BATCH)), admitted_at)
        left -= min(left, BATCH)
    with engine.store.write(0) as tx:
        keep_checkpoint(engine, tx, read_usages(engine, tx))
        _append(tx, both, admitted_at)


def _append(tx: Writer, items: Iterator[tuple[Sealed, Event]], opened: dict[str, ClaimRow]) -> None:
    head = tx.stream(ENTITLEMENTS)
    assert head is not None
    entries: list[tuple[bytes, bytes]] = []
    claims: dict[str, ClaimRow] = {}
    for sealed, event in items:
        entries.append((sealed.data, sealed.address))
        if isinstance(event, Admitted):
            claims[event.claim] = opened[event.claim] = _row(event, sealed.seq)
        elif isinstance(event, Released):
            claims[event.claim] = replace(opened.pop(event.claim), released_at=sealed.seq)
    tx.append(ENTITLEMENTS, expected_length=head.length, expected_head=head.head, entries=entries)
    tx.put_claims(claims.values())


def _row(event: Admitted, seq: int) -> ClaimRow:
    return ClaimRow(stream=ENTITLEMENTS, claim=event.claim, entitlement=event.entitlement, admitted_at=seq)


def main(state: str, key: str, entries: int, tail: int) -> None:
    """Open the engine at `state` with the steward's private key, and fill it."""
    store = SqliteStore.open(state)
    try:
        with store.read() as reader:
            id, steward = reader.meta(META_ENGINE), reader.meta(META_STEWARD)
        assert id is not None and steward is not None
        signer = load_private_key(Path(key), steward)
        engine = Engine(
            id=EngineId(id),
            store=store,
            steward=steward,
            steward_key=signer.public_key,
            clock=SystemClock(),
            actor="local:bench@bench",
            entropy=os.urandom,
            signer=signer,
        )
        fill(engine, entries, tail)
    finally:
        store.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
