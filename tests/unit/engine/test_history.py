"""The journal as people ask for it: one object's entries, or the newest of all (cli.md, `history`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.engine import builders, calls
from fleetctl.engine.context import Engine
from fleetctl.engine.history import engine_history
from tests.support import engines as te

TWO_POOLS = te.fleet(te.pool("pool-a"), te.pool("pool-b"), te.offer("pool-a"), te.offer("pool-b"))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = te.new_engine(tmp_path / "engine")
    te.applied(made, TWO_POOLS)
    return made


def told(engine: Engine, subject: str) -> list[tuple[str, str, str, str]]:
    """(event, verb, label, reason) of what is shown of an object."""
    return [
        (entry.event, item.verb, item.label, item.reason)
        for entry in engine_history(engine, subject).entries
        for item in entry.operations
    ]


def archive(engine: Engine, pool: str) -> None:
    bob = replace(engine, actor="local:bob@laptop")
    calls.call(bob, "pools.archive", tenant="root", request={}, build=builders.removal("pool", pool))


def test_archiving_a_pool_by_command_ends_its_offers_in_their_history_too(engine: Engine) -> None:
    """Seed, "Archive": offers of the pool go with it."""
    archive(engine, te.POOL_A)
    assert told(engine, "offer/pool-a/acme") == [
        ("applied", "create", "offer/pool-a/acme", "declared"),
        ("called", "remove", "offer/pool-a/acme", "pool/pool-a was archived"),
    ]
    assert engine_history(engine, "offer/pool-a/acme").entries[-1].actor == "local:bob@laptop"
    assert told(engine, "offer/pool-b/acme") == [("applied", "create", "offer/pool-b/acme", "declared")]


def test_the_end_of_an_offer_with_its_pool_names_the_version_that_it_had(engine: Engine) -> None:
    te.applied(engine, te.fleet(*TWO_POOLS.objects[2:4], te.offer("pool-a", gpus=5), te.offer("pool-b")))
    with engine.store.read() as reader:
        last = reader.object("offer", te.OFFER_A)
    archive(engine, te.POOL_A)
    (ended,) = engine_history(engine, "offer/pool-a/acme").entries[-1].operations
    assert last is not None
    assert (ended.precondition.version, ended.before) == (last.version, last.state())


def test_an_offer_that_was_withdrawn_before_does_not_end_again(engine: Engine) -> None:
    calls.call(engine, "pools.unoffer", tenant="root", request={}, build=builders.unoffering(te.POOL_A, "acme"))
    archive(engine, te.POOL_A)
    assert [verb for _, verb, _, _ in told(engine, "offer/pool-a/acme")] == ["create", "remove"]


def test_a_plan_that_withdraws_an_offer_and_archives_its_pool_ends_it_once(engine: Engine) -> None:
    te.applied(engine, te.fleet(te.pool("pool-b"), te.offer("pool-b")), accept=["share:fleet/eu"])
    assert [verb for _, verb, _, _ in told(engine, "offer/pool-a/acme")] == ["create", "remove"]


def test_the_newest_entries_are_shown_and_the_others_counted(engine: Engine) -> None:
    for gpus in range(5):
        te.applied(engine, te.fleet(*TWO_POOLS.objects[2:4], te.offer("pool-a", gpus=gpus), te.offer("pool-b")))
    for subject, total in ((None, 6), ("offer/pool-a/acme", 6), ("pool/pool-b", 1)):
        for limit in (1, 2, 6, 9):
            found = engine_history(engine, subject, limit)
            assert (len(found.entries), found.earlier) == (min(limit, total), max(0, total - limit))
            whole = engine_history(engine, subject)
            assert (found.entries, whole.earlier) == (whole.entries[-limit:], 0)
