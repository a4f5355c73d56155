"""The one table of the pool policy's known fields (Better Compute pools, "Pool policy").

Config converts YAML by it, the JSON API and the codec convert by it, and the lint for misspelt fields reads its names.
A policy has two forms that differ only in known fields:

=========  ======================================  ==========================================
kind       file form                               canonical form
=========  ======================================  ==========================================
DURATION   text, `6h`                              integer milliseconds under the name + `Ms`
DECIMAL    number, `1.5`                           text without trailing zeros, `"1.5"`
COUNT      number, `32`                            integer; text beyond ±(2^53-1)
others     as they are                             as they are
=========  ======================================  ==========================================

Unknown fields stay as given at every level; a decimal among them is `{"$decimal": "1.5"}` in both forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from fleetctl.canonical import MAX_SAFE_INTEGER, Json
from fleetctl.units import (
    MAX_QUANTITY,
    UnitError,
    format_duration,
    parse_count,
    parse_decimal,
    parse_duration,
)

Path = tuple[str | int, ...]
"""Where in a policy, in the names of the file form: `("overcommit", "vcpu")`, `("acceptance", 0, "kind")`."""


class Kind(Enum):
    """What a known field holds."""

    DURATION = "duration"
    DECIMAL = "number"
    COUNT = "whole number"
    BOOLEAN = "boolean"
    STRING = "text"
    LIST = "list"
    MAP = "mapping"
    OBJECT = "object"
    OPEN = "any value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One known field.

    `fields` names the known fields of an OBJECT, `item` is what a LIST or a MAP holds. `default` is what the guide says
    an absent field means, in canonical form, where it names one value for every pool. `unordered` marks a list that is a set.
    """

    kind: Kind
    fields: Mapping[str, Field] = field(default_factory=dict)
    item: Field | None = None
    default: Json | None = None
    unordered: bool = False


_DURATION = Field(kind=Kind.DURATION)
_DECIMAL = Field(kind=Kind.DECIMAL)
_COUNT = Field(kind=Kind.COUNT)
_BOOLEAN = Field(kind=Kind.BOOLEAN)
_STRING = Field(kind=Kind.STRING)
_OPEN = Field(kind=Kind.OPEN)
_STRINGS = Field(kind=Kind.LIST, item=_STRING)
_STRING_MAP = Field(kind=Kind.MAP, item=_STRING)


def _object(**fields: Field) -> Field:
    return Field(kind=Kind.OBJECT, fields=fields)


POLICY = _object(
    acceptance=Field(
        kind=Kind.LIST, item=Field(kind=Kind.OBJECT, fields={"kind": _STRING, "with": Field(kind=Kind.OBJECT)})
    ),
    overcommit=Field(kind=Kind.MAP, item=_DECIMAL),
    lostAfter=_DURATION,
    disruptionBudget=Field(kind=Kind.DECIMAL, default="0.05"),
    maxPending=Field(kind=Kind.DURATION, default=24 * 3_600_000),
    hardwareProfile=_STRING,
    joinAttestors=Field(kind=Kind.LIST, item=_STRING, unordered=True),
    trustProvisioningNetwork=Field(kind=Kind.BOOLEAN, default=False),
    sharing=_object(replicas=_COUNT),
    hostReserve=_object(vcpu=_DECIMAL, memoryGiB=_DECIMAL),
    perGpu=_object(vcpu=_DECIMAL, memoryGiB=_DECIMAL),
    hugepages=_object(size=_STRING, count=_COUNT, perNuma=_BOOLEAN),
    kernelModules=_object(load=_STRINGS, options=_STRING_MAP),
    cpu=_object(governor=_STRING, isolate=_STRING),
    iommu=_object(passthrough=_BOOLEAN),
    gpu=_object(powerLimitWatts=_DECIMAL, ecc=_BOOLEAN),
    kubernetes=_object(
        apiServer=_STRING,
        caCertSha256=_STRING,
        joinTokenRef=_STRING,
        labels=_STRING_MAP,
        taints=Field(kind=Kind.LIST, item=_OPEN),
        kubernetesVersion=_STRING,
        gpu=_OPEN,
        gpuApi=_STRING,
        platformOperated=_BOOLEAN,
    ),
    telemetry=_object(otlpEndpoint=_STRING, intervalSeconds=_COUNT, headersRef=_STRING, resourceAttributes=_STRING_MAP),
    migLayout=_STRING,
    tenantRoot=_BOOLEAN,
    singleTenant=_BOOLEAN,
    workloadIdentity=_BOOLEAN,
    admission=_object(budgetCheck=_STRING),
)
"""The whole policy. `kubernetes.gpu` and the items of `kubernetes.taints` have no type in the guide and stay as given."""

DURATION_NAMES: Mapping[str, str] = {
    f"{name}Ms": name for name, known in POLICY.fields.items() if known.kind is Kind.DURATION
}
"""Canonical name → file name of the fields that are renamed; a file must not use the canonical one."""


def canonical_name(name: str, known: Field) -> str:
    """The name a known field has in canonical form."""
    return f"{name}Ms" if known.kind is Kind.DURATION else name


def field_at(path: Path) -> Field | None:
    """The known field at `path`, or None where the guide knows none."""
    known: Field | None = POLICY
    for step in path:
        if known is None:
            return None
        if known.kind is Kind.OBJECT:
            known = known.fields.get(str(step))
        elif known.kind in (Kind.LIST, Kind.MAP):
            known = known.item
        else:
            return None
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A value that is not of its field's kind; `detail` says what to write instead."""

    path: Path
    detail: str


def scalar_from_text(known: Field, text: str, *, plain: bool) -> Json:
    """A YAML scalar of a known scalar field in canonical form. `plain` tells an unquoted one.

    Text fields take any scalar as written; numbers and booleans must be plain. Raises UnitError.
    """
    kind = known.kind
    if kind is Kind.STRING:
        return text
    if kind is Kind.DURATION:
        return portable(parse_duration(text))
    if kind not in (Kind.DECIMAL, Kind.COUNT, Kind.BOOLEAN):
        raise UnitError(f"a {kind.value} is needed here, not `{text[:40]}`")
    if not plain:
        raise UnitError(f"a {kind.value} is needed here; write it without quotes")
    if kind is Kind.DECIMAL:
        return parse_decimal(text)
    if kind is Kind.COUNT:
        return portable(parse_count(text))
    if text not in ("true", "false"):
        raise UnitError(f"`{text[:40]}` is not a boolean; write true or false")
    return text == "true"


def from_json(policy: Mapping[str, object]) -> tuple[dict[str, Json], list[Misfit]]:
    """The canonical form of a policy in file form, read from JSON, and what did not fit (left out of the result).

    Numbers that are not integers come as `{"$decimal": "1.5"}`; nulls are absent.
    """
    misfits: list[Misfit] = []
    out = _object_from_json(POLICY, policy, (), misfits)
    return out, misfits


def to_json(policy: Mapping[str, Json]) -> dict[str, Json]:
    """The file form of a canonical policy, for JSON: durations as text, decimals as `{"$decimal": …}` or integers.

    What does not have its canonical form stays as it is.
    """
    shown = _shown(POLICY, dict(policy))
    assert isinstance(shown, dict)
    return shown


def portable(value: int) -> Json:
    """An integer as canonical JSON holds it: text beyond ±(2^53-1)."""
    return value if abs(value) <= MAX_SAFE_INTEGER else str(value)


def integer_of(value: object) -> int | None:
    """The integer of a canonical count or duration, or None when `value` is not one (booleans are not)."""
    if type(value) is int:
        return value if abs(value) <= MAX_SAFE_INTEGER else None
    if type(value) is str and 16 <= len(value) <= 19 and value.isascii() and value.isdigit() and value[0] != "0":
        number = int(value)
        return number if MAX_SAFE_INTEGER < number <= MAX_QUANTITY else None
    return None


def is_canonical_decimal(value: object) -> bool:
    """Whether `value` is a decimal in canonical form."""
    try:
        return type(value) is str and parse_decimal(value) == value
    except UnitError:
        return False


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` looks like a misspelling of: other case or separators, or an edit or two."""
    plain = _plain(name)
    names = sorted(known)
    for candidate in names:
        if _plain(candidate) == plain and candidate != name:
            return candidate
    if len(name) > 64 or name in names:
        return None
    bound = 1 if len(plain) < 8 else 2
    near = [
        (distance, item)
        for item in names
        if len(item) > 3 and (distance := _edits(plain, _plain(item), bound)) <= bound
    ]
    return min(near)[1] if near else None


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _edits(one: str, other: str, bound: int) -> int:
    """Optimal string alignment distance; anything past `bound` is `bound + 1`."""
    if abs(len(one) - len(other)) > bound:
        return bound + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and right == one[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return min(last[-1], bound + 1)


def _object_from_json(known: Field, value: Mapping[str, object], path: Path, misfits: list[Misfit]) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for name, item in value.items():
        here = (*path, name)
        if item is None:
            continue
        if path == () and name in DURATION_NAMES:
            meant = DURATION_NAMES[name]
            misfits.append(Misfit(path=here, detail=f"`{name}` is a reserved name; write `{meant}: 6h`"))
            continue
        inner = known.fields.get(name)
        try:
            if inner is None:
                out[name] = _as_given(item)
            else:
                out[canonical_name(name, inner)] = _from_json(inner, item, here, misfits)
        except UnitError as error:
            misfits.append(Misfit(path=here, detail=str(error)))
    return out


def _from_json(known: Field, value: object, path: Path, misfits: list[Misfit]) -> Json:
    kind = known.kind
    if kind is Kind.OPEN:
        return _as_given(value)
    if kind is Kind.OBJECT or kind is Kind.MAP:
        if not isinstance(value, Mapping) or _decimal_text(value) is not None:
            raise UnitError(f"{_kind_of(value)} stands where a mapping is needed")
        if kind is Kind.OBJECT:
            return _object_from_json(known, value, path, misfits)
        entries = {name: _item(known, item, (*path, name), misfits) for name, item in value.items()}
        return {name: item for name, item in entries.items() if item is not None}
    if kind is Kind.LIST:
        if not isinstance(value, list):
            raise UnitError(f"{_kind_of(value)} stands where a list is needed; write [...]")
        items = [_item(known, item, (*path, index), misfits) for index, item in enumerate(value)]
        return [item for item in items if item is not None]
    return _scalar_from_json(kind, value)


def _item(known: Field, value: object, path: Path, misfits: list[Misfit]) -> Json | None:
    assert known.item is not None
    try:
        return _from_json(known.item, value, path, misfits)
    except UnitError as error:
        misfits.append(Misfit(path=path, detail=str(error)))
        return None


def _scalar_from_json(kind: Kind, value: object) -> Json:
    if kind is Kind.BOOLEAN and isinstance(value, bool):
        return value
    if kind is Kind.STRING and isinstance(value, str):
        return value
    if kind is Kind.DURATION and isinstance(value, str):
        return portable(parse_duration(value))
    if kind is Kind.DECIMAL:
        text = str(value) if type(value) is int else _decimal_text(value)
        if text is not None:
            return parse_decimal(text)
    if kind is Kind.COUNT and type(value) is int:
        return portable(parse_count(str(value)))
    example = {Kind.DURATION: ", such as 6h", Kind.BOOLEAN: ": true or false", Kind.DECIMAL: ", such as 1.5"}
    raise UnitError(f"{_kind_of(value)} stands where a {kind.value} is needed{example.get(kind, '')}")


def _as_given(value: object) -> Json:
    """An unknown value: JSON as it is, integers portable, nulls dropped. Raises UnitError for what JSON has no place for."""
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return portable(value)
    if isinstance(value, Mapping):
        decimal = _decimal_text(value)
        if decimal is not None:
            return {"$decimal": parse_decimal(decimal)}
        return {str(name): _as_given(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_as_given(item) for item in value if item is not None]
    raise UnitError(f"{_kind_of(value)} cannot be stored; write text, a number, a boolean, a list or a mapping")


def _decimal_text(value: object) -> str | None:
    if isinstance(value, Mapping) and value.keys() == {"$decimal"}:
        text = value["$decimal"]
        return text if isinstance(text, str) else None
    return None


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (int, float)) or _decimal_text(value) is not None:
        return "a number"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping" if isinstance(value, Mapping) else "null"


def _shown(known: Field, value: Json) -> Json:
    if known.kind is Kind.OBJECT and isinstance(value, dict):
        return {name: item for name, item in _shown_fields(known, value)}
    if known.kind is Kind.MAP and known.item is not None and isinstance(value, dict):
        return {name: _shown(known.item, item) for name, item in value.items()}
    if known.kind is Kind.LIST and known.item is not None and isinstance(value, list):
        return [_shown(known.item, item) for item in value]
    if known.kind is Kind.DECIMAL and is_canonical_decimal(value):
        assert isinstance(value, str)
        return {"$decimal": value} if "." in value else portable(int(value))
    number = integer_of(value)
    if known.kind is Kind.COUNT and number is not None:
        return value
    if known.kind is Kind.DURATION and number is not None:
        return format_duration(number)
    return value


def _shown_fields(known: Field, value: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for name, item in value.items():
        shown_name = DURATION_NAMES.get(name, name) if known is POLICY else name
        inner = known.fields.get(shown_name)
        yield (shown_name, _shown(inner, item)) if inner is not None else (name, item)
