"""`schemas/ledger.cddl` says the same as the tables that the reader and the writer use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleetctl.ledger import fetching, receipts, witness
from fleetctl.ledger.entries import EVENTS, LAYOUTS, Event
from fleetctl.ledger.fields import DIGEST, DIGESTS, GRADE, IDENTIFIER, LEDGER, POSITIVE, TEXT, TEXTS, UINT, Kind

TEXT_OF = (Path(__file__).parents[3] / "schemas" / "ledger.cddl").read_text()
TYPES: list[tuple[Kind, str]] = [
    (UINT, "uint63"),
    (POSITIVE, "positive63"),
    (DIGEST, "digest"),
    (IDENTIFIER, "identifier"),
    (GRADE, "grade"),
    (LEDGER, "ledger-id"),
    (TEXT, "line"),
    (TEXTS, "[1*1024 line]"),
    (DIGESTS, "[0*1024 digest]"),
]


def rule(name: str) -> dict[str, str]:
    """The members of a map or group, `? ` before an optional one's name; groups are put in their place."""
    found = re.search(rf"^{name} = [{{(]\n(.*?)^[}})]", TEXT_OF, re.MULTILINE | re.DOTALL)
    assert found, name
    members: dict[str, str] = {}
    for line in filter(None, map(str.strip, found[1].splitlines())):
        key, colon, value = line.rstrip(",").partition(": ")
        members |= {key: value} if colon else rule(key)
    return members


def expected(cls: type[Event]) -> dict[str, str]:
    layout = LAYOUTS[cls]
    members = {item.name: kind_name(item.kind) for item in layout.fields}
    optional = {f"? {item.name}": members.pop(item.name) for item in layout.fields if item.optional}
    marker = {"entitlements": "pool_receipt", "journal": "fleet_receipt"}[cls.KIND]
    return {marker: '"1"', "event": f'"{cls.EVENT}"', **members, **optional}


def kind_name(kind: Kind) -> str:
    return next(name for known, name in TYPES if known is kind)


@pytest.mark.parametrize("cls", [cls for group in EVENTS.values() for cls in group.values()])
def test_events(cls: type[Event]) -> None:
    assert rule(cls.EVENT) == expected(cls)


def test_every_event_is_an_alternative() -> None:
    for kind, name in (("entitlements", "usage-core"), ("journal", "journal-core")):
        found = re.search(rf"^{name} = (.*)$", TEXT_OF, re.MULTILINE)
        assert found and found[1].split(" / ") == list(EVENTS[kind])  # type: ignore[index]  # two literals in a tuple


def test_receipts_and_requests() -> None:
    fields = {name: kind_name(kind) for name, kind in receipts.FIELDS.items()}
    assert rule("witness-core") == {"pool_witness": '"1"', **fields}
    asked = {name: kind_name(kind) for name, kind in fetching.FIELDS.items()}
    assert rule("fetch-core") == {"witness_fetch": '"1"', **asked}
    assert set(rule("witness-request")) == set(witness.Request.__slots__)
    assert {name.removeprefix("? ") for name in rule("witness-refusal")} == set(witness.Refusal.__slots__)
