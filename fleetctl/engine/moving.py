"""A whole engine in another place: moved (the old one sealed closed) or copied (a new engine with ledgers of its own)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from fleetctl.canonical import canonical_bytes, canonical_json, sha256_hex
from fleetctl.engine.calls import WAIT_MS
from fleetctl.engine.context import CLOSED, META_CLOSED, META_TEST_CLOCK, Engine, check_identity, journal_stream
from fleetctl.engine.initial import fill
from fleetctl.engine.journal import keep_document, write_journal
from fleetctl.engine.state import check_state, digests_of, load_objects
from fleetctl.engine.streams import verify_stream
from fleetctl.engine.witnessing import refuse_rollback
from fleetctl.errors import SafetyRefused
from fleetctl.ledger.entries import Called
from fleetctl.model.bodies import SettingsBody
from fleetctl.model.codec import encode
from fleetctl.model.live import LiveObject


def close(engine: Engine, target: str) -> None:
    """Seal this state closed in favour of `target`: one journal entry, and no change ever after. Closing again is nothing.

    Raises SafetyRefused when it was closed in favour of another target.
    """
    refuse_rollback(engine)
    with engine.store.write(WAIT_MS) as tx:
        check_identity(engine, tx)
        closed = tx.meta(META_CLOSED)
        if closed == target:
            return
        if closed:
            raise SafetyRefused(CLOSED.at(f"it was moved to {closed}; use that one"))
        state = check_state(engine, tx, digests_of(load_objects(tx)))
        kept = canonical_bytes({"method": "state.move", "target": target})
        keep_document(tx, kept)
        write_journal(
            engine,
            tx,
            Called,
            state_before=state,
            state_after=state,
            method="state.move",
            object=f"engine/{engine.id}",
            request=bytes.fromhex(sha256_hex(kept)),
        )
        tx.set_meta(META_CLOSED, target)


def reopen(engine: Engine) -> None:
    """Open the moved copy for changes."""
    with engine.store.write(WAIT_MS) as tx:
        check_identity(engine, tx)
        tx.set_meta(META_CLOSED, "")


def copy_into(source: Engine, target: Engine, witnesses: Mapping[str, str]) -> int:
    """Fill a fresh engine with the configuration and the nodes of another one. Usage and history start anew.

    `witnesses` (id to key in hexadecimal) take the place of those in the settings: they do not know the new steward. How
    many are required stays. Returns the number of objects. Raises Tampered when the source is not what its journal sealed.
    """
    with source.store.read() as reader:
        check_identity(source, reader)
        verify_stream(source, reader, journal_stream(reader))
        objects = load_objects(reader)
        check_state(source, reader, digests_of(objects))
        nodes = list(reader.nodes())
        test_clock = reader.meta(META_TEST_CLOCK) == "1"
    with target.store.write(WAIT_MS) as tx:
        fill(target, tx, [_witnessed_by(item, witnesses) for item in objects.values()], test_clock=test_clock)
        for node in nodes:
            tx.put_node(node)
    return len(objects)


def _witnessed_by(item: LiveObject, witnesses: Mapping[str, str]) -> LiveObject:
    if item.kind != "settings":
        return item
    body = replace(cast(SettingsBody, item.body()), witnesses=witnesses, co_located=())
    return replace(item, body_json=canonical_json(encode("settings", body)))
