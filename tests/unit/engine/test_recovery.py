"""Recovery from the witness or a replica: all of it or nothing, and nothing that is not verified (ledger.md, "The witness")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.engine import builders, calls, drifting, moving, rotating
from fleetctl.engine.apply import apply_plan
from fleetctl.engine.context import Engine, journal_stream, usage_stream
from fleetctl.engine.health import examine
from fleetctl.engine.history import engine_history
from fleetctl.engine.ledgers import audit_engine
from fleetctl.engine.planning import Source
from fleetctl.engine.rebuild import rebuild
from fleetctl.engine.receipts import stored_receipt
from fleetctl.engine.stands import Replica
from fleetctl.engine.streams import read_usages
from fleetctl.engine.witnessing import refuse_rollback
from fleetctl.errors import EngineRefused, FleetctlError, NotVerified, SafetyRefused, Tampered
from fleetctl.ledger.entries import Admitted
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support import recoveries as tr
from tests.support.ledgers import AT_MS, signer


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tr.Past:
    return tr.past(tmp_path_factory.mktemp("past"))


@pytest.fixture
def past(made: tr.Past, tmp_path: Path) -> tr.Past:
    """The same past, with copies of its own."""
    witness = tw.InProcess()
    assert isinstance(witness.state, tw.MemoryState) and isinstance(made.witness.state, tw.MemoryState)
    witness.state.heads.update(made.witness.state.heads)
    witness.state.kept.update({ledger: dict(kept) for ledger, kept in made.witness.state.kept.items()})
    return replace(made, folder=tmp_path, witness=witness)


def check_works(engine: Engine) -> None:
    """Plan, drift, apply, claims and verification go on, and the witness countersigns."""
    te.check_whole(engine)
    refuse_rollback(engine)
    assert drifting.drift_fleet(engine, te.one_pool(12), Source(), full=True).result in ("none", "drift")
    receipt = te.applied(engine, te.one_pool(12), accept=["share:fleet/eu"])
    assert (receipt.result, receipt.witnessed.grade, receipt.witnessed.covering) == ("applied", "witnessed", 1)
    assert tr.admit(engine, "new-claim") == "Admit"
    tr.release(engine, "new-claim")
    te.check_whole(engine)
    report = audit_engine(engine)
    assert report.ok, report.to_json()


# ------------------------------------------------------------------------------------------------- all comes back


@pytest.mark.parametrize("asked", [True, False], ids=["witness", "replica alone"])
def test_a_restored_backup_becomes_what_the_engine_was(past: tr.Past, asked: bool) -> None:
    engine = past.restored(witnesses=None if asked else ())
    done = tr.recovered(engine, past.replica())
    assert (done.result, done.given_up, done.opened) == ("recovered", (), ())
    assert {(item.ledger, item.length, item.whole) for item in done.regained} == {
        ("root-steward/journal", 2, 5),
        ("root-steward/entitlements", 4, 10),
    }
    assert tr.rows(engine) == tr.rows(past.whole)
    with engine.store.read() as mine, past.whole.store.read() as theirs:
        assert [
            (item.seq, item.at_ms, item.event)
            for item in mine.events(0, 1_000)
            if item.event.type != "reservation.ended"
        ]
        old = {(item.id, item.state, item.claim) for item in mine.reservations()}
        assert old == {(item.id, item.state, item.claim) for item in theirs.reservations() if item.key == "early"}
    assert len(done.ended) == 1 and len(done.unheld) == 1
    refuse_rollback(replace(engine, witnesses=(past.witness,)))
    check_works(replace(engine, witnesses=(past.witness,)))


def test_usage_alone_comes_back_from_the_witness_alone(tmp_path: Path) -> None:
    """The commonest loss: claims since the last backup. No documents are needed for them."""
    witness = tw.InProcess()
    engine = te.new_engine(tmp_path / "engine", tw.witnessed_by(tr.KEYS), witnesses=(witness,))
    tr.before(engine)
    te.witness(engine)
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    for number in range(5):
        tr.admit(engine, f"late-{number}")
    tr.release(engine, "late-0")
    te.witness(engine)
    whole = tr.rows(engine)
    restored = te.open_engine(backup, witnesses=(witness,))
    with pytest.raises(SafetyRefused, match="state-rolled-back"):
        tr.admit(restored, "x")
    done = tr.recovered(restored)
    assert done.result == "recovered" and done.regained[0].sources == ("witness witness-a",)
    assert tr.rows(restored) == whole
    check_works(restored)


def test_what_the_replica_has_beyond_the_witness_comes_back_too(tmp_path: Path) -> None:
    past = tr.past(tmp_path, witnessed=False)
    engine = past.restored()
    tr.recovered(engine, past.replica())
    assert tr.rows(engine) == tr.rows(past.whole)
    check_works(engine)


def test_a_replica_and_the_witness_each_have_a_part(past: tr.Past) -> None:
    """A bundle that was exported before the last claims: its documents, and the witness's entries."""
    replica = past.replica()
    journal = [item for item in replica.entries if b"fleet_receipt" in item]
    done = tr.recovered(engine := past.restored(), replace(replica, entries=journal, receipts=()))
    assert {item.ledger: item.sources for item in done.regained} == {
        "root-steward/journal": ("replica",),
        "root-steward/entitlements": ("witness witness-a",),
    }
    assert tr.rows(engine) == tr.rows(past.whole)


@pytest.mark.parametrize("asked", [True, False], ids=["witness", "nobody"])
def test_nothing_to_recover_writes_nothing(past: tr.Past, asked: bool) -> None:
    """Also where the engine is ahead of its witness."""
    engine = te.open_engine(
        te.copied(past.whole_folder, past.folder / "copy"), witnesses=(past.witness,) if asked else ()
    )
    tr.admit(engine, "unwitnessed")
    before = te.dump(te.state_of(engine).parent)
    for replicas in ((), (past.replica(),)):
        assert tr.recovered(engine, *replicas).result == "nothing-to-do"
    assert te.dump(te.state_of(engine).parent) == before


def test_a_document_that_nobody_has_is_said(past: tr.Past) -> None:
    folder = te.copied(past.whole_folder, past.folder / "damaged")
    te.edit(folder, "DELETE FROM documents WHERE digest = (SELECT max(digest) FROM documents)")
    engine = te.open_engine(folder, witnesses=(past.witness,))
    with pytest.raises(Tampered, match="document-missing"):
        tr.recovered(engine)


def test_a_witness_that_the_state_does_not_know_yet_is_heard(tmp_path: Path) -> None:
    """The backup is from before the witness was replaced; its key is in the user's configuration."""
    witness, newer = tw.InProcess(), tw.InProcess(signer=tw.WITNESSES["witness-b"])
    engine = te.new_engine(tmp_path / "engine", tw.witnessed_by(tr.KEYS), witnesses=(witness,))
    tr.before(engine)
    te.witness(engine)
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    roster = {"witness-b": newer.key.hex()}
    build = builders.settings_change(lambda body: replace(body, witnesses=roster))
    calls.call(replace(engine, witnesses=(newer,)), "settings.set", tenant="root", request={}, build=build)
    restored = te.open_engine(backup, witnesses=(newer,))
    with pytest.raises(SafetyRefused, match="witness witness-b has root-steward/journal at 3"):
        tr.recovered(restored)
    assert tr.recovered(restored, tr.replica_of(engine)).result == "recovered"
    assert tr.rows(restored) == tr.rows(engine)


def test_a_witness_that_does_not_answer_is_noted(past: tr.Past) -> None:
    engine = past.restored(witnesses=(tw.Down(past.witness),))
    done = tr.recovered(engine)
    assert done.result == "nothing-to-do"
    assert any("did not say how far" in note for note in done.notes)


LOST_ROWS: dict[str, str] = {
    "the last entry": "DELETE FROM entries WHERE stream = 'journal' AND seq = 4",
    "one in the middle": "DELETE FROM entries WHERE stream = 'journal' AND seq = 1",
    "the first of usage": "DELETE FROM entries WHERE stream = 'entitlements' AND seq = 0",
    "all of usage": "DELETE FROM entries WHERE stream = 'entitlements'",
    "an entry's bytes": "UPDATE entries SET sealed = zeroblob(200) WHERE stream = 'entitlements' AND seq = 6",
    "a document": "DELETE FROM documents WHERE digest = (SELECT max(digest) FROM documents)",
    "the head": "UPDATE streams SET length = 3 WHERE stream = 'journal'",
}


@pytest.mark.parametrize("name", LOST_ROWS)
def test_lost_rows_come_back(past: tr.Past, name: str) -> None:
    folder = te.copied(past.whole_folder, past.folder / "damaged")
    te.edit(folder, "DELETE FROM receipts")
    assert te.edit(folder, LOST_ROWS[name]) > 0
    engine = te.open_engine(folder, witnesses=(past.witness,))
    assert tr.recovered(engine, past.replica()).result == "recovered"
    assert tr.rows(engine) == tr.rows(past.whole)
    check_works(engine)


# ---------------------------------------------------------------------------------------------- replicas that lie


def altered(entries: list[bytes]) -> list[bytes]:
    """A bit of a value in the core of every later journal entry is another."""
    return [item[:-70] + bytes([item[-70] ^ 1]) + item[-69:] if b"fleet_receipt" in item else item for item in entries]


def short(entries: list[bytes]) -> list[bytes]:
    return [item for item in entries if b"fleet_receipt" in item][:3]


LIES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "altered entries": altered,
    "broken signatures": lambda entries: [item[:-1] + bytes([item[-1] ^ 1]) for item in entries],
    "too short": short,
    "nothing": lambda entries: [],
    "noise": lambda entries: [b"\xd2\x84" + bytes(100), b"", b"x" * 1_000],
}


@pytest.mark.parametrize("name", LIES)
def test_a_replica_that_does_not_have_what_was_signed_is_not_enough(past: tr.Past, name: str) -> None:
    engine = past.restored()
    lying = replace(past.replica(), entries=LIES[name](list(past.replica().entries)), receipts=())
    before = te.dump(te.state_of(engine).parent)
    with pytest.raises(SafetyRefused, match="unaccepted-loss") as caught:
        tr.recovered(engine, replace(lying, document=lambda _: None))
    assert "lose-entries:ledger/journal" in str(caught.value)
    assert te.dump(te.state_of(engine).parent) == before


def test_another_stewards_replica_is_left_out(past: tr.Past) -> None:
    """The same name with another key."""
    other = te.new_engine(
        past.folder / "other",
        signer=(key := signer("root-steward", "other")),
        steward_key=key.public_key,
    )
    te.applied(other, te.one_pool(3))
    engine = past.restored()
    with pytest.raises(SafetyRefused, match="unaccepted-loss") as caught:
        tr.recovered(engine, tr.replica_of(other, "other.bundle"))
    assert "other.bundle: 1 entries are not ones that root-steward sealed" in str(caught.value)
    tr.recovered(engine, tr.replica_of(other), past.replica())
    assert tr.rows(engine) == tr.rows(past.whole)


def diverged(past: tr.Past, name: str) -> Engine:
    """The backup went on by itself, unwitnessed, with the steward's own key."""
    engine = past.restored(witnesses=(), name=name)
    te.applied(engine, te.one_pool(3), accept=["share:fleet/eu"])
    return engine


def test_a_replica_with_another_history_is_refused(past: tr.Past) -> None:
    rival = tr.replica_of(diverged(past, "rival"), "rival.bundle")
    down = past.restored(witnesses=(), name="down")
    whole = te.open_engine(te.copied(past.whole_folder, past.folder / "copy"))
    for engine, replicas in ((whole, [rival]), (down, [rival, past.replica()])):
        before = te.dump(te.state_of(engine).parent)
        with pytest.raises(NotVerified, match="replica-forks") as caught:
            tr.recovered(engine, *replicas)
        assert caught.value.exit_code == 3
        assert te.dump(te.state_of(engine).parent) == before


def test_where_a_witness_signed_one_of_two_histories_that_one_comes_back(past: tr.Past) -> None:
    """Its receipt says which entries lead to its head; a rival beside them is refused all the same."""
    rival = tr.replica_of(diverged(past, "rival"), "rival.bundle")
    with pytest.raises(NotVerified, match="rival.bundle holds an entry 2 of root-steward/journal"):
        tr.recovered(past.restored(), rival, past.replica())


def test_documents_that_are_not_the_named_ones_change_nothing(past: tr.Past) -> None:
    """A replica's documents are looked up by their digest; one that lies has none of that digest (`Bundle.document`)."""
    engine = past.restored()
    with pytest.raises(SafetyRefused, match="only a replica holds"):
        tr.recovered(engine, replace(past.replica(), document=lambda _: None))


def test_receipts_of_a_replica_speak_where_no_witness_does(past: tr.Past) -> None:
    """Its entries were cut, its receipts not."""
    replica = past.replica()
    engine = past.restored(witnesses=())
    with pytest.raises(SafetyRefused, match="witness witness-a has root-steward/journal at 5"):
        tr.recovered(engine, replace(replica, entries=()))


# ------------------------------------------------------------------------------------------- what cannot come back


def test_what_nobody_has_is_given_up_by_name_only(past: tr.Past) -> None:
    engine = past.restored()
    before = te.dump(te.state_of(engine).parent)
    for accept in ((), ("lose-entries:ledger/entitlements",), ("share:fleet/eu",)):
        with pytest.raises(SafetyRefused, match="unaccepted-loss"):
            tr.recovered(engine, accept=accept)
        assert te.dump(te.state_of(engine).parent) == before
    done = tr.recovered(engine, accept=["lose-entries:ledger/journal"])
    assert (done.result, [item.id for item in done.given_up]) == ("reopened", ["lose-entries:ledger/journal"])
    with engine.store.read() as reader:
        assert done.opened == (f"root-steward/{journal_stream(reader)}",)
    assert done.place == 2
    assert {item.ledger: (item.length, item.whole) for item in done.regained} == {"root-steward/entitlements": (4, 10)}
    check_works(engine)


def test_the_evidence_lies_in_plain_sight(past: tr.Past) -> None:
    engine = past.restored()
    tr.recovered(engine, accept=["lose-entries:ledger/journal"])
    (event,) = te.journal(engine)
    assert event.EVENT == "recovered" and event.state_before == event.state_after
    with engine.store.read() as reader:
        documents = [reader.document(digest.hex()) for digest in event.evidence]  # type: ignore[attr-defined]  # a Recovered
        newest = past.witness.head("root-steward/journal")
    assert newest is not None and documents[0] is not None and documents[1] is not None
    assert newest.hex().encode() in documents[1]
    assert b'"length":5' in documents[0] and b'"recovery":"1"' in documents[0]


def test_the_history_goes_on_over_a_loss(past: tr.Past) -> None:
    engine = past.restored()
    tr.recovered(engine, accept=["lose-entries:ledger/journal"])
    receipt = te.applied(engine, te.one_pool(5), accept=["share:fleet/eu"])
    assert receipt.entry == 3
    data = te.planned(engine, te.one_pool(6))
    assert apply_plan(engine, data).entry == 4
    again = apply_plan(engine, data)
    assert (again.result, again.entry) == ("already-applied", 4)
    found = engine_history(engine, None).entries
    assert [(item.entry, item.event, item.witnessed) for item in found] == [
        (0, "applied", True),
        (1, "applied", True),
        (2, "recovered", True),
        (3, "applied", True),
        (4, "applied", True),
    ]
    rows = tr.rows(engine)
    assert rebuild(engine) == 5
    assert tr.rows(engine) == rows
    te.check_whole(engine)


def test_usage_that_nobody_has_begins_afresh_with_the_open_claims(past: tr.Past) -> None:
    """The witness kept no entries: an older version, or it was emptied."""
    assert isinstance(past.witness.state, tw.MemoryState)
    past.witness.state.kept.clear()
    engine = past.restored()
    held = [item for item in tr._reservations(engine) if item.state == "active"]
    done = tr.recovered(engine, accept=["lose-entries:ledger/journal", "lose-entries:ledger/entitlements"])
    assert len(done.opened) == 2 and done.ended == ()
    with engine.store.read() as reader:
        admitted = [event for _, event in te.usage_events(engine, reader)]
    assert {item.claim for item in admitted if isinstance(item, Admitted)} == {"c2:2", f"{held[0].claim}:2"}
    assert [item.claim for item in tr._reservations(engine)] == [f"{held[0].claim}:2"]
    check_works(engine)


def test_usage_alone_is_given_up_in_the_journal_that_stands(tmp_path: Path) -> None:
    witness = tw.InProcess()
    engine = te.new_engine(tmp_path / "engine", tw.witnessed_by(tr.KEYS), witnesses=(witness,))
    tr.before(engine)
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    tr.admit(engine, "lost")
    te.witness(engine)
    assert isinstance(witness.state, tw.MemoryState)
    witness.state.kept.clear()
    restored = te.open_engine(backup, witnesses=(witness,))
    done = tr.recovered(restored, accept=["lose-entries:ledger/entitlements"])
    assert (done.result, done.place) == ("reopened", 2)
    assert [event.EVENT for event in te.journal(restored)] == ["applied", "applied", "recovered"]
    check_works(restored)


def test_a_claim_that_goes_on_after_a_loss_takes_nobodys_id(tmp_path: Path) -> None:
    """An id is used once over all streams (ADR 31): whoever made `job:2` never ends `job` by it."""
    witness = tw.InProcess()
    engine = te.new_engine(tmp_path / "engine", tw.witnessed_by(tr.KEYS), witnesses=(witness,))
    tr.before(engine)
    for claim in ("job", "job:2", "over:2", "over"):
        tr.admit(engine, claim)
    tr.release(engine, "over:2")
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    tr.admit(engine, "lost")
    te.witness(engine)
    assert isinstance(witness.state, tw.MemoryState)
    witness.state.kept.clear()
    restored = te.open_engine(backup, witnesses=(witness,))
    tr.recovered(restored, accept=["lose-entries:ledger/entitlements"])
    with restored.store.read() as reader:
        open_claims = set(read_usages(restored, reader).fold.open_claims)
    assert {"job:3", "job:2:2", "over:3"} < open_claims
    for claim in ("job", "job:2", "over", "over:2"):
        with pytest.raises(EngineRefused, match="claim-not-open"):
            tr.release(restored, claim)
    check_works(restored)


def test_what_was_given_up_is_told_by_the_journal_and_fails_no_check(past: tr.Past) -> None:
    """Receipts that the state keeps of the lost part, as `state restore` takes them over, stay as evidence."""
    assert isinstance(past.witness.state, tw.MemoryState)
    past.witness.state.kept.clear()
    engine = past.restored()
    with past.whole.store.read() as theirs, engine.store.write(1_000) as tx:
        for item in theirs.receipts():
            tx.put_receipt(item)
    accept = ["lose-entries:ledger/journal", "lose-entries:ledger/entitlements"]
    tr.recovered(engine, accept=accept)
    assert drifting.drift_fleet(engine, te.one_pool(12), Source(), full=True).tampered == ()
    assert [(item.name, item.problems) for item in examine(engine) if item.problems] == []
    check_works(engine)


def test_a_state_that_went_its_own_way_is_a_loss_by_name(past: tr.Past) -> None:
    """Fork: the witness signed another history than this state has. Nothing of either is put after the other."""
    engine = replace(diverged(past, "own"), witnesses=(past.witness,))
    rows = te.dump(te.state_of(engine).parent)
    with pytest.raises(SafetyRefused, match="two histories part before it"):
        tr.recovered(engine, past.replica())
    assert te.dump(te.state_of(engine).parent) == rows
    done = tr.recovered(engine, past.replica(), accept=["lose-entries:ledger/journal"])
    assert done.result == "reopened" and done.place == 3
    check_works(engine)


def test_a_witness_that_signed_two_heads_is_evidence_and_no_authority(past: tr.Past) -> None:
    """witness-equivocation: both receipts are kept as evidence, and it takes a word to go on."""
    twin = tw.InProcess()
    rival = te.new_engine(past.folder / "rival", tw.witnessed_by(tr.KEYS), witnesses=(twin,))
    for gpus in range(1, 6):
        te.applied(rival, te.one_pool(gpus), accept=["share:fleet/eu", "shrink-below-use:offer/pool-a/acme"])
    receipts = tr.replica_of(rival).receipts
    engine = te.open_engine(te.copied(past.whole_folder, past.folder / "copy"), witnesses=(past.witness,))
    lying = Replica(name="receipts", entries=(), receipts=receipts)
    with pytest.raises(SafetyRefused, match="signed two heads at 5"):
        tr.recovered(engine, lying)
    done = tr.recovered(engine, lying, accept=["lose-entries:ledger/journal", "lose-entries:ledger/entitlements"])
    assert done.result == "reopened"
    events = te.journal(engine)
    assert len(events[0].evidence) >= 3  # type: ignore[attr-defined]  # the account and both receipts
    te.check_whole(engine)


def test_a_second_loss_goes_on_from_the_first(past: tr.Past) -> None:
    engine = past.restored()
    tr.recovered(engine, accept=["lose-entries:ledger/journal"])
    te.applied(engine, te.one_pool(5), accept=["share:fleet/eu"])
    backup = te.copied(te.state_of(engine).parent, past.folder / "second")
    te.applied(engine, te.one_pool(6))
    again = te.open_engine(backup, witnesses=(past.witness,))
    with pytest.raises(SafetyRefused, match="unaccepted-loss"):
        tr.recovered(again)
    done = tr.recovered(again, accept=["lose-entries:ledger/journal"])
    assert (done.result, done.place) == ("reopened", 4)
    check_works(again)


# ----------------------------------------------------------------------------------------------------- refusals


def test_another_stewards_key_is_said_for_what_it_is(past: tr.Past) -> None:
    """ledger.md: "A new steward key means new streams"; this one says how to get them."""
    key = signer("root-steward", "new")
    engine = past.restored(signer=key, steward_key=key.public_key)
    with pytest.raises(SafetyRefused, match="steward-key-changed") as caught:
        tr.recovered(engine)
    assert "fleetctl state copy" in str(caught.value)


def test_a_closed_state_is_not_recovered(past: tr.Past) -> None:
    engine = te.open_engine(te.copied(past.whole_folder, past.folder / "moved"))
    moving.close(engine, "elsewhere")
    with pytest.raises(SafetyRefused, match="engine-closed"):
        tr.recovered(engine, past.replica())


def test_an_append_beside_it_is_not_overwritten(past: tr.Past) -> None:
    """Another command appends between the survey and the transaction: nothing is done, and it is said to run again."""

    class Meanwhile(tw.Down):
        def fetch(self, ledger: str, start: int, stop: int, signer: object) -> object:  # type: ignore[override]  # a test's
            other = te.open_engine(te.state_of(engine).parent)
            calls.call(other, "pools.unoffer", tenant="root", request={}, build=builders.unoffering(te.POOL_A, "acme"))
            return super().fetch(ledger, start, stop, te.STEWARD)

    engine = past.restored(witnesses=(Meanwhile(past.witness, answers=True),))
    with pytest.raises(FleetctlError) as caught:
        tr.recovered(engine, accept=["lose-entries:ledger/journal"])
    assert (caught.value.code, caught.value.exit_code) == ("recovery-overtaken", 4)


# ------------------------------------------------------------------------------------------------------- rotation


def rotated_past(folder: Path) -> tr.Past:
    """A backup from before a rotation; a claim and a reservation went on over it."""
    witness = tw.InProcess()
    whole = te.new_engine(folder / "whole", tw.witnessed_by(tr.KEYS), witnesses=(witness,))
    tr.before(whole)
    te.witness(whole)
    backup = te.copied(folder / "whole", folder / "backup")
    tr.admit(whole, "c3")
    rotating.rotate(whole, window="w2", accept=["reset-usage:ledger"])
    tr.admit(whole, "c4")
    rotating.rotate(whole, window="w3", accept=["reset-usage:ledger"])
    tr.admit(whole, "c5")
    te.witness(whole)
    return tr.Past(folder=folder, whole=whole, witness=witness, backup=backup)


def test_windows_that_were_lost_come_back(tmp_path: Path) -> None:
    past = rotated_past(tmp_path)
    engine = past.restored()
    done = tr.recovered(engine, past.replica())
    assert [item.ledger.partition(":")[2] for item in done.regained] == ["", "", "w2", "w3"]
    assert tr.rows(engine) == tr.rows(past.whole)
    with engine.store.read() as mine, past.whole.store.read() as theirs:
        assert usage_stream(mine) == usage_stream(theirs) == "entitlements:w3"
        assert read_usages(engine, mine).entitlements == read_usages(past.whole, theirs).entitlements
        assert list(mine.reservations()) == list(theirs.reservations())
    check_works(engine)
    assert tr.recovered(engine, past.replica()).result == "nothing-to-do"


def test_a_window_that_nobody_has_is_given_up_with_the_rotation_before_it(tmp_path: Path) -> None:
    """The journal is there, the last window is not: a new one begins with what was left open of what can be had."""
    past = rotated_past(tmp_path)
    assert isinstance(past.witness.state, tw.MemoryState)
    past.witness.state.kept.pop("root-steward/entitlements:w3")
    replica = past.replica()
    lost = {item for item in replica.entries if b"c5" in item}
    cut = replace(replica, entries=[item for item in replica.entries if item not in lost])
    engine = past.restored()
    with pytest.raises(SafetyRefused, match="lose-entries:ledger/entitlements"):
        tr.recovered(engine, cut)
    done = tr.recovered(engine, cut, accept=["lose-entries:ledger/entitlements"])
    assert done.result == "reopened"
    check_works(engine)


def test_rows_of_a_closed_window_come_back(tmp_path: Path) -> None:
    past = rotated_past(tmp_path)
    folder = te.copied(past.whole_folder, tmp_path / "damaged")
    te.edit(folder, "DELETE FROM entries WHERE stream = 'entitlements:w2' AND seq = 1")
    te.edit(folder, "DELETE FROM entries WHERE stream = 'entitlements' AND seq = 0")
    engine = te.open_engine(folder, witnesses=(past.witness,))
    assert tr.recovered(engine).result == "recovered"
    assert tr.rows(engine) == tr.rows(past.whole)
    check_works(engine)


# ------------------------------------------------------------------------------ set back beyond an earlier recovery

GIVE_UP = ["lose-entries:ledger/journal", "lose-entries:ledger/entitlements"]


@pytest.mark.parametrize("what", ["journal", "both"])
def test_what_came_after_an_earlier_loss_comes_back_with_it(past: tr.Past, what: str) -> None:
    """The backup is from before the loss; a replica has the account of it, and the streams that it opened."""
    assert isinstance(past.witness.state, tw.MemoryState)
    if what == "both":
        past.witness.state.kept.clear()
    engine = past.restored()
    tr.recovered(engine, accept=GIVE_UP[: 1 if what == "journal" else 2])
    te.applied(engine, te.one_pool(5), accept=["share:fleet/eu"])
    tr.admit(engine, "after")
    te.witness(engine)
    replica = tr.replica_of(engine)
    again = past.restored(name="again")
    with pytest.raises(SafetyRefused, match="unaccepted-loss"):
        tr.recovered(again)
    done = tr.recovered(again, replica)
    assert (done.result, done.given_up) == ("recovered", ())
    assert tr.rows(again) == tr.rows(engine)
    check_works(again)
    assert tr.recovered(again, replica).result == "nothing-to-do"


def test_a_state_from_before_a_recovery_is_not_whole_for_what_came_after_it(past: tr.Past) -> None:
    """The entries that the recovery gave up were found, and what was done since is signed: neither is dropped unsaid."""
    engine = past.restored()
    tr.recovered(engine, accept=GIVE_UP[:1])
    te.applied(engine, te.one_pool(5), accept=["share:fleet/eu"])
    after = tr.replica_of(engine, "after")
    with engine.store.read() as reader:
        kept = [(item.stream, item.sealed) for item in reader.receipts()]
    found = te.open_engine(te.copied(past.whole_folder, past.folder / "found"), witnesses=(past.witness,))
    refuse_rollback(found)
    with pytest.raises(SafetyRefused, match="a journal that a recovery opened"):
        refuse_rollback(found, kept)
    with found.store.write(1_000) as tx:
        for stream, sealed in kept:
            tx.put_receipt(stored_receipt(stream, sealed))
    rows = te.dump(te.state_of(found).parent)
    for replicas in ((), (past.replica(),), (after,)):
        with pytest.raises(SafetyRefused, match="does not go on from what this state has"):
            tr.recovered(found, *replicas)
    assert te.dump(te.state_of(found).parent) == rows
    done = tr.recovered(found, after, accept=GIVE_UP[:1])
    assert done.result == "reopened"
    assert tr.recovered(found, after).result == "nothing-to-do"
    refuse_rollback(found, kept)
    check_works(found)


def test_of_two_recoveries_of_one_state_neither_is_chosen(past: tr.Past) -> None:
    replicas = []
    for name in ("one", "two"):
        engine = past.restored(name=name, witnesses=(past.witness,), clock=te.ToldClock(AT_MS + len(replicas) * 60_000))
        tr.recovered(engine, accept=GIVE_UP)
        replicas.append(tr.replica_of(engine, name))
    with pytest.raises(NotVerified, match="both go on from root-steward/journal"):
        tr.recovered(past.restored(), *replicas)


def test_a_rotation_after_a_loss_goes_on_as_any(past: tr.Past) -> None:
    """And all of it comes back, once more, where the backup is from before the loss."""
    assert isinstance(past.witness.state, tw.MemoryState)
    past.witness.state.kept.clear()
    engine = past.restored()
    tr.recovered(engine, accept=GIVE_UP)
    tr.admit(engine, "x1")
    rotating.rotate(engine, window="w9", accept=["reset-usage:ledger"])
    tr.admit(engine, "x2")
    te.witness(engine)
    replica = tr.replica_of(engine)
    again = past.restored(name="again")
    assert tr.recovered(again, replica).result == "recovered"
    assert tr.rows(again) == tr.rows(engine)
    check_works(again)
    check_works(
        te.open_engine(te.copied(te.state_of(engine).parent, past.folder / "copy"), witnesses=(tw.InProcess(),))
    )
