"""A fleet as its files declare it: names resolved to keys, defaults filled in, units canonical."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from json.encoder import encode_basestring

from fleetctl.canonical import Digest, canonical_json, sha256_hex
from fleetctl.diagnostics import Span
from fleetctl.frozen import dataclass
from fleetctl.model.bodies import Body
from fleetctl.model.bodytext import BodyText, body_text
from fleetctl.model.ids import FleetName, Kind, ObjectId, TenantId, object_name


class Declared:
    """One declared object. References in `body` are keys, or `other-fleet/key`; `span` is where it is declared.

    `key` is its idempotency key; an offer's is `<pool key>/<tenant>`, a procurement's `<market pool key>/<name>`. It is
    made with its typed body or with the text of it; the other form is made when somebody asks, and kept.
    """

    __slots__ = ("_body", "_text", "adopt", "explicit_only", "key", "kind", "name", "protect", "span")

    kind: Kind
    key: str
    name: str
    protect: bool
    explicit_only: bool
    adopt: ObjectId | None
    span: Span | None

    def __init__(
        self,
        *,
        kind: Kind,
        key: str,
        name: str,
        body: Body | BodyText,
        protect: bool = False,
        explicit_only: bool = False,
        adopt: ObjectId | None = None,
        span: Span | None = None,
    ) -> None:
        self.kind, self.key, self.name = kind, key, name
        self.protect, self.explicit_only, self.adopt, self.span = protect, explicit_only, adopt, span
        self._text = body if isinstance(body, BodyText) else None
        self._body = None if isinstance(body, BodyText) else body

    @property
    def body(self) -> Body:
        """The typed body. Raises CodecError for a text that is not one of this kind."""
        if self._body is None:
            assert self._text is not None
            self._body = self._text.body(self.kind)
        return self._body

    @property
    def text(self) -> BodyText:
        """The canonical text of the body."""
        if self._text is None:
            assert self._body is not None
            self._text = body_text(self.kind, self._body)
        return self._text

    @property
    def label(self) -> str:
        """`kind/key`."""
        return object_name(self.kind, self.key)

    def canonical(self) -> str:
        """Its canonical JSON; where it is declared does not count."""
        parts = [
            f'"adopt":{encode_basestring(self.adopt)}' if self.adopt is not None else "",
            f'"body":{self.text.filled(self.text.references)}',
            '"explicitOnly":true' if self.explicit_only else "",
            f'"name":{encode_basestring(self.name)}',
            '"protect":true' if self.protect else "",
        ]
        return f"{{{','.join(filter(None, parts))}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Declared) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.kind, self.key))

    def __repr__(self) -> str:
        return f"Declared({self.label}, {self.body!r})"

    def _parts(self) -> tuple[object, ...]:
        return (self.kind, self.key, self.canonical(), self.span)


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
        objects = ",".join(
            f"{encode_basestring(item.label)}:{item.canonical()}" for item in sorted(self.objects, key=_by_label)
        )
        rest = {
            "accept": sorted((_acceptance_json(item) for item in self.accept), key=_by_values),
            "fleet": self.name,
            "ignoreDrift": sorted((_ignored_json(item) for item in self.ignore_drift), key=_by_values),
            "release": sorted(self.release),
            "tenant": self.tenant,
        }
        return sha256_hex(f'{{"fleet":{canonical_json(rest)},"objects":{{{objects}}}}}'.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFleet:
    """A fleet with what its files were: digests by file name, for the record."""

    fleet: Fleet
    files: Mapping[str, Digest] = field(default_factory=dict)


def _by_label(item: Declared) -> str:
    return item.label


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
