"""Bodies to canonical JSON and back: the one canonical form of every object.

Field names are the file's; energy is `…Uj`, durations `…Ms`, times `…Min`, money `…Microusd`; defaults are written
out, null is absent, and integers beyond ±(2^53-1) are decimal strings (pins: "Canonical JSON of an object").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from fleetctl.canonical import MAX_SAFE_INTEGER, Json
from fleetctl.frozen import dataclass
from fleetctl.model import bodies as b
from fleetctl.model.ids import Kind


class CodecError(ValueError):
    """The JSON is not the canonical form of a body of this kind; the message names the field."""


@dataclass(frozen=True, slots=True)
class _Field:
    attribute: str
    name: str
    write: Callable[[Any], Json]
    read: Callable[[Any], Any]
    optional: bool = False
    group: str | None = None


def encode(kind: Kind, body: b.Body) -> dict[str, Json]:
    """The canonical JSON object of `body`. Keys are not sorted; `canonical_json` does that."""
    out: dict[str, Json] = {}
    for item in _FIELDS[kind]:
        value = getattr(body, item.attribute)
        if value is None:
            continue
        if item.group is None:
            out[item.name] = item.write(value)
        else:
            cast(dict[str, Json], out.setdefault(item.group, {}))[item.name] = item.write(value)
    return out


def decode(kind: Kind, data: Mapping[str, Any]) -> b.Body:
    """The body that `encode` wrote. Raises CodecError for anything else: missing, unknown or ill-typed fields."""
    values: dict[str, Any] = {}
    seen: dict[str | None, set[str]] = {None: set()}
    for item in _FIELDS[kind]:
        seen.setdefault(item.group, set()).add(item.name)
        holder = data
        if item.group is not None:
            seen[None].add(item.group)
            holder = data.get(item.group, {})
            if not isinstance(holder, Mapping) or (item.group in data and not holder):
                raise CodecError(f"{kind}: `{item.group}` must be an object that holds something")
        if item.name in holder:
            try:
                values[item.attribute] = item.read(holder[item.name])
            except (TypeError, ValueError, AttributeError) as error:
                raise CodecError(f"{kind}: `{item.name}`: {error}") from None
        elif not item.optional:
            raise CodecError(f"{kind}: `{item.name}` is missing")
    for group, names in seen.items():
        unknown = set(data if group is None else data.get(group, {})) - names
        if unknown:
            raise CodecError(f"{kind}: unknown field `{min(unknown)}`")
    try:
        return cast(b.Body, cast(Any, b.BODY_TYPES[kind])(**values))
    except (TypeError, ValueError) as error:
        raise CodecError(f"{kind}: {error}") from None


def field_names(kind: Kind) -> tuple[str, ...]:
    """The canonical top-level field names of a kind, in the order people read them."""
    names = (item.group or item.name for item in _FIELDS[kind])
    return tuple(dict.fromkeys(names))


def attribute_of(kind: Kind, name: str) -> str:
    """The body attribute behind a canonical field name (`class` is `pool_class`)."""
    for item in _FIELDS[kind]:
        if item.name == name and item.group is None:
            return item.attribute
    raise KeyError(name)


def wide(value: int) -> Json:
    """An integer as canonical JSON holds it: itself, or a string beyond ±(2^53-1)."""
    return value if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else str(value)


def unwide(value: object) -> int:
    """The integer that `wide` wrote. Raises ValueError for anything `wide` would not write."""
    if type(value) is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return value
    if type(value) is str and len(value) <= 40:
        number = int(value)
        if wide(number) == value:
            return number
    raise ValueError(f"{value!r} is not an integer in canonical form")


def _text(value: object) -> str:
    if type(value) is not str:
        raise ValueError("must be a string")
    return value


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError("must be true or false")
    return value


def _one_of(*words: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in words or type(value) is not str:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value

    return read


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object")
    return {_text(key): unwide(item) for key, item in value.items()}


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object")
    return {_text(key): _text(item) for key, item in value.items()}


def _object(value: object) -> dict[str, Json]:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object")
    return dict(value)


def _text_list(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError("must be an array")
    return tuple(_text(item) for item in value)


def _same(value: Any) -> Json:
    return cast(Json, value)


def _write_counts(value: Mapping[str, int]) -> Json:
    return {key: wide(item) for key, item in value.items()}


def _write_set(value: tuple[str, ...]) -> Json:
    return cast(Json, sorted(set(value)))


def _string(name: str, *, attribute: str | None = None, optional: bool = False) -> _Field:
    return _Field(attribute or name, name, _same, _text, optional)


def _integer(attribute: str, name: str, *, optional: bool = False, group: str | None = None) -> _Field:
    return _Field(attribute, name, wide, unwide, optional, group)


def _enum(attribute: str, name: str, *words: str, optional: bool = False) -> _Field:
    return _Field(attribute, name, _same, _one_of(*words), optional)


_DESCRIPTION = _string("description", optional=True)

_FIELDS: Final[Mapping[Kind, tuple[_Field, ...]]] = {
    "tenant": (_string("parent"), _DESCRIPTION),
    "site": (
        _enum("kind", "kind", "shared", "dedicated", "custom"),
        _string("region"),
        _string("tenant"),
        _DESCRIPTION,
    ),
    "pool": (
        _string("site"),
        _enum("pool_class", "class", "metal-host", "metal-dedicated", "vps-host", "provider"),
        _string("gpuModel", attribute="gpu_model"),
        _enum("sharing", "sharing", "exclusive", "mig", "timeslice", "mps"),
        _enum("agent", "agent", "bcd", "none"),
        _string("providerAccountId", attribute="provider_account_id", optional=True),
        _Field("policy", "policy", _same, _object),
        _Field("owner_quota", "ownerQuota", _write_counts, _counts),
        _DESCRIPTION,
        _Field("labels", "labels", _same, _texts),
    ),
    "offer": (
        _string("pool"),
        _string("to"),
        _Field("quota", "quota", _write_counts, _counts),
        _integer("priority", "priority"),
        _Field("include_descendants", "includeDescendants", _same, _flag),
        _enum("on_budget_exceeded", "onBudgetExceeded", "stop-new", "drain", optional=True),
        _string("idempotencyKey", attribute="idempotency_key", optional=True),
        _DESCRIPTION,
    ),
    "entitlement": (
        _string("parent", optional=True),
        _string("tenant"),
        _integer("guarantee_uj", "energyUj", group="guarantee"),
        _integer("guarantee_devices", "devices", group="guarantee"),
        _integer("over_quota_weight", "overQuotaWeight"),
        _integer("limit_uj", "energyUj", optional=True, group="limit"),
        _integer("priority", "priority"),
        _integer("period_ms", "periodMs", optional=True),
        _DESCRIPTION,
    ),
    "market-pool": (_enum("kind", "kind", "market", "originating", "read_only"), _DESCRIPTION),
    "procurement": (
        _string("marketPool", attribute="market_pool"),
        _string("instanceSku", attribute="instance_sku"),
        _integer("nodes", "nodes"),
        _integer("window_ms", "windowMs"),
        _integer("max_rate", "maxRateMicrousd"),
    ),
    "order": (
        _enum("side", "side", "buy", "sell"),
        _string("pool"),
        _integer("nodes", "nodes"),
        _integer("start_at", "startAtMin"),
        _integer("end_at", "endAtMin"),
        _integer("max_rate", "maxRateMicrousd", optional=True),
        _integer("min_rate", "minRateMicrousd", optional=True),
        _Field("standing", "standing", _same, _flag),
        _string("instanceSku", attribute="instance_sku", optional=True),
    ),
    "transfer": (
        _string("from", attribute="from_pool"),
        _string("to", attribute="to_pool"),
        _integer("start_at", "startAtMin"),
        _integer("end_at", "endAtMin"),
        _integer("nodes", "nodes"),
        _string("instanceSku", attribute="instance_sku"),
    ),
    "settings": (
        _integer("share_threshold_percent", "shareThresholdPercent"),
        _integer("required_approvals", "requiredApprovals"),
        _Field("approvers", "approvers", _same, _texts),
        _integer("required_witnesses", "requiredWitnesses"),
        _Field("witnesses", "witnesses", _same, _texts),
        _Field("co_located", "coLocated", _write_set, _text_list),
        _Field("attestors", "attestors", _write_set, _text_list),
    ),
}
