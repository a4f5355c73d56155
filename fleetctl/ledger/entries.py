"""What a ledger records: two usage events (pool/1 §6.2) and the journal's six, their closed schemas, and their cores as bytes.

A core is the deterministic map that is signed and addressed: a marker, `seq`, `prev`, `steward`, `event` and the event's own fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.ledger.cbor import (
    CoreCode,
    Unreadable,
    Value,
    decode,
    encode_text,
    head,
    key_order,
)
from fleetctl.ledger.fields import (
    DIGEST,
    DIGESTS,
    GRADE,
    IDENTIFIER,
    LEDGER,
    POSITIVE,
    TEXT,
    TEXTS,
    UINT,
    Field,
)
from fleetctl.ledger.identifiers import Grade, LedgerId, StreamKind

BAD_EVENT = code(
    "bad-ledger-event",
    "A value cannot be sealed in a ledger",
    trigger="an event whose field is missing, of the wrong type or out of range",
)

_MAP = 5
_MARKERS: dict[StreamKind, str] = {"entitlements": "pool_receipt", "journal": "fleet_receipt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events. `at_ms` is Unix milliseconds. Making one checks every field and raises BadInput."""

    EVENT: ClassVar[str]
    KIND: ClassVar[StreamKind]
    FIELDS: ClassVar[tuple[Field, ...]]

    at_ms: int

    def __post_init__(self) -> None:
        for item in self.FIELDS:
            value = getattr(self, item.attr)
            if value is None and item.optional:
                continue
            why = item.kind.check(value)
            if why:
                raise BadInput(BAD_EVENT.at(f"`{item.name}` of `{self.EVENT}` {why}; it is {_shown(value)}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted(Event):
    """A claim's estimate is reserved (pool/1 §6.2). Energy in microjoules; `borrowed_uj` is the part of the reservation past the guarantee."""

    EVENT = "admitted"
    KIND = "entitlements"
    FIELDS = (
        Field("claim", IDENTIFIER),
        Field("entitlement", IDENTIFIER),
        Field("class", IDENTIFIER, "workload_class", optional=True),
        Field("reserved_uj", UINT),
        Field("borrowed_uj", UINT),
        Field("devices", POSITIVE),
        Field("grade", GRADE),
        Field("at_ms", UINT),
    )

    claim: str
    entitlement: str
    workload_class: str | None = None
    reserved_uj: int
    borrowed_uj: int
    devices: int
    grade: Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Event):
    """The reservation is lifted and the actual figure charged in its place, at the actual figure's grade (pool/1 §6.2)."""

    EVENT = "released"
    KIND = "entitlements"
    FIELDS = (
        Field("claim", IDENTIFIER),
        Field("spent_uj", UINT),
        Field("grade", GRADE),
        Field("at_ms", UINT),
    )

    claim: str
    spent_uj: int
    grade: Grade


_JOURNAL_FIELDS = (
    Field("actor", TEXT),
    Field("state_before", DIGEST),
    Field("state_after", DIGEST),
    Field("ledger", LEDGER),
    Field("ledger_head", DIGEST),
    Field("ledger_length", UINT),
    Field("at_ms", UINT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEvent(Event):
    """What every journal entry holds: who, the state's digest before and after (32 bytes), and the entitlement ledger as it stood."""

    KIND = "journal"

    actor: str
    state_before: bytes
    state_after: bytes
    ledger: LedgerId
    ledger_head: bytes
    ledger_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(JournalEvent):
    """One apply. `plan`, `context` and `config` are digests; `accepted` (danger ids) and `approved_by` (kids) are None when there are none."""

    EVENT = "applied"
    FIELDS = (
        *_JOURNAL_FIELDS,
        Field("fleet", TEXT),
        Field("plan", DIGEST),
        Field("context", DIGEST),
        Field("config", DIGEST),
        Field("commit", TEXT, optional=True),
        Field("operations", UINT),
        Field("accepted", TEXTS, optional=True),
        Field("approved_by", TEXTS, optional=True),
    )

    fleet: str
    plan: bytes
    context: bytes
    config: bytes
    commit: str | None = None
    operations: int
    accepted: tuple[str, ...] | None = None
    approved_by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Called(JournalEvent):
    """One imperative mutation of configuration. `object` is `kind/key`, `request` the digest of the kept request."""

    EVENT = "called"
    FIELDS = (*_JOURNAL_FIELDS, Field("method", TEXT), Field("object", TEXT), Field("request", DIGEST))

    method: str
    object: str
    request: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated(JournalEvent):
    """The entitlement stream `from_ledger` was closed at (`from_length`, `from_head`) and `to` opened."""

    EVENT = "rotated"
    FIELDS = (
        *_JOURNAL_FIELDS,
        Field("from", LEDGER, "from_ledger"),
        Field("from_length", UINT),
        Field("from_head", DIGEST),
        Field("to", LEDGER, "to_ledger"),
    )

    from_ledger: LedgerId
    from_length: int
    from_head: bytes
    to_ledger: LedgerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported(JournalEvent):
    """A sealed drift report. `report` is its digest, `result` its verdict (`none`, `drift`, `tampered`)."""

    EVENT = "reported"
    FIELDS = (*_JOURNAL_FIELDS, Field("report", DIGEST), Field("result", TEXT))

    report: bytes
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated(JournalEvent):
    """The store moved to schema version `schema`."""

    EVENT = "migrated"
    FIELDS = (*_JOURNAL_FIELDS, Field("schema", UINT))

    schema: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(JournalEvent):
    """A stream opened after a loss. `evidence` are digests of what is left of the lost one: its head, receipts."""

    EVENT = "recovered"
    FIELDS = (*_JOURNAL_FIELDS, Field("evidence", DIGESTS))

    evidence: tuple[bytes, ...]


EVENTS: dict[StreamKind, dict[str, type[Event]]] = {
    "entitlements": {cls.EVENT: cls for cls in (Admitted, Released)},
    "journal": {cls.EVENT: cls for cls in (Applied, Called, Rotated, Reported, Migrated, Recovered)},
}


class Core(NamedTuple):
    """One parsed core."""

    seq: int
    prev: bytes
    steward: str
    event: Event


class BadCore(ValueError):
    """A core that is refused. `code` is its verdict on the canonicity axis."""

    def __init__(self, code: CoreCode, why: str) -> None:
        self.code: CoreCode = code
        self.why = why
        super().__init__(f"{code}: {why}")


_CHAIN_FIELDS = (Field("seq", UINT), Field("prev", DIGEST), Field("steward", IDENTIFIER))


class Layout:
    """One event's core: its members in wire order, as the writer emits them and the fast reader matches them."""

    def __init__(self, cls: type[Event]) -> None:
        self.cls = cls
        marker = _MARKERS[cls.KIND]
        self.fields = sorted((*_CHAIN_FIELDS, *cls.FIELDS), key=lambda item: key_order(item.name))
        constants = {marker: encode_text("1"), "event": encode_text(cls.EVENT)}
        self.constants = constants
        names = sorted([*constants, *(item.name for item in self.fields)], key=key_order)
        by_name = {item.name: item for item in self.fields}
        self.steps = [(encode_text(name), by_name.get(name), constants.get(name, b"")) for name in names]
        self.required = {item.name for item in self.fields if not item.optional} | set(constants)
        self.known = self.required | {item.name for item in self.fields}

    def encode(self, event: Event, seq: int, prev: bytes, steward: str) -> bytes:
        chain_values = {"seq": seq, "prev": prev, "steward": steward}
        parts: list[bytes] = [b""]
        count = 0
        for key, item, constant in self.steps:
            if item is None:
                encoded = constant
            else:
                name = item.attr
                value = chain_values[name] if name in chain_values else getattr(event, name)
                if value is None:
                    continue
                encoded = item.kind.encode(value)
            parts += (key, encoded)
            count += 1
        parts[0] = head(_MAP, count)
        return b"".join(parts)

    def parse(self, core: Mapping[str, Value]) -> Core:
        missing, unknown = self.required - core.keys(), core.keys() - self.known
        if missing or unknown:
            what = (
                f"`{min(missing)}` is missing"
                if missing
                else f"`{min(unknown)[:40]}` is no field of `{self.cls.EVENT}`"
            )
            raise BadCore("bad-schema", what)
        for name, constant in self.constants.items():
            value = core[name]
            if not isinstance(value, str) or encode_text(value) != constant:
                raise BadCore("bad-schema", f"`{name}` has another value than it must have")
        values: dict[str, Any] = {}
        for item in self.fields:
            if item.name not in core:
                continue
            value = core[item.name]
            why = item.kind.check(value)
            if why:
                raise BadCore("bad-schema", f"`{item.name}` {why}")
            values[item.attr] = tuple(value) if isinstance(value, list) else value
        seq, prev, steward = values.pop("seq"), values.pop("prev"), values.pop("steward")
        return Core(seq, prev, steward, make(self.cls, values))


def make(cls: type[Event], values: Mapping[str, Any]) -> Event:
    """An event from values that are already checked: its own checks are not run again."""
    event = object.__new__(cls)
    for name, default in _DEFAULTS[cls]:
        object.__setattr__(event, name, values.get(name, default))
    return event


_ALL = [cls for group in EVENTS.values() for cls in group.values()]
_DEFAULTS: dict[type[Event], list[tuple[str, Any]]] = {cls: [(item.name, None) for item in fields(cls)] for cls in _ALL}
LAYOUTS: dict[type[Event], Layout] = {cls: Layout(cls) for cls in _ALL}


def encode_core(event: Event, *, seq: int, prev: bytes, steward: str) -> bytes:
    """The bytes that are signed and addressed for `event` at `seq` after the entry with address `prev`."""
    return LAYOUTS[type(event)].encode(event, seq, prev, steward)


def decode_core(data: bytes, kind: StreamKind) -> Core:
    """The core whose encoding is exactly `data`, of a stream of this kind. Raises BadCore: steps 5 and 6 of ledger.md "Verifying"."""
    if not data:
        raise BadCore("bad-schema", "the core is empty")
    try:
        value = decode(data)
    except Unreadable as error:
        raise BadCore(error.code, f"{error.why} (byte {error.offset} of the core)") from None
    if type(value) is not dict:
        raise BadCore("bad-schema", "the core is not a map")
    event = value.get("event")
    cls = EVENTS[kind].get(event) if type(event) is str else None
    if cls is None:
        raise BadCore("bad-schema", f"`event` is none of {', '.join(EVENTS[kind])}")
    return LAYOUTS[cls].parse(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
