"""A process killed at any write leaves all of a transaction or none of it (plan-apply.md, "Apply")."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fleetctl.canonical import sha256_hex
from fleetctl.model.changes import Event
from fleetctl.ports import Reader, Store, Writer
from tests.support.processes import KILLED, in_child
from tests.support.stores import IMPLEMENTATIONS, CrashingStore, Implementation, pool

GENESIS, HEADS = b"g" * 32, [b"a" * 32, b"b" * 32]
WAIT = 10_000


def transaction(writer: Writer, number: int) -> None:
    """One apply's worth of writes; `number` is 0 or 1."""
    at = writer.stream("journal")
    assert at is not None
    writer.put_objects([pool(f"{number}-{n}") for n in range(3)])
    writer.add_events([Event(type="pool.created", object=f"pool/{number}", tenant="acme")], number)
    writer.append("journal", expected_length=at.length, expected_head=at.head, entries=[(b"entry", HEADS[number])])
    writer.index_journal(at.length, [("pool", pool(f"{number}-0").id)], f"plan-{number}")
    writer.put_document(sha256_hex(b"%d" % number), b"%d" % number)


def both(store: Store) -> None:
    for number in (0, 1):
        with store.write(WAIT) as writer:
            transaction(writer, number)


def applied(reader: Reader) -> int:
    """How many of the transactions are there; fails when one is there in part."""
    head = reader.stream("journal")
    assert head is not None
    assert head.head == [GENESIS, *HEADS][head.length]
    assert len(list(reader.entries("journal"))) == head.length
    assert len(list(reader.objects())) == 3 * head.length
    assert len(reader.events(0, 9)) == len(list(reader.documents())) == head.length
    assert [reader.applied_entry(f"plan-{n}") for n in (0, 1)] == [n if n < head.length else None for n in (0, 1)]
    return head.length


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
def kind(request: pytest.FixtureRequest) -> Implementation:
    return IMPLEMENTATIONS[request.param]


def started(kind: Implementation, folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    store = kind.create(folder)
    with store.write(WAIT) as writer:
        writer.open_stream("journal", "root/journal", GENESIS)
    store.close()
    return folder


def test_a_kill_at_any_write_leaves_whole_transactions(kind: Implementation, tmp_path: Path) -> None:
    counting = CrashingStore(kind.open(started(kind, tmp_path / "count")))
    both(counting)
    counting.close()
    points = counting.points
    assert points == 2 * (5 + 2)

    for point in range(1, points + 1):
        folder = started(kind, tmp_path / str(point))
        ended = in_child(lambda folder=folder, point=point: both(CrashingStore(kind.open(folder), point)))  # type: ignore[misc]  # defaults bind the loop's values
        assert ended == KILLED
        store = kind.open(folder)
        with store.read() as reader:
            assert applied(reader) == point // 7
        with store.write(0) as writer:  # no lock outlives its process
            for number in range(point // 7, 2):
                transaction(writer, number)
            assert applied(writer) == 2
        store.close()


def test_the_crashing_store_passes_everything_on(kind: Implementation, tmp_path: Path) -> None:
    store = CrashingStore(kind.open(started(kind, tmp_path / "a")))
    with pytest.raises(KeyError), store.write(WAIT) as writer:
        transaction(writer, 0)
        raise KeyError
    assert store.points == 5
    with store.read() as reader:
        assert applied(reader) == 0
    store.close()


def test_a_creation_cut_short_can_be_done_again(kind: Implementation, tmp_path: Path) -> None:
    """What `init` leaves behind when it is killed before its first transaction is no engine yet."""

    def create_and_die() -> None:
        kind.create(tmp_path)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(create_and_die) == KILLED
    store = kind.create(tmp_path)
    with store.write(WAIT) as writer:
        writer.set_meta("engine", "eng_1")
    store.close()
