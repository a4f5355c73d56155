"""Engines for tests: one in a folder of its own with fixed keys and a clock that is told the time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from fleetctl.engine.apply import ApplyReceipt, apply_plan
from fleetctl.engine.context import Engine, journal_stream, usage_stream
from fleetctl.engine.initial import initialise
from fleetctl.engine.journal import append_sealed
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.engine.rebuild import differences
from fleetctl.engine.receipts import Witnessed
from fleetctl.engine.state import check_state, digests_of, load_objects
from fleetctl.engine.streams import events, journal_events, read_usages, verify_stream
from fleetctl.engine.windows import check_succession
from fleetctl.engine.witnessing import witness_heads
from fleetctl.ledger.chain import Head, genesis, seal
from fleetctl.ledger.entries import Admitted, Event, JournalEvent, Released
from fleetctl.ledger.identifiers import ledger_id
from fleetctl.model.bodies import EntitlementBody, OfferBody, PoolBody, SettingsBody, SiteBody, TenantBody
from fleetctl.model.declared import Acceptance, Declared, Fleet, IgnoredDrift
from fleetctl.model.ids import EngineId, FleetName, ObjectId, TenantId, derive_id
from fleetctl.model.operational import ClaimRow
from fleetctl.plan.planfile import write_plan
from fleetctl.ports import Reader, Store
from fleetctl.store.sqlite import SqliteStore
from fleetctl.units import DurationMs, MicroJoules, UnixMs
from tests.support.ledgers import AT_MS, signer

ENGINE = EngineId("eng_test")
STEWARD = signer("root-steward")
ROOT = TenantId("root")
HOUR = DurationMs(3_600_000)


@dataclass(slots=True)
class ToldClock:
    """A clock that goes `step_ms` on at every look, from a time that the test sets."""

    at_ms: int = AT_MS
    step_ms: int = 0

    def now_ms(self) -> UnixMs:
        self.at_ms += self.step_ms
        return UnixMs(self.at_ms)


@dataclass(slots=True)
class CountedEntropy:
    """Bytes that depend on nothing but how often they were asked for, and on `name`."""

    name: str = ""
    asked: int = 0

    def __call__(self, size: int) -> bytes:
        self.asked += 1
        return sha256(f"{self.name} {self.asked}".encode()).digest()[:size]


# ------------------------------------------------------------------------------------------------------ engines


def over(store: Store, **changes: Any) -> Engine:
    """The test engine over any store."""
    values: dict[str, Any] = {
        "id": ENGINE,
        "store": store,
        "steward": STEWARD.kid,
        "steward_key": STEWARD.public_key,
        "clock": ToldClock(),
        "actor": "local:ada@host",
        "entropy": CountedEntropy(),
        "signer": STEWARD,
    }
    return Engine(**(values | changes))


def new_engine(folder: Path, settings: SettingsBody | None = None, **changes: Any) -> Engine:
    """A fresh engine whose state is `state.db` in the folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = over(SqliteStore.create(folder / "state.db"), **changes)
    initialise(engine, settings or SettingsBody())
    return engine


def open_engine(folder: Path, **changes: Any) -> Engine:
    """The engine whose state lies in the folder."""
    return over(SqliteStore.open(folder / "state.db"), **changes)


def genesis_of(stream: str) -> bytes:
    """The head of one of the test steward's streams while it is empty."""
    return genesis(ledger_id(STEWARD.kid, stream))


def state_of(engine: Engine) -> Path:
    """The file of its state."""
    assert isinstance(engine.store, SqliteStore)
    return Path(engine.store.path)


def copied(folder: Path, target: Path) -> Path:
    """A copy of everything committed in the state of `folder`, in a new folder."""
    target.mkdir(mode=0o700, parents=True)
    (target / "state.db").touch(mode=0o600)
    source, copy = raw(folder), raw(target)
    try:
        source.backup(copy)
    finally:
        copy.close()
        source.close()
    return target


def raw(folder: Path) -> sqlite3.Connection:
    """A connection that knows nothing of the engine, and does not wait for the disk."""
    connection = sqlite3.connect(folder / "state.db")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def edit(folder: Path, statement: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> int:
    """Change the database behind the engine's back; the number of rows that it changed."""
    connection = raw(folder)
    try:
        with connection:
            return connection.execute(statement, values).rowcount
    finally:
        connection.close()


def dump(folder: Path, tables: Iterable[str] = ()) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, or of some, as they are stored."""
    connection = raw(folder)
    try:
        names = list(tables) or [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in names}
    finally:
        connection.close()


def restore_rows(folder: Path, tables: Mapping[str, Sequence[Sequence[Any]]]) -> None:
    """Make tables hold exactly these rows, behind the engine's back."""
    connection = raw(folder)
    try:
        with connection:
            for name, rows in tables.items():
                connection.execute(f"DELETE FROM {name}")
                for row in rows:
                    connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    finally:
        connection.close()


# ------------------------------------------------------------------------------------------------------- fleets


def tenant(name: str = "acme") -> Declared:
    return Declared(kind="tenant", key=name, name=name, body=TenantBody(parent="root"))


def site(key: str = "fra1", region: str = "eu") -> Declared:
    return Declared(kind="site", key=key, name=key, body=SiteBody(kind="shared", region=region, tenant="root"))


def pool(
    key: str, *, name: str | None = None, protect: bool = False, adopt: ObjectId | None = None, **fields: Any
) -> Declared:
    values: dict[str, Any] = {
        "site": "fra1",
        "pool_class": "metal-host",
        "gpu_model": "H100",
        "policy": {"maxPendingMs": 3_600_000},
    }
    body = PoolBody(**(values | fields))
    return Declared(kind="pool", key=key, name=name or key, protect=protect, adopt=adopt, body=body)


def offer(pool_key: str, to: str = "acme", gpus: int = 32, **fields: Any) -> Declared:
    body = OfferBody(**({"pool": pool_key, "to": to, "quota": {"gpu": gpus}} | fields))
    return Declared(kind="offer", key=f"{pool_key.partition('/')[2] or pool_key}/{to}", name=to, body=body)


def entitlement(key: str = "ent", *, energy_uj: int = 10**12, devices: int = 64, **fields: Any) -> Declared:
    values: dict[str, Any] = {
        "tenant": "acme",
        "guarantee_uj": MicroJoules(energy_uj),
        "guarantee_devices": devices,
    }
    return Declared(kind="entitlement", key=key, name=key, body=EntitlementBody(**(values | fields)))


def fleet(
    *objects: Declared,
    name: str = "eu",
    accept: Iterable[str | Acceptance] = (),
    ignore: Iterable[IgnoredDrift] = (),
    release: Iterable[str] = (),
) -> Fleet:
    """A fleet of the root tenant with the tenant `acme`, the site `fra1`, and these objects."""
    accepted = tuple(item if isinstance(item, Acceptance) else Acceptance(danger=item) for item in accept)
    return Fleet(
        name=FleetName(name),
        tenant=ROOT,
        objects=(tenant(), site(), *objects),
        accept=accepted,
        ignore_drift=tuple(ignore),
        release=tuple(release),
    )


def one_pool(gpus: int = 32, **fields: Any) -> Fleet:
    """One pool, offered to `acme`, and one entitlement of it."""
    return fleet(pool("pool-a"), offer("pool-a", gpus=gpus), entitlement(), **fields)


def id_of(kind: str, key: str, fleet_name: str = "eu") -> ObjectId:
    """The id of an object that a fleet of the root tenant made."""
    return derive_id(kind, "root", f"fleet/{fleet_name}", key)


POOL_A = id_of("pool", "pool-a")
OFFER_A = id_of("offer", "pool-a/acme")
ENT = id_of("entitlement", "ent")


def planned(engine: Engine, declared: Fleet, *, accept: Iterable[str] = (), source: Source | None = None) -> bytes:
    """The plan file of a fleet as it is now."""
    return write_plan(plan_fleet(engine, declared, source or Source(), host="host", accept=accept).file)


def applied(
    engine: Engine, declared: Fleet, *, accept: Iterable[str] = (), source: Source | None = None, **how: Any
) -> ApplyReceipt:
    """Plan and apply in one go."""
    return apply_plan(engine, planned(engine, declared, accept=accept, source=source), **how)


def append_claims(engine: Engine, count: int, entitlement_key: str = "ent") -> None:
    """`count` entries of claims admitted and released at once, sealed and indexed as the engine does, in one transaction."""
    with engine.store.write(0) as tx:
        stream = usage_stream(tx)
        found = tx.stream(stream)
        assert found is not None
        head = Head(ledger=engine.ledger(stream), length=found.length, address=found.head)
        for number in range(count):
            claim, ended = f"bulk-{head.length - number % 2}", number % 2 == 1
            event: Event = (
                Released(claim=claim, spent_uj=number, grade="HwShunt", at_ms=AT_MS)
                if ended
                else Admitted(
                    claim=claim,
                    entitlement=id_of("entitlement", entitlement_key),
                    reserved_uj=number,
                    borrowed_uj=0,
                    devices=1,
                    grade="ModelBased",
                    at_ms=AT_MS,
                )
            )
            sealed = seal(event, head, engine.sealing())
            append_sealed(tx, stream, sealed)
            tx.put_claims(
                [
                    ClaimRow(
                        stream=stream,
                        claim=claim,
                        entitlement=id_of("entitlement", entitlement_key),
                        admitted_at=sealed.seq - ended,
                        released_at=sealed.seq if ended else None,
                    )
                ]
            )
            head = sealed.head


def witness(engine: Engine) -> Witnessed:
    """`fleetctl ledger witness`."""
    return witness_heads(engine)


# ---------------------------------------------------------------------------------------------------- verdicts


def check_whole(engine: Engine) -> None:
    """Everything that can be verified of an engine is: identity, journal, every window, state, and the tables as their fold."""
    with engine.store.read() as reader:
        verify_stream(engine, reader, journal_stream(reader))
        verify_stream(engine, reader, usage_stream(reader))
        read_usages(engine, reader)
        check_succession(engine, reader)
        check_state(engine, reader, digests_of(load_objects(reader)))
        assert differences(engine, reader) == []


def journal(engine: Engine) -> list[JournalEvent]:
    """Its journal, parsed."""
    with engine.store.read() as reader:
        return [event for _, event in journal_events(engine, reader, journal_stream(reader))]


def usage_events(engine: Engine, reader: Reader) -> Iterator[tuple[int, Event]]:
    """(index, event) of the entitlement stream in force, parsed."""
    return events(engine, reader, usage_stream(reader))


def lengths(engine: Engine) -> tuple[int, int]:
    """Entries in the journal and in the entitlement stream in force."""
    with engine.store.read() as reader:
        return _length(reader, journal_stream(reader)), _length(reader, usage_stream(reader))


def _length(reader: Reader, stream: str) -> int:
    found = reader.stream(stream)
    assert found is not None
    return found.length
