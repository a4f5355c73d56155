"""A fleet as its files declare it: names resolved to keys, defaults filled in, units canonical."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fleetctl.canonical import Digest, digest_of
from fleetctl.diagnostics import Span
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import Body
from fleetctl.model.codec import encode
from fleetctl.model.ids import FleetName, Kind, ObjectId, TenantId, object_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One declared object. References in `body` are keys, or `other-fleet/key`; `span` is where it is declared.

    `key` is its idempotency key; an offer's is `<pool key>/<tenant>`, a procurement's `<market pool key>/<name>`.
    """

    kind: Kind
    key: str
    name: str
    body: Body
    protect: bool = False
    explicit_only: bool = False
    adopt: ObjectId | None = None
    span: Span | None = None

    @property
    def label(self) -> str:
        """`kind/key`."""
        return object_name(self.kind, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A danger accepted in advance, by its id `kind:object`. `until` is a date, to the end of that day in UTC."""

    danger: str
    reason: str | None = None
    until: str | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredDrift:
    """A field that plan and drift leave as it is live, until the end of the date `until` (absent: for good).

    `object` is `kind/key`; `field` is a canonical field name or a dotted path into one (`policy.telemetry`).
    """

    object: str
    field: str
    owner: str
    reason: str
    until: str | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything a folder of fleet files declares, in no particular order."""

    name: FleetName
    tenant: TenantId
    objects: tuple[Declared, ...]
    accept: tuple[Acceptance, ...] = ()
    ignore_drift: tuple[IgnoredDrift, ...] = ()
    release: tuple[str, ...] = ()
    """Objects as `kind/key`."""

    def digest(self) -> Digest:
        """SHA-256 over the fleet's canonical JSON: the `config` of the journal. File split and order do not count."""
        return digest_of(self.to_json())

    def to_json(self) -> dict[str, object]:
        """The declared fleet in canonical form, objects by kind and key."""
        by_kind: dict[str, dict[str, object]] = {}
        for item in self.objects:
            by_kind.setdefault(item.kind, {})[item.key] = _object_json(item)
        return {
            "fleet": self.name,
            "tenant": self.tenant,
            "objects": by_kind,
            "accept": sorted((_acceptance_json(item) for item in self.accept), key=_by_values),
            "ignoreDrift": sorted((_ignored_json(item) for item in self.ignore_drift), key=_by_values),
            "release": sorted(self.release),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFleet:
    """A fleet with what its files were: digests by file name, for the record."""

    fleet: Fleet
    files: Mapping[str, Digest] = field(default_factory=dict)


def _object_json(item: Declared) -> dict[str, object]:
    out: dict[str, object] = {"name": item.name, **encode(item.kind, item.body)}
    if item.protect:
        out["protect"] = True
    if item.explicit_only:
        out["explicitOnly"] = True
    if item.adopt is not None:
        out["adopt"] = item.adopt
    return out


def _acceptance_json(item: Acceptance) -> dict[str, str]:
    return _present({"danger": item.danger, "reason": item.reason, "until": item.until})


def _ignored_json(item: IgnoredDrift) -> dict[str, str]:
    return _present(
        {
            "object": item.object,
            "field": item.field,
            "owner": item.owner,
            "reason": item.reason,
            "until": item.until,
        }
    )


def _present(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}


def _by_values(item: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(item.items())
