"""The two forms of a pool policy, converted by the table in `policy_fields`: file form ↔ canonical form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from fleetctl.canonical import MAX_SAFE_INTEGER, Json
from fleetctl.frozen import dataclass
from fleetctl.model.policy_fields import DURATION_NAMES, POLICY, Field, Kind, Path, canonical_name
from fleetctl.units import MAX_QUANTITY, UnitError, format_duration, parse_count, parse_decimal, parse_duration, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A value that is not of its field's kind; `detail` says what to write instead."""

    path: Path
    detail: str


def scalar_from_text(known: Field, text: str, *, plain: bool) -> Json:
    """A YAML scalar of a known scalar field in canonical form. `plain` tells an unquoted one.

    Text fields take any scalar as written; numbers and booleans must be plain. Raises UnitError.
    """
    return text if known.kind is Kind.STRING else _scalar(known.kind, text, plain)


@lru_cache(maxsize=4_096)  # pools of a fleet say the same few things
def _scalar(kind: Kind, text: str, plain: bool) -> Json:
    if kind is Kind.DURATION:
        return portable(parse_duration(text))
    if kind not in (Kind.DECIMAL, Kind.COUNT, Kind.BOOLEAN):
        raise UnitError(f"a {kind.value} is needed here, not {shown(text)}")
    if not plain:
        raise UnitError(f"a {kind.value} is needed here; write it without quotes")
    if kind is Kind.DECIMAL:
        return parse_decimal(text)
    if kind is Kind.COUNT:
        return portable(parse_count(text))
    if text not in ("true", "false"):
        raise UnitError(f"{shown(text)} is not a boolean; write true or false")
    return text == "true"


def from_json(policy: Mapping[str, object]) -> tuple[dict[str, Json], list[Misfit]]:
    """The canonical form of a policy in file form, read from JSON, and what did not fit (left out of the result).

    Numbers that are not integers come as `{"$decimal": "1.5"}`, integers beyond ±(2^53-1) as text too; nulls are absent.
    """
    misfits: list[Misfit] = []
    out = _object_from_json(POLICY, policy, (), misfits)
    return out, misfits


def to_json(policy: Mapping[str, Json]) -> dict[str, Json]:
    """The file form of a canonical policy, for JSON: durations as text, decimals as `{"$decimal": …}` or integers.

    What does not have its canonical form stays as it is.
    """
    out = _shown(POLICY, dict(policy))
    assert isinstance(out, dict)
    return out


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
        entries = {name: _item(known, item, (*path, name), misfits) for name, item in value.items() if item is not None}
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
    if kind is Kind.COUNT and isinstance(value, str) and integer_of(value) is not None:
        return value
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
        return dict(_shown_fields(known, value))
    if known.kind is Kind.MAP and known.item is not None and isinstance(value, dict):
        return {name: _shown(known.item, item) for name, item in value.items()}
    if known.kind is Kind.LIST and known.item is not None and isinstance(value, list):
        return [_shown(known.item, item) for item in value]
    if known.kind is Kind.DECIMAL and is_canonical_decimal(value):
        assert isinstance(value, str)
        number = None if "." in value else int(value)
        return {"$decimal": value} if number is None or abs(number) > MAX_SAFE_INTEGER else number
    duration = integer_of(value) if known.kind is Kind.DURATION else None
    return value if duration is None else format_duration(duration)


def _shown_fields(known: Field, value: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for name, item in value.items():
        shown_name = DURATION_NAMES.get(name, name) if known is POLICY else name
        inner = known.fields.get(shown_name)
        yield (shown_name, _shown(inner, item)) if inner is not None else (name, item)
