"""Whether the known fields of a canonical policy hold values of their kind (the table in `model.policy_fields`).

The rules of the other modules read only what passes here, so none of them meets a value of a wrong type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fleetctl.canonical import Json
from fleetctl.capacity.policy.problems import PolicyProblem, path_text, problem, rule
from fleetctl.model.policy_fields import DURATION_NAMES, POLICY, Field, Kind, Path, canonical_name, misspelt
from fleetctl.model.policy_forms import Misfit, integer_of, is_canonical_decimal
from fleetctl.units import shown

VALUE = rule(
    "policy-value",
    "A policy field holds a value of another kind than the field has",
    trigger='maxPending: 1h30m, singleTenant: "true", joinAttestors: tpm',
)
MISSPELT = rule(
    "policy-misspelt",
    "An unknown policy field looks like a known one",
    trigger="maxpending: 6h: stored as given, and read by nothing",
    severity="warning",
)

_MAX_NAMES_LOOKED_AT = 256
"""A mapping with more names than this is content and holds no slip; comparing each with the known ones takes time."""

_MEND = {
    Kind.DURATION: "write a whole number from 1 and one of ms, s, m, h, d, such as 6h",
    Kind.DECIMAL: "write a number without quotes, such as 1.5",
    Kind.COUNT: "write a whole number without quotes, such as 8",
    Kind.BOOLEAN: "write true or false",
    Kind.STRING: "write text",
    Kind.LIST: "write a list, such as [a, b]",
    Kind.MAP: "write a mapping, such as {name: value}",
    Kind.OBJECT: "write a mapping, such as {name: value}",
}


def check(policy: Mapping[str, Json]) -> tuple[dict[str, Json], list[PolicyProblem]]:
    """The known fields that hold what they should, under their canonical names, and the problems of the others."""
    problems: list[PolicyProblem] = []
    return _object(POLICY, policy, (), problems), problems


def of_misfits(misfits: Iterable[Misfit]) -> list[PolicyProblem]:
    """What did not convert to canonical form, as problems of this validator."""
    return [problem(VALUE, misfit.path, misfit.detail) for misfit in misfits]


def _object(known: Field, value: Mapping[str, Json], path: Path, problems: list[PolicyProblem]) -> dict[str, Json]:
    by_name = {canonical_name(name, inner): (name, inner) for name, inner in known.fields.items()}
    out: dict[str, Json] = {}
    for name, item in value.items():
        if name in by_name:
            file_name, inner = by_name[name]
            kept = _value(inner, item, (*path, file_name), problems)
            if kept is not None:
                out[name] = kept
        elif name in known.fields:
            problems.append(problem(VALUE, (*path, name), _MEND[known.fields[name].kind]))
        elif len(value) <= _MAX_NAMES_LOOKED_AT:
            problems.extend(_unknown(known, name, path))
    return out


def _value(known: Field, value: Json, path: Path, problems: list[PolicyProblem]) -> Json | None:
    kind = known.kind
    if kind is Kind.OPEN:
        return value
    if kind is Kind.OBJECT and isinstance(value, dict):
        return _object(known, value, path, problems) if known.fields else value
    if kind is Kind.MAP and isinstance(value, dict):
        entries = [(name, _inner(known, item, (*path, name), problems)) for name, item in value.items()]
        return {name: item for name, item in entries if item is not None}
    if kind is Kind.LIST and isinstance(value, list):
        items = [_inner(known, item, (*path, index), problems) for index, item in enumerate(value)]
        return None if None in items else [item for item in items if item is not None]
    if _is_scalar(kind, value):
        return value
    problems.append(problem(VALUE, path, f"{_said(value)} does not fit; {_MEND[kind]}"))
    return None


def _inner(known: Field, value: Json, path: Path, problems: list[PolicyProblem]) -> Json | None:
    assert known.item is not None
    return _value(known.item, value, path, problems)


def _is_scalar(kind: Kind, value: Json) -> bool:
    if kind is Kind.BOOLEAN:
        return isinstance(value, bool)
    if kind is Kind.STRING:
        return isinstance(value, str)
    if kind is Kind.DECIMAL:
        return is_canonical_decimal(value)
    number = integer_of(value)
    if kind is Kind.DURATION:
        return number is not None and number > 0
    return kind is Kind.COUNT and number is not None and number >= 0


def _unknown(known: Field, name: str, path: Path) -> Iterator[PolicyProblem]:
    """Unknown fields are stored as given; one that looks like a slip is worth a word, a key of free content is not."""
    if path == () and name in DURATION_NAMES:
        return
    meant = misspelt(name, known.fields)
    if meant is not None:
        yield problem(
            MISSPELT,
            (*path, name),
            f"nothing reads {shown(name)}; if `{path_text((*path, meant))}` is meant, write that name",
        )


def _said(value: Json) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, int):
        return f"the number {value}"
    if isinstance(value, list):
        return "a list"
    return "a mapping" if isinstance(value, dict) else "nothing"
