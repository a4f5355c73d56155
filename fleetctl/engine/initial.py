"""Making a new engine. Nothing else ever makes one: a missing state is an error everywhere but here."""

from __future__ import annotations

from fleetctl.canonical import canonical_bytes, canonical_json, sha256_hex
from fleetctl.engine.context import (
    ENTITLEMENTS,
    JOURNAL,
    META_ENGINE,
    META_INITIAL,
    META_INITIAL_DOCUMENT,
    META_JOURNAL,
    META_STEWARD,
    META_STREAM,
    META_TEST_CLOCK,
    Engine,
)
from fleetctl.ledger.chain import genesis
from fleetctl.ledger.initial import InitialState, seal_initial
from fleetctl.model.bodies import SettingsBody
from fleetctl.model.codec import encode
from fleetctl.model.ids import ROOT_TENANT, SETTINGS_ID
from fleetctl.model.live import LiveObject, state_digest
from fleetctl.ports import Writer


def initialise(engine: Engine, settings: SettingsBody, *, test_clock: bool = False) -> None:
    """Fill a fresh store: identity, the two empty streams, the settings, and the sealed statement of all that.

    Raises Unreachable without the steward's key.
    """
    with engine.store.write(0) as tx:
        fill(engine, tx, settings, test_clock=test_clock)


def fill(engine: Engine, tx: Writer, settings: SettingsBody, *, test_clock: bool) -> None:
    """The rows of a fresh engine, in an open transaction."""
    signer = engine.sealing()
    for name, value in (
        (META_ENGINE, engine.id),
        (META_STEWARD, engine.steward),
        (META_TEST_CLOCK, "1" if test_clock else "0"),
        (META_STREAM, ENTITLEMENTS),
        (META_JOURNAL, JOURNAL),
    ):
        tx.set_meta(name, value)
    for stream in (JOURNAL, ENTITLEMENTS):
        ledger = engine.ledger(stream)
        tx.open_stream(stream, ledger, genesis(ledger))
    made = settings_object(settings)
    tx.put_objects([made])
    kept = canonical_bytes({"settings": encode("settings", settings)})
    tx.put_document(sha256_hex(kept), kept)
    tx.set_meta(META_INITIAL_DOCUMENT, sha256_hex(kept))
    state = state_digest([((made.kind, made.id), made.digest())])
    statement = InitialState(engine=engine.id, steward=engine.steward, state=state, at_ms=engine.clock.now_ms())
    tx.set_meta(META_INITIAL, seal_initial(statement, signer).hex())


def settings_object(settings: SettingsBody) -> LiveObject:
    """The settings as the object that `init` makes."""
    return LiveObject(
        kind="settings",
        id=SETTINGS_ID,
        tenant=ROOT_TENANT,
        key="engine",
        name="engine",
        version=1,
        body_json=canonical_json(encode("settings", settings)),
    )
