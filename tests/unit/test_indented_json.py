"""The quick writer of indented JSON writes what the standard library writes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.canonical import indented_json

_values = st.recursive(
    st.text() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(_values)
def test_same_text_as_the_standard_library(value: object) -> None:
    assert indented_json(value) == json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1)


@pytest.mark.parametrize("value", [None, 1.5, {"a": None}, [{"b": 0.0}], {"a": {1, 2}}])
def test_what_canonical_json_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        indented_json(value)
