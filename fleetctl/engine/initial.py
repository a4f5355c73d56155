"""Making a new engine. Nothing else ever makes one: a missing state is an error everywhere but here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

from fleetctl.canonical import canonical_bytes, canonical_json, sha256_hex
from fleetctl.capacity.offers import authz_row, quota_rows
from fleetctl.capacity.working import Working
from fleetctl.diagnostics import code
from fleetctl.engine.context import (
    ENTITLEMENTS,
    JOURNAL,
    META_ENGINE,
    META_INITIAL,
    META_INITIAL_DOCUMENT,
    META_JOURNAL,
    META_SCHEMA,
    META_STEWARD,
    META_STREAM,
    META_TEST_CLOCK,
    Engine,
)
from fleetctl.errors import Tampered
from fleetctl.ledger.chain import genesis
from fleetctl.ledger.initial import InitialState, read_initial, seal_initial
from fleetctl.model.bodies import OfferBody, PoolBody, SettingsBody
from fleetctl.model.changes import AuthzRow, Changes, QuotaRow
from fleetctl.model.codec import encode
from fleetctl.model.ids import ROOT_TENANT, SETTINGS_ID, EngineId
from fleetctl.model.live import LiveObject, Snapshot, object_from_json, state_digest
from fleetctl.ports import Reader, Writer

INITIAL_DIFFERS = code(
    "initial-state-differs",
    "The first state of the engine is not the one that was sealed",
    trigger="the document that describes what `init` or `state copy` made is missing or was changed",
    exit_code=3,
)


def initialise(engine: Engine, settings: SettingsBody, *, test_clock: bool = False) -> None:
    """Fill a fresh store: identity, the two empty streams, the settings, and the sealed statement of all that.

    Raises Unreachable without the steward's key.
    """
    with engine.store.write(0) as tx:
        fill(engine, tx, [settings_object(settings)], test_clock=test_clock)


def fill(engine: Engine, tx: Writer, objects: Sequence[LiveObject], *, test_clock: bool) -> None:
    """The rows of a fresh engine that starts from `objects`, in an open transaction."""
    signer = engine.sealing()
    kept = canonical_bytes([json.loads(item.canonical()) for item in objects])
    state = state_digest(((item.kind, item.id), item.digest()) for item in objects)
    statement = InitialState(engine=engine.id, steward=engine.steward, state=state, at_ms=engine.clock.now_ms())
    for name, value in (
        (META_ENGINE, engine.id),
        (META_STEWARD, engine.steward),
        (META_TEST_CLOCK, "1" if test_clock else "0"),
        (META_SCHEMA, str(tx.schema_version())),
        (META_STREAM, ENTITLEMENTS),
        (META_JOURNAL, JOURNAL),
        (META_INITIAL, seal_initial(statement, signer).hex()),
        (META_INITIAL_DOCUMENT, sha256_hex(kept)),
    ):
        tx.set_meta(name, value)
    for stream in (JOURNAL, ENTITLEMENTS):
        ledger = engine.ledger(stream)
        tx.open_stream(stream, ledger, genesis(ledger))
    tx.put_objects(objects)
    rows = initial_rows(engine.id, objects)
    tx.put_quotas(rows.quotas)
    tx.put_authz(rows.authz)
    tx.put_document(sha256_hex(kept), kept)


def initial_statement(engine: Engine, reader: Reader) -> InitialState:
    """The sealed statement of what the engine started from. Raises Tampered."""
    try:
        sealed = bytes.fromhex(reader.meta(META_INITIAL) or "")
    except ValueError:
        sealed = b""
    return read_initial(sealed, engine=engine.id, steward=engine.steward, key=engine.steward_key)


def initial_objects(engine: Engine, reader: Reader) -> list[LiveObject]:
    """What the engine started from. Raises Tampered when it is not what was sealed."""
    statement = initial_statement(engine, reader)
    data = reader.document(reader.meta(META_INITIAL_DOCUMENT) or "")
    try:
        objects = [object_from_json(item) for item in json.loads(data or b"[]")]
        found = state_digest(((item.kind, item.id), item.digest()) for item in objects)
    except (KeyError, TypeError, ValueError, AttributeError):  # the document of something else
        objects, found = [], b""
    if found != statement.state:
        mend = "restore a backup with `fleetctl state restore`, then run `fleetctl ledger recover`"
        raise Tampered(INITIAL_DIFFERS.at(f"the kept description of the first state is missing or was changed; {mend}"))
    return objects


def initial_rows(engine: EngineId, objects: Iterable[LiveObject]) -> Changes:
    """The quota and authorization rows that follow from objects alone."""
    working = Working(Snapshot(engine=engine, objects={(item.kind, item.id): item for item in objects}))
    quotas: list[QuotaRow] = []
    authz: list[AuthzRow] = []
    for pool in working.objects("pool"):
        if not working.tenant_exists(pool.tenant):  # archived with its owner, whose rows ended then
            continue
        body = cast(PoolBody, working.body(pool))
        quotas += [
            QuotaRow(pool=pool.id, tenant=pool.tenant, resource=resource, maximum=maximum)
            for resource, maximum in body.owner_quota.items()
        ]
        authz.append(authz_row(working, pool, body, pool.tenant))
        for item in working.referring_to("pool", pool.id, "offer"):
            offer = cast(OfferBody, working.body(item))
            quotas += quota_rows(working, pool, offer)
            authz.append(authz_row(working, pool, body, offer.to))
    return Changes(quotas=tuple(quotas), authz=tuple(authz))


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
