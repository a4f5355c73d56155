"""Three-way comparison of one object: what git says, what is live, what was last applied.

Objects are compared field by field; inside a mapping each entry is a field of its own, written with dots
(`policy.telemetry.intervalSeconds`). Lists are compared whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from fleetctl.canonical import Json
from fleetctl.frozen import dataclass
from fleetctl.model.live import same

__all__ = [
    "Cause",
    "FieldDifference",
    "at_path",
    "changed_paths",
    "covered",
    "differences",
    "escaped",
    "leaf_paths",
    "same",
    "split_path",
    "taken_from",
    "with_path",
]

Cause = Literal["change", "drift", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """One field in which the declared object and the live one differ. Absent values are None.

    `cause`: `change` (git moved), `drift` (the live side moved since the last apply), `both`.
    """

    field: str
    cause: Cause
    declared: Json | None
    live: Json | None
    last_applied: Json | None


def differences(
    declared: Mapping[str, Any], live: Mapping[str, Any], last_applied: Mapping[str, Any] | None
) -> list[FieldDifference]:
    """The fields in which `declared` and `live` differ, by field name. An object never applied only changes."""
    last = live if last_applied is None else last_applied
    return [
        FieldDifference(
            field=path,
            cause=_cause(want, have, _row(path, want, at_path(last, path))),
            declared=want,
            live=have,
            last_applied=at_path(last_applied, path),
        )
        for path, want, have in sorted(changed_paths(declared, live), key=lambda item: item[0])
    ]


def changed_paths(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(dotted path, value in one, value in other) of every entry that differs, descending into mappings."""
    for name in one.keys() | other.keys():
        a: Any = one.get(name)
        b: Any = other.get(name)
        if same(a, b):
            continue
        if _descend(a) and _descend(b):
            for path, inner_a, inner_b in changed_paths(a, b):
                yield f"{escaped(name)}.{path}", inner_a, inner_b
        else:
            yield escaped(name), a, b


def leaf_paths(one: Any, other: Any, path: str) -> list[str]:
    """The dotted paths of the single entries in which two values at `path` differ, also where one side has nothing."""
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        a, b = ({} if value is None else value for value in (one, other))
        if _descend(a) and _descend(b):
            inner = [
                leaf
                for name in sorted(a.keys() | b.keys())
                if not same(a.get(name), b.get(name))
                for leaf in leaf_paths(a.get(name), b.get(name), f"{path}.{escaped(name)}")
            ]
            return inner or [path]
    return [path]


def at_path(value: Mapping[str, Any] | None, path: str) -> Any:
    """The entry at a dotted path, or None where there is nothing."""
    current: Any = value
    for name in split_path(path):
        if not isinstance(current, Mapping):
            return None
        current = current.get(name)
    return current


def with_path(value: Mapping[str, Any], path: str, entry: Any) -> dict[str, Any]:
    """A copy with the entry at a dotted path set, or removed where `entry` is None."""
    name, *rest = split_path(path)
    out = dict(value)
    if not rest:
        if entry is None:
            out.pop(name, None)
        else:
            out[name] = entry
        return out
    inner = out.get(name)
    out[name] = with_path(inner if isinstance(inner, Mapping) else {}, ".".join(map(escaped, rest)), entry)
    return out


def taken_from(other: Mapping[str, Any], value: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A copy of `value` with the entry at `path` as `other` has it; a mapping that this leaves empty goes if `other` has none."""
    out = with_path(value, path, at_path(other, path))
    names = split_path(path)
    for depth in range(len(names) - 1, 0, -1):
        above = ".".join(map(escaped, names[:depth]))
        if at_path(out, above) == {} and at_path(other, above) is None:
            out = with_path(out, above, None)
    return out


def covered(field: str, path: str) -> str | None:
    """The part of a dotted path that `field` names, or None when `path` is neither that field nor inside it.

    In `field` dots need no backslash, so that people can write `quota.gpu.mig`.
    """
    names = split_path(path)
    wanted = ".".join(split_path(field))
    for depth in range(1, len(names) + 1):
        if ".".join(names[:depth]) == wanted:
            return ".".join(map(escaped, names[:depth]))
    return None


def split_path(path: str) -> list[str]:
    """The names of a dotted path; a dot inside a name is written `\\.`."""
    if "\\" not in path:
        return path.split(".")
    names, current, escaped = [], "", False
    for letter in path:
        if escaped:
            current, escaped = current + letter, False
        elif letter == "\\":
            escaped = True
        elif letter == ".":
            names.append(current)
            current = ""
        else:
            current += letter
    return [*names, current]


def _descend(value: Any) -> bool:
    return isinstance(value, Mapping) and "$decimal" not in value


def escaped(name: str) -> str:
    """A name as one step of a dotted path."""
    if "." not in name and "\\" not in name:
        return name
    return name.replace("\\", "\\\\").replace(".", "\\.")


def _row(path: str, declared: Any, last: Any) -> Any:
    """What was last applied, read beside a quota row's explicit 0: no row was a 0 too (readings B06)."""
    return 0 if last is None and declared == 0 and path.startswith(("quota.", "ownerQuota.")) else last


def _cause(declared: Any, live: Any, last: Any) -> Cause:
    if same(live, last):
        return "change"
    return "drift" if same(declared, last) else "both"
