"""The canonical text of a body with holes for its references is the body, whatever the references are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.canonical import canonical_json
from fleetctl.model.bodies import MarketPoolBody, OfferBody, PoolBody, TransferBody
from fleetctl.model.bodytext import body_text
from fleetctl.model.codec import encode
from fleetctl.units import UnixMinutes

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


@given(site=TEXT, other=TEXT, description=st.sampled_from(['"\\u0000site"', "\\u0000site", "site", '"']) | TEXT)
def test_a_pool_filled_with_any_site_is_the_pool_on_that_site(site: str, other: str, description: str) -> None:
    body = PoolBody(
        site=site, pool_class="metal-host", gpu_model="H100", description=description, labels={"site": site}
    )
    text = body_text("pool", body)
    assert text.references == {"site": site}
    for name in (site, other):
        assert text.filled({"site": name}) == canonical_json(encode("pool", replace(body, site=name)))
    assert text.body("pool") == body


def test_several_references_are_filled_each_in_its_place() -> None:
    body = TransferBody(
        from_pool="a", to_pool="b", start_at=UnixMinutes(60), end_at=UnixMinutes(120), nodes=1, instance_sku="s"
    )
    text = body_text("transfer", body)
    assert text.references == {"from": "a", "to": "b"}
    filled: Any = json.loads(text.filled({"from": "b", "to": "a"}))
    assert (filled["from"], filled["to"]) == ("b", "a")


def test_a_body_without_references_is_its_canonical_json() -> None:
    body = MarketPoolBody()
    assert body_text("market-pool", body).filled({}) == canonical_json(encode("market-pool", body))


def test_only_references_are_holes() -> None:
    """An offer's `to` is a tenant, which is named by its id everywhere."""
    assert body_text("offer", OfferBody(pool="p", to="acme", quota={})).references == {"pool": "p"}


def test_nul_is_in_no_text() -> None:
    with pytest.raises(ValueError, match="NUL"):
        body_text("pool", PoolBody(site="s", pool_class="metal-host", gpu_model="H100", description="\0site"))
