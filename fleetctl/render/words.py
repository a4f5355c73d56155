"""Canonical fields and values as people write them: `guarantee.energyUj: 40000000000000` is `guarantee.energy: 40 MJ`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from fleetctl.canonical import is_digest
from fleetctl.model.bodies import OWNER_QUOTA_DEFAULT
from fleetctl.model.codec import field_names, unwide
from fleetctl.model.ids import Kind
from fleetctl.model.operation import Verb
from fleetctl.model.policy_fields import DURATION_NAMES, field_at
from fleetctl.model.policy_fields import Kind as PolicyKind
from fleetctl.plan.compare import escaped, split_path
from fleetctl.units import format_duration, format_energy, format_money, format_time

Names = Mapping[str, str]
"""Ids, with the `kind/key` that people know them by."""

OWN_WORDS: Final[Mapping[tuple[Verb, Kind], str]] = {
    ("remove", "pool"): "archive",
    ("remove", "offer"): "withdraw",
    ("remove", "entitlement"): "delete",
    ("remove", "market-pool"): "delete",
    ("remove", "procurement"): "end",
    ("remove", "order"): "cancel",
    ("remove", "transfer"): "cancel",
}
"""What each kind calls a verb; elsewhere the verb itself."""

MARKS: Final[Mapping[Verb, str]] = {
    "create": "+",
    "update": "~",
    "rename": "~",
    "adopt": "~",
    "release": "-",
    "remove": "-",
}
DONE: Final[Mapping[Verb, str]] = {
    "create": "created",
    "update": "updated",
    "rename": "renamed",
    "adopt": "adopted",
    "release": "released",
    "remove": "removed",
}
CAUSES: Final[Mapping[str, str]] = {"change": "changed", "drift": "drifted", "both": "changed and drifted"}

_SUFFIXES = (("Uj", format_energy), ("Ms", format_duration), ("Min", format_time), ("Microusd", format_money))
_AS_GIVEN = frozenset({"policy", "quota", "ownerQuota", "labels", "approvers", "witnesses"})
"""Fields whose entries have names of other people's choosing, so that a suffix in them means nothing."""
_QUOTAS = ("quota", "ownerQuota")
_REFERENCES = frozenset({"site", "pool", "parent", "marketPool", "from", "to"})
"""Fields that hold ids; elsewhere a text that happens to be an id is a text."""
_SCALARS = frozenset({str, int, bool})
_FIRST = ("name", "protect", "explicitOnly")
_PLAIN = re.compile(r"[^\W\d_][\w./:#@+-]*(?: [\w./:#@+-]+)*")
_KEYWORDS = frozenset({"true", "false", "null", "absent"})
_PATHS: Final = 4_096  # how many are remembered: a plan shows the same few fields of every object
_MAX_MINUTES = 253_402_300_799 // 60  # the last minute of the year 9999; later ones stay figures


def verb_word(verb: Verb, kind: Kind) -> str:
    """The verb in the kind's own words."""
    return OWN_WORDS.get((verb, kind), verb)


def field_and_value(path: str, value: Any, names: Names) -> tuple[str, str]:
    """A dotted canonical field and its value, for people."""
    if type(value) in _SCALARS and path not in _REFERENCES:
        return _shown(path, value)
    return shown_field(path), shown_value(path, value, names)


@lru_cache(maxsize=_PATHS, typed=True)  # typed: `true` is not 1
def _shown(path: str, value: Any) -> tuple[str, str]:
    return shown_field(path), shown_value(path, value, {})


@lru_cache(maxsize=_PATHS)
def shown_field(path: str) -> str:
    """A dotted canonical field by the name that files give it."""
    parts = split_path(path)
    if parts[0] == "policy" and len(parts) == 2:
        return f"policy.{DURATION_NAMES.get(parts[1], parts[1])}"
    if parts[0] in _QUOTAS:
        return ".".join(parts)  # the rest is one resource, so no backslash is needed to tell names apart
    if parts[0] in _AS_GIVEN:
        return path
    last = parts[-1]
    for suffix, _ in _SUFFIXES:
        if last.endswith(suffix) and last != suffix:
            return ".".join((*parts[:-1], last.removesuffix(suffix)))
    return path


def shown_value(path: str, value: Any, names: Names) -> str:
    """The value of a canonical field, in the units that files use; what is not of its field's type is shown as it is."""
    if value is None:
        return "absent"
    suffix, write, decimal = _form(path)
    if write is not None:
        number = _number(value)
        if number is not None and not (suffix == "Min" and number > _MAX_MINUTES):
            return write(number)
    if decimal and isinstance(value, str):
        return value
    return plain(value, names if path in _REFERENCES else {})


@lru_cache(maxsize=_PATHS)
def _form(path: str) -> tuple[str, Callable[[int], str] | None, bool]:
    """How a field's values are written: the suffix that its numbers go by and what writes them, and whether it is a decimal."""
    parts = split_path(path)
    if parts[0] in _QUOTAS:
        return "", _quota, False
    decimal = parts[0] == "policy" and _is_decimal(parts[1:])
    suffixed = parts[-1] if parts[0] not in _AS_GIVEN else ""
    if parts[0] == "policy" and len(parts) == 2 and parts[1] in DURATION_NAMES:
        suffixed = "Ms"
    suffix, write = next((item for item in _SUFFIXES if suffixed.endswith(item[0])), ("", None))
    return suffix, write, decimal


def _quota(count: int) -> str:
    return f"{count} (no limit)" if count == OWNER_QUOTA_DEFAULT["gpu"] else str(count)


def _is_decimal(policy_path: Sequence[str]) -> bool:
    known = field_at(tuple(policy_path))
    return known is not None and known.kind is PolicyKind.DECIMAL


def plain(value: Any, names: Names) -> str:
    """Any canonical value on one line; an id that has a name by its name; text that could be read otherwise in quotes."""
    if isinstance(value, str):
        if value in names:
            return names[value]
        bare = _PLAIN.fullmatch(value) and value not in _KEYWORDS or is_digest(value)
        return value if bare else json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        if set(value) == {"$decimal"}:
            return str(value["$decimal"])
        return "{" + ", ".join(f"{name}: {plain(item, names)}" for name, item in sorted(value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(plain(item, names) for item in value) + "]"
    return str(value)


def in_order(kind: Kind, state: Mapping[str, Any]) -> dict[str, Any]:
    """A flat state or a body with its fields in the order in which people read them."""
    order = _order(kind)
    known = [name for name in order if name in state]
    return {name: state[name] for name in (*known, *sorted(state.keys() - order.keys()))}


@lru_cache
def _order(kind: Kind) -> Mapping[str, None]:
    return dict.fromkeys((*_FIRST, *field_names(kind)))


def leaves(state: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(dotted path, value) of every entry, descending into mappings; names inside them are sorted."""
    out: list[tuple[str, Any]] = []
    for name, value in state.items():
        _add_leaves(escaped(name), value, out)
    return out


def leaves_below(path: str, value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """As `leaves`, of a mapping that is not empty and stands at a path."""
    out: list[tuple[str, Any]] = []
    _add_leaves(path, value, out)
    return out


def _add_leaves(path: str, value: Any, out: list[tuple[str, Any]]) -> None:
    if value and (type(value) is dict or isinstance(value, Mapping)) and "$decimal" not in value:
        for name in sorted(value):
            _add_leaves(f"{path}.{escaped(name)}", value[name], out)
    else:
        out.append((path, value))


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 operation`, `2 operations`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _number(value: Any) -> int | None:
    try:
        return unwide(value)
    except ValueError:
        return None
