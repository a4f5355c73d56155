"""What an apply answers and leaves behind (plan-apply.md, "Apply"; pins.md, "At plan time")."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fleetctl.canonical import canonical_bytes
from fleetctl.engine import builders, calls
from fleetctl.engine.apply import apply_plan, check_plan
from fleetctl.engine.context import Engine
from fleetctl.engine.history import History, engine_history
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.errors import EngineRefused, SafetyRefused, Stale
from fleetctl.ledger.entries import Applied, Called
from fleetctl.model.bodies import OfferBody
from fleetctl.plan.planfile import write_plan
from tests.support import engines as te
from tests.support import inprocess as tw


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return te.new_engine(tmp_path / "engine")


def test_an_apply_leaves_one_entry_with_everything_that_it_was(engine: Engine) -> None:
    """ledger.md, "The journal" and "Documents"."""
    source = Source(commit="a" * 40 + "+dirty", origin=("b" * 40, "fleets/eu"))
    planned = plan_fleet(engine, te.one_pool(), source, host="host")
    receipt = apply_plan(engine, write_plan(planned.file))
    assert (receipt.result, receipt.entry, receipt.operations) == ("applied", 0, 5)
    (event,) = te.journal(engine)
    assert isinstance(event, Applied)
    assert (event.fleet, event.commit, event.operations, event.actor) == (
        "eu",
        "a" * 40 + "+dirty",
        5,
        "local:ada@host",
    )
    assert (event.accepted, event.approved_by) == (None, None)
    assert event.config.hex() == te.one_pool().digest()
    with engine.store.read() as reader:
        assert reader.document(event.plan.hex()) == canonical_bytes(planned.file.body_json)
        assert reader.document(event.context.hex()) == canonical_bytes(planned.file.context)
        ((_, record),) = reader.fleets()
    assert (record.entry, record.commit, record.origin) == (0, "a" * 40 + "+dirty", ("b" * 40, "fleets/eu"))
    te.check_whole(engine)


def test_nothing_to_do_appends_nothing(engine: Engine) -> None:
    te.applied(engine, te.one_pool())
    before = te.dump(te.state_of(engine).parent)
    receipt = te.applied(engine, te.one_pool())
    assert (receipt.result, receipt.entry) == ("nothing-to-do", None)
    assert te.dump(te.state_of(engine).parent) == before


def test_already_applied_is_said_even_when_its_objects_moved_since(engine: Engine) -> None:
    """pins.md: "Already applied is exit 0 even if its objects moved since"."""
    data = te.planned(engine, te.one_pool(32))
    apply_plan(engine, data)
    te.applied(engine, te.one_pool(16))
    receipt = apply_plan(engine, data)
    assert (receipt.result, receipt.entry) == ("already-applied", 0)
    assert check_plan(engine, data).digest == receipt.plan


def test_two_creations_of_one_object_are_never_confused(engine: Engine) -> None:
    """plan-apply.md, step 7: versions survive removal."""
    with_offer, without = te.one_pool(), te.fleet(te.pool("pool-a"), te.entitlement())
    te.applied(engine, without)
    old = te.planned(engine, with_offer)
    te.applied(engine, te.one_pool(8))
    te.applied(engine, without, accept=["share:fleet/eu"])
    with pytest.raises(Stale) as caught:
        apply_plan(engine, old)
    assert "offer/pool-a/acme does not exist, moved by journal entry 2" in str(caught.value)
    new = te.planned(engine, with_offer)
    assert new != old
    assert apply_plan(engine, new).result == "applied"
    with engine.store.read() as reader:
        found = reader.object("offer", te.OFFER_A)
    assert found is not None and found.version == 2
    te.check_whole(engine)


def test_a_stale_plan_names_each_object_that_moved_and_the_entry_that_moved_it(engine: Engine) -> None:
    te.applied(engine, te.one_pool())
    data = te.planned(engine, te.fleet(te.pool("pool-a", name="new"), te.offer("pool-a", gpus=8), te.entitlement()))
    build = builders.offering(OfferBody(pool=te.POOL_A, to="acme", quota={"gpu": 4}), "")
    calls.call(engine, "pools.offer", tenant="root", request={}, build=build)
    calls.call(engine, "x", tenant="root", request={}, build=builders.flag("pool", te.POOL_A, protect=True))
    with pytest.raises(Stale) as caught:
        apply_plan(engine, data)
    assert caught.value.exit_code == 4
    found = {item.subject: item.detail for item in caught.value.diagnostics}
    assert "is at version 2, moved by journal entry 1" in found["offer/pool-a/acme"]
    assert "is at version 2, moved by journal entry 2" in found["pool/pool-a"]


def test_a_plan_whose_foreign_reference_left_is_stale(engine: Engine) -> None:
    """`requires` names objects of other fleets that must still be there."""
    te.applied(engine, te.fleet(te.pool("pool-a"), te.pool("pool-b")))
    data = te.planned(engine, te.fleet(te.offer("eu/pool-b"), name="us"))
    te.applied(engine, te.fleet(te.pool("pool-a")), accept=["share:fleet/eu"])
    with pytest.raises(Stale):
        apply_plan(engine, data)


def test_a_plan_that_another_fleets_rules_now_forbid_is_stale_with_the_reason(engine: Engine) -> None:
    """Step 10: a refusal by `decide` means that the ground moved, for the plan passed it when it was made."""
    te.applied(engine, te.fleet(te.tenant("beta"), te.pool("pool-a")))
    data = te.planned(engine, te.fleet(te.tenant("beta"), te.offer("eu/pool-a"), name="us"))
    single = te.fleet(te.tenant("beta"), te.pool("pool-a", policy={"singleTenant": True}), te.offer("pool-a", "beta"))
    te.applied(engine, single)
    with pytest.raises(Stale) as caught:
        apply_plan(engine, data)
    assert "this was allowed when the plan was made" in str(caught.value)


def test_many_objects_come_change_names_and_go_in_one_plan(engine: Engine) -> None:
    """Names may swap in one plan (plan-apply.md, "Inputs and output")."""
    te.applied(engine, te.fleet(te.pool("p1", name="one"), te.pool("p2", name="two"), te.pool("p3")))
    swapped = te.fleet(te.pool("p1", name="two"), te.pool("p2", name="one"), te.pool("p4"))
    receipt = te.applied(engine, swapped, accept=["share:fleet/eu"])
    assert receipt.operations == 4
    te.check_whole(engine)
    assert plan_fleet(engine, swapped, Source(), host="h").plan.operations == ()


def test_a_context_is_no_part_of_the_digest_and_is_sealed_beside_it(engine: Engine) -> None:
    one = plan_fleet(engine, te.one_pool(), Source(), host="one").file
    other = plan_fleet(engine, te.one_pool(), Source(), host="other").file
    assert one.digest == other.digest and one.context_digest != other.context_digest
    assert apply_plan(engine, write_plan(one)).result == "applied"
    assert apply_plan(engine, write_plan(other)).result == "already-applied"


def test_signatures_are_kept_with_the_plan(engine: Engine) -> None:
    data = json.loads(te.planned(engine, te.one_pool()))
    data["signatures"] = ["d2" * 40]
    apply_plan(engine, json.dumps(data).encode())
    with engine.store.read() as reader:
        assert b'["' + b"d2" * 40 + b'"]' in [content for _, content in reader.documents()]


def test_another_engine_or_steward_is_refused_whichever_side_is_wrong(engine: Engine, tmp_path: Path) -> None:
    data = te.planned(engine, te.one_pool())
    other = te.new_engine(tmp_path / "other", id="eng_other")
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(other, data)
    assert caught.value.code == "foreign-plan"
    wired = replace(engine, store=other.store)
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(wired, data)
    assert caught.value.code == "wrong-engine"


# -------------------------------------------------------------------------------------------------------- calls


def test_a_call_is_journalled_with_its_request_and_a_refused_one_leaves_nothing(engine: Engine) -> None:
    te.applied(engine, te.one_pool())
    build = builders.offering(OfferBody(pool=te.POOL_A, to="acme", quota={"gpu.mig": 4}), "")
    receipt = calls.call(engine, "pools.offer", tenant="root", request={"to": "acme"}, build=build)
    assert (receipt.entry, receipt.label) == (1, "offer/pool-a/acme")
    event = te.journal(engine)[1]
    assert isinstance(event, Called) and (event.method, event.object) == ("pools.offer", "offer/pool-a/acme")
    with engine.store.read() as reader:
        kept = json.loads(reader.document(event.request.hex()) or b"")
        rows = {row.resource: row.maximum for row in reader.quotas() if row.tenant == "acme"}
    assert (kept["to"], kept["method"], kept["operation"]["verb"]) == ("acme", "pools.offer", "update")
    assert rows == {"gpu": 32, "gpu.mig": 4}  # readings B06: unnamed rows stay
    before = te.dump(te.state_of(engine).parent)
    nobody = builders.offering(OfferBody(pool=te.POOL_A, to="nobody", quota={}), "")
    with pytest.raises(EngineRefused):
        calls.call(engine, "pools.offer", tenant="root", request={}, build=nobody)
    again = calls.call(engine, "pools.offer", tenant="root", request={}, build=build)
    assert (again.entry, again.id) == (None, te.OFFER_A)
    assert te.dump(te.state_of(engine).parent) == before


def test_history_says_who_did_what_to_an_object(tmp_path: Path) -> None:
    witness = tw.Down(tw.InProcess(), answers=True)
    engine = te.new_engine(tmp_path / "witnessed", tw.witnessed_by(tw.WITNESSES["witness-a"]), witnesses=(witness,))
    te.applied(engine, te.one_pool(), source=Source(commit="a" * 40))
    bob = replace(engine, actor="local:bob@laptop")
    calls.call(bob, "pools.unoffer", tenant="root", request={}, build=builders.unoffering(te.POOL_A, "acme"))
    witness.answers = False
    te.applied(engine, te.one_pool(), source=Source(commit="b" * 40, is_ancestor=lambda _: True))
    found = engine_history(engine, "offer/pool-a/acme").entries
    assert [(item.entry, item.event, item.actor, item.commit, item.witnessed) for item in found] == [
        (0, "applied", "local:ada@host", "a" * 40, True),
        (1, "called", "local:bob@laptop", None, True),
        (2, "applied", "local:ada@host", "b" * 40, False),
    ]
    assert [item.operations[0].verb for item in found] == ["create", "remove", "create"]
    assert len(engine_history(engine, None).entries) == 3
    assert engine_history(engine, "pool/other") == History(entries=())
