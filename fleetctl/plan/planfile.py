"""The plan as reviewed bytes: what is digested, what is beside it, and how a file is read back.

`body` says what will be done and has the digest people approve; `context` says what readers saw and has its own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, cast

from fleetctl.canonical import Digest, Json, canonical_bytes, canonical_json, digest_of, indented_json, sha256_hex
from fleetctl.diagnostics import Code, code
from fleetctl.errors import BadInput, SafetyRefused
from fleetctl.frozen import dataclass
from fleetctl.model.declared import Acceptance
from fleetctl.model.ids import EngineId, FleetName, TenantId, is_key, is_name
from fleetctl.model.live import same
from fleetctl.model.operation import Operation, OperationError, operation_from_json
from fleetctl.plan.dangers import figures_from_json
from fleetctl.plan.planner import Plan
from fleetctl.plan.provenance import Provenance
from fleetctl.units import UnitError, parse_date, shown

FORMAT: Final = "fleetctl-plan/1"
FORMAT_VERSION: Final = "1.0"
_READABLE: Final = re.compile(r"1\.(?:0|[1-9][0-9]{0,5})", re.ASCII)
"""This major version with any minor one."""
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 100
"""A fleet file is nested 64 deep at most, and a plan adds a few levels of its own."""

UNREADABLE = code(
    "plan-unreadable",
    "The plan file cannot be read",
    trigger="a plan file that is not JSON of the plan's shape, repeats a key, or is over 64 MiB",
)
UNKNOWN_VERSION = code(
    "plan-version",
    "The plan file has a format that this version does not know",
    trigger="`formatVersion` has another major version, or is none",
)
EDITED = code(
    "plan-edited",
    "The plan file was changed after it was made",
    trigger="body or context do not have the digest that the file states",
    exit_code=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBody:
    """The digested part, typed: what `apply` executes."""

    engine: EngineId
    fleet: FleetName
    tenant: TenantId
    operations: tuple[Operation, ...]
    acceptances: tuple[Acceptance, ...]
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan file whose digests hold. `signatures` are detached COSE_Sign1 over the digest, as hex."""

    body: PlanBody
    body_json: Mapping[str, Any]
    digest: Digest
    context: Mapping[str, Any]
    context_digest: Digest
    signatures: tuple[str, ...] = ()

    def planned_figures(self) -> dict[str, dict[str, int]]:
        """The figures of each danger as planned, by danger id. Raises BadInput for a context that is not one."""
        try:
            return {str(item["id"]): figures_from_json(item["figures"]) for item in self.context.get("dangers", [])}
        except (TypeError, KeyError, ValueError, AttributeError):
            _refuse(UNREADABLE, "`context.dangers` is not a list of dangers; make the plan again")

    def to_json(self) -> dict[str, Any]:
        """The whole file."""
        return {
            "formatVersion": FORMAT_VERSION,
            "body": dict(self.body_json),
            "digest": self.digest,
            "context": dict(self.context),
            "contextDigest": self.context_digest,
            "signatures": list(self.signatures),
        }


def body_json(plan: Plan | PlanBody) -> dict[str, Any]:
    """The body of a plan as JSON: format, engine, fleet, tenant, operations, acceptances and where the files come from."""
    return {
        "format": FORMAT,
        "engine": plan.engine,
        "fleet": plan.fleet,
        "tenant": plan.tenant,
        "operations": [item.to_json() for item in plan.operations],
        "acceptances": acceptances_json(plan.acceptances),
        **plan.provenance.to_json(),
    }


def acceptances_json(acceptances: Sequence[Acceptance]) -> list[dict[str, str]]:
    """Acceptances without repeats, in a stable order."""
    rows = [
        {name: value for name, value in (("danger", a.danger), ("reason", a.reason), ("until", a.until)) if value}
        for a in acceptances
    ]
    return [dict(row) for row in sorted({tuple(sorted(row.items())) for row in rows})]


def plan_file(plan: Plan, context: Mapping[str, Json]) -> PlanFile:
    """A plan with its context, ready to be written."""
    body = body_json(plan)
    return PlanFile(
        body=PlanBody(
            engine=plan.engine,
            fleet=plan.fleet,
            tenant=plan.tenant,
            operations=plan.operations,
            acceptances=plan.acceptances,
            provenance=plan.provenance,
        ),
        body_json=body,
        digest=sha256_hex(_canonical(body, plan.operations).encode("utf-8")),
        context=context,
        context_digest=digest_of(context),
    )


def _canonical(body: Mapping[str, Any], operations: Sequence[Operation]) -> str:
    """The canonical JSON of a body, put together from that of its operations."""
    around = canonical_json({**body, "operations": "\0"})
    return around.replace(
        '"operations":"\\u0000"', f'"operations":[{",".join([item.canonical() for item in operations])}]', 1
    )


def write_plan(file: PlanFile) -> bytes:
    """The bytes of a plan file: indented for people, ending in a newline."""
    return (indented_json(file.to_json()) + "\n").encode("utf-8")


def read_plan(data: bytes) -> PlanFile:
    """Read a plan file and check bounds, shape, version and digests.

    Raises BadInput when it is no plan file, SafetyRefused when it was edited.
    """
    if len(data) > MAX_BYTES:
        _refuse(UNREADABLE, f"the file has {len(data)} bytes; a plan has at most {MAX_BYTES}")
    top = _object(_json(data), "the file")
    _refuse_deep(top)
    _check_version(top.get("formatVersion"))
    body, context = _object(top.get("body"), "`body`"), _object(top.get("context"), "`context`")
    if top.get("digest") != (digest := _digest(body, "body")):
        _refuse_edited("body", top.get("digest"), digest)
    if top.get("contextDigest") != (context_digest := _digest(context, "context")):
        _refuse_edited("context", top.get("contextDigest"), context_digest)
    signatures = top.get("signatures", [])
    if not isinstance(signatures, list) or not all(type(item) is str for item in signatures):
        _refuse(UNREADABLE, "`signatures` must be a list of strings")
    return PlanFile(
        body=read_body(body),
        body_json=body,
        digest=digest,
        context=context,
        context_digest=context_digest,
        signatures=tuple(signatures),
    )


_BODY_FIELDS: Final = frozenset(
    {"format", "engine", "fleet", "tenant", "operations", "acceptances", "lastApplied", "origin"}
)


def read_body(data: Mapping[str, Any]) -> PlanBody:
    """The typed body. Raises BadInput for unknown fields and for anything that `body_json` would not write."""
    if data.get("format") != FORMAT or set(data) - _BODY_FIELDS:
        unknown = ", ".join(map(shown, sorted(set(data) - _BODY_FIELDS)[:5])) or "none"
        _refuse(UNREADABLE, f"`body` is not of the format {FORMAT} (unknown fields: {unknown})")
    operations = data.get("operations")
    if not isinstance(operations, list):
        _refuse(UNREADABLE, "`body.operations` must be a list")
    acceptances = data.get("acceptances")
    if not isinstance(acceptances, list):
        _refuse(UNREADABLE, "`body.acceptances` must be a list")
    try:
        body = PlanBody(
            engine=EngineId(_string(data, "engine", is_key)),
            fleet=FleetName(_string(data, "fleet", is_name)),
            tenant=TenantId(_string(data, "tenant", is_name)),
            operations=tuple(operation_from_json(item) for item in operations),
            acceptances=tuple(_acceptance(item) for item in acceptances),
            provenance=_provenance(data),
        )
    except OperationError as error:
        _refuse(UNREADABLE, f"`body.operations`: {error}")
    if len({(item.kind, item.id) for item in body.operations}) != len(body.operations):
        _refuse(UNREADABLE, "`body.operations` names an object twice; a plan does one thing to each")
    if not same(body_json(body), data):
        _refuse(UNREADABLE, "`body` is not written as a plan's body is: parts are missing, unknown or out of order")
    return body


def body_bytes(file: PlanFile) -> bytes:
    """The canonical bytes of the body, kept as a document under the plan's digest."""
    return canonical_bytes(file.body_json)


def _acceptance(item: Any) -> Acceptance:
    entry = _object(item, "an acceptance")
    if set(entry) - {"danger", "reason", "until"} or not all(type(value) is str for value in entry.values()):
        _refuse(UNREADABLE, "an acceptance holds `danger`, `reason` and `until`")
    until = entry.get("until")
    try:
        return Acceptance(
            danger=_string(entry, "danger"),
            reason=entry.get("reason"),
            until=None if until is None else parse_date(until),
        )
    except UnitError as error:
        _refuse(UNREADABLE, f"`acceptances`: {error}")


def _provenance(data: Mapping[str, Any]) -> Provenance:
    last, origin = _object(data.get("lastApplied", {}), "`lastApplied`"), data.get("origin")
    settled = _object(last.get("settled", {}), "`lastApplied.settled`")
    where = None
    if origin is not None:
        entry = _object(origin, "`origin`")
        where = (_string(entry, "root"), _string(entry, "path"))
    return Provenance(
        last_commit=_string(last, "commit") if last else None,
        ancestor=_ancestor(last, "lastApplied"),
        settled=_string(settled, "commit") if settled else None,
        settled_ancestor=_ancestor(settled, "lastApplied.settled"),
        origin=where,
    )


def _ancestor(data: Mapping[str, Any], where: str) -> bool | None:
    ancestor = data.get("ancestor")
    if ancestor is not None and type(ancestor) is not bool:
        _refuse(UNREADABLE, f"`{where}.ancestor` must be true or false")
    return ancestor


def _refuse_deep(top: dict[str, Any]) -> None:
    """Refuse deep nesting, level by level: nothing recurses into a file before this."""
    level: list[Any] = [top]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            for inner in (item.values() if type(item) is dict else item)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return
    _refuse(UNREADABLE, f"the file is nested more than {MAX_DEPTH} deep")


def _json(data: bytes) -> Any:
    try:
        return json.loads(
            data.decode("utf-8"), object_pairs_hook=_no_repeats, parse_float=_no_float, parse_constant=_no_float
        )
    except RecursionError:
        _refuse(UNREADABLE, "the file is nested too deeply to be a plan")
    except ValueError as error:
        _refuse(UNREADABLE, f"the file is not the JSON of a plan: {error}; `fleetctl plan PATH -o FILE` writes one")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {shown(name)} comes twice")
    return out


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"{shown(text)} is no number of a plan: decimals are strings")


def _check_version(version: Any) -> None:
    if type(version) is not str or not _READABLE.fullmatch(version):
        _refuse(UNKNOWN_VERSION, f"`formatVersion` is {shown(str(version))}; this version reads {FORMAT_VERSION}")


def _digest(value: Mapping[str, Any], what: str) -> Digest:
    try:
        return sha256_hex(canonical_bytes(value))
    except (TypeError, ValueError) as error:
        _refuse(UNREADABLE, f"`{what}` is not canonical JSON: {error}")


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(UNREADABLE, f"{what} must be a JSON object")
    return cast(dict[str, Any], value)


def _string(data: Mapping[str, Any], name: str, fits: Callable[[str], bool] = bool) -> str:
    value = data.get(name)
    if type(value) is not str or not fits(value):
        _refuse(UNREADABLE, f"`{name}` is missing or does not hold what it should")
    return value


def _refuse_edited(part: str, stated: Any, found: str) -> NoReturn:
    raise SafetyRefused(
        EDITED.at(
            f"the {part} has the digest {found}, the file states {shown(str(stated))}; make the plan again with `fleetctl plan`"
        )
    )


def _refuse(kind: Code, detail: str) -> NoReturn:
    raise BadInput(kind.at(detail))
