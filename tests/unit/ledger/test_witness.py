"""The witness's decision: each answer, and the order of the checks (ledger.md "The witness")."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fleetctl.errors import SafetyRefused
from fleetctl.ledger import chain, receipts, witness
from fleetctl.ledger.cbor import encode
from fleetctl.ledger.identifiers import LedgerId, ledger_id
from fleetctl.ledger.keys import PublicKey
from fleetctl.ledger.witness import Known, Outcome, advance, build_request, parse_refusal
from tests.support.ledgers import (
    AT_MS,
    ENTITLEMENTS,
    JOURNAL,
    STEWARD,
    WITNESS,
    admitted,
    applied,
    history,
    payload_of,
    seal_all,
    sign_core,
    signer,
)

GOOD = seal_all(history(4))
ENTRIES = [item.data for item in GOOD]
START = chain.empty(ENTITLEMENTS)
MALLORY = signer("mallory")
OLD_KEY = signer("root-steward", "an older key")


class Memory:
    """A witness's state as its service keeps it."""

    def __init__(self, *keys: bytes) -> None:
        self.known: dict[LedgerId, Known] = {}
        self.stewards = {"root-steward": list(map(PublicKey, keys)) or [STEWARD.public_key]}

    def ask(self, body: bytes, now_ms: int = AT_MS) -> Outcome:
        outcome = advance(body, stewards=self.stewards, known=self.known.get, signer=WITNESS, now_ms=now_ms)
        if outcome.after is not None:
            assert outcome.ledger is not None and self.known.get(outcome.ledger) == outcome.before
            self.known[outcome.ledger] = outcome.after
        return outcome

    def at(self, length: int) -> Memory:
        assert self.ask(request(0, length)).status == 200
        return self


def head_at(length: int) -> chain.Head:
    return GOOD[length - 1].head if length else START


def request(start: int, end: int) -> bytes:
    return build_request(head_at(start), ENTRIES[start:end])


def receipt_in(outcome: Outcome) -> receipts.Receipt:
    assert (outcome.status, outcome.code) == (200, "receipt")
    receipt, statement = receipts.read_receipt(outcome.body)
    assert statement.signed_by(WITNESS.public_key)
    return receipt


def test_a_new_ledger_starts_at_genesis_and_advances_in_chunks() -> None:
    memory = Memory()
    assert receipt_in(memory.ask(request(0, 3))).length == 3
    receipt = receipt_in(memory.ask(request(3, 8)))
    assert (receipt.length, receipt.head, receipt.ledger) == (8, GOOD[7].address, ENTITLEMENTS)


def test_nothing_new_is_answered_with_a_receipt_of_that_length() -> None:
    """pins: length 0 included."""
    memory = Memory()
    assert receipt_in(memory.ask(request(0, 0))).length == 0
    memory.at(5)
    assert receipt_in(memory.ask(request(5, 5))).length == 5


def test_a_journal_is_witnessed_alike() -> None:
    sealed = seal_all([applied(0), applied(1)], ledger=JOURNAL)
    body = build_request(chain.empty(JOURNAL), [item.data for item in sealed])
    assert receipt_in(Memory().ask(body)).head == sealed[-1].address


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"\xa0",
        encode([]),
        request(0, 1) + b"\x00",
        encode({"ledger": "no-slash", "old_length": 0, "old_head": bytes(32), "entries": []}),
        encode({"ledger": ENTITLEMENTS, "old_length": 0, "old_head": bytes(31), "entries": []}),
        encode({"ledger": ENTITLEMENTS, "old_length": "0", "old_head": bytes(32), "entries": []}),
        encode({"ledger": ENTITLEMENTS, "old_length": 0, "old_head": bytes(32), "entries": [0]}),
        encode({"ledger": ENTITLEMENTS, "old_length": 0, "old_head": bytes(32), "entries": b""}),
        encode({"ledger": ENTITLEMENTS, "old_length": 0, "old_head": bytes(32), "entries": [], "more": 0}),
    ],
)
def test_400_unreadable(body: bytes) -> None:
    assert Memory().ask(body).status == 400


@pytest.mark.parametrize(
    "body",
    [
        bytes(witness.MAX_BODY + 1),
        build_request(START, [b""] * 1_001),
        build_request(START, [b""] * 30_000),
    ],
    ids=["bytes", "entries", "many entries"],
)
def test_413_too_large(body: bytes) -> None:
    assert Memory().ask(body).status == 413


def test_a_thousand_entries_are_not_too_many() -> None:
    entries = [item.data for item in seal_all(history(500))]
    assert receipt_in(Memory().ask(build_request(START, entries))).length == 1_000


def test_404_another_stewards_ledger() -> None:
    head = chain.empty(ledger_id("mallory", "entitlements"))
    outcome = Memory().ask(build_request(head, [chain.seal(admitted("c0"), head, MALLORY).data]))
    assert outcome.status == 404


def changed(entry: bytes) -> bytes:
    return entry[:-1] + bytes((entry[-1] ^ 1,))


@pytest.mark.parametrize(
    "damage",
    [
        changed,
        lambda entry: sign_core(payload_of(entry), signer("root-steward", "a stranger")),
        lambda entry: sign_core(payload_of(entry), MALLORY),
        lambda entry: entry[1:],
        lambda entry: entry + b"\x00",
        lambda entry: entry + ENTRIES[3],
        lambda entry: b"",
        lambda entry: entry[:50],
        lambda entry: sign_core(payload_of(entry).replace(b"root-steward", b"root-stewart")),
    ],
    ids=["signature", "stranger", "kid", "tag", "a byte more", "two in one", "none", "torn", "steward in the core"],
)
def test_403_not_authentically_the_stewards_with_its_index(damage: Callable[[bytes], bytes]) -> None:
    memory = Memory()
    body = build_request(START, [*ENTRIES[:2], damage(ENTRIES[2]), ENTRIES[3]])
    outcome = memory.ask(body)
    assert (outcome.status, parse_refusal(outcome.body).index) == (403, 2)
    assert memory.known == {}


@pytest.mark.parametrize(
    "entries",
    [
        [ENTRIES[0], ENTRIES[2]],
        [ENTRIES[1]],
        [ENTRIES[0], ENTRIES[0]],
        [ENTRIES[0], sign_core(payload_of(ENTRIES[1]) + b"\x00")],
        [ENTRIES[0], sign_core(b"\xa0")],
    ],
    ids=["gap", "start", "twice", "not canonical", "no schema"],
)
def test_422_not_linked(entries: list[bytes]) -> None:
    outcome = Memory().ask(build_request(START, entries))
    assert (outcome.status, outcome.code) == (422, "not-linked")


def test_200_again_for_what_was_already_signed() -> None:
    """A lost answer is asked for again, from wherever the steward believes to stand, and gets a fresh receipt."""
    memory = Memory().at(5)
    for start in (0, 3, 5):
        receipt = receipt_in(memory.ask(request(start, 5), now_ms=AT_MS + 7))
        assert (receipt.length, receipt.at_ms) == (5, AT_MS + 7)


def test_422_same_length_other_head_keeps_the_evidence() -> None:
    memory = Memory().at(5)
    other = seal_all([*history(4)[:4], admitted("c9")])
    outcome = memory.ask(build_request(START, [item.data for item in other]))
    assert (outcome.status, outcome.code) == (422, "contradiction")
    assert outcome.evidence is not None and other[4].data in outcome.evidence
    assert memory.known[ENTITLEMENTS].receipt in outcome.evidence
    assert outcome.after is None and parse_refusal(outcome.body).head == GOOD[4].address


def test_a_head_without_entries_is_nobodys_evidence() -> None:
    outcome = Memory().at(5).ask(build_request(chain.Head(ledger=ENTITLEMENTS, length=5, address=bytes(32)), []))
    assert (outcome.status, outcome.evidence) == (422, None)


@pytest.mark.parametrize(("start", "end"), [(0, 3), (3, 8), (6, 8), (3, 3), (0, 8)])
def test_409_says_where_the_witness_stands(start: int, end: int) -> None:
    """Behind, ahead of it, or from another place: the known length and head tell lag from fork."""
    outcome = Memory().at(5).ask(request(start, end))
    refusal = parse_refusal(outcome.body)
    assert (outcome.status, refusal.length, refusal.head) == (409, 5, GOOD[4].address)
    receipt, _ = receipts.read_receipt(refusal.receipt or b"")
    assert receipt.length == 5


def test_409_of_a_rewritten_history_that_went_on() -> None:
    memory = Memory().at(5)
    other = seal_all([*history(4)[:4], admitted("c9"), admitted("c10")])
    assert memory.ask(build_request(other[4].head, [other[5].data])).status == 409


def test_409_for_a_ledger_not_seen_that_does_not_start_at_genesis() -> None:
    refusal = parse_refusal(Memory().ask(request(3, 5)).body)
    assert (refusal.length, refusal.head, refusal.receipt) == (0, START.address, None)


def test_the_order_of_the_checks() -> None:
    """An earlier check answers even where a later one would too."""
    memory = Memory().at(5)
    unlinked_and_forged = [changed(ENTRIES[5]), ENTRIES[0]]
    assert memory.ask(build_request(head_at(5), unlinked_and_forged)).status == 403
    assert memory.ask(build_request(head_at(3), [ENTRIES[7]])).status == 422
    stranger = chain.empty(ledger_id("mallory", "entitlements"))
    assert memory.ask(build_request(stranger, [b"junk"])).status == 404
    assert memory.ask(build_request(stranger, [b"junk"] * 1_001)).status == 413


def test_its_time_never_falls() -> None:
    memory = Memory()
    memory.ask(request(0, 1), now_ms=AT_MS)
    assert receipt_in(memory.ask(request(1, 2), now_ms=AT_MS - 1_000)).at_ms == AT_MS


def test_a_ledger_is_held_to_the_key_it_started_with() -> None:
    """A new steward key means new streams; a steward with two keys cannot mix them in one ledger."""
    memory = Memory(OLD_KEY.public_key, STEWARD.public_key)
    assert memory.ask(request(0, 2)).status == 200
    assert memory.known[ENTITLEMENTS].key == STEWARD.public_key
    mixed = chain.seal(admitted("x"), head_at(2), OLD_KEY)
    assert memory.ask(build_request(head_at(2), [mixed.data])).status == 403
    assert memory.ask(request(2, 4)).status == 200


@pytest.mark.clause("pool/1 §7.15", "pool/1 §6.7")
def test_a_roster_with_its_own_key_is_refused() -> None:
    witness.check_roster({"root-steward": [STEWARD.public_key]}, WITNESS.public_key)
    with pytest.raises(SafetyRefused) as refused:
        witness.check_roster({"root-steward": [STEWARD.public_key, WITNESS.public_key]}, WITNESS.public_key)
    assert refused.value.code == "witness-holds-own-key"


def test_chunks_fit_and_lose_nothing() -> None:
    entries = [bytes(300)] * 4_100 + [bytes(700_000), bytes(500_000), b"x"]
    runs = witness.chunks(entries)
    assert [entry for run in runs for entry in run] == entries
    assert all(len(build_request(START, run)) <= witness.MAX_BODY and len(run) <= 1_000 for run in runs)
    assert witness.chunks([]) == [[]]


def test_busy_is_a_refusal_too() -> None:
    assert parse_refusal(witness.BUSY.body).error == "busy"
