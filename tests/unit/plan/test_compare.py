"""Field by field: what differs, who moved it, and the paths that name it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.plan.compare import (
    at_path,
    changed_paths,
    covered,
    differences,
    leaf_paths,
    same,
    split_path,
    taken_from,
    with_path,
)
from tests.support.bodies import policy_values

names = st.text("ab.\\", min_size=1, max_size=3)
states = st.dictionaries(
    names,
    st.recursive(
        st.integers(0, 3) | st.booleans(), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=5
    ),
    max_size=4,
)
states |= st.dictionaries(st.text(max_size=4), policy_values, max_size=3)


@given(one=states, other=states)
def test_what_differs_is_what_has_to_be_set(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Setting every path that differs to the other side's value makes one the other."""
    made = copy.deepcopy(one)
    for path, _, value in changed_paths(one, other):
        made = with_path(made, path, value)
    assert same(made, other)
    assert (list(changed_paths(one, other)) == []) is same(one, other)


@given(one=states, other=states)
def test_paths_lead_to_the_values_that_they_name(one: dict[str, Any], other: dict[str, Any]) -> None:
    for path, a, b in changed_paths(one, other):
        assert at_path(one, path) == a
        assert at_path(other, path) == b
        for leaf in leaf_paths(a, b, path):
            assert leaf == path or leaf.startswith(f"{path}.")
            assert not same(at_path(one, leaf), at_path(other, leaf)) or {} in (a, b)


@given(one=states, other=states)
def test_taking_every_leaf_from_the_other_side_leaves_no_difference_but_empty_mappings(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    made: dict[str, Any] = one
    for path, a, b in list(changed_paths(one, other)):
        for leaf in leaf_paths(a, b, path):
            made = taken_from(other, made, leaf)
    assert same(made, other)


@given(one=states, other=states)
def test_comparing_changes_nothing(one: dict[str, Any], other: dict[str, Any]) -> None:
    before = json.dumps([one, other])
    list(changed_paths(one, other))
    for path, _, b in changed_paths(one, other):
        with_path(one, path, b)
        taken_from(other, one, path)
    assert json.dumps([one, other]) == before


@given(parts=st.lists(names, min_size=1, max_size=4))
def test_a_path_comes_apart_into_its_names(parts: list[str]) -> None:
    state: Any = 5
    for name in reversed(parts):
        state = {name: state}
    (path, value, _), *rest = changed_paths(state, {})
    assert rest == [] and not same(value, None)
    (leaf,) = leaf_paths(value, None, path)
    assert split_path(leaf) == parts
    assert at_path(state, leaf) == 5


@pytest.mark.parametrize(
    ("field", "path", "place"),
    [
        ("policy", "policy", "policy"),
        ("policy", "policy.telemetry.intervalSeconds", "policy"),
        ("policy.telemetry", "policy.telemetry.intervalSeconds", "policy.telemetry"),
        ("policy.telemetry", "policy.telemetryX", None),
        ("policy.telemetry", "policy", None),
        ("quota.gpu", "quota.gpu\\.mig", None),
        ("quota.gpu.mig", "quota.gpu\\.mig", "quota.gpu\\.mig"),
        ("quota.gpu\\.mig", "quota.gpu\\.mig", "quota.gpu\\.mig"),
        ("quota.gpu.mig", "quota.gpu", None),
        ("labels.a.b/c", "labels.a\\.b/c", "labels.a\\.b/c"),
        ("labels.a", "labels.a.b", "labels.a"),
        ("", "policy", None),
    ],
)
def test_what_an_entry_covers(field: str, path: str, place: str | None) -> None:
    assert covered(field, path) == place


@pytest.mark.parametrize(
    ("declared", "live", "last", "cause"),
    [
        (2, 1, 1, "change"),
        (1, 2, 1, "drift"),
        (3, 2, 1, "both"),
        (2, None, None, "change"),
        (1, None, 1, "drift"),
        (None, 1, 1, "change"),
        (None, 2, 1, "both"),
        (None, 1, None, "drift"),
        (True, 1, True, "drift"),
        (1, True, 1, "drift"),
    ],
)
def test_who_moved_it(declared: Any, live: Any, last: Any, cause: str) -> None:
    def state(value: Any) -> dict[str, Any]:
        return {} if value is None else {"x": value}

    (found,) = differences(state(declared), state(live), state(last))
    assert (found.field, found.cause) == ("x", cause)
    assert same([found.declared, found.live, found.last_applied], [declared, live, last])


def test_converged_is_no_difference() -> None:
    assert differences({"x": 2}, {"x": 2}, {"x": 1}) == []


def test_never_applied_only_changes() -> None:
    assert [item.cause for item in differences({"x": 1, "y": 2}, {"x": 2}, None)] == ["change", "change"]


def test_a_decimal_is_one_value() -> None:
    (found,) = differences({"x": {"$decimal": "1.5"}}, {"x": {"$decimal": "1.6"}}, None)
    assert found.field == "x"
