"""Reports on running work, and what is answered from them: who yields first, who is idle (pool/1 §5, §2.7)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetctl.engine import claims, reports
from fleetctl.engine.context import Engine
from fleetctl.errors import BadInput, EngineRefused, FleetctlError
from fleetctl.model.declared import Declared
from fleetctl.model.operational import Observation
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.idle import IdlePolicy
from tests.support import engines as te

CASES = json.loads((Path(__file__).parents[2] / "cases" / "pool1" / "running.json").read_text("utf-8"))
MODEL = Grade.MODEL_BASED


def cases(name: str) -> list[Any]:
    return [pytest.param(case, id=f"{case['clause']}: {case['why']}") for case in CASES[name]]


def entitlement(text: str) -> Declared:
    """`NAME` and any of G guarantee_uj, w weight, p priority, @PARENT."""
    name, *marks = text.split()
    given = {mark[0]: mark[1:] for mark in marks}
    return te.entitlement(
        name,
        energy_uj=int(given.get("G", 0)),
        parent=given.get("@"),
        over_quota_weight=int(given.get("w", 0)),
        priority=int(given.get("p", 0)),
    )


def admit(engine: Engine, text: str) -> None:
    name, where, energy, grade = text.split()
    found = claims.admit(
        engine,
        claim=name,
        entitlement=where,
        gang_size=1,
        devices_per_member=1,
        estimate_uj=int(energy),
        grade=Grade(grade),
    )
    assert found.verdict.admitted, (text, found.verdict.reasons)


def say(engine: Engine, text: str) -> reports.Reported:
    name, units, spent, grade, *seen = text.split()
    observed = [int(part) for part in seen[0].split("/")] if seen else [None, None]
    return reports.report(
        engine,
        claim=name,
        completed_units=int(units),
        spent_uj=int(spent),
        grade=Grade(grade),
        observed_ms=observed[0],
        observed_uj=observed[1],
        weight_zero=observed[2:] == [0],
    )


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Two running claims, w1 and w2, and one that has ended."""
    made = te.new_engine(tmp_path / "engine")
    te.applied(made, te.fleet(te.entitlement(energy_uj=10_000)))
    for name in ("w1", "w2", "ended"):
        admit(made, f"{name} ent 1000 ModelBased")
    claims.release(made, claim="ended", reading=Figure(energy_uj=1, grade=MODEL))
    return made


# ------------------------------------------------------------------------------------------------------ reports


def test_a_report_is_kept_beside_the_ledger_and_replaces_the_last_one(engine: Engine) -> None:
    """pool/1 §6.2: two events move the ledger, and a report is none of them."""
    folder = te.state_of(engine).parent
    before = te.dump(folder)
    first = say(engine, "w1 1 500 HwShunt")
    assert (first.changed, first.report.observation) == (True, None)
    clock = te.ToldClock(at_ms=first.report.at_ms + 5)
    again = say(replace(engine, clock=clock), "w1 1 500 HwShunt")
    assert (again.changed, again.report.at_ms) == (False, first.report.at_ms + 5)
    last = say(engine, "w1 2 700 ModelBased 60000/200")
    assert last.changed and last.report.observation == Observation(observed_ms=60_000, energy_uj=200)
    with engine.store.read() as reader:
        assert list(reader.reports("entitlements")) == [last.report]
    after = te.dump(folder)
    assert len(after.pop("reports")) == 1 and before.pop("reports") == []
    assert after == before
    te.check_whole(engine)


@pytest.mark.parametrize("reading", [None, Figure(energy_uj=3, grade=Grade.HW_SHUNT)])
def test_a_release_charges_as_if_nobody_had_reported(engine: Engine, reading: Figure | None) -> None:
    """readings A38: without a reading the reservation is charged, whatever was said in between; the report goes."""
    say(engine, "w1 1 500 HwShunt")
    charged = claims.release(engine, claim="w1", reading=reading).charged
    assert charged == (reading or Figure(energy_uj=1_000, grade=Grade.ESTIMATOR))
    with engine.store.read() as reader:
        assert list(reader.reports("entitlements")) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("never 0 0 HwShunt", "claim-not-open"),
        ("ended 0 1 HwShunt", "claim-not-open"),
        ("a/b 0 1 HwShunt", "bad-ledger-identifier"),
        ("w1 3 499 HwShunt", "report-falls"),
        ("w1 1 501 HwShunt", "report-falls"),
        ("w1 -1 500 HwShunt", "bad-report"),
        ("w1 2 -1 HwShunt", "bad-report"),
        ("w1 2 9223372036854775808 HwShunt", "bad-report"),
        ("w1 9223372036854775808 500 HwShunt", "bad-report"),
        ("w1 2 500 HwShunt -1/0", "bad-report"),
        ("w1 2 500 HwShunt 9223372036854775808/0", "bad-report"),
        ("w1 2 500 HwShunt 1/-1", "bad-report"),
        ("w1 2 500 HwShunt 1/501", "bad-report"),
    ],
)
def test_a_report_that_cannot_be_is_refused(engine: Engine, text: str, code: str) -> None:
    say(engine, "w1 2 500 HwShunt")
    assert refused(engine, lambda: say(engine, text)) == code


@pytest.mark.parametrize(
    "figures",
    [
        {"completed_units": True},
        {"spent_uj": True},
        {"spent_uj": 1.0},
        {"observed_ms": 5},
        {"observed_uj": 5},
        {"weight_zero": True},
        {"observed_ms": True, "observed_uj": 0},
    ],
)
def test_figures_that_are_no_integers_or_half_of_a_pair(engine: Engine, figures: Mapping[str, Any]) -> None:
    values: dict[str, Any] = {"completed_units": 1, "spent_uj": 500, "grade": Grade.HW_SHUNT}
    assert refused(engine, lambda: reports.report(engine, claim="w1", **(values | figures))) == "bad-report"


def refused(engine: Engine, work: Any) -> str:
    """The code of a refusal, which has changed nothing."""
    folder = te.state_of(engine).parent
    before = te.dump(folder)
    with pytest.raises((EngineRefused, BadInput)) as caught:
        work()
    assert te.dump(folder) == before
    return caught.value.code


def test_a_rebuild_keeps_reports(engine: Engine) -> None:
    from fleetctl.engine.rebuild import rebuild

    said = say(engine, "w1 1 500 HwShunt").report
    rebuild(engine)
    with engine.store.read() as reader:
        assert list(reader.reports("entitlements")) == [said]


def test_a_report_edited_behind_the_engines_back_is_found_where_it_cannot_be(engine: Engine) -> None:
    say(engine, "w1 1 500 HwShunt")
    te.edit(te.state_of(engine).parent, "UPDATE reports SET grade = 'Certain'")
    for work in (lambda: reports.victims(engine), lambda: reports.idle(engine, IdlePolicy())):
        with pytest.raises(FleetctlError) as caught:
            work()
        assert caught.value.code == "row-unreadable"


def test_nothing_is_ranked_or_judged_on_a_tree_that_was_edited(engine: Engine) -> None:
    statement = """UPDATE objects SET body = replace(body, '"priority":0', '"priority":9') WHERE kind = 'entitlement'"""
    assert te.edit(te.state_of(engine).parent, statement) == 1
    for work in (lambda: reports.victims(engine), lambda: reports.idle(engine, IdlePolicy())):
        with pytest.raises(FleetctlError) as caught:
            work()
        assert caught.value.code == "state-tampered"


# ------------------------------------------------------------------------------------------------------ victims


@pytest.mark.parametrize("case", cases("victims"))
@pytest.mark.clause("pool/1 §7.8", "pool/1 §7.9", "pool/1 §5.1", "pool/1 §5.2 (1)", "pool/1 §5.2 (2)")
def test_victims(tmp_path: Path, case: Mapping[str, Any]) -> None:
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(*map(entitlement, case["entitlements"])))
    for text in case["claims"]:
        admit(engine, text)
    for text in case["reports"]:
        say(engine, text)
    raw = reports.victims(engine, raw=True)
    assert raw.raw and [item.claim for item in raw.order] == case["raw"]
    found = reports.victims(engine)
    assert not found.raw and [item.claim for item in found.order] == case["default"]
    assert [item.claim for item in raw.order if item.undefined] == case["undefined"]
    for name, order in case.get("for", {}).items():
        for_one = reports.victims(engine, beneficiary=name)
        assert for_one.beneficiary == te.id_of("entitlement", name)
        assert [item.claim for item in for_one.order] == order, name


def test_what_a_victim_gives_back_is_unknown_until_somebody_reports(engine: Engine) -> None:
    """readings A47: the reservation less what was spent, at least 0; an unknown spend is not 0."""
    say(engine, "w1 1 400 HwShunt")
    freed = {item.claim: item.freed_uj for item in reports.victims(engine, raw=True).order}
    assert freed == {"w1": 600, "w2": None}
    say(engine, "w1 1 1500 HwShunt")
    assert {item.freed_uj for item in reports.victims(engine, raw=True).order if item.claim == "w1"} == {0}


def test_victims_for_an_entitlement_that_is_not_there(engine: Engine) -> None:
    assert refused(engine, lambda: reports.victims(engine, beneficiary="nobody")) == "entitlement-not-found"


def test_no_claims_no_victims(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine")
    assert reports.victims(engine, raw=True).order == () == reports.victims(engine).order
    assert reports.idle(engine, IdlePolicy(window_ms=1, threshold_uw=1)).claims == ()


# --------------------------------------------------------------------------------------------------------- idle


@pytest.mark.parametrize("case", cases("idle"))
@pytest.mark.clause(
    "pool/1 §7.25",
    "pool/1 §7.26",
    "pool/1 §7.27",
    "pool/1 §7.28",
    "pool/1 §2.7 (1)",
    "pool/1 §2.7 (2)",
    "pool/1 §2.7 (3)",
    "pool/1 §2.7 (4)",
)
def test_idle(tmp_path: Path, case: Mapping[str, Any]) -> None:
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(te.entitlement(energy_uj=10_000)))
    names = case.get("claims") or [text.split()[0] for text in case["reports"]]
    for name in names:
        admit(engine, f"{name} ent 10 ModelBased")
    ran_ms = case.get("ran_ms", 24 * te.HOUR)
    engine = replace(engine, clock=te.ToldClock(at_ms=engine.clock.now_ms() + ran_ms))
    for text in case["reports"]:
        say(engine, text)
    clock = te.ToldClock(at_ms=engine.clock.now_ms() + case.get("minutes", 0) * 60_000)
    found = reports.idle(replace(engine, clock=clock), IdlePolicy(**case["policy"]))
    assert [item.claim for item in found.claims] == names
    assert {item.claim: f"{item.verdict.value} {item.why}" for item in found.claims} == case["verdicts"]
    assert list(found.reclamation_order) == case["order"]
