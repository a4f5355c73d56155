"""Operations and their JSON: what is read is what was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.canonical import canonical_json
from fleetctl.model.ids import KINDS, ObjectId
from fleetctl.model.live import state_of
from fleetctl.model.operation import VERBS, Operation, OperationError, Precondition, Verb, operation_from_json
from tests.support.bodies import kinds_and_bodies

ids = st.from_regex(r"[a-z0-9]{1,4}_[a-z0-9]{1,6}", fullmatch=True).map(ObjectId)


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    kind, body = draw(kinds_and_bodies())
    verb: Verb = draw(st.sampled_from(VERBS))
    state = state_of(kind, body, name="n")
    requires = tuple(sorted(draw(st.lists(ids, max_size=2, unique=True))))
    version = draw(st.integers(0, 2**53 - 1))
    return Operation(
        verb=verb,
        kind=kind,
        key="a/b" if kind in ("offer", "procurement") else "a",
        id=draw(ids),
        precondition=Precondition(absent=version, requires=requires)
        if verb == "create"
        else Precondition(version=version, requires=requires),
        before=None if verb == "create" else state,
        after=None if verb == "remove" else state,
        reversible=draw(st.booleans()),
        reason=draw(st.text(max_size=10)),
    )


@given(operation=operations())
def test_round_trip(operation: Operation) -> None:
    text = canonical_json(operation.to_json())
    again = operation_from_json(json.loads(text))
    assert again == operation
    assert canonical_json(again.to_json()) == text
    assert again.label == f"{operation.kind}/{operation.key}"


@given(operation=operations())
def test_the_canonical_text_is_that_of_the_json(operation: Operation) -> None:
    assert operation.canonical() == canonical_json(operation.to_json())
    if operation.after is not None:
        assert operation.after_json() == canonical_json(operation.after)


@given(operation=operations(), data=st.data())
def test_a_part_more_or_less_is_no_operation(operation: Operation, data: st.DataObject) -> None:
    form = operation.to_json()
    with pytest.raises(OperationError):
        operation_from_json({**form, "news": 1})
    name = data.draw(st.sampled_from(sorted(form)))
    with pytest.raises(OperationError):
        operation_from_json({key: value for key, value in form.items() if key != name})
    odd: Any = data.draw(st.sampled_from([None, 5, 1.5, [], ["x"], "", "a b", {"x": 1}, True]))
    if name not in ("before", "after", "reason", "reversible"):
        with pytest.raises(OperationError):
            operation_from_json({**form, name: odd})


@pytest.mark.parametrize("odd", [None, 5, [], "create", [("verb", "create")], {"verb": ["create"]}, {"kind": {}}])
def test_what_is_no_operation(odd: Any) -> None:
    with pytest.raises(OperationError):
        operation_from_json(odd)


def test_a_precondition_is_a_version_or_an_absence() -> None:
    with pytest.raises(ValueError, match="either"):
        Precondition()
    with pytest.raises(ValueError, match="either"):
        Precondition(version=1, absent=1)
    assert Precondition(absent=0).to_json() == {"absent": 0}
    assert Precondition(version=0).to_json() == {"version": 0}


def test_words() -> None:
    assert VERBS == ("create", "update", "rename", "adopt", "release", "remove")
    assert KINDS == (
        "tenant",
        "site",
        "pool",
        "offer",
        "entitlement",
        "market-pool",
        "procurement",
        "order",
        "transfer",
        "settings",
    )
