"""Lists inside a policy, explained entry by entry."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.canonical import canonical_json
from fleetctl.plan.compare import same, split_path
from fleetctl.plan.policylists import MOST, explained, is_policy_list

PATH = "policy.acceptance"
STEP = {"kind": "nccl", "with": {"minGbps": 300}}


@pytest.mark.parametrize(
    ("before", "after", "entries"),
    [
        (["a", "b", "c"], ["a", "c", "d"], [("[1]", "b", None), ("[2]", None, "d")]),
        ([STEP], [{**STEP, "with": {"minGbps": 400}}], [("[0].with.minGbps", 300, 400)]),
        ([{"kind": "a"}, STEP], [STEP], [("[0]", {"kind": "a"}, None)]),
        ([STEP], [{"kind": "a"}, STEP], [("[0]", None, {"kind": "a"})]),
        (
            [{**STEP, "ratio": {"$decimal": "1.5"}}],
            [{**STEP, "ratio": {"$decimal": "1.6"}}],
            [("[0].ratio", {"$decimal": "1.5"}, {"$decimal": "1.6"})],
        ),
        ([{**STEP, "__x__": 1}], [{**STEP, "__x__": 2}], [("[0].__x__", 1, 2)]),
        ([True], [1], [("[0]", True, 1)]),
        (["a"], ["b", "b"], [("[0]", "a", None), ("[0]", None, "b"), ("[1]", None, "b")]),
        ([{**STEP, "a.b": 1}], [{**STEP, "a.b": 2}], [("[0].a\\.b", 1, 2)]),
    ],
)
def test_what_changed_inside(before: list[Any], after: list[Any], entries: list[tuple[str, Any, Any]]) -> None:
    assert explained(PATH, before, after) == [(PATH + suffix, was, now) for suffix, was, now in entries]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["a", "b"], ["b", "a"]),
        (["a", "b", STEP], ["b", "a"]),
        (["a"], ["a", "a"]),
        ([{"kind": "a", "args": ["x", "y"]}], [{"kind": "a", "args": ["y", "x"]}]),
        (["x" * (MOST // 2)], ["y" * (MOST // 2)]),
        ([[[[[[[["x"]]]]]]]], [[[[[[[["y"]]]]]]]]),
    ],
    ids=["places", "places and more", "repeated", "places inside", "long", "deep"],
)
def test_what_is_shown_whole(before: list[Any], after: list[Any]) -> None:
    assert explained(PATH, before, after) == []


scalars = st.sampled_from(["a", "b", "c", 1, 0, True, False, {"$decimal": "1.5"}])
entries = scalars | st.recursive(
    scalars, lambda inner: st.dictionaries(st.sampled_from(["kind", "with", "a.b"]), inner, max_size=3), max_leaves=6
)
"""Without lists inside: where an entry of those comes in is said, but that needs an edit script to be done again."""


@given(before=st.lists(entries, max_size=5), after=st.lists(entries, max_size=5))
def test_what_is_explained_makes_one_list_the_other(before: list[Any], after: list[Any]) -> None:
    """Nothing that changed is left out: done to the entries before, the explanation gives those after."""
    found = explained(PATH, before, after)
    if not found:
        return
    left: dict[int, Any] = dict(enumerate(json.loads(json.dumps(before))))
    come = []
    for path, was, now in found:
        place, *steps = _steps(path)
        if steps:
            left[place] = _set(left[place], steps, now)
        elif was is None:
            come.append(now)
        elif now is None:
            del left[place]
        else:
            assert same(left[place], was)
            left[place] = now
    assert Counter(map(canonical_json, [*left.values(), *come])) == Counter(map(canonical_json, after))


def _steps(path: str) -> list[Any]:
    steps: list[Any] = []
    for name in split_path(path.removeprefix(PATH).replace("[", ".[").removeprefix(".")):
        steps.append(int(name[1:-1]) if name.startswith("[") else name)
    return steps


def _set(value: Any, steps: list[Any], now: Any) -> Any:
    step, *rest = steps
    if rest:
        value[step] = _set(value[step], rest, now)
    elif now is None:
        del value[step]
    else:
        value[step] = now
    return value


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("policy.acceptance", True),
        ("policy.kernelModules.load", True),
        ("policy.kubernetes.taints", True),
        ("policy.unknown", False),
        ("policy.kubernetes", False),
        ("policy", False),
        ("labels.acceptance", False),
    ],
)
def test_lists_that_the_guide_knows(path: str, is_one: bool) -> None:
    assert is_policy_list(path) is is_one
