"""The one table of the pool policy's known fields (Better Compute pools, "Pool policy").

Config converts YAML by it, `policy_forms` converts JSON by it, and the lint for misspelt fields reads its names.
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

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum

from fleetctl.canonical import Json
from fleetctl.frozen import dataclass

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
