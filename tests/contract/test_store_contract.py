"""What every `ports.Store` does, whichever database is behind it."""

from __future__ import annotations

import hashlib
import multiprocessing
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetctl.canonical import canonical_json, sha256_hex
from fleetctl.errors import BadInput, Busy, SafetyRefused
from fleetctl.model.changes import AuthzRow, Event, QuotaRow
from fleetctl.model.ids import KINDS, ObjectId
from fleetctl.model.live import FleetRecord, LiveObject, ObjectKey, Tombstone
from fleetctl.model.operational import ClaimRow, Node, Observation, Reservation, ReservationState, WorkReport
from fleetctl.ports import HeadMoved, Store, StoredReceipt, StreamHead
from tests.support.stores import IMPLEMENTATIONS, Implementation, pool

GENESIS = hashlib.sha256(b"genesis").digest()
WAIT = 10_000


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
def kind(request: pytest.FixtureRequest) -> Implementation:
    return IMPLEMENTATIONS[request.param]


@pytest.fixture
def store(kind: Implementation, tmp_path: Path) -> Iterator[Store]:
    made = kind.create(tmp_path)
    yield made
    made.close()


def address(sealed: bytes) -> bytes:
    return hashlib.sha256(sealed).digest()


def append_all(store: Store, stream: str, entries: list[bytes]) -> None:
    with store.write(WAIT) as writer:
        for sealed in entries:
            at = writer.stream(stream)
            assert at is not None
            writer.append(stream, expected_length=at.length, expected_head=at.head, entries=[(sealed, address(sealed))])


def with_stream(store: Store, entries: list[bytes], stream: str = "journal") -> None:
    with store.write(WAIT) as writer:
        writer.open_stream(stream, f"root/{stream}", GENESIS)
    append_all(store, stream, entries)


def tombstone(key: str, version: int, **more: str) -> Tombstone:
    return Tombstone(kind="pool", id=ObjectId(f"pool_{key}"), version=version, key=key, name=f"Pool {key}", **more)


def reservation(id: str, state: ReservationState, gpus: int = 2, pool: str = "pool_a", **more: object) -> Reservation:
    return Reservation(
        id=ObjectId(id),
        tenant="acme",
        pool=ObjectId(pool),
        gpus=gpus,
        state=state,
        created_at_ms=int(id[-1]),
        **more,  # type: ignore[arg-type]  # keywords of Reservation, given by the tests below
    )


# ------------------------------------------------------------------------------------------------ configuration


def test_a_new_store_is_empty(store: Store) -> None:
    with store.read() as reader:
        assert reader.meta("engine") is None
        assert reader.schema_version() >= 1
        assert [*reader.objects(), *reader.fleets(), *reader.documents(), *reader.nodes()] == []
        assert reader.streams() == [] and reader.stream("journal") is None
        assert list(reader.entries("journal")) == []
        assert reader.receipts() == [] and reader.checkpoint("journal") is None


def test_meta_is_replaced(store: Store) -> None:
    with store.write(WAIT) as writer:
        writer.set_meta("engine", "eng_1")
        writer.set_meta("engine", "eng_2")
    with store.read() as reader:
        assert reader.meta("engine") == "eng_2"


texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20)
live_objects = st.builds(
    LiveObject,
    kind=st.sampled_from(KINDS),
    id=texts.map(ObjectId),
    tenant=texts,
    key=texts,
    name=texts,
    version=st.integers(1, 2**63 - 1),
    body_json=st.dictionaries(texts, texts).map(canonical_json),
    fleet=st.none() | texts,
    protect=st.booleans(),
    archived=st.booleans(),
    explicit_only=st.booleans(),
    last_applied_json=st.none() | st.dictionaries(texts, texts).map(canonical_json),
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(live_objects, unique_by=lambda item: (item.kind, item.id), max_size=8))
def test_objects_come_back_as_they_were_put(store: Store, objects: list[LiveObject]) -> None:
    """architecture.md, "Declared kinds": one table, its digest beside each object."""
    with store.write(WAIT) as writer:
        writer.clear_index()
        writer.put_objects(objects)
    expected = sorted(objects, key=lambda item: (item.kind, item.id.encode()))
    with store.read() as reader:
        assert list(reader.objects()) == expected
        assert list(reader.stored_digests()) == [((item.kind, item.id), item.digest()) for item in expected]
        assert [reader.object(item.kind, item.id) for item in expected] == expected


def test_an_object_is_replaced_with_its_digest(store: Store) -> None:
    new = pool("a", version=2, name="other", fleet="f", protect=True, last_applied_json="{}")
    with store.write(WAIT) as writer:
        writer.put_objects([pool("a")])
        writer.put_objects([new])
    with store.read() as reader:
        assert list(reader.objects()) == [new]
        assert list(reader.stored_digests()) == [(("pool", new.id), new.digest())]
        assert reader.object("offer", new.id) is None


def test_a_dropped_object_leaves_its_last_version(store: Store) -> None:
    """plan-apply.md, step 7: versions survive removal."""
    first, never = tombstone("a", 7, fleet="f", last_applied_json="{}"), tombstone("never", 1)
    with store.write(WAIT) as writer:
        writer.put_objects([pool("a", version=7), pool("b", version=2)])
        writer.drop_objects(iter([never, first]))
        assert list(writer.tombstones()) == [first, never]
        writer.put_objects([pool("a", version=8)])
    second = tombstone("a", 8)
    with store.write(WAIT) as writer:
        assert list(writer.tombstones()) == [first, never]
        writer.drop_objects([second])
    with store.read() as reader:
        assert list(reader.tombstones()) == [second, never]
        assert [item.key for item in reader.objects()] == ["b"]


def test_quotas_authorization_and_fleets(store: Store) -> None:
    owned, offered = [
        AuthzRow(
            pool=ObjectId("pool_a"),
            tenant=tenant,
            gpu_model="H100",
            pool_class="reserved",
            sharing="exclusive",
            region="fra",
            owned=tenant == "acme",
        )
        for tenant in ("acme", "beta")
    ]
    bare = FleetRecord(entry=3)
    full = FleetRecord(entry=4, commit="c0ffee", origin=("root", ""))
    with store.write(WAIT) as writer:
        for maximum in (8, 2**63 - 1):
            row = QuotaRow(pool=ObjectId("pool_a"), tenant="beta", resource="gpu", maximum=maximum)
            writer.put_quotas([row])
        writer.put_authz([offered, owned])
        writer.put_authz([owned])
        writer.put_fleet("one", full)
        writer.put_fleet("one", bare)
        writer.put_fleet("two", full)
    with store.write(WAIT) as writer:
        assert list(writer.quotas()) == [row]
        assert list(writer.authz()) == [owned, offered]
        assert list(writer.fleets()) == [("one", bare), ("two", full)]
        writer.drop_authz([(ObjectId("pool_a"), "acme"), (ObjectId("pool_b"), "beta")])
    with store.read() as reader:
        assert list(reader.authz()) == [offered]


def test_event_numbers_rise_in_commit_order(store: Store) -> None:
    made = [
        Event(type="pool.created", object=f"pool/{n}", tenant="acme", data={"n": n, "ä": ["x", True]}) for n in range(5)
    ]
    with store.write(WAIT) as writer:
        writer.add_events(made[:2], 10)
        writer.add_events(made[2:3], 11)
    with pytest.raises(KeyError), store.write(WAIT) as writer:
        writer.add_events(made, 12)
        raise KeyError
    with store.write(WAIT) as writer:
        writer.add_events(made[3:], 13)
    with store.read() as reader:
        found = reader.events(0, 100)
        assert [(item.seq, item.at_ms) for item in found] == [(1, 10), (2, 10), (3, 11), (4, 13), (5, 13)]
        assert [item.event for item in found] == made
        assert [item.seq for item in reader.events(2, 2)] == [3, 4]
        assert reader.events(5, 10) == [] and reader.events(0, 0) == []


# -------------------------------------------------------------------------------------------------- what runs


def test_nodes_and_their_gpus(store: Store) -> None:
    big = Node(
        id=ObjectId("node_1"),
        pool=ObjectId("pool_a"),
        name="n1",
        gpus=8,
        joined_at_ms=5,
        product="NVIDIA H100 80GB HBM3",
        vram_gib=80,
        vcpu=192,
        memory_gib=2048,
    )
    small = Node(id=ObjectId("node_2"), pool=ObjectId("pool_a"), name="n2", gpus=4, joined_at_ms=6)
    other = Node(id=ObjectId("node_3"), pool=ObjectId("pool_b"), name="n3", gpus=1, joined_at_ms=6)
    with store.write(WAIT) as writer:
        for node in (other, small, big):
            writer.put_node(node)
        assert list(writer.nodes()) == [big, small, other]
        assert list(writer.inventory_gpus()) == [("pool_a", 12), ("pool_b", 1)]
        writer.drop_node("node_3")
    with store.read() as reader:
        assert list(reader.inventory_gpus()) == [("pool_a", 12)]


def test_only_active_reservations_are_booked(store: Store) -> None:
    """pins and `ports.Reader.booked`: pending ones hold nothing yet, ended and failed ones nothing any more."""
    full = reservation(
        "res_1",
        "active",
        key="k",
        entitlement=ObjectId("ent_1"),
        claim="c1",
        placement=((ObjectId("node_2"), 1), (ObjectId("node_1"), 1)),
    )
    rest = [
        reservation("res_2", "active", 3),
        reservation("res_3", "pending", 5, reason="no room"),
        reservation("res_4", "failed", 7),
        reservation("res_5", "active", 11, pool="pool_b"),
    ]
    with store.write(WAIT) as writer:
        for item in [*rest, full]:
            writer.put_reservation(item)
    with store.read() as reader:
        assert list(reader.reservations()) == [full, *rest]
        assert reader.reservation("res_1") == full and reader.reservation("res_9") is None
        booked = {key: (use.reservations, dict(use.resources)) for key, use in reader.booked()}
    assert booked == {("pool_a", "acme"): (2, {"gpu": 5}), ("pool_b", "acme"): (1, {"gpu": 11})}
    with store.write(WAIT) as writer:
        writer.put_reservation(reservation("res_5", "ended", 11, pool="pool_b", ended_at_ms=9))
    with store.read() as reader:
        assert [key for key, _ in reader.booked()] == [("pool_a", "acme")]


# ---------------------------------------------------------------------------------------------------- ledgers


def test_a_stream_grows_by_its_entries(store: Store) -> None:
    sealed = [b"entry %d" % number for number in range(2_500)]
    with_stream(store, sealed)
    with_stream(store, [], "entitlements")
    with store.read() as reader:
        expected = StreamHead(stream="journal", ledger="root/journal", length=2_500, head=address(sealed[-1]))
        empty = StreamHead(stream="entitlements", ledger="root/entitlements", length=0, head=GENESIS)
        assert reader.stream("journal") == expected
        assert reader.streams() == [empty, expected]
        assert list(reader.entries("journal")) == sealed
        assert list(reader.entries("journal", 999, 2_001)) == sealed[999:2_001]
        assert list(reader.entries("journal", 2_499)) == sealed[-1:]
        assert list(reader.entries("journal", 2_500)) == list(reader.entries("entitlements")) == []


def test_two_appenders_of_one_head_have_one_winner(store: Store) -> None:
    with_stream(store, [b"0"])
    before = address(b"0")
    append_all(store, "journal", [b"1"])
    for length, head in ((1, before), (2, before), (1, address(b"1")), (3, address(b"1"))):
        with pytest.raises(HeadMoved) as caught, store.write(WAIT) as writer:
            writer.append("journal", expected_length=length, expected_head=head, entries=[(b"x", address(b"x"))])
        assert (caught.value.current.length, caught.value.current.head) == (2, address(b"1"))
    with store.read() as reader:
        assert list(reader.entries("journal")) == [b"0", b"1"]


def test_a_closed_stream_does_not_grow(store: Store) -> None:
    with_stream(store, [b"0"])
    with store.write(WAIT) as writer:
        writer.close_stream("journal")
    with pytest.raises(HeadMoved) as caught:
        append_all(store, "journal", [b"1"])
    assert caught.value.current.closed
    with pytest.raises(SafetyRefused, match="state-constraint"), store.write(WAIT) as writer:
        writer.open_stream("journal", "root/journal", GENESIS)
    with store.write(WAIT) as writer, pytest.raises(LookupError, match="none"):
        writer.append("none", expected_length=0, expected_head=GENESIS, entries=[(b"", GENESIS)])


def test_a_stream_that_is_put_back_goes_on_from_there(store: Store) -> None:
    """What a recovery does with a damaged or a closed one, in the transaction that mends it."""
    with_stream(store, [b"0", b"1", b"2"])
    with store.write(WAIT) as writer:
        writer.close_stream("journal")
    with store.write(WAIT) as writer:
        writer.rewind("journal", 1, b"a" * 32)
        writer.append("journal", expected_length=1, expected_head=b"a" * 32, entries=[(b"other", b"b" * 32)])
    with store.read() as reader:
        assert list(reader.entries("journal")) == [b"0", b"other"]
        found = reader.stream("journal")
    assert found is not None and (found.length, found.head, found.closed) == (2, b"b" * 32, False)


def test_the_journal_index(store: Store) -> None:
    a: ObjectKey = ("pool", ObjectId("pool_a"))
    b: ObjectKey = ("tenant", ObjectId("acme"))
    with store.write(WAIT) as writer:
        writer.index_journal(0, [a, b], "plan-1")
        writer.index_journal(1, [a, a], None)
    with store.read() as reader:
        assert list(reader.journal_touching(*a)) == [0, 1] and list(reader.journal_touching(*b)) == [0]
        assert reader.journal_touching("offer", "pool_a") == []
        assert reader.applied_entry("plan-1") == 0 and reader.applied_entry("plan-2") is None


def test_a_plan_has_one_entry_and_a_failed_write_is_never_committed(store: Store) -> None:
    """plan-apply.md: at most one `applied` entry; the same when the failure is caught inside."""
    with store.write(WAIT) as writer:
        writer.index_journal(0, [], "plan-1")
    with pytest.raises(SafetyRefused, match="state-constraint"), store.write(WAIT) as writer:
        writer.set_meta("touched", "yes")
        with pytest.raises(SafetyRefused, match="state-constraint"):
            writer.index_journal(1, [], "plan-1")
    with store.read() as reader:
        assert reader.applied_entry("plan-1") == 0 and reader.meta("touched") is None
    with store.write(WAIT) as writer:
        writer.set_meta("touched", "later")


def test_documents_lie_under_their_digests(store: Store) -> None:
    contents = sorted((b"document %d" % number for number in range(40)), key=sha256_hex)
    with store.write(WAIT) as writer:
        for content in [*contents, *contents]:
            writer.put_document(sha256_hex(content), content)
        with pytest.raises(ValueError, match="another digest"):
            writer.put_document(sha256_hex(b"x"), b"y")
    with store.read() as reader:
        assert list(reader.documents()) == [(sha256_hex(content), content) for content in contents]
        assert reader.document(sha256_hex(contents[0])) == contents[0]
        assert reader.document(sha256_hex(b"x")) is None


def test_receipts_are_all_kept(store: Store) -> None:
    """ledger.md, "The witness": one witness, one length, two heads: both kept."""
    first, second = (
        StoredReceipt(stream="journal", witness="w", length=3, head=head, at_ms=at_ms, sealed=b"sealed" + head)
        for at_ms, head in ((1, b"h1"), (2, b"h2"))
    )
    other = StoredReceipt(stream="entitlements", witness="w", length=9, head=b"h3", at_ms=1, sealed=b"s")
    with store.write(WAIT) as writer:
        for receipt in (second, first, other, first):
            writer.put_receipt(receipt)
    with store.read() as reader:
        assert reader.receipts("journal") == [first, second]
        assert reader.receipts() == [other, first, second]


def test_checkpoints_and_claims(store: Store) -> None:
    open_claim = ClaimRow(stream="entitlements", claim="c2", entitlement="ent_1", admitted_at=4)
    ended = ClaimRow(stream="entitlements", claim="c1", entitlement="ent_1", admitted_at=5, released_at=6)
    elsewhere = ClaimRow(stream="entitlements:2026w50", claim="c1", entitlement="ent_1", admitted_at=0)
    with store.write(WAIT) as writer:
        writer.put_checkpoint("entitlements", 3, b"old")
        writer.put_checkpoint("entitlements", 5, b"new")
        for row in (ClaimRow(stream="entitlements", claim="c1", entitlement="ent_1", admitted_at=5), elsewhere):
            writer.put_claims([row])
        writer.put_claims([ended])
        writer.put_claims([open_claim])
    with store.read() as reader:
        assert reader.checkpoint("entitlements") == b"new"
        assert list(reader.claims("entitlements")) == [open_claim, ended]
        assert reader.claim("entitlements", "c1") == ended
        assert reader.claim("entitlements:2026w50", "c1") == elsewhere
        assert reader.claim("entitlements", "c3") is None


def test_a_report_replaces_the_claims_last_one(store: Store) -> None:
    """issue: `claims report` records what running work did; the last word counts, for each claim of each stream."""
    seen = Observation(observed_ms=600_000, energy_uj=2**63 - 1, weight_zero=True)
    first, other = (
        WorkReport(stream="entitlements", claim=claim, completed_units=1, spent_uj=5, grade="Estimator", at_ms=7)
        for claim in ("c2", "c1")
    )
    later = replace(first, completed_units=2**63 - 1, spent_uj=6, grade="HwShunt", at_ms=8, observation=seen)
    elsewhere = replace(first, stream="entitlements:2026w50", observation=replace(seen, weight_zero=False))
    with store.write(WAIT) as writer:
        for report in (first, elsewhere, later, other, later):
            writer.put_report(report)
        writer.clear_index()
    with store.write(WAIT) as writer:
        assert list(writer.reports("entitlements")) == [other, later]
        assert writer.report("entitlements:2026w50", "c2") == elsewhere
        assert writer.report("entitlements", "c3") is None
        writer.drop_report("entitlements", "c2")
        writer.drop_report("entitlements", "c3")
    with store.read() as reader:
        assert list(reader.reports("entitlements")) == [other]
        assert list(reader.reports("entitlements:2026w50")) == [elsewhere]


def test_clearing_the_index_leaves_what_it_is_made_from(store: Store) -> None:
    """architecture.md, rule 8: tables of declared objects are an index of the journal's documents."""
    with_stream(store, [b"0"])
    with store.write(WAIT) as writer:
        writer.set_meta("engine", "eng_1")
        writer.put_objects([pool("a"), pool("b")])
        writer.drop_objects([tombstone("b", 1)])
        writer.put_quotas([QuotaRow(pool=ObjectId("pool_a"), tenant="acme", resource="gpu", maximum=1)])
        writer.put_fleet("one", FleetRecord(entry=0))
        writer.index_journal(0, [("pool", ObjectId("pool_a"))], "plan-1")
        writer.put_claims([ClaimRow(stream="entitlements", claim="c", entitlement="e", admitted_at=0)])
        writer.put_checkpoint("entitlements", 1, b"sealed")
        writer.put_document(sha256_hex(b"d"), b"d")
        writer.put_reservation(reservation("res_1", "active"))
        writer.add_events([Event(type="pool.created", object="pool/a", tenant="acme")], 1)
    with store.write(WAIT) as writer:
        writer.clear_index()
    with store.read() as reader:
        for emptied in (reader.objects(), reader.tombstones(), reader.quotas(), reader.fleets(), reader.authz()):
            assert list(emptied) == []
        assert list(reader.claims("entitlements")) == [] and reader.checkpoint("entitlements") is None
        assert reader.applied_entry("plan-1") is None and reader.journal_touching("pool", "pool_a") == []
        assert list(reader.entries("journal")) == [b"0"] and reader.document(sha256_hex(b"d")) == b"d"
        assert reader.meta("engine") == "eng_1" and len(list(reader.reservations())) == len(reader.events(0, 9)) == 1


# ----------------------------------------------------------------------------------------------- transactions


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_transaction_that_raises_leaves_nothing(store: Store, error: type[BaseException]) -> None:
    with pytest.raises(error), store.write(WAIT) as writer:
        writer.set_meta("engine", "eng_1")
        writer.put_objects([pool("a")])
        raise error
    with store.read() as reader:
        assert reader.meta("engine") is None and list(reader.objects()) == []


def test_a_reading_is_of_one_moment_and_waits_for_nobody(store: Store) -> None:
    """plan-apply.md, "Apply": `plan`, `drift` and readers never block on an apply."""
    with store.read() as before:
        with store.write(WAIT) as writer:
            writer.set_meta("engine", "eng_1")
            assert writer.meta("engine") == "eng_1"
            with store.read() as during:
                assert during.meta("engine") is None
        assert before.meta("engine") is None
        with store.read() as after:
            assert after.meta("engine") == "eng_1"
        assert before.meta("engine") is None


def test_nothing_outlives_its_transaction(store: Store) -> None:
    with_stream(store, [b"0"])
    with store.read() as reader:
        entries = reader.entries("journal")
    with pytest.raises(RuntimeError, match="has ended"):
        list(entries)
    with store.write(WAIT) as writer:
        pass
    with pytest.raises(RuntimeError, match="has ended"):
        writer.set_meta("a", "b")


def test_a_closed_store_is_not_used(kind: Implementation, tmp_path: Path) -> None:
    store = kind.create(tmp_path)
    store.close()
    with pytest.raises(RuntimeError, match="closed"), store.read():
        pass
    with pytest.raises(RuntimeError, match="closed"), store.write(WAIT):
        pass


def test_what_was_committed_is_there_after_reopening(kind: Implementation, tmp_path: Path) -> None:
    store = kind.create(tmp_path)
    with store.write(WAIT) as writer:
        writer.put_objects([pool("a")])
    store.close()
    again = kind.open(tmp_path)
    with again.read() as reader:
        assert list(reader.objects()) == [pool("a")]
    again.close()


def test_creating_over_a_store_in_use_changes_nothing(kind: Implementation, tmp_path: Path) -> None:
    store = kind.create(tmp_path)
    with store.write(WAIT) as writer:
        writer.set_meta("engine", "eng_1")
    with pytest.raises(SafetyRefused, match="engine-exists"):
        kind.create(tmp_path)
    with store.read() as reader:
        assert reader.meta("engine") == "eng_1"
    store.close()


def _create_and_name(kind: str, folder: Path, name: str) -> None:
    try:
        store = IMPLEMENTATIONS[kind].create(folder)
        with store.write(WAIT) as writer:
            if writer.meta("engine") is None:
                writer.set_meta("engine", name)
        store.close()
    except SafetyRefused:
        pass


@pytest.mark.parametrize("name", sorted(IMPLEMENTATIONS))
def test_of_many_creations_at_once_one_engine_comes(name: str, tmp_path: Path) -> None:
    """None removes or overwrites what another has made."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_create_and_name, args=(name, tmp_path, f"eng_{n}")) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    store = IMPLEMENTATIONS[name].open(tmp_path)
    with store.read() as reader:
        assert reader.meta("engine") in {f"eng_{n}" for n in range(4)}
    store.close()


def test_a_second_writer_waits_and_then_says_busy(kind: Implementation, store: Store, tmp_path: Path) -> None:
    other = kind.open(tmp_path)
    with store.write(WAIT) as writer:
        writer.set_meta("by", "first")
        for second in (store, other):
            with pytest.raises(Busy, match="state-busy") as caught, second.write(50):
                pass
            assert caught.value.exit_code == 4
    with other.write(0) as writer:
        assert writer.meta("by") == "first"
    other.close()


def test_a_waiting_writer_follows_the_one_before_it(kind: Implementation, store: Store, tmp_path: Path) -> None:
    other = kind.open(tmp_path)
    begun, seen = threading.Event(), list[str | None]()

    def follow(second: Store) -> None:
        begun.set()
        with second.write(WAIT) as writer:
            seen.append(writer.meta("by"))

    for second in (store, other):
        begun.clear()
        thread = threading.Thread(target=follow, args=(second,))
        with store.write(WAIT) as writer:
            thread.start()
            assert begun.wait(10)
            writer.set_meta("by", "first")
        thread.join()
    assert seen == ["first", "first"]
    other.close()


def _append_own(kind: str, folder: Path, name: str, count: int) -> None:
    store = IMPLEMENTATIONS[kind].open(folder)
    for number in range(count):
        append_all(store, "journal", [f"{name} {number}".encode()])
    store.close()


@pytest.mark.parametrize("name", sorted(IMPLEMENTATIONS))
def test_processes_append_in_commit_order_and_lose_nothing(name: str, tmp_path: Path) -> None:
    store = IMPLEMENTATIONS[name].create(tmp_path)
    with_stream(store, [])
    store.close()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_own, args=(name, tmp_path, f"w{n}", 20)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    store = IMPLEMENTATIONS[name].open(tmp_path)
    with store.read() as reader:
        found = [sealed.decode() for sealed in reader.entries("journal")]
    assert sorted(found) == sorted(f"w{n} {number}" for n in range(3) for number in range(20))
    for n in range(3):
        assert [entry for entry in found if entry.startswith(f"w{n} ")] == [f"w{n} {number}" for number in range(20)]
    store.close()


def test_a_backup_is_a_store_of_its_own(store: Store, tmp_path: Path) -> None:
    from fleetctl.store.sqlite import SqliteStore

    if not isinstance(store, SqliteStore):
        pytest.skip("only an embedded store is backed up into a file")
    with store.write(WAIT) as writer:
        writer.put_objects([pool("a")])
    with store.write(WAIT) as writer:
        writer.put_objects([pool("b")])
        store.backup(str(tmp_path / "copy.db"))
    with pytest.raises(BadInput, match="file-exists"):
        store.backup(str(tmp_path / "copy.db"))
    copy = SqliteStore.open(tmp_path / "copy.db")
    with copy.read() as reader:
        assert list(reader.objects()) == [pool("a")]
    copy.close()
