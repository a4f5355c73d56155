"""Changed lists inside a pool policy, explained to people entry by entry (DeepDiff).

The comparison that decides takes lists whole (`plan.compare`); nothing here reaches a plan file or a digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleetctl.canonical import canonical_json
from fleetctl.model.policy_fields import Kind, field_at
from fleetctl.plan.compare import split_path

MOST = 4_096
"""Characters of the two lists together, past which they are shown whole: the cost grows with the square of their entries."""
_DEPTH = 6
"""Levels below an entry, past which lists are shown whole: the cost doubles with each level."""

Entry = tuple[str, Any, Any]
"""(path, before, after); an absent side is None."""


def is_policy_list(path: str) -> bool:
    """Whether a dotted path of a pool is one of the lists that the guide's pool policy knows."""
    first, *rest = split_path(path)
    known = field_at(tuple(rest)) if first == "policy" and rest else None
    return known is not None and known.kind is Kind.LIST


def explained(path: str, before: Sequence[Any], after: Sequence[Any]) -> list[Entry]:
    """What went from, came to or changed inside a list: places count from 0, in `before` unless the entry is new.

    Empty where the lists are better shown whole: entries changed places or are repeated, or the lists are long or deep.
    """
    was, now = (_texts(side) for side in (before, after))
    if sum(map(len, (*was, *now))) > MOST or _reordered(was, now):
        return []
    if not all(_shallow(entry, _DEPTH) for entry in (*before, *after)):
        return []
    from deepdiff import DeepDiff

    found = DeepDiff(
        before, after, ignore_order=True, report_repetition=True, ignore_private_variables=False, view="tree"
    )
    entries = sorted((_entry(level) for levels in found.values() for level in levels), key=_by_place)
    if sorted(_texts(_done(before, entries))) != sorted(now):
        return []  # what DeepDiff takes for no difference: repetitions, other places in a list inside an entry
    return [(path + _suffix(steps), was, now) for steps, _, was, now in entries]


_Found = tuple[list[Any], bool, Any, Any]
"""Steps to a place, whether something comes there that was not, and both sides."""


def _entry(level: Any) -> _Found:
    """One difference of DeepDiff's tree."""
    from deepdiff.helper import notpresent

    steps = level.path(output_format="list")
    was, now = (None if side is notpresent else side for side in (level.t1, level.t2))
    if steps[-1] == "$decimal":
        steps = steps[:-1]
        return steps, False, *({} if side is None else {"$decimal": side} for side in (was, now))
    return steps, was is None, was, now


def _by_place(entry: _Found) -> tuple[int, bool, str]:
    steps, new, _, _ = entry
    return steps[0], new, _suffix(steps)


def _done(before: Sequence[Any], entries: Iterable[_Found]) -> list[Any]:
    """`before` with the differences done to it; in any order. One inside a list of an entry is not done."""
    left, come = dict(enumerate(before)), list[Any]()
    for (place, *steps), new, _, now in entries:
        if steps:
            left[place] = _put(left[place], steps, now)
        elif new:
            come.append(now)
        else:
            left[place] = now
    return [entry for entry in left.values() if entry is not None] + come


def _put(value: Any, steps: Sequence[Any], entry: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    step, *rest = steps
    inner = _put(value.get(step), rest, entry) if rest else entry
    return {name: item for name, item in {**value, step: inner}.items() if item is not None}


def _texts(entries: Iterable[Any]) -> list[str]:
    return [canonical_json(entry) for entry in entries]


def _shallow(value: Any, levels: int) -> bool:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return not inside or (levels > 0 and all(_shallow(item, levels - 1) for item in inside))


def _reordered(was: Sequence[str], now: Sequence[str]) -> bool:
    return [entry for entry in was if entry in now] != [entry for entry in now if entry in was]


def _suffix(steps: Iterable[str | int]) -> str:
    return "".join(
        f"[{step}]" if isinstance(step, int) else "." + step.replace("\\", "\\\\").replace(".", "\\.") for step in steps
    )
