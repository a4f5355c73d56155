"""What every `ports.Witness` does: in process over its state, and over real HTTP with a process of its own.

ledger.md, "The witness"; readings/ledger-attacks.md, F.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fleetctl.api.witness_client import HttpWitness
from fleetctl.api.witness_file import FileWitness
from fleetctl.clock import SystemClock
from fleetctl.errors import NotVerified
from fleetctl.ledger.chain import Head, seal
from fleetctl.ledger.entries import Recovered
from fleetctl.ledger.identifiers import ledger_id
from fleetctl.ledger.receipts import Receipt, read_receipt
from fleetctl.ports import Witness, WitnessElsewhere
from tests.support.witnesses import (
    LEDGER,
    OTHER,
    STEWARD,
    STRANGER,
    WITNESS,
    Chain,
    Service,
    chain,
    init_state,
    open_state,
    prefix,
    service,
)


class Setup:
    """A witness over a state in a folder, that can be stopped and started again."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self._stack = ExitStack()
        init_state(folder)
        self.start()

    def start(self) -> None:
        self.witness: Witness
        self.running: Service | None = None
        if self.kind == "http":
            self.running = self._stack.enter_context(service(self.folder))
            client = HttpWitness(id=WITNESS.kid, url=self.running.url, key=WITNESS.public_key)
            self._stack.callback(client.close)
            self.witness = client
        else:
            state = open_state(self.folder)
            self._stack.callback(state.close)
            self.witness = FileWitness(state=state, signer=WITNESS, clock=SystemClock())

    def stop(self) -> None:
        self._stack.close()


@pytest.fixture(params=["file", "http"])
def setup(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setup]:
    made = Setup(request.param, tmp_path / "witness")
    yield made
    made.stop()


def show(witness: Witness, ledger: Chain, start: int = 0) -> Receipt:
    """Show it the entries from `start` on; its receipt, which must be signed and for the chain's head."""
    at = ledger.heads[start]
    return receipt(witness.advance(at.ledger, at.length, at.address, ledger.entries[start:]), ledger.head)


def receipt(sealed: bytes | None, head: Head) -> Receipt:
    assert sealed is not None
    found, statement = read_receipt(sealed)
    assert statement.signed_by(WITNESS.public_key)
    assert (found.ledger, found.length, found.head) == (head.ledger, head.length, head.address)
    assert (found.witness, found.steward) == ("w1", head.ledger.partition("/")[0])
    return found


def test_what_it_is(setup: Setup) -> None:
    assert setup.witness.id == "w1"
    assert setup.witness.co_located == (setup.kind == "file")


def test_a_new_ledger_starts_at_genesis(setup: Setup) -> None:
    ledger = chain(3)
    assert setup.witness.head(LEDGER) is None
    first = show(setup.witness, ledger)
    assert receipt(setup.witness.head(LEDGER), ledger.head) == first


def test_no_entries_are_answered_with_a_receipt_of_that_length(setup: Setup) -> None:
    """pins, "Witness": 0 included."""
    ledger = chain(2)
    assert show(setup.witness, prefix(ledger, 0)).length == 0
    show(setup.witness, ledger)
    assert show(setup.witness, ledger, start=2).length == 2


def test_a_ledger_grows_and_two_ledgers_do_not_meet(setup: Setup) -> None:
    ledger = chain(6)
    journal = chain(4, ledger=ledger_id("root-steward", "entitlements:2026w50"))
    others = chain(1, ledger=ledger_id("other-steward", "entitlements"), signer=OTHER)
    show(setup.witness, prefix(ledger, 2))
    show(setup.witness, journal)
    show(setup.witness, others)
    show(setup.witness, prefix(ledger, 5), start=2)
    show(setup.witness, ledger, start=5)
    for found in (ledger, journal, others):
        receipt(setup.witness.head(found.head.ledger), found.head)


def test_the_same_request_again_gets_a_fresh_receipt(setup: Setup) -> None:
    """ledger.md: 200 with a fresh receipt when the result equals what it already signed."""
    ledger = chain(4)
    times = [show(setup.witness, ledger, start).at_ms for start in (0, 0, 2, 4)]
    assert times == sorted(times)


def test_more_than_one_request_holds_goes_in_chunks(setup: Setup) -> None:
    """ledger.md: 413 over 1,000 entries or 1 MiB (send chunks; each is a legal advance)."""
    show(setup.witness, chain(2_300))
    heads, entries = list(chain(0, ledger=ledger_id("root-steward", "journal")).heads), []
    for number in range(40):
        event = Recovered(
            at_ms=number,
            actor="local:a@b",
            state_before=b"b" * 32,
            state_after=b"a" * 32,
            ledger=LEDGER,
            ledger_head=b"h" * 32,
            ledger_length=0,
            evidence=tuple(bytes([number, n % 256]) * 16 for n in range(1_000)),
        )
        sealed = seal(event, heads[-1], STEWARD)
        entries.append(sealed.data)
        heads.append(sealed.head)
    assert sum(map(len, entries)) > 1_300_000
    show(setup.witness, Chain(entries=tuple(entries), heads=tuple(heads)))


def test_a_rewritten_history_of_the_same_length_is_a_contradiction(setup: Setup) -> None:
    """ledger-attacks F 107: only memory outside the file sees it. Both heads are kept as evidence."""
    ledger = chain(5)
    kept = show(setup.witness, ledger)
    rewritten = chain(2, on=prefix(ledger, 3), mark="other")
    for start in (0, 3):
        with pytest.raises(NotVerified, match="witness-contradiction") as caught:
            show(setup.witness, rewritten, start)
        assert caught.value.exit_code == 3
    assert receipt(setup.witness.head(LEDGER), ledger.head).length == kept.length
    setup.stop()
    state = open_state(setup.folder)
    proofs = [content for _, content in state.evidence(LEDGER)]
    assert len(proofs) == 2
    assert all(rewritten.entries[-1] in proof and ledger.head.address in proof for proof in proofs)
    state.close()


def test_a_rewritten_history_of_another_length_is_refused(setup: Setup) -> None:
    ledger = chain(5)
    show(setup.witness, ledger)
    for length, start in ((4, 0), (6, 0), (6, 3)):
        rewritten = chain(length - 3, on=prefix(ledger, 3), mark="other")
        with pytest.raises(WitnessElsewhere, match="witness-not-from-known") as caught:
            show(setup.witness, rewritten, start)
        assert (caught.value.length, caught.value.head) == (5, ledger.head.address)
        receipt(caught.value.receipt, ledger.head)


def test_a_rolled_back_ledger_is_refused(setup: Setup) -> None:
    """ledger.md: a restored database leaves the witness ahead; it answers 409 for ever."""
    ledger = chain(5)
    show(setup.witness, ledger)
    for start in (0, 2):
        with pytest.raises(WitnessElsewhere) as caught:
            show(setup.witness, prefix(ledger, 3), start)
        assert (caught.value.length, caught.value.head) == (5, ledger.head.address)
    show(setup.witness, ledger)


def test_an_asker_that_lost_a_receipt_goes_on_from_there(setup: Setup) -> None:
    """The known length and head tell lag from fork."""
    ledger = chain(2_100)
    show(setup.witness, prefix(ledger, 3))
    show(setup.witness, prefix(ledger, 1_500), start=0)
    show(setup.witness, ledger, start=0)


def test_a_witness_that_knows_less_is_not_talked_into_more(setup: Setup) -> None:
    ledger = chain(5)
    with pytest.raises(WitnessElsewhere) as caught:
        show(setup.witness, ledger, start=3)
    assert (caught.value.length, caught.value.head, caught.value.receipt) == (0, ledger.heads[0].address, None)
    show(setup.witness, ledger)


def test_only_the_stewards_own_entries(setup: Setup) -> None:
    """403: an entry is not authentically the steward's, with its index."""
    with pytest.raises(NotVerified, match="witness-not-authentic"):
        show(setup.witness, chain(2, signer=STRANGER))
    ledger = chain(3)
    show(setup.witness, ledger)
    forged = chain(1, on=ledger, signer=STRANGER)
    with pytest.raises(NotVerified, match="witness-not-authentic"):
        show(setup.witness, forged, start=3)
    broken = bytearray(chain(1, on=ledger).entries[-1])
    broken[-1] ^= 1
    for entry in (bytes(broken), b"", b"\xd2", b"\x00" * 100):
        with pytest.raises(NotVerified, match="witness-not-authentic"):
            setup.witness.advance(LEDGER, 3, ledger.head.address, [entry])
    receipt(setup.witness.head(LEDGER), ledger.head)


def test_a_ledger_of_nobody_it_knows(setup: Setup) -> None:
    unknown = ledger_id("nobody", "entitlements")
    with pytest.raises(NotVerified, match="witness-unknown-ledger"):
        show(setup.witness, chain(0, ledger=unknown))
    for ledger in (unknown, "", "no-ledger", "root-steward/%2e%2e", "a/b/c", "root-steward/é", "?/#"):
        with pytest.raises(NotVerified, match="witness-unknown-ledger"):
            setup.witness.head(ledger)


def test_entries_that_do_not_link(setup: Setup) -> None:
    """422; an entry of one ledger cannot open another."""
    ledger = chain(4)
    at = ledger.heads[0]
    first, second, third, _ = ledger.entries
    others = chain(1, ledger=ledger_id("root-steward", "entitlements:x"))
    for entries in ([second], [first, third], [second, first], [first, first], [others.entries[0]]):
        with pytest.raises(NotVerified, match="witness-not-linked"):
            setup.witness.advance(LEDGER, 0, at.address, entries)
    with pytest.raises(NotVerified, match="witness-not-linked"):
        setup.witness.advance(LEDGER, 0, b"\0" * 32, ledger.entries)
    assert setup.witness.head(LEDGER) is None


def test_the_steward_gets_back_what_it_showed(setup: Setup) -> None:
    """For `ledger recover`: "fetches the missing suffix from the witness". In chunks, and no more than is asked for."""
    ledger = chain(2_300)
    show(setup.witness, ledger)
    assert tuple(setup.witness.fetch(LEDGER, 0, 2_300, STEWARD)) == ledger.entries
    assert tuple(setup.witness.fetch(LEDGER, 1_200, 1_205, STEWARD)) == ledger.entries[1_200:1_205]
    assert list(setup.witness.fetch(LEDGER, 2_300, 2_400, STEWARD)) == []
    assert list(setup.witness.fetch("root-steward/journal", 0, 10, STEWARD)) == []


def test_nobody_else_gets_entries_back(setup: Setup) -> None:
    """They name tenants and people; a head says nothing of them."""
    show(setup.witness, chain(2))
    for asker in (STRANGER, OTHER, WITNESS):
        with pytest.raises(NotVerified, match="witness-not-authentic"):
            setup.witness.fetch(LEDGER, 0, 2, asker)
    with pytest.raises(NotVerified, match="witness-unknown-ledger"):
        setup.witness.fetch("nobody/entitlements", 0, 2, STEWARD)


def test_what_was_refused_is_not_given_back(setup: Setup) -> None:
    ledger = chain(3)
    show(setup.witness, ledger)
    rewritten = chain(2, on=prefix(ledger, 1), mark="other")
    with pytest.raises(NotVerified):
        show(setup.witness, rewritten)
    with pytest.raises(NotVerified):
        show(setup.witness, chain(1, on=ledger, signer=STRANGER), start=3)
    assert tuple(setup.witness.fetch(LEDGER, 0, 10, STEWARD)) == ledger.entries


def test_of_two_histories_at_once_one_wins(setup: Setup) -> None:
    base = chain(3)
    show(setup.witness, base)
    rivals = [chain(2, on=base, mark=f"rival-{n}-") for n in range(4)]
    barrier = threading.Barrier(len(rivals))
    won, refused = list[Chain](), list[NotVerified]()

    def run(rival: Chain) -> None:
        barrier.wait()
        try:
            show(setup.witness, rival, start=3)
            won.append(rival)
        except NotVerified as error:
            refused.append(error)

    threads = [threading.Thread(target=run, args=(rival,)) for rival in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and len(refused) == 3
    assert {error.code for error in refused} <= {"witness-contradiction"}
    receipt(setup.witness.head(LEDGER), won[0].head)


def test_one_history_at_once_is_signed_for_everybody(setup: Setup) -> None:
    ledger = chain(20)
    barrier, done = threading.Barrier(4), list[int]()

    def run(length: int) -> None:
        barrier.wait()
        done.append(show(setup.witness, prefix(ledger, length)).length)

    threads = [threading.Thread(target=run, args=(20,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [20] * 4


def test_it_remembers_over_a_kill(setup: Setup) -> None:
    """Moved in one durable transaction before it answers."""
    ledger = chain(5)
    show(setup.witness, ledger)
    if setup.running is not None:
        setup.running.process.kill()
    setup.stop()
    setup.start()
    receipt(setup.witness.head(LEDGER), ledger.head)
    with pytest.raises(NotVerified, match="witness-contradiction"):
        show(setup.witness, chain(2, on=prefix(ledger, 3), mark="other"))
    show(setup.witness, chain(1, on=ledger), start=5)
