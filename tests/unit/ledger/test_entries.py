"""Events, their closed schemas, and the two readers of cores, which must give one answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.errors import BadInput
from fleetctl.ledger import chain
from fleetctl.ledger.entries import Admitted, BadCore, Event, Recovered, Released, decode_core, encode_core
from fleetctl.ledger.fastcore import reader
from fleetctl.ledger.identifiers import GRADES, ledger_id, parse_ledger_id
from fleetctl.ledger.usage import Fold
from tests.support.ledgers import ENTITLEMENTS, JOURNAL, STEWARD, admitted, applied, released
from tests.vectors.build_ledger import journal_events

IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", fullmatch=True)
UINTS = st.integers(0, 2**63 - 1) | st.sampled_from([0, 23, 24, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32])
USAGE: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Admitted,
        claim=IDS,
        entitlement=IDS,
        workload_class=st.none() | IDS,
        reserved_uj=UINTS,
        borrowed_uj=UINTS,
        devices=st.integers(1, 2**63 - 1),
        grade=st.sampled_from(GRADES),
        at_ms=UINTS,
    ),
    st.builds(Released, claim=IDS, spent_uj=UINTS, grade=st.sampled_from(GRADES), at_ms=UINTS),
)


@given(USAGE, UINTS, st.binary(min_size=32, max_size=32))
def test_both_readers_read_what_is_written(event: Event, seq: int, prev: bytes) -> None:
    core = encode_core(event, seq=seq, prev=prev, steward="root-steward")
    assert decode_core(core, "entitlements") == (seq, prev, "root-steward", event)
    fast = reader("root-steward")(core)
    if fast is None:  # an identifier that itself looks like the next key; the careful reader has it
        assert "eclass" in str(event) or "eevent" in str(event) or "entitlement" in str(event) or "grade" in str(event)
        return
    left, right = Fold(ENTITLEMENTS), Fold(ENTITLEMENTS)
    assert (fast.seq, fast.prev, fast.claim) == (seq, prev, event.claim)  # type: ignore[attr-defined]  # both events have one
    assert fast.move(left) == right.apply(event, seq)
    assert (left.usage, left.open_claims) == (right.usage, right.open_claims)


@given(USAGE, st.data())
def test_the_fast_reader_accepts_nothing_that_the_careful_one_refuses(event: Event, data: st.DataObject) -> None:
    core = bytearray(encode_core(event, seq=5, prev=bytes(32), steward="root-steward"))
    for _ in range(data.draw(st.integers(1, 2))):
        core[data.draw(st.integers(0, len(core) - 1))] = data.draw(st.integers(0, 255))
    fast = reader("root-steward")(bytes(core))
    if fast is not None:
        careful = decode_core(bytes(core), "entitlements")
        assert (careful.seq, careful.prev, careful.steward) == (fast.seq, fast.prev, "root-steward")
        left, right = Fold(ENTITLEMENTS), Fold(ENTITLEMENTS)
        assert fast.move(left) == right.apply(careful.event, careful.seq)
        assert (left.usage, left.open_claims) == (right.usage, right.open_claims)


def test_an_identifier_that_looks_like_a_key_is_read() -> None:
    event = admitted("c1eclasse", entitlement="kreserved_uj", workload_class="eventhadmittedegrade")
    core = encode_core(event, seq=0, prev=bytes(32), steward="root-steward")
    assert decode_core(core, "entitlements").event == event
    fast = reader("root-steward")(core)
    assert fast is None or fast.claim == "c1eclasse"


@pytest.mark.parametrize("event", journal_events(chain.empty(ENTITLEMENTS)), ids=lambda event: str(event.EVENT))
def test_journal_events_are_read_as_written(event: Event) -> None:
    core = encode_core(event, seq=3, prev=bytes(32), steward="root-steward")
    assert decode_core(core, "journal").event == event
    with pytest.raises(BadCore):
        decode_core(core, "entitlements")


@pytest.mark.parametrize(
    "changes",
    [
        {"claim": ""},
        {"claim": "c 1"},
        {"claim": "c1\n"},
        {"claim": "é"},
        {"claim": "c" * 129},
        {"entitlement": "-x"},
        {"workload_class": ""},
        {"reserved_uj": -1},
        {"reserved_uj": 2**63},
        {"reserved_uj": True},
        {"borrowed_uj": 1.0},
        {"devices": 0},
        {"grade": "hwshunt"},
        {"at_ms": -1},
    ],
    ids=str,
)
def test_an_event_that_could_not_be_sealed_cannot_be_made(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        replace(admitted("c1"), **changes)
    assert refused.value.code == "bad-ledger-event"


@pytest.mark.parametrize(
    "changes",
    [
        {"actor": ""},
        {"actor": "a\x00b"},
        {"actor": "a" * 1025},
        {"actor": "\ud800"},
        {"plan": b"short"},
        {"plan": "00" * 32},
        {"ledger": "no-slash"},
        {"accepted": ()},
        {"accepted": ("",)},
        {"operations": -1},
    ],
    ids=str,
)
def test_a_journal_event_that_could_not_be_sealed_cannot_be_made(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        replace(applied(1), **changes)


def test_sealing_refuses_the_other_kind_of_stream_and_another_steward() -> None:
    for event, ledger in ((admitted("c1"), JOURNAL), (applied(1), ENTITLEMENTS)):
        with pytest.raises(BadInput) as refused:
            chain.seal(event, chain.empty(ledger), STEWARD)
        assert refused.value.code == "wrong-ledger-stream"
    with pytest.raises(BadInput):
        chain.seal(released("c1"), chain.empty(ledger_id("other", "entitlements")), STEWARD)


def test_ledger_ids() -> None:
    assert parse_ledger_id("root-steward/entitlements:2026w50") == "root-steward/entitlements:2026w50"
    for text in ("", "a", "a/", "/b", "a/b/c", "a/ b", "é/b", "a/b\n"):
        with pytest.raises(BadInput):
            parse_ledger_id(text)


def test_recovered_without_evidence_is_legal() -> None:
    common = journal_events(chain.empty(ENTITLEMENTS))[-1]
    assert isinstance(common, Recovered)
    assert decode_core(
        encode_core(replace(common, evidence=()), seq=0, prev=bytes(32), steward="s"), "journal"
    ).event == replace(common, evidence=())
