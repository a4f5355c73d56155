"""Canonical fields and values in the words and units of fleet files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.model.codec import wide
from fleetctl.model.ids import KINDS
from fleetctl.model.operation import VERBS
from fleetctl.render.words import counted, field_and_value, in_order, leaves, plain, verb_word
from fleetctl.units import MAX_QUANTITY, format_energy

NAMES = {"site_1": "site/fra1"}


@pytest.mark.parametrize(
    ("path", "value", "field", "shown"),
    [
        ("guarantee.energyUj", 40_000_000_000_000, "guarantee.energy", "40 MJ"),
        ("limit.energyUj", "9223372036854775807", "limit.energy", "9223372036854775.807 mJ"),
        ("periodMs", 2_592_000_000, "period", "30d"),
        ("windowMs", 7_200_000, "window", "2h"),
        ("policy.maxPendingMs", 21_600_000, "policy.maxPending", "6h"),
        ("maxRateMicrousd", 20_000_000, "maxRate", "20.00"),
        ("startAtMin", 29_943_360, "startAt", "2026-12-07T00:00Z"),
        ("startAtMin", 2**53 - 1, "startAt", str(2**53 - 1)),
        ("quota.gpu", 32, "quota.gpu", "32"),
        ("quota.bigMs", "9223372036854775807", "quota.bigMs", "9223372036854775807"),
        ("ownerQuota.gpu", 2_147_483_647, "ownerQuota.gpu", "2147483647 (no limit)"),
        (r"quota.gpu\.mig", 8, "quota.gpu.mig", "8"),
        ("policy.madeUpMs", 5, "policy.madeUpMs", "5"),
        ("policy.nested.maxPendingMs", 5, "policy.nested.maxPendingMs", "5"),
        ("policy.overcommit.vcpu", "1.5", "policy.overcommit.vcpu", "1.5"),
        ("policy.madeUp", "1.5", "policy.madeUp", '"1.5"'),
        ("policy.unknown", {"$decimal": "1.5"}, "policy.unknown", "1.5"),
        ("labels.runMs", "x", "labels.runMs", "x"),
        ("site", "site_1", "site", "site/fra1"),
        ("name", "site_1", "name", "site_1"),
        ("standing", True, "standing", "true"),
        ("description", "true", "description", '"true"'),
        ("description", "two words", "description", "two words"),
        ("description", "a: b, c", "description", '"a: b, c"'),
        ("description", "", "description", '""'),
        ("description", "0" * 64, "description", "0" * 64),
        ("description", "8", "description", '"8"'),
        ("description", None, "description", "absent"),
        ("policy.joinAttestors", ["tpm", "x"], "policy.joinAttestors", "[tpm, x]"),
        ("policy.a", {"b": 1, "a": False}, "policy.a", "{a: false, b: 1}"),
        ("guarantee.energyUj", "not a number", "guarantee.energy", "not a number"),
        ("guarantee.energyUj", True, "guarantee.energy", "true"),
    ],
)
def test_rows(path: str, value: object, field: str, shown: str) -> None:
    assert field_and_value(path, value, NAMES) == (field, shown)


@given(st.integers(min_value=0, max_value=MAX_QUANTITY))
def test_energies_are_shown_exactly(value: int) -> None:
    assert field_and_value("guarantee.energyUj", wide(value), {})[1] == format_energy(value)


_JSON = st.recursive(
    st.text(max_size=5) | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(_JSON)
def test_any_value_has_words(value: object) -> None:
    """A plan file from anywhere can be shown."""
    assert isinstance(plain(value, {}), str)


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4))
def test_fields_are_shown_in_one_order_however_they_came(state: dict[str, object]) -> None:
    turned = dict(reversed(list(state.items())))
    assert list(leaves(in_order("pool", state))) == list(leaves(in_order("pool", turned)))


def test_every_verb_of_every_kind_has_a_word() -> None:
    words = {(verb, kind): verb_word(verb, kind) for verb in VERBS for kind in KINDS}
    assert words["remove", "pool"] == "archive" and words["remove", "offer"] == "withdraw"
    assert all(words.values())


def test_counted() -> None:
    assert [counted(n, "entry", "entries") for n in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
