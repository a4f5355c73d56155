"""A decision for people: the tests of pool/1 in the units that files use, with the names that people know."""

from __future__ import annotations

import pytest

from fleetctl.render.claims import in_units


@pytest.mark.parametrize(
    ("test", "shown"),
    [
        ("the tree holds the entitlement ent_1", "the tree holds the entitlement ent-train"),
        ("6 devices ≤ guarantee 32", "6 devices ≤ guarantee 32"),
        ("estimate 5000000000000 uJ ≤ limit 80000000000000 uJ", "estimate 5 MJ ≤ limit 80 MJ"),
        ("used 0 + estimate 5000000000000 ≤ guarantee 60000000000000 uJ", "used 0 J + estimate 5 MJ ≤ guarantee 60 MJ"),
        (
            "1000000 uJ past the guarantee ≤ share 2000000 uJ (⌊2·6000000/6⌋)",
            "1 J past the guarantee ≤ share 2 J (⌊2·6000000/6⌋)",
        ),
        ("the weight 2 is above 0", "the weight 2 is above 0"),
    ],
)
def test_in_units(test: str, shown: str) -> None:
    assert in_units(test, {"ent_1": "entitlement/ent-train"}) == shown
