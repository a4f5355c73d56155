"""Drift over a real engine: what moved, who moved it and when, what waits in git, and what is not drift at all.

plan-apply.md, "Drift"; cli.md: exit 2 if and only if the list is not empty.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from fleetctl.engine import builders, calls
from fleetctl.engine.context import Engine
from fleetctl.engine.drifting import DriftReport, drift_fleet, seal_report
from fleetctl.engine.history import engine_history
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.errors import SafetyRefused
from fleetctl.ledger.entries import Reported
from fleetctl.model.bodies import OfferBody, PoolBody
from fleetctl.model.declared import Declared, Fleet, IgnoredDrift
from fleetctl.model.live import LiveObject, Snapshot
from fleetctl.plan.context import Culprit
from fleetctl.render.plan import plan_document
from fleetctl.render.text import to_text
from fleetctl.units import UnixMs, format_ms
from tests.support import engines as te
from tests.support.ledgers import AT_MS

WHOLE = te.fleet(te.pool("pool-a"), te.offer("pool-a"), te.pool("pool-b"), te.entitlement())
POOL_B = te.id_of("pool", "pool-b")
BOB = "local:bob@laptop"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = te.new_engine(tmp_path / "engine", clock=te.ToldClock(step_ms=1))
    te.applied(made, WHOLE)
    return made


def drift(engine: Engine, declared: Fleet = WHOLE, **how: Any) -> DriftReport:
    found = drift_fleet(engine, declared, Source(), **how)
    assert (found.result == "drift") == bool(found.drift.items)
    return found


def by_bob(engine: Engine, build: calls.Build, at_ms: int = AT_MS + 5_000) -> None:
    """A change that somebody made on the live side."""
    other = replace(engine, actor=BOB, clock=te.ToldClock(at_ms))
    calls.call(other, "test", tenant="root", request={}, build=build)


def quota(gpus: int) -> calls.Build:
    return builders.offering(OfferBody(pool=te.POOL_A, to="acme", quota={"gpu": gpus}), "")


def policy(interval: int) -> calls.Build:
    def edit(_: Snapshot, live: LiveObject) -> PoolBody:
        body = cast(PoolBody, live.body())
        return replace(body, policy={**body.policy, "maxPendingMs": interval})

    return builders.change("pool", te.POOL_A, edit)


def moved(found: DriftReport) -> dict[tuple[str, str | None], tuple[Any, Any, Any]]:
    return {(item.label, item.field): (item.declared, item.last_applied, item.live) for item in found.drift.items}


def with_quota(gpus: int) -> Fleet:
    return te.fleet(te.pool("pool-a"), te.offer("pool-a", gpus=gpus), te.pool("pool-b"), te.entitlement())


# ---------------------------------------------------------------------------------------------- who, when and what


def test_an_applied_fleet_has_not_drifted(engine: Engine) -> None:
    for full in (False, True):
        found = drift(engine, full=full)
        assert (found.result, found.drift.items, found.drift.pending, found.culprits) == ("none", (), (), {})


def test_a_field_that_somebody_moved_is_named_with_who_and_when(engine: Engine) -> None:
    by_bob(engine, policy(7_000))
    by_bob(engine, quota(16), AT_MS + 9_000)
    found = drift(engine)
    assert moved(found) == {
        ("offer/pool-a/acme", "quota.gpu"): (32, 32, 16),
        ("pool/pool-a", "policy.maxPendingMs"): (3_600_000, 3_600_000, 7_000),
    }
    assert found.culprits == {
        ("pool/pool-a", "policy.maxPendingMs"): Culprit(actor=BOB, at_ms=AT_MS + 5_000, entry=1),
        ("offer/pool-a/acme", "quota.gpu"): Culprit(actor=BOB, at_ms=AT_MS + 9_000, entry=2),
    }
    assert found.drift.pending == ()


def test_of_two_who_moved_one_object_each_is_named_for_his_own_field(engine: Engine) -> None:
    """plan-apply.md: of each field that drifted "the journal says who and when"; by plan as by drift."""
    by_bob(engine, policy(7_000))
    by_bob(engine, policy(8_000))
    calls.call(
        replace(engine, actor="local:eve@desk", clock=te.ToldClock(AT_MS + 9_000)),
        "test",
        tenant="root",
        request={},
        build=builders.flag("pool", te.POOL_A, protect=True),
    )
    assert drift(engine).culprits == {
        ("pool/pool-a", "policy.maxPendingMs"): Culprit(actor=BOB, at_ms=AT_MS + 5_000, entry=2),
        ("pool/pool-a", "protect"): Culprit(actor="local:eve@desk", at_ms=AT_MS + 9_000, entry=3),
    }
    fields = plan_fleet(engine, WHOLE, Source(), host="host").file.context["fields"]["pool/pool-a"]
    assert {(row["field"], row["cause"], row["who"], row["entry"]) for row in fields} == {
        ("policy.maxPendingMs", "drift", BOB, 2),
        ("protect", "drift", "local:eve@desk", 3),
    }


def test_a_plan_says_who_removed_what_it_makes_again(engine: Engine) -> None:
    by_bob(engine, builders.unoffering(te.POOL_A, "acme"))
    file = plan_fleet(engine, WHOLE, Source(), host="host").file
    assert [(item.verb, item.label, item.reason) for item in file.body.operations] == [
        ("create", "offer/pool-a/acme", "removed live")
    ]
    assert file.context["removed"] == {
        "offer/pool-a/acme": {"who": BOB, "when": format_ms(UnixMs(AT_MS + 5_000)), "entry": 1}
    }
    shown = to_text(plan_document(file, now_ms=AT_MS, apply_with=[]), columns=200)
    assert "+ create offer/pool-a/acme  (removed live: by local:bob@laptop (self-declared) at " in shown


def test_what_was_edited_behind_the_engine_nobody_did_through_it(engine: Engine) -> None:
    with engine.store.write(0) as tx:
        live = tx.object("pool", te.POOL_A)
        assert live is not None
        tx.put_objects([replace(live, name="other")])
    fields = plan_fleet(engine, WHOLE, Source(), host="host").file.context["fields"]["pool/pool-a"]
    assert [(row["field"], row["cause"], "who" in row) for row in fields] == [("name", "drift", False)]


def test_what_only_git_moved_is_pending_and_no_drift(engine: Engine) -> None:
    found = drift(engine, with_quota(16))
    assert (found.result, found.drift.pending) == ("none", (("update", "offer/pool-a/acme"),))


def test_what_both_sides_moved_to_different_values_is_both(engine: Engine) -> None:
    by_bob(engine, quota(16))
    found = drift(engine, with_quota(8))
    assert moved(found) == {("offer/pool-a/acme", "quota.gpu"): (8, 32, 16)}
    assert found.drift.pending == (("update", "offer/pool-a/acme"),)


def test_what_both_sides_moved_to_one_value_has_converged(engine: Engine) -> None:
    """Accepting what somebody did, in git, ends the drift; else exit 2 would never end (plan-apply.md: "or converged")."""
    by_bob(engine, quota(16))
    assert drift(engine).result == "drift"
    found = drift(engine, with_quota(16))
    assert (found.result, found.drift.pending) == ("none", ())
    assert te.applied(engine, with_quota(16)).result == "nothing-to-do"
    assert drift(engine, with_quota(16)).result == "none"


def test_applying_again_takes_the_live_change_back(engine: Engine) -> None:
    by_bob(engine, quota(16))
    assert te.applied(engine, WHOLE).result == "applied"
    assert drift(engine, full=True).result == "none"


def test_a_field_that_is_to_be_ignored_is_listed_and_is_no_drift(engine: Engine) -> None:
    by_bob(engine, policy(7_000))
    entry = IgnoredDrift(object="pool/pool-a", field="policy", owner="sre", reason="tuned by hand")
    ignoring = te.fleet(*WHOLE.objects[2:], ignore=[entry])
    found = drift(engine, ignoring)
    assert (found.result, found.drift.pending) == ("none", ())
    ((item, by),) = found.drift.ignored
    assert (item.field, item.live, by) == ("policy.maxPendingMs", 7_000, entry)
    assert te.applied(engine, ignoring).result == "nothing-to-do"
    # Another field of the same object is drift all the same.
    by_bob(engine, builders.flag("pool", te.POOL_A, protect=True))
    assert set(moved(drift(engine, ignoring))) == {("pool/pool-a", "protect")}


def test_an_entry_past_its_date_ignores_nothing_any_more(engine: Engine) -> None:
    by_bob(engine, policy(7_000))
    entry = IgnoredDrift(object="pool/pool-a", field="policy", owner="sre", reason="for now", until="2026-09-30")
    ignoring = te.fleet(*WHOLE.objects[2:], ignore=[entry])
    later = replace(engine, clock=te.ToldClock(AT_MS + 10 * 86_400_000))
    assert drift(engine, ignoring).result == "none"
    found = drift(later, ignoring)
    assert (found.result, [item.code.name for item in found.warnings]) == (
        "drift",
        ["ignore-drift-expired", "no-history"],
    )


# ----------------------------------------------------------------------------------------------------- whole objects


def test_an_offer_that_a_command_withdrew_is_drift_of_the_whole_object(engine: Engine) -> None:
    by_bob(engine, builders.unoffering(te.POOL_A, "acme"))
    found = drift(engine)
    ((key, (declared, last, live)),) = moved(found).items()
    assert key == ("offer/pool-a/acme", None)
    assert declared == last and live is None
    assert found.culprits["offer/pool-a/acme", None].actor == BOB
    assert found.drift.pending == ()  # taking it back is what the drift says, not a change of git


def test_a_pool_that_a_command_retired_is_drift_with_the_offers_that_went_with_it(engine: Engine) -> None:
    by_bob(engine, builders.removal("pool", te.POOL_A))
    found = drift(engine)
    assert {key: live for key, (_, _, live) in moved(found).items()} == {
        ("offer/pool-a/acme", None): None,
        ("pool/pool-a", None): None,
    }
    assert {who.actor for who in found.culprits.values()} == {BOB}


@pytest.mark.parametrize(
    ("build", "left"),
    [(builders.unoffering(te.POOL_A, "acme"), [te.pool("pool-a")]), (builders.removal("pool", te.POOL_A), [])],
    ids=["offer", "pool"],
)
def test_what_git_does_not_want_any_more_either_has_converged(
    engine: Engine, build: calls.Build, left: list[Declared]
) -> None:
    by_bob(engine, build)
    wanted = te.fleet(*left, te.pool("pool-b"), te.entitlement())
    assert drift(engine, wanted).result == "none"
    assert te.applied(engine, wanted).result == "nothing-to-do"
    assert drift(engine, wanted, full=True).result == "none"


def test_what_the_fleet_removed_itself_is_no_drift(engine: Engine) -> None:
    """A pool, its offer and an entitlement leave the files and are applied: nobody else did anything."""
    wanted = te.fleet(te.pool("pool-b"))
    te.applied(engine, wanted, accept=["share:fleet/eu"])
    found = drift(engine, wanted, full=True)
    assert (found.result, found.drift.pending) == ("none", ())


def test_an_object_that_another_fleets_plan_took_away_is_drift_of_this_one(engine: Engine) -> None:
    offering = te.fleet(te.offer("eu/pool-b", gpus=4), name="us")  # a fleet that only offers a pool of another one
    te.applied(engine, offering)
    assert drift(engine, offering).result == "none"
    smaller = te.fleet(te.pool("pool-a"), te.offer("pool-a"), te.entitlement())
    owner = replace(engine, actor=BOB)
    te.applied(owner, smaller, accept=["share:fleet/eu", "withdraws:pool/pool-b"])

    found = drift(engine, offering)
    assert set(moved(found)) == {("offer/pool-b/acme", None)}
    assert found.culprits["offer/pool-b/acme", None].actor == BOB
    assert "external-not-found" in [item.code.name for item in found.warnings]
    assert drift(engine, te.fleet(name="us")).result == "none"  # and taken out of the files too


def test_a_release_and_an_adoption_are_no_drift(engine: Engine) -> None:
    released = te.fleet(te.pool("pool-a"), te.offer("pool-a"), te.entitlement(), release=["pool/pool-b"])
    te.applied(engine, released)
    assert drift(engine, released).result == "none"
    adopting = te.fleet(te.pool("pool-b", adopt=POOL_B), name="us")
    te.applied(engine, adopting)
    assert drift(engine, adopting).result == "none"


def test_a_rename_by_hand_is_drift_of_the_name(engine: Engine) -> None:
    def named(snapshot: Snapshot) -> Any:
        live = builders.find(snapshot, "pool", te.POOL_A)
        operation: Any = builders.flag("pool", te.POOL_A, protect=not live.protect)(snapshot)
        return replace(operation, verb="rename", after={**operation.before, "name": "other"})

    by_bob(engine, named)
    assert moved(drift(engine)) == {("pool/pool-a", "name"): ("pool-a", "pool-a", "other")}


def test_settings_and_objects_of_nobody_are_no_fleets_drift(engine: Engine) -> None:
    by_bob(engine, builders.settings_change(lambda body: replace(body, share_threshold_percent=20)))
    body = PoolBody(site=te.id_of("site", "fra1"), pool_class="metal-host", gpu_model="H100")
    by_bob(engine, builders.creation(engine, "pool", body, tenant="root", key="by-hand", name="by-hand"))
    assert drift(engine, full=True).result == "none"


# ------------------------------------------------------------------------------------------ not drift but tampering


@pytest.mark.parametrize("full", [False, True])
def test_an_edit_behind_the_engines_back_is_tampered_and_nothing_else_is_said(engine: Engine, full: bool) -> None:
    by_bob(engine, quota(16))
    te.edit(te.state_of(engine).parent, "UPDATE objects SET body = replace(body, '16', '17') WHERE kind = 'offer'")
    found = drift(engine, full=full)
    assert (found.result, found.drift.items, found.culprits) == ("tampered", (), {})
    assert [item.code.name for item in found.tampered] == ["state-tampered"]
    assert "offer" in found.tampered[0].detail


def test_drift_writes_nothing(engine: Engine) -> None:
    by_bob(engine, quota(16))
    folder = te.state_of(engine).parent
    before = te.dump(folder)
    drift(engine, full=True)
    assert te.dump(folder) == before


# ---------------------------------------------------------------------------------------------------- sealed reports


def test_a_report_can_be_sealed(engine: Engine) -> None:
    """ledger.md: `reported` holds the report's digest and result; the report is kept under it."""
    by_bob(engine, quota(16))
    entry = seal_report(engine, {"result": "drift", "items": 1}, "drift")
    event = te.journal(engine)[entry]
    assert isinstance(event, Reported)
    assert (event.result, event.state_before) == ("drift", event.state_after)
    with engine.store.read() as reader:
        assert reader.document(event.report.hex()) == b'{"items":1,"result":"drift"}'
    te.check_whole(engine)
    assert drift(engine).culprits["offer/pool-a/acme", "quota.gpu"].entry == 1
    assert [item.event for item in engine_history(engine, None).entries] == ["applied", "called", "reported"]


def test_a_report_is_not_sealed_over_a_state_that_was_edited(engine: Engine) -> None:
    te.edit(te.state_of(engine).parent, "UPDATE objects SET version = 7 WHERE kind = 'offer'")
    with pytest.raises(SafetyRefused) as caught:
        seal_report(engine, {"result": "tampered"}, "tampered")
    assert caught.value.code == "state-tampered"
    assert len(te.journal(engine)) == 1


def test_a_report_is_of_one_moment(engine: Engine) -> None:
    """What is committed while it is made shows in all of it or in none."""
    other = te.open_engine(te.state_of(engine).parent)
    with engine.store.read() as reader:
        before = list(reader.objects())
        by_bob(other, quota(1))
        assert list(reader.objects()) == before
    assert drift(engine, full=True).result == "drift"
