"""Rotation of the entitlement ledger: one transaction, no joule counted twice, and people go on naming their claims.

Windows are an extension of ours; readings/pool1.md A05 and A74, ledger.md, "The witness", last paragraph.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetctl.engine import claims, drifting, history, rebuild, reports, reservations, rotating, standing
from fleetctl.engine.context import Engine, usage_stream
from fleetctl.engine.continuing import running_claim
from fleetctl.engine.journal import append_sealed
from fleetctl.engine.ledgers import audit_engine, bundle
from fleetctl.engine.moving import copy_into
from fleetctl.engine.planning import Source
from fleetctl.engine.snapshots import snapshot_file
from fleetctl.engine.status import read_status
from fleetctl.engine.streams import events, read_usages
from fleetctl.engine.windows import check_succession
from fleetctl.errors import BadInput, EngineRefused, FleetctlError, SafetyRefused, Tampered
from fleetctl.ledger.chain import Head, seal
from fleetctl.ledger.entries import Admitted, Event, Released, Rotated
from fleetctl.model.declared import Fleet
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.idle import IdlePolicy
from fleetctl.store.sqlite import SqliteStore
from fleetctl.units import DurationMs
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support import recoveries as tr
from tests.support.ledgers import AT_MS, released

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "cases" / "windows" / "rotations.json").read_text(encoding="utf-8")
)
EARLY = ["reset-usage:ledger"]
DAY = 86_400_000
ENTITLEMENT = te.id_of("entitlement", "ent")


def tree(nodes: dict[str, dict[str, int]], period_days: int | None = None) -> Fleet:
    """Entitlements under one parent, with weights where they may borrow."""
    period = None if period_days is None else DurationMs(period_days * DAY)
    return te.fleet(
        te.entitlement("parent", energy_uj=0, devices=0, period_ms=period),
        *(
            te.entitlement(
                key,
                energy_uj=node["energy_uj"],
                devices=16,
                parent="parent",
                over_quota_weight=node.get("weight", 0),
            )
            for key, node in nodes.items()
        ),
    )


def made(tmp_path: Path, declared: Fleet | None = None, **how: Any) -> tuple[Engine, te.ToldClock]:
    clock = te.ToldClock()
    engine = te.new_engine(tmp_path / "engine", clock=clock, **how)
    te.applied(engine, declared or te.one_pool())
    return engine, clock


def admit(engine: Engine, claim: str, uj: int, grade: str = "HwShunt", entitlement: str = "ent", **more: Any) -> str:
    values = {"gang_size": 1, "devices_per_member": 1} | more
    return claims.admit(
        engine, claim=claim, entitlement=entitlement, estimate_uj=uj, grade=Grade(grade), **values
    ).verdict.outcome.value


def report(
    engine: Engine, claim: str, uj: int, grade: str = "HwShunt", units: int = 1, **more: Any
) -> reports.Reported:
    return reports.report(engine, claim=claim, completed_units=units, spent_uj=uj, grade=Grade(grade), **more)


def release(engine: Engine, claim: str, uj: int | None = None, grade: str = "HwShunt") -> claims.Release:
    reading = None if uj is None else Figure(energy_uj=uj, grade=Grade(grade))
    return claims.release(engine, claim=claim, reading=reading)


def rotate(engine: Engine, **how: Any) -> rotating.Rotation:
    """An early rotation that is accepted."""
    return rotating.rotate(engine, accept=EARLY, **how)


def stream(engine: Engine, name: str | None = None) -> list[Event]:
    """The events of a stream, of the one in force if absent."""
    with engine.store.read() as reader:
        return [event for _, event in events(engine, reader, name or usage_stream(reader))]


def usage(engine: Engine, key: str = "ent") -> list[int]:
    with engine.store.read() as reader:
        use = read_usages(engine, reader).entitlements.get(te.id_of("entitlement", key))
        return [0, 0, 0] if use is None else [use.spent_uj, use.reserved_uj, use.devices]


def refused(engine: Engine, work: Callable[[], object]) -> FleetctlError:
    """What is refused, and changes nothing."""
    folder = te.state_of(engine).parent
    before = te.dump(folder)
    with pytest.raises(FleetctlError) as caught:
        work()
    assert te.dump(folder) == before
    return caught.value


def check(engine: Engine) -> None:
    """Everything of it verifies, every window from genesis, and each goes on from the one before."""
    te.check_whole(engine)
    with engine.store.read() as reader:
        check_succession(engine, reader)
    assert audit_engine(engine).ok


# ----------------------------------------------------------------------------------------------- what goes over


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_what_was_spent_is_charged_and_what_is_left_goes_on(case: dict[str, Any], tmp_path: Path) -> None:
    engine, _ = made(tmp_path, tree(case["tree"]))
    for item in case["claims"]:
        said = admit(
            engine,
            item["claim"],
            item["uj"],
            item["grade"],
            item["entitlement"],
            gang_size=item.get("gang", 1),
            devices_per_member=item.get("devices", 1),
            workload_class=item.get("class"),
        )
        assert said == "Admit"
        if found := item.get("report"):
            report(engine, item["claim"], found["spent_uj"], found["grade"])
        if found := item.get("release"):
            release(engine, item["claim"], found["spent_uj"], found["grade"])
    before = len(stream(engine))
    classes = {item["claim"]: item.get("class") for item in case["claims"]}

    done = rotate(engine)

    closing = [(item.claim, item.spent_uj, item.grade) for item in stream(engine, "entitlements")[before:]]  # type: ignore[attr-defined]  # they are releases
    assert [list(item) for item in closing] == case["released"]
    opening = [item for item in stream(engine) if isinstance(item, Admitted)]
    assert [[e.claim, e.reserved_uj, e.grade, e.borrowed_uj, e.devices] for e in opening] == case["admitted"]
    assert [item.workload_class for item in opening] == [classes[item[0]] for item in case["released"]]
    assert [item.successor for item in done.claims] == [item[0] for item in case["admitted"]]
    for key, figures in case.get("usage", {}).items():
        assert usage(engine, key) == figures
    key = next(iter(case["tree"]))
    for number, then in enumerate(case.get("then", [])):
        assert admit(engine, f"then-{number}", then["uj"], then["grade"], key) == then["verdict"]
    check(engine)


@pytest.mark.clause("pool/1 §7.11")
def test_a_claim_is_named_as_before_and_its_sum_is_split(tmp_path: Path) -> None:
    """15 before the first rotation, 10 before the second, 38 in all: 15, 10 and 13 are charged."""
    engine, _ = made(tmp_path)
    admit(engine, "c9", 40)
    report(engine, "c9", 15)
    rotate(engine)
    report(engine, "c9", 25)
    done = rotate(engine)
    assert [(item.claim, item.successor, item.spent_uj, item.reserved_uj) for item in done.claims] == [
        ("c9:2", "c9:3", 10, 15)
    ]
    ended = release(engine, "c9", 38)
    assert (ended.claim, ended.named, ended.charged.energy_uj, ended.settled_uj) == ("c9:3", "c9", 13, 25)
    assert usage(engine) == [13, 0, 0]
    assert sum(item.spent_uj for item in _released(engine)) == 38
    check(engine)


def _released(engine: Engine) -> list[Released]:
    with engine.store.read() as reader:
        names = [item.stream for item in reader.streams() if item.stream != "journal"]
    return [event for name in names for event in stream(engine, name) if isinstance(event, Released)]


def test_the_id_of_any_window_counts_from_when_that_one_began(tmp_path: Path) -> None:
    for named, sum_uj, charged in (("c9", 38, 13), ("c9:2", 23, 13), ("c9:3", 13, 13)):
        engine, _ = made(tmp_path / named.replace(":", "-"))
        admit(engine, "c9", 40)
        report(engine, "c9", 15)
        rotate(engine)
        report(engine, "c9:2", 10)
        rotate(engine)
        assert release(engine, named, sum_uj).charged.energy_uj == charged
        check(engine)


def test_a_sum_below_what_closed_windows_charged_is_refused(tmp_path: Path) -> None:
    """They are never changed; most likely somebody gives what was spent in this window alone."""
    engine, _ = made(tmp_path)
    admit(engine, "c9", 40_000_000)
    report(engine, "c9", 15_000_000)
    rotate(engine)
    error = refused(engine, lambda: release(engine, "c9", 14_999_999))
    assert error.code == "figure-below-settled" and error.exit_code == 1
    assert "earlier windows were charged 15 J of c9, which is c9:2 now" in str(error)
    assert refused(engine, lambda: report(engine, "c9", 14_999_999)).code == "figure-below-settled"
    assert release(engine, "c9", 15_000_000).charged.energy_uj == 0


def test_without_a_reading_what_is_left_is_charged(tmp_path: Path) -> None:
    """A38: in all windows together the reservation, no more and no less."""
    engine, _ = made(tmp_path)
    admit(engine, "c9", 40)
    report(engine, "c9", 15)
    rotate(engine)
    ended = release(engine, "c9")
    assert (ended.charged.energy_uj, ended.charged.grade) == (25, Grade.ESTIMATOR)


def test_a_difference_is_no_better_than_its_worst_part(tmp_path: Path) -> None:
    """A72: a counter's sum less a guess is a guess."""
    engine, _ = made(tmp_path)
    admit(engine, "c9", 40)
    report(engine, "c9", 15, "Estimator")
    rotate(engine)
    assert release(engine, "c9", 38).charged == Figure(energy_uj=23, grade=Grade.ESTIMATOR)
    admit(engine, "c10", 40)
    rotate(engine)
    assert release(engine, "c10", 38).charged == Figure(energy_uj=38, grade=Grade.HW_SHUNT)


def test_a_claim_that_ended_says_so_whatever_it_is_called(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    admit(engine, "c1", 40)
    admit(engine, "c2", 40)
    release(engine, "c1", 1)
    rotate(engine)
    release(engine, "c2", 1)
    for name, why in (
        ("c1", "of the window entitlements was released already"),
        ("c2", "of the window entitlements was released already"),
        ("c2:2", "was released already"),
        ("c3", "was never admitted"),
        ("c1:2", "was never admitted"),
    ):
        error = refused(engine, lambda name=name: release(engine, name, 5))  # type: ignore[misc]  # a lambda's default has no type
        assert error.code == "claim-not-open" and why in str(error), str(error)


def test_an_id_is_used_once_over_all_windows(tmp_path: Path) -> None:
    """People go on naming a claim in later windows: nobody else's may have its name there."""
    engine, _ = made(tmp_path)
    admit(engine, "c1", 40)
    admit(engine, "c2", 40)
    release(engine, "c2", 1)
    rotate(engine)
    for name in ("c1", "c1:2", "c2"):
        assert refused(engine, lambda name=name: admit(engine, name, 1)).code == "duplicate-claim"  # type: ignore[misc]  # a lambda's default has no type
    assert admit(engine, "c2:2", 1) == "Admit"


def test_names_do_not_decide_what_goes_on(tmp_path: Path) -> None:
    """`job:2` is somebody's own claim, and `job` goes on as `job:3`: each is found by its own name."""
    engine, _ = made(tmp_path)
    admit(engine, "job", 10)
    admit(engine, "job:2", 20)
    rotate(engine)
    with engine.store.read() as reader:
        usages = read_usages(engine, reader)
        found = {name: running_claim(engine, reader, usages, name).claim for name in ("job", "job:2")}
    assert found == {"job": "job:3", "job:2": "job:2:2"}
    rotate(engine)
    assert (release(engine, "job", 1).claim, release(engine, "job:2", 2).claim) == ("job:4", "job:2:3")


def test_the_longest_claim_goes_on_too(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    names = ["x" * 128, "x" * 127 + "y"]
    for name in names:
        admit(engine, name, 40)
    for _ in range(3):
        rotate(engine)
    assert {release(engine, name, 1).charged.energy_uj for name in names} == {1}
    check(engine)


# ------------------------------------------------------------------------------------------------- running work


def test_reports_go_on_as_sums_since_the_claim_began(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    admit(engine, "c9", 100)
    report(engine, "c9", 30, units=3)
    rotate(engine)
    (victim,) = reports.victims(engine, raw=True).order
    assert victim.report is not None
    assert (victim.claim, victim.report.spent_uj, victim.report.completed_units, victim.freed_uj) == ("c9:2", 30, 3, 70)

    said = report(engine, "c9", 50, units=10)
    assert (said.report.claim, said.report.spent_uj, said.report.completed_units) == ("c9:2", 50, 10)
    (victim,) = reports.victims(engine, raw=True).order
    assert victim.report is not None
    assert (victim.report.spent_uj, victim.report.completed_units, victim.freed_uj) == (50, 10, 50)
    assert not report(engine, "c9", 50, units=10).changed
    assert not report(engine, "c9:2", 20, units=7).changed

    for uj, units in ((49, 10), (50, 9)):
        error = refused(engine, lambda uj=uj, units=units: report(engine, "c9", uj, units=units))  # type: ignore[misc]  # a lambda's default has no type
        assert error.code == "report-falls"
    assert refused(engine, lambda: report(engine, "c9", 60, units=2)).code == "report-falls"
    assert refused(engine, lambda: report(engine, "c9:2", 2**63 - 1, units=9)).code == "bad-report"
    release(engine, "c9", 60)
    with engine.store.read() as reader:
        assert [item for name in ("entitlements", usage_stream(reader)) for item in reader.reports(name)] == []


def test_a_cost_keeps_the_weakest_grade_of_its_windows(tmp_path: Path) -> None:
    """§5.1, A44: a guess in an earlier window leaves the cost undefined."""
    engine, _ = made(tmp_path)
    admit(engine, "c9", 100)
    report(engine, "c9", 30, "Estimator", units=3)
    rotate(engine)
    report(engine, "c9", 40, units=4)
    (victim,) = reports.victims(engine, raw=True).order
    assert victim.undefined


def test_what_was_watched_before_a_rotation_still_counts_after_it(tmp_path: Path) -> None:
    """§2.7: idleness is judged from the last stretch, whichever window it began in."""
    engine, clock = made(tmp_path)
    admit(engine, "c9", 100)
    policy = IdlePolicy(window_ms=600_000, threshold_uw=1_000_000)
    clock.at_ms += 600_000
    report(engine, "c9", 30, observed_ms=600_000, observed_uj=1)
    rotate(engine)
    assert reports.idle(engine, policy).reclamation_order == ("c9:2",)
    clock.at_ms += 600_001
    (found,) = reports.idle(engine, policy).claims
    assert (found.verdict.value, found.why) == ("NoVerdict", "stale")


def test_a_claim_that_nobody_reported_on_in_a_window_is_charged_nothing_in_it(tmp_path: Path) -> None:
    """The report of an earlier window says nothing of this one: what it spent is charged when somebody knows."""
    engine, clock = made(tmp_path)
    admit(engine, "c9", 100)
    report(engine, "c9", 30)
    for spent, grade in ((30, "HwShunt"), (0, "Estimator"), (0, "Estimator")):
        clock.at_ms += 1_000
        (moved,) = rotate(engine).claims
        assert (moved.spent_uj, moved.grade) == (spent, grade)
    clock.at_ms += 1_000
    report(engine, "c9", 30)  # a reading: nothing since
    (moved,) = rotate(engine).claims
    assert (moved.spent_uj, moved.grade, moved.reserved_uj) == (0, "HwShunt", 70)
    assert release(engine, "c9", 90).charged.energy_uj == 60


def test_a_reservation_goes_on_with_its_claim(tmp_path: Path) -> None:
    """architecture.md, rule 8: "A reservation and its claim are written by one command." """
    engine, _ = made(tmp_path)
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=8)
    estimate = reservations.Estimate(entitlement="ent", energy_uj=100, grade=Grade.HW_SHUNT)
    booked = reservations.create(engine, tenant="acme", pool="pool-a", gpus=4, estimate=estimate, key="job").reservation
    report(engine, booked.id, 30)
    rotate(engine)
    rotate(engine)
    with engine.store.read() as reader:
        (held,) = reader.reservations()
    assert (held.id, held.claim, held.state) == (booked.id, f"{booked.id}:3", "active")
    check(engine)
    for name in (booked.id, f"{booked.id}:2", f"{booked.id}:3"):
        error = refused(engine, lambda name=name: release(engine, name, 90))  # type: ignore[misc]  # a lambda's default has no type
        assert error.code == "claim-held" and f"`fleetctl reservations end {booked.id}`" in str(error)
    ended = reservations.end(engine, booked.id, Figure(energy_uj=90, grade=Grade.HW_SHUNT))
    assert ended.release is not None
    assert (ended.release.charged.energy_uj, ended.release.settled_uj, ended.release.named) == (60, 30, booked.id)
    assert usage(engine) == [60, 0, 0]
    check(engine)


def test_what_a_recovery_carried_over_is_known_by_its_new_id(tmp_path: Path) -> None:
    """No rotation leads from the old id to the new one: who names the old one is told, and a reservation still holds its claim."""
    past = tr.past(tmp_path)
    assert isinstance(past.witness.state, tw.MemoryState)
    past.witness.state.kept.clear()
    engine = past.restored()
    tr.recovered(engine, accept=["lose-entries:ledger/journal", "lose-entries:ledger/entitlements"])
    with engine.store.read() as reader:
        (held,) = [item for item in reader.reservations() if item.state == "active"]
    error = refused(engine, lambda: release(engine, "c2", 5))
    assert error.code == "claim-not-open" and "goes on under another id" in str(error)
    assert held.claim == f"{held.id}:2"
    assert refused(engine, lambda: release(engine, f"{held.id}:2", 5)).code == "claim-held"
    rotate(engine)
    assert refused(engine, lambda: release(engine, f"{held.id}:2", 5)).code == "claim-held"
    assert release(engine, "c2:2", 5).claim == "c2:2:2"
    ended = reservations.end(engine, held.id, Figure(energy_uj=9, grade=Grade.HW_SHUNT))
    assert ended.release is not None and ended.release.charged.energy_uj == 9


# ------------------------------------------------------------------------------------------- evidence over windows


@pytest.mark.clause("pool/1 §7.21", "pool/1 §2.6 (2)")
@pytest.mark.parametrize("checkpoint", [True, False], ids=["from the checkpoint", "from the entries"])
def test_estimates_derive_from_all_windows_and_from_whole_runs(tmp_path: Path, checkpoint: bool) -> None:
    """§2.6: what a rotation charges is part of a run, and so is what its last window is charged."""
    engine, _ = made(tmp_path)

    def run(claim: str, uj: int) -> None:
        admit(engine, claim, 500, workload_class="train")
        release(engine, claim, uj)

    run("c1", 90)
    admit(engine, "long", 500, workload_class="train")
    report(engine, "long", 7)
    rotate(engine)
    release(engine, "long", 400)
    run("c2", 110)
    rotate(engine)
    if not checkpoint:
        te.edit(te.state_of(engine).parent, "DELETE FROM checkpoints")

    def derive(claim: str) -> claims.Admission | claims.Unestimated:
        return claims.admit_derived(
            engine,
            claim=claim,
            entitlement="ent",
            gang_size=1,
            devices_per_member=1,
            workload_class="train",
        )

    found = derive("c3")
    assert isinstance(found, claims.Unestimated)
    assert (found.declined.seen, found.declined.evidence) == (2, 2)
    run("c4", 100)
    found = derive("c5")
    assert isinstance(found, claims.Admission) and found.estimate is not None
    assert (found.estimate.energy_uj, found.estimate.spread_uj, found.estimate.evidence) == (110, (90, 110), 3)


def test_a_checkpoint_in_a_later_window_knows_what_went_on(tmp_path: Path) -> None:
    """The parts of runs stay out of the evidence when a reading resumes."""
    engine, _ = made(tmp_path, checkpoint_every=2)
    admit(engine, "long", 500, workload_class="train")
    rotate(engine)
    for number in range(6):
        admit(engine, f"c{number}", 5)
    with engine.store.read() as reader:
        assert reader.checkpoint(usage_stream(reader)) is not None
    release(engine, "long", 400)
    for number in range(6):
        release(engine, f"c{number}", 5)
    with engine.store.read() as reader:
        resumed = read_usages(engine, reader)
        assert resumed.verification.start > 0
        assert resumed.fold.evidence == {}
    check(engine)


# ------------------------------------------------------------------------------------------------- due and early


def test_a_rotation_is_due_when_the_period_is_over(tmp_path: Path) -> None:
    engine, clock = made(tmp_path, tree({"a": {"energy_uj": 100}}, 30))
    assert read_status(engine).windows.due_ms == AT_MS + 30 * DAY
    for at_ms, due in ((AT_MS, False), (AT_MS + 30 * DAY - 1, False), (AT_MS + 30 * DAY, True)):
        clock.at_ms = at_ms
        assert (read_status(engine).due is not None) == due
        found = drifting.drift_fleet(engine, tree({"a": {"energy_uj": 100}}, 30), Source())
        assert found.result == "none"
        assert ("rotation-due" in [item.code.name for item in found.warnings]) == due
        if not due:
            error = refused(engine, lambda: rotating.rotate(engine))
            assert (error.code, error.exit_code) == ("unaccepted-danger", 3)
            assert "reset-usage:ledger" in str(error) and "(30d) ends 2026" in str(error)
    done = rotating.rotate(engine)
    assert not done.early
    assert read_status(engine).due is None
    assert refused(engine, lambda: rotating.rotate(engine)).code == "unaccepted-danger"


def test_an_early_rotation_is_done_only_when_its_own_danger_is_accepted(tmp_path: Path) -> None:
    engine, _ = made(tmp_path, tree({"a": {"energy_uj": 100}}, 30))
    error = refused(engine, lambda: rotating.rotate(engine, accept=["share:fleet/eu"]))
    assert "`share:fleet/eu` is no danger of it" in str(error)
    assert rotate(engine).early


def test_without_a_period_no_rotation_is_ever_due(tmp_path: Path) -> None:
    engine, clock = made(tmp_path)
    clock.at_ms += 10_000 * DAY
    assert read_status(engine).due is None
    error = refused(engine, lambda: rotating.rotate(engine))
    assert "no root entitlement has a `period`" in str(error)


def test_a_rotation_that_comes_late_does_not_put_off_the_next(tmp_path: Path) -> None:
    """Cron comes some minutes late, and not always as many."""
    engine, clock = made(tmp_path, tree({"a": {"energy_uj": 100}}, 7))
    for week, late in enumerate((5_003, 5_001, 90_000, 0, 86_400_000), 1):
        clock.at_ms = AT_MS + week * 7 * DAY + late
        assert not rotating.rotate(engine).early
        assert read_status(engine).windows.due_ms == AT_MS + (week + 1) * 7 * DAY
    clock.at_ms = AT_MS + 9 * 7 * DAY + 1  # three periods later
    rotating.rotate(engine)
    assert read_status(engine).windows.due_ms == AT_MS + 10 * 7 * DAY


def test_an_early_rotation_begins_a_whole_period(tmp_path: Path) -> None:
    engine, clock = made(tmp_path, tree({"a": {"energy_uj": 100}}, 7))
    clock.at_ms += 3 * DAY
    rotate(engine)
    assert read_status(engine).windows.due_ms == clock.at_ms + 7 * DAY


def test_of_several_periods_the_first_makes_it_due_and_the_last_makes_it_harmless(tmp_path: Path) -> None:
    """There is one ledger: a rotation ends the window of every root (ADR 31)."""
    roots = te.fleet(
        te.entitlement("week", period_ms=DurationMs(7 * DAY)),
        te.entitlement("month", period_ms=DurationMs(28 * DAY)),
        te.entitlement("never"),
    )
    engine, clock = made(tmp_path, roots)
    clock.at_ms += 7 * DAY
    due = read_status(engine).due
    assert due is not None
    assert "entitlement/week (7d) ended" in due.detail and "entitlement/month (28d) ends" in due.detail
    assert "--accept reset-usage:ledger" in due.detail
    error = refused(engine, lambda: rotating.rotate(engine))
    assert "entitlement/month (28d) ends" in str(error) and "entitlement/week" not in str(error)
    clock.at_ms += 21 * DAY
    due = read_status(engine).due
    assert due is not None and "rotate it with `fleetctl ledger rotate`" in due.detail
    assert not rotating.rotate(engine).early


def test_a_period_that_changes_counts_from_the_same_beginning(tmp_path: Path) -> None:
    engine, clock = made(tmp_path, tree({"a": {"energy_uj": 100}}, 30))
    clock.at_ms += 8 * DAY
    te.applied(engine, tree({"a": {"energy_uj": 100}}, 7))
    assert read_status(engine).due is not None
    rotating.rotate(engine)
    assert read_status(engine).windows.due_ms == AT_MS + 14 * DAY


# --------------------------------------------------------------------------------------------------------- names


def test_windows_are_named_by_their_time_and_never_meet(tmp_path: Path) -> None:
    engine, _ = made(tmp_path, tree({"a": {"energy_uj": 100}}, 7))
    names = [rotate(engine).opened.ledger for _ in range(3)]
    assert names == [f"root-steward/entitlements:2026w39{more}" for more in ("", ".2", ".3")]
    assert rotate(engine, window="last").opened.ledger == "root-steward/entitlements:last"
    with engine.store.read() as reader:
        assert {item.stream: item.closed for item in reader.streams()} == {
            "journal": False,
            "entitlements": True,
            "entitlements:2026w39": True,
            "entitlements:2026w39.2": True,
            "entitlements:2026w39.3": True,
            "entitlements:last": False,
        }
    check(engine)


def test_a_name_that_was_used_or_cannot_be_is_refused(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    rotate(engine, window="w1")
    rotate(engine, window="w2")
    for name in ("w1", "w2"):
        error = refused(engine, lambda name=name: rotate(engine, window=name))  # type: ignore[misc]  # a lambda's default has no type
        assert isinstance(error, EngineRefused) and (error.code, error.engine_code) == ("window-used", "CONFLICT")
    rotate(engine, window="entitlements:w3")
    for name in (
        "entitlements",
        "entitlements:w1",
        "w3",
    ):  # what people call another one: nobody could say which is meant
        error = refused(engine, lambda name=name: rotate(engine, window=name))  # type: ignore[misc]  # a lambda's default has no type
        assert isinstance(error, EngineRefused) and error.code == "window-used"
    for name in ("", "a b", "é", "../x", "x" * 200, "a/b"):
        error = refused(engine, lambda name=name: rotate(engine, window=name))  # type: ignore[misc]  # a lambda's default has no type
        assert isinstance(error, BadInput) and error.code == "bad-ledger-identifier"


# ------------------------------------------------------------------------------------------------ closed for good


def test_nothing_is_appended_to_a_closed_window(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    admit(engine, "c1", 40)
    closed = rotate(engine).closed
    with pytest.raises(Tampered), engine.store.write(0) as tx:
        append_sealed(tx, "entitlements", seal(released("c1"), closed, engine.sealing()))


def test_the_journal_pins_the_window_before_and_after_it_is_closed(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    admit(engine, "c1", 40)
    admit(engine, "c2", 40)
    done = rotate(engine)
    event = te.journal(engine)[-1]
    assert isinstance(event, Rotated)
    assert (event.ledger, event.ledger_length, event.from_ledger) == (done.closed.ledger, 2, done.closed.ledger)
    assert (event.from_length, event.from_head, event.to_ledger) == (4, done.closed.address, done.opened.ledger)
    assert event.state_before == event.state_after


def test_the_tables_are_rebuilt_over_windows(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    admit(engine, "c1", 40)
    report(engine, "c1", 10)
    rotate(engine)
    rotate(engine)
    folder = te.state_of(engine).parent
    before = te.dump(folder)
    te.edit(folder, "DELETE FROM claims")
    te.edit(folder, "DELETE FROM meta WHERE name LIKE 'opened/%'")  # a note, and not what anything rests on
    with engine.store.read() as reader:
        assert rebuild.differences(engine, reader) == [f"claim {name}" for name in _rows(before)]
    rebuild.rebuild(engine)
    check(engine)
    assert te.dump(folder)["claims"] == before["claims"]
    assert release(engine, "c1", 40).charged.energy_uj == 30


def _rows(tables: dict[str, list[tuple[Any, ...]]]) -> list[str]:
    return sorted(f"{row[0]} {row[1]}" for row in tables["claims"])


def test_a_note_that_points_elsewhere_is_no_harm(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    admit(engine, "c1", 40)
    report(engine, "c1", 10)
    rotate(engine)
    folder = te.state_of(engine).parent
    for note in ("journal/0", "journal/99", "entitlements/0", "nowhere/1", "journal/x", ""):
        te.edit(folder, "UPDATE meta SET value = ? WHERE name LIKE 'opened/%'", (note,))
        check(engine)
    assert release(engine, "c1", 40).settled_uj == 10


def test_a_backup_has_every_window_and_a_copy_none(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    admit(engine, "c1", 40)
    rotate(engine)
    saved = te.open_engine(te.copied(te.state_of(engine).parent, tmp_path / "backup"))
    check(saved)
    assert release(saved, "c1", 9).claim == "c1:2"

    folder = tmp_path / "copy"
    folder.mkdir(mode=0o700)
    copy = te.over(SqliteStore.create(folder / "state.db"))
    copy_into(engine, copy, {})
    assert [span.stream for span in read_status(copy).windows.spans] == ["entitlements"]
    assert usage(copy) == [0, 0, 0]


def test_a_state_from_before_a_rotation_is_refused_where_a_witness_knows_better(tmp_path: Path) -> None:
    witness = tw.InProcess()
    settings = tw.witnessed_by(tw.WITNESSES["witness-a"])
    engine, _ = made(tmp_path, settings=settings, witnesses=(witness,))
    admit(engine, "c1", 40)
    te.witness(engine)
    old = te.copied(te.state_of(engine).parent, tmp_path / "old")
    rotate(engine)
    stale = te.open_engine(old, witnesses=(witness,))
    for work in (lambda: admit(stale, "c2", 1), lambda: rotate(stale)):
        error = refused(stale, work)
        assert isinstance(error, SafetyRefused) and error.code == "state-rolled-back"


def test_queries_work_over_windows(tmp_path: Path) -> None:
    engine, clock = made(tmp_path)
    admit(engine, "c1", 40)
    release(engine, "c1", 33)
    admit(engine, "c2", 40)
    clock.at_ms += 1_000
    rotate(engine, window="w2")
    here, before = standing.read_standings(engine), standing.read_standings(engine, "entitlements")
    assert (here.by_id[ENTITLEMENT].use.spent_uj, here.by_id[ENTITLEMENT].use.reserved_uj) == (0, 40)
    assert (before.by_id[ENTITLEMENT].use.spent_uj, before.by_id[ENTITLEMENT].use.reserved_uj) == (33, 0)
    assert (before.span.began_ms, before.span.ended_ms, here.span.ended_ms) == (AT_MS, AT_MS + 1_000, None)
    for named in ("w2", "entitlements:w2", "root-steward/entitlements:w2"):
        assert standing.read_standings(engine, named).span == here.span
    error = refused(engine, lambda: standing.read_standings(engine, "w3"))
    assert error.code == "no-such-window" and "there are entitlements, w2" in str(error)
    assert [(item.event, item.opened) for item in history.engine_history(engine, None).entries] == [
        ("applied", None),
        ("rotated", "root-steward/entitlements:w2"),
    ]
    assert b"root-steward/entitlements:w2" in snapshot_file(engine)
    files = dict(bundle(engine))
    assert {"entitlements.cborseq", "windows/0000-entitlements.cborseq"} <= set(files)


def test_usage_of_an_entitlement_that_left_stays_in_its_window(tmp_path: Path) -> None:
    """A69: orphans are of the window in which they were charged."""
    engine, _ = made(tmp_path, te.fleet(te.entitlement(), te.entitlement("gone")))
    admit(engine, "c1", 40, entitlement="gone")
    release(engine, "c1", 33)
    te.applied(engine, te.fleet(te.entitlement()), accept=["share:fleet/eu"])
    gone = te.id_of("entitlement", "gone")
    assert standing.read_standings(engine).by_id[gone].room is None
    rotate(engine)
    assert gone not in standing.read_standings(engine).by_id
    assert standing.read_standings(engine, "entitlements").by_id[gone].use.spent_uj == 33
    check(engine)


def test_a_state_that_was_moved_is_not_rotated(tmp_path: Path) -> None:
    from fleetctl.engine.moving import close

    engine, _ = made(tmp_path)
    close(engine, "elsewhere")
    assert refused(engine, lambda: rotate(engine)).code == "engine-closed"


def test_without_the_private_key_nothing_is_rotated(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    without = te.open_engine(te.state_of(engine).parent, signer=None)
    assert refused(without, lambda: rotate(without)).code == "steward-key-missing"


# ------------------------------------------------------------------------------------------------------- witnesses

WITNESS = tw.WITNESSES["witness-a"]


def heads_of(witness: tw.InProcess) -> dict[str, int]:
    assert isinstance(witness.state, tw.MemoryState)
    return {name.partition("/")[2]: known.length for name, known in witness.state.heads.items()}


def test_the_witness_signs_the_closed_window_the_new_one_and_the_journal(tmp_path: Path) -> None:
    witness = tw.InProcess()
    engine, _ = made(tmp_path, settings=tw.witnessed_by(WITNESS), witnesses=(witness,))
    admit(engine, "c1", 40)
    done = rotate(engine, window="w2", require_witness=True)
    assert (done.witnessed.grade, done.witnessed.covering) == ("witnessed", 1)
    assert heads_of(witness) == {"journal": 2, "entitlements": 2, "entitlements:w2": 1}
    asked = witness.asked
    te.witness(engine)
    assert witness.asked == asked  # nobody is asked again for what is closed
    report_ = audit_engine(engine).to_json()
    windows = report_["windows"]
    assert isinstance(windows, list)
    assert (report_["grade"], windows[0]["grade"]) == ("witnessed", "witnessed")


def test_a_silent_witness_leaves_the_rotation_honest_and_is_asked_later(tmp_path: Path) -> None:
    witness = tw.InProcess()
    silent = tw.Down(witness, answers=True)
    engine, _ = made(tmp_path, settings=tw.witnessed_by(WITNESS, required=1), witnesses=(silent,))
    admit(engine, "c1", 40)
    silent.answers = False
    with pytest.raises(rotating.RotatedUnwitnessed) as caught:
        rotate(engine, window="w2")
    assert (caught.value.exit_code, caught.value.code) == (5, "witness-missing")
    found = caught.value.rotation
    assert (found.witnessed.grade, found.witnessed.covering) == ("self-attested", 0)
    assert usage(engine) == [0, 40, 1]
    check(engine)
    assert not read_status(engine).witnessed.enough()

    with pytest.raises(rotating.RotatedUnwitnessed):
        rotate(engine, window="w3")
    silent.answers = True
    te.applied(engine, te.one_pool(16))  # whatever asks next finishes all of them
    assert heads_of(witness) == {"journal": 4, "entitlements": 2, "entitlements:w2": 2, "entitlements:w3": 1}
    assert read_status(engine).witnessed.grade == "witnessed"


def test_a_closed_window_that_nobody_signed_lowers_the_grade(tmp_path: Path) -> None:
    witness = tw.InProcess()
    engine, _ = made(tmp_path, settings=tw.witnessed_by(WITNESS), witnesses=(witness,))
    admit(engine, "c1", 40)
    rotate(engine, window="w2")
    assert read_status(engine).witnessed.grade == "witnessed"
    te.edit(te.state_of(engine).parent, "DELETE FROM receipts WHERE stream = 'entitlements'")
    assert read_status(engine).witnessed.grade == "self-attested"
    assert te.witness(engine).grade == "witnessed"


def test_a_witness_that_comes_later_signs_all_windows(tmp_path: Path) -> None:
    engine, _ = made(tmp_path)
    admit(engine, "c1", 40)
    rotate(engine, window="w2")
    rotate(engine, window="w3")
    from fleetctl.engine import builders, calls

    late = tw.InProcess(signer=tw.WITNESSES["witness-b"])
    engine = te.open_engine(te.state_of(engine).parent, witnesses=(late,))
    build = builders.settings_change(lambda _: tw.witnessed_by(tw.WITNESSES["witness-b"], required=1))
    assert calls.call(engine, "settings.set", tenant="root", request={}, build=build).witnessed.grade == "witnessed"
    assert heads_of(late) == {"journal": 4, "entitlements": 2, "entitlements:w2": 2, "entitlements:w3": 1}


def test_a_forged_history_of_a_closed_window_is_a_fork(tmp_path: Path) -> None:
    """Whoever holds the steward's key rewrites a closed window: the witness's receipt for it says so."""
    witness = tw.InProcess()
    engine, _ = made(tmp_path, settings=tw.witnessed_by(WITNESS), witnesses=(witness,))
    admit(engine, "c1", 40)
    done = rotate(engine)
    forged = seal(
        released("c1", spent_uj=0), Head(ledger=done.closed.ledger, length=1, address=b"\x01" * 32), te.STEWARD
    )
    folder = te.state_of(engine).parent
    te.edit(folder, "UPDATE entries SET sealed = ? WHERE stream = 'entitlements' AND seq = 1", (forged.data,))
    assert drifting.drift_fleet(engine, te.one_pool(), Source()).result == "tampered"
    assert not audit_engine(engine).ok
