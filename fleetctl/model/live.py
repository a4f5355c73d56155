"""An object as the engine holds it, and a consistent snapshot of the engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from json.encoder import encode_basestring
from typing import Any, Final, cast

from fleetctl.canonical import Json, canonical_json
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import Body, SettingsBody
from fleetctl.model.codec import decode, encode
from fleetctl.model.ids import SETTINGS_ID, EngineId, Kind, ObjectId, object_name
from fleetctl.model.usage import Usage

ObjectKey = tuple[Kind, ObjectId]
State = dict[str, Json]
"""What a plan compares: name, flags and body fields of one object in one flat canonical object."""

PROTECTABLE: frozenset[str] = frozenset({"pool", "entitlement", "market-pool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObject:
    """One configuration object. `tenant` is who acted when it was made; `fleet` owns it, if any fleet does.

    `body_json` and `last_applied_json` are canonical JSON text, so that comparing and digesting need no parsing.
    """

    kind: Kind
    id: ObjectId
    tenant: str
    key: str
    name: str
    version: int
    body_json: str
    fleet: str | None = None
    protect: bool = False
    archived: bool = False
    explicit_only: bool = False
    last_applied_json: str | None = None

    @property
    def label(self) -> str:
        """`kind/key`."""
        return object_name(self.kind, self.key)

    def body(self) -> Body:
        """The typed body. Raises CodecError when the text is not a body of this kind."""
        return decode(self.kind, json.loads(self.body_json))

    def state(self) -> State:
        """Name, flags and body in one flat object."""
        return flat_state(
            self.kind,
            name=self.name,
            protect=self.protect,
            explicit_only=self.explicit_only,
            body=json.loads(self.body_json),
        )

    def last_applied(self) -> State | None:
        """The `after` of the last applied operation on it, if it was ever applied."""
        return None if self.last_applied_json is None else cast(State, json.loads(self.last_applied_json))

    def digest(self) -> bytes:
        """SHA-256 (32 bytes) of its canonical JSON, over everything the object holds."""
        return hashlib.sha256(self.canonical().encode("utf-8")).digest()

    def canonical(self) -> str:
        """Its canonical JSON."""
        parts = [
            '{"archived":',
            _bool(self.archived),
            ',"body":',
            self.body_json,
            ',"explicitOnly":',
            _bool(self.explicit_only),
        ]
        if self.fleet is not None:
            parts += [',"fleet":', encode_basestring(self.fleet)]
        parts += [
            ',"id":',
            encode_basestring(self.id),
            ',"key":',
            encode_basestring(self.key),
            ',"kind":',
            encode_basestring(self.kind),
        ]
        if self.last_applied_json is not None:
            parts += [',"lastApplied":', self.last_applied_json]
        parts += [
            ',"name":',
            encode_basestring(self.name),
            ',"protect":',
            _bool(self.protect),
            ',"tenant":',
            encode_basestring(self.tenant),
            f',"version":{self.version}}}',
        ]
        return "".join(parts)


def object_from_json(data: Mapping[str, Any]) -> LiveObject:
    """The object whose canonical JSON `data` is. Raises KeyError, TypeError or ValueError for anything else."""
    last = data.get("lastApplied")
    return LiveObject(
        kind=data["kind"],
        id=data["id"],
        tenant=data["tenant"],
        key=data["key"],
        name=data["name"],
        version=data["version"],
        body_json=canonical_json(data["body"]),
        fleet=data.get("fleet"),
        protect=data["protect"],
        archived=data["archived"],
        explicit_only=data["explicitOnly"],
        last_applied_json=None if last is None else canonical_json(last),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """What stays of an object that was removed: its last version, so that two creations are never confused.

    `last_applied_json` is kept only when somebody else than its fleet removed it: that is drift of the whole object.
    """

    kind: Kind
    id: ObjectId
    version: int
    key: str
    name: str
    fleet: str | None = None
    last_applied_json: str | None = None

    @property
    def label(self) -> str:
        """`kind/key`."""
        return object_name(self.kind, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRecord:
    """The last apply of a fleet: its journal entry, its commit (absent without git) and its origin."""

    entry: int
    commit: str | None = None
    origin: tuple[str, str] | None = None
    """(root commit hash, path in the repository)."""


DIRTY: Final = "+dirty"
"""What a commit ends in when the files were not those that it holds."""
WHOLE: Final = ""
"""In place of a field: every field of an object, those too that it does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncommitted:
    """What a fleet applied from uncommitted files since it last applied committed ones.

    `settled` is the commit of that last one, `fields` the dotted fields that were set since, by object; `WHOLE` is all
    of one.
    """

    settled: str | None
    fields: Mapping[ObjectKey, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One consistent reading of an engine: every object, what is in use, and how each fleet was last applied."""

    engine: EngineId
    objects: Mapping[ObjectKey, LiveObject] = field(default_factory=dict)
    tombstones: Mapping[ObjectKey, Tombstone] = field(default_factory=dict)
    quotas: Mapping[tuple[ObjectId, str], Mapping[str, int]] = field(default_factory=dict)
    """Quota rows: (pool id, tenant) to resource to maximum."""
    usage: Usage = field(default_factory=Usage)
    fleets: Mapping[str, FleetRecord] = field(default_factory=dict)
    billing_configured: bool = False
    uncommitted: Mapping[str, Uncommitted] = field(default_factory=dict)
    """By fleet whose last apply was of uncommitted files; known only where `revert` is judged."""

    def settings(self) -> SettingsBody:
        """The engine's settings; their defaults while nothing was set."""
        found = self.objects.get(("settings", SETTINGS_ID))
        return SettingsBody() if found is None else cast(SettingsBody, found.body())

    def state_digest(self) -> bytes:
        """SHA-256 over the objects' digests in order of (kind, id); with no object, SHA-256 of nothing."""
        return state_digest((key, item.digest()) for key, item in self.objects.items())


def state_digest(digests: Iterable[tuple[ObjectKey, bytes]]) -> bytes:
    """SHA-256 over the concatenation, in order of (kind, id), of the objects' 32-byte digests."""
    total = hashlib.sha256()
    for _, digest in sorted(digests):
        total.update(digest)
    return total.digest()


def flat_state(kind: Kind, *, name: str, protect: bool, explicit_only: bool, body: Mapping[str, Json]) -> State:
    """The flat state of an object: `name`, the flags that its kind has, and the body's fields."""
    out: State = {"name": name}
    if kind in PROTECTABLE:
        out["protect"] = protect
    if kind == "market-pool":
        out["explicitOnly"] = explicit_only
    out.update(body)
    return out


def state_of(kind: Kind, body: Body, *, name: str, protect: bool = False, explicit_only: bool = False) -> State:
    """The flat state of a typed body."""
    return flat_state(kind, name=name, protect=protect, explicit_only=explicit_only, body=encode(kind, body))


def same(a: Any, b: Any) -> bool:
    """Equality of canonical JSON values: `true` is not 1."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateParts:
    """A flat state taken apart again."""

    name: str
    protect: bool
    explicit_only: bool
    body: dict[str, Json]

    @property
    def body_json(self) -> str:
        return canonical_json(self.body)


def split_state(kind: Kind, state: Mapping[str, Any]) -> StateParts:
    """Undo `flat_state`. Raises ValueError when name or flags are missing or ill-typed; a flag that the kind does not
    have stays in the body, whose reader refuses it.
    """
    rest = dict(state)
    name = rest.pop("name", None)
    protect = rest.pop("protect", None) if kind in PROTECTABLE else False
    explicit_only = rest.pop("explicitOnly", None) if kind == "market-pool" else False
    if type(name) is not str or type(protect) is not bool or type(explicit_only) is not bool:
        raise ValueError(f"a {kind} needs `name` and its flags")
    return StateParts(name=name, protect=protect, explicit_only=explicit_only, body=rest)


def _bool(value: bool) -> str:
    return "true" if value else "false"
