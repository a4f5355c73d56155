"""What an engine does with its witnesses, whatever they do (ledger.md, "The witness"; plan-apply.md, steps 4, 13, 14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fleetctl.engine import builders, calls, claims, drifting
from fleetctl.engine.apply import Unwitnessed, apply_plan
from fleetctl.engine.context import Engine
from fleetctl.engine.history import engine_history
from fleetctl.engine.ledgers import audit_engine
from fleetctl.engine.planning import Source
from fleetctl.errors import NotVerified, Unreachable, WitnessMissing
from fleetctl.ledger.chain import Head
from fleetctl.ledger.keys import Signer
from fleetctl.ledger.receipts import SKEW_MS, read_receipt
from fleetctl.model.bodies import SettingsBody
from fleetctl.pool1.grade import Grade
from fleetctl.ports import Witness, WitnessElsewhere
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support.ledgers import AT_MS, signer

A, B, C = tw.WITNESSES.values()


def engine_with(
    folder: Path, *witnesses: Witness, required: int = 0, known: Sequence[Signer] = (A, B, C), **settings: object
) -> Engine:
    """An engine with these witnesses, and settings that know A, B and C."""
    body = replace(tw.witnessed_by(*known, required=required), **settings)  # type: ignore[arg-type]  # fields of the settings, given by the tests below
    return te.new_engine(folder / "engine", body, witnesses=witnesses)


def admit(engine: Engine, claim: str) -> None:
    claims.admit(
        engine,
        claim=claim,
        entitlement="ent",
        gang_size=1,
        devices_per_member=1,
        estimate_uj=1,
        grade=Grade.ESTIMATOR,
    )


# ------------------------------------------------------------------------------------------------------- grades


def test_both_heads_are_countersigned_after_an_apply(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, tw.InProcess())
    receipt = te.applied(engine, te.one_pool(), require_witness=True)
    assert (receipt.result, receipt.witnessed.grade, receipt.witnessed.covering) == ("applied", "witnessed", 1)
    assert {(item.stream, item.length, item.verdict) for item in receipt.witnessed.receipts} == {
        ("journal", 1, "witnessed"),
        ("entitlements", 0, "witnessed"),
    }
    report = audit_engine(engine)
    assert report.ok and report.journal is not None
    assert (report.grading.grade, report.journal.grading.grade) == ("witnessed", "witnessed")


@pytest.mark.clause("pool/1 §7.16", "pool/1 §6.8 (1)")
def test_a_claim_after_the_last_receipt_lowers_the_grade_and_the_next_apply_raises_it(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, tw.InProcess())
    te.applied(engine, te.one_pool())
    admit(engine, "c1")
    te.witness(engine)
    admit(engine, "c2")
    assert audit_engine(engine).grading.grade == "witnessed-to"
    assert te.applied(engine, te.one_pool(1)).witnessed.grade == "witnessed"


def test_nothing_is_shown_before_it_is_committed(tmp_path: Path) -> None:
    """The entries that a witness is shown are the stored ones; a refused plan shows it nothing."""
    witness = tw.InProcess()
    engine = engine_with(tmp_path, witness)
    data = te.planned(engine, te.one_pool())
    te.applied(engine, te.one_pool(16))
    asked = witness.asked
    with pytest.raises(Exception, match="stale"):
        apply_plan(engine, data)
    assert witness.asked == asked


@pytest.mark.parametrize("where", ["in the settings", "by its own word"])
def test_a_co_located_witness_never_raises_the_grade(tmp_path: Path, where: str) -> None:
    """Its receipts are real, checked and kept; a required one is missing all the same (pins.md)."""
    own = tw.InProcess(co_located=where == "by its own word")
    beside = (A.kid,) if where == "in the settings" else ()
    engine = engine_with(tmp_path, own, required=1, co_located=beside)
    with pytest.raises(Unwitnessed) as caught:
        te.applied(engine, te.one_pool())
    found = caught.value.receipt.witnessed
    assert (found.grade, found.co_located, found.covering) == ("self-attested", True, 0)
    assert {(item.verdict, item.co_located) for item in found.receipts} == {("witnessed", True)}
    report = audit_engine(engine)
    assert report.ok and (report.grading.grade, report.grading.co_located) == ("self-attested", True)


# ------------------------------------------------------------------------------------------------ required number


def test_required_witnesses_are_counted_by_key_and_each_must_cover_both_heads(tmp_path: Path) -> None:
    down = tw.Down(tw.InProcess(signer=B))
    engine = engine_with(tmp_path, tw.InProcess(signer=A), down, tw.InProcess(signer=C), required=3)
    with pytest.raises(Unwitnessed) as caught:
        te.applied(engine, te.one_pool())
    error = caught.value
    assert isinstance(error, WitnessMissing) and error.exit_code == 5
    assert (error.receipt.result, error.receipt.entry, error.receipt.witnessed.covering) == ("applied", 0, 2)
    assert (error.receipt.witnessed.grade, error.receipt.witnessed.missing) == ("self-attested", (B.kid,))
    assert audit_engine(engine).grading.grade == "self-attested"
    down.answers = True
    found = te.witness(engine)
    assert (found.covering, found.grade, found.missing) == (3, "witnessed", ())
    assert audit_engine(engine).grading.grade == "witnessed"
    # Already applied, and now with its witnesses: exit 0.
    assert apply_plan(engine, _same_plan(tmp_path)).result == "already-applied"


def _same_plan(folder: Path) -> bytes:
    return te.planned(engine_with(folder / "other", required=3), te.one_pool())


def test_two_names_of_one_key_are_one_witness(tmp_path: Path) -> None:
    twin = signer("witness-b", A.kid)
    assert twin.public_key == A.public_key
    engine = engine_with(tmp_path, tw.InProcess(signer=A), tw.InProcess(signer=twin), required=2, known=(A, twin))
    with pytest.raises(Unwitnessed) as caught:
        te.applied(engine, te.one_pool())
    found = caught.value.receipt.witnessed
    assert (found.covering, found.known, found.grade) == (1, 1, "self-attested")
    assert any("1 of 2 required witnesses, counted by key" in note for note in audit_engine(engine).notes)


def test_a_key_beside_the_engine_is_so_under_every_name(tmp_path: Path) -> None:
    twin = signer("witness-b", A.kid)
    engine = engine_with(
        tmp_path, tw.InProcess(signer=A), tw.InProcess(signer=twin), known=(A, twin), co_located=(A.kid,), required=1
    )
    with pytest.raises(Unwitnessed) as caught:
        te.applied(engine, te.one_pool())
    found = caught.value.receipt.witnessed
    assert (found.covering, found.known, found.grade, found.co_located) == (0, 0, "self-attested", True)


def test_what_fewer_than_required_have_signed_is_not_witnessed(tmp_path: Path) -> None:
    """Two of two have signed the first apply, one of them the second: witnessed to the first."""
    down = tw.Down(tw.InProcess(signer=B), answers=True)
    engine = engine_with(tmp_path, tw.InProcess(signer=A), down, required=2)
    te.applied(engine, te.one_pool())
    down.answers = False
    with pytest.raises(Unwitnessed) as caught:
        te.applied(engine, te.one_pool(1))
    assert caught.value.receipt.witnessed.grade == "witnessed-to"
    report = audit_engine(engine).journal
    assert report is not None and (report.grading.grade, report.grading.witnessed_length) == ("witnessed-to", 1)
    assert [item.witnessed for item in engine_history(engine, None).entries] == [True, False]


def test_a_witness_that_hangs_is_waited_for_once_in_each_phase(tmp_path: Path) -> None:
    """Not once for each ledger: before the commit it is asked one question, after it one."""
    asked: list[str] = []

    @dataclass
    class Hanging(Refusing):
        def head(self, ledger: str) -> bytes | None:
            asked.append("head")
            raise Unreachable(tw.TEST_WITNESS.at("no answer in time"))

        def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
            asked.append("advance")
            raise Unreachable(tw.TEST_WITNESS.at("no answer in time"))

    engine = engine_with(tmp_path, Hanging(), tw.InProcess(signer=B))
    receipt = te.applied(engine, te.one_pool())
    assert asked == ["head", "advance"]
    assert receipt.witnessed.covering == 1 and len(receipt.witnessed.notes) == 1


@pytest.mark.parametrize("required", [0, 1])
def test_a_missing_witness_is_exit_5_only_where_one_is_required(tmp_path: Path, required: int) -> None:
    engine = engine_with(tmp_path, tw.Down(tw.InProcess()), required=required)
    data = te.planned(engine, te.one_pool())
    for expected in ("applied", "already-applied"):
        if required:
            with pytest.raises(Unwitnessed) as caught:
                apply_plan(engine, data)
            receipt = caught.value.receipt
        else:
            receipt = apply_plan(engine, data)
        assert (receipt.result, receipt.entry) == (expected, 0)
        assert receipt.witnessed.grade == "self-attested"
        assert any("it does not answer" in note for note in receipt.witnessed.notes)
    with pytest.raises(Unwitnessed):
        apply_plan(engine, data, require_witness=True)
    te.check_whole(engine)


def test_ledger_witness_finishes_what_was_missed_however_much_it_is(tmp_path: Path) -> None:
    down = tw.Down(tw.InProcess())
    engine = engine_with(tmp_path, down)
    for gpus in range(5):
        te.applied(engine, te.one_pool(gpus + 1))
        admit(engine, f"c{gpus}")
    assert te.witness(engine).grade == "self-attested"
    down.answers = True
    found = te.witness(engine)
    assert (found.grade, found.covering, found.notes) == ("witnessed", 1, ())
    assert {(item.stream, item.length) for item in found.receipts} == {("journal", 5), ("entitlements", 5)}
    assert te.witness(engine) == found


def test_a_call_is_witnessed_like_an_apply(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, tw.InProcess())
    te.applied(engine, te.one_pool())
    build = builders.unoffering(te.POOL_A, "acme")
    receipt = calls.call(engine, "pools.unoffer", tenant="root", request={}, build=build)
    assert (receipt.entry, receipt.witnessed.grade) == (1, "witnessed")


@dataclass
class Slow:
    """A witness that lets something happen while it is asked."""

    behind: tw.InProcess
    meanwhile: Callable[[], object]
    co_located: bool = False

    @property
    def id(self) -> str:
        return self.behind.id

    def head(self, ledger: str) -> bytes | None:
        self.meanwhile()
        return self.behind.head(ledger)

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        self.meanwhile()
        return self.behind.advance(ledger, old_length, old_head, entries)


def test_a_slow_witness_holds_nobody_up(tmp_path: Path) -> None:
    """No lock is held while a witness is asked: others apply, and the receipt still covers this apply."""
    behind = tw.InProcess()
    engine = engine_with(tmp_path, behind)
    te.applied(engine, te.fleet(name="base"))
    other, turns = te.open_engine(tmp_path / "engine"), []

    def another_applies() -> None:
        turns.append(1)
        te.applied(other, te.fleet(te.pool(f"p{len(turns)}"), name=f"f{len(turns)}"), wait_ms=0)

    slow = replace_witness(engine, Slow(behind, another_applies))
    receipt = te.applied(slow, te.one_pool(), require_witness=True)
    assert (receipt.result, receipt.witnessed.covering) == ("applied", 1)
    assert len(turns) == 3  # asked for both streams before, shown the journal after
    te.check_whole(engine)


# --------------------------------------------------------------------------------------------- witnesses that err


def wrong_head(head: Head) -> Head:
    return replace(head, address=bytes(32))


def longer(head: Head) -> Head:
    return replace(head, length=head.length + 1)


def other_ledger(head: Head) -> Head:
    return replace(head, ledger=type(head.ledger)("root-steward/other"))


SAYING = {
    "another head": (tw.Saying(wrong_head), "fork"),
    "a longer ledger": (tw.Saying(longer), "ahead"),
    "another ledger": (tw.Saying(other_ledger), "wrong-ledger"),
    "the future": (tw.Saying(lambda head: head, at_ms=AT_MS + SKEW_MS + 1), "future"),
    "with the steward's key": (tw.Saying(lambda head: head, signer=signer(A.kid, te.STEWARD.kid)), "not-independent"),
    "with a key nobody knows": (tw.Saying(lambda head: head, signer=signer(A.kid, "x")), "bad-signature"),
    "under a name nobody knows": (tw.Saying(lambda head: head, signer=signer("witness-z")), "unknown-witness"),
}


@pytest.mark.parametrize("name", SAYING)
def test_what_a_witness_says_wrongly_is_noted_and_never_kept(tmp_path: Path, name: str) -> None:
    saying, verdict = SAYING[name]
    witness = replace(saying, newest={})
    engine = engine_with(tmp_path, witness, required=1)
    with pytest.raises(Unwitnessed) as caught:
        te.applied(engine, te.one_pool())
    found = caught.value.receipt.witnessed
    assert (found.grade, found.covering, found.receipts) == ("self-attested", 0, ())
    assert any(verdict in note for note in found.notes), found.notes
    te.check_whole(engine)
    assert audit_engine(replace(engine, witnesses=())).ok  # nothing of it was kept
    assert drifting.drift_fleet(engine, te.one_pool(), Source(), full=True).result == "none"


def test_a_receipt_for_an_older_head_counts_for_that_and_no_more(tmp_path: Path) -> None:
    witness = tw.InProcess()
    engine = engine_with(tmp_path, witness)
    te.applied(engine, te.one_pool())
    stuck = replace_witness(engine, Stuck(witness))
    receipt = te.applied(stuck, te.one_pool(1))
    assert (receipt.witnessed.grade, receipt.witnessed.covering) == ("witnessed-to", 0)
    assert {(item.length, item.verdict) for item in receipt.witnessed.receipts if item.stream == "journal"} == {
        (1, "prefix")
    }
    with pytest.raises(Unwitnessed):
        te.applied(stuck, te.one_pool(2), require_witness=True)


def replace_witness(engine: Engine, *witnesses: Witness) -> Engine:
    return replace(engine, witnesses=witnesses)


@dataclass
class Stuck:
    """A witness that answers every question with its newest receipt."""

    behind: tw.InProcess
    co_located: bool = False

    @property
    def id(self) -> str:
        return self.behind.id

    def head(self, ledger: str) -> bytes | None:
        return self.behind.head(ledger)

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        found = self.behind.head(ledger)
        assert found is not None
        return found


@dataclass
class Answering:
    """A witness that answers whatever it is told to, to everything."""

    answer: bytes
    co_located: bool = False
    id: str = A.kid

    def head(self, ledger: str) -> bytes | None:
        return self.answer

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        return self.answer


@pytest.mark.parametrize("answer", [b"", b"\x00", b"<html>", b"\xd2" * 100, bytes(5_000), b"\xff" * 20])
def test_an_answer_that_is_no_receipt_changes_nothing(tmp_path: Path, answer: bytes) -> None:
    engine = engine_with(tmp_path, Answering(answer))
    receipt = te.applied(engine, te.one_pool())
    assert (receipt.result, receipt.witnessed.grade) == ("applied", "self-attested")
    assert te.applied(engine, te.one_pool(1)).result == "applied"


@dataclass
class Refusing:
    """A witness that refuses everything with an error of ours, of any kind."""

    error: type[BaseException] = NotVerified
    co_located: bool = False
    id: str = A.kid
    asked: list[str] = field(default_factory=list)

    def head(self, ledger: str) -> bytes | None:
        return None

    def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
        self.asked.append(ledger)
        raise self.error(tw.TEST_WITNESS.at("refused"))


def test_a_witness_that_refuses_stands_in_nobodys_way(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, Refusing(), tw.InProcess(signer=B))
    receipt = te.applied(engine, te.one_pool(), require_witness=True)
    assert (receipt.witnessed.grade, receipt.witnessed.covering) == ("witnessed", 1)
    assert [note for note in receipt.witnessed.notes if "refused" in note]


def test_an_interrupt_while_witnesses_are_asked_leaves_the_apply_as_it_is(tmp_path: Path) -> None:
    """Only before the commit does an interrupt mean that nothing was done; what came before it is kept."""
    interrupting = Refusing(error=KeyboardInterrupt)
    engine = engine_with(tmp_path, tw.InProcess(signer=B), interrupting, tw.InProcess(signer=C))
    receipt = te.applied(engine, te.one_pool())
    assert (receipt.result, receipt.witnessed.covering) == ("applied", 1)
    assert any("interrupted" in note for note in receipt.witnessed.notes)
    assert len(interrupting.asked) == 1


def test_a_witness_that_signed_twice_for_one_length_is_found_by_its_receipts(tmp_path: Path) -> None:
    """ledger.md: `witness-equivocation` (one witness, one length, two heads): verification and drift say so."""
    folder = tmp_path / "engine"
    engine = engine_with(tmp_path, tw.InProcess())
    te.applied(engine, te.one_pool())
    other = te.new_engine(tmp_path / "second", tw.witnessed_by(A), witnesses=(tw.InProcess(),))
    te.applied(other, te.one_pool(1))
    with other.store.read() as reader:
        (foreign,) = reader.receipts("journal")
    with engine.store.write(0) as writer:
        writer.put_receipt(foreign)
    report = audit_engine(engine).journal
    assert report is not None and not report.ok
    assert {item.verdict for item in report.receipts} == {"witness-equivocation"}
    assert drifting.drift_fleet(engine, te.one_pool(), Source(), full=True).result == "tampered"
    assert folder.exists()


# ------------------------------------------------------------------------------------------- lost receipts, lag


def test_receipts_that_were_lost_are_fetched_again(tmp_path: Path) -> None:
    """The witness has signed, the answer was never kept: it is asked again from where it is."""
    witness = tw.InProcess()
    engine = engine_with(tmp_path, witness)
    for gpus in range(1, 4):
        te.applied(engine, te.one_pool(gpus))
    engine.store.close()
    te.edit(tmp_path / "engine", "DELETE FROM receipts")
    engine = te.open_engine(tmp_path / "engine", witnesses=(witness,))
    found = te.witness(engine)
    assert (found.grade, found.covering, found.notes) == ("witnessed", 1, ())


def test_receipts_that_were_damaged_are_fetched_again(tmp_path: Path) -> None:
    witness = tw.InProcess()
    engine = engine_with(tmp_path, witness)
    te.applied(engine, te.one_pool())
    engine.store.close()
    te.edit(tmp_path / "engine", "UPDATE receipts SET sealed = zeroblob(80)")
    engine = te.open_engine(tmp_path / "engine", witnesses=(witness,))
    assert te.witness(engine).covering == 1


def test_a_witness_that_forgot_is_shown_everything_again(tmp_path: Path) -> None:
    """An older backup of its state: it says where it is, and is brought forward from there."""
    witness = tw.InProcess()
    assert isinstance(witness.state, tw.MemoryState)
    engine = engine_with(tmp_path, witness)
    te.applied(engine, te.one_pool(1))
    forgotten = dict(witness.state.heads)
    te.applied(engine, te.one_pool(2))
    witness.state.heads.clear()
    witness.state.heads.update(forgotten)
    assert te.applied(engine, te.one_pool(3), require_witness=True).witnessed.grade == "witnessed"


def test_the_word_of_a_witness_that_is_further_is_enough(tmp_path: Path) -> None:
    """Another process showed it more meanwhile, and moves it on at every turn: its receipt covers this head as well."""

    @dataclass
    class Further(Refusing):
        behind: tw.InProcess = field(default_factory=tw.InProcess)

        def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
            receipt = self.behind.head(ledger)
            assert receipt is not None
            said = read_receipt(receipt)[0]
            raise WitnessElsewhere(tw.TEST_WITNESS.at("elsewhere"), length=said.length, head=said.head, receipt=receipt)

    further = Further()
    engine = engine_with(tmp_path, further.behind)
    te.applied(engine, te.one_pool(1))
    te.applied(engine, te.one_pool(2))
    engine.store.close()
    te.edit(tmp_path / "engine", "DELETE FROM receipts")
    engine = te.open_engine(tmp_path / "engine", witnesses=(further,))
    assert (te.witness(engine).covering, te.witness(engine).notes) == (1, ())


def test_a_witness_elsewhere_on_another_chain_is_not_followed(tmp_path: Path) -> None:
    @dataclass
    class Elsewhere(Refusing):
        def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
            self.asked.append(ledger)
            raise WitnessElsewhere(tw.TEST_WITNESS.at("elsewhere"), length=1, head=bytes(32), receipt=None)

    elsewhere = Elsewhere()
    engine = engine_with(tmp_path, elsewhere)
    receipt = te.applied(engine, te.one_pool())
    assert receipt.witnessed.grade == "self-attested"
    assert len(elsewhere.asked) == 2  # once for each ledger


def test_a_witness_that_always_says_it_is_elsewhere_is_left_alone_in_the_end(tmp_path: Path) -> None:
    @dataclass
    class Moving(Refusing):
        def advance(self, ledger: str, old_length: int, old_head: bytes, entries: Sequence[bytes]) -> bytes:
            self.asked.append(ledger)
            genesis = te.genesis_of(ledger.partition("/")[2])
            raise WitnessElsewhere(tw.TEST_WITNESS.at("elsewhere"), length=0, head=genesis, receipt=None)

    moving = Moving()
    engine = engine_with(tmp_path, moving)
    assert te.applied(engine, te.one_pool()).witnessed.grade == "self-attested"
    assert len(moving.asked) < 10


def test_a_long_history_is_shown_in_chunks(tmp_path: Path) -> None:
    """A witness reads 1,000 entries at once (ledger.md); each run is a legal advance."""
    down = tw.Down(tw.InProcess())
    engine = engine_with(tmp_path, down)
    te.applied(engine, te.one_pool())
    te.append_claims(engine, 1_100)
    down.answers = True
    found = te.witness(engine)
    assert (found.grade, found.notes) == ("witnessed", ())


def test_settings_without_the_witness_make_its_word_nobodys(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine", SettingsBody(), witnesses=(tw.InProcess(),))
    receipt = te.applied(engine, te.one_pool())
    assert (receipt.witnessed.grade, receipt.witnessed.receipts) == ("self-attested", ())
    assert any("unknown-witness" in note for note in receipt.witnessed.notes)
