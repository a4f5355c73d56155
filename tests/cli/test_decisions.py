"""An auditor decides every admission again from what was exported, and nothing else (issue: "from exported data")."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetctl.canonical import sha256_hex
from fleetctl.cli.audits import Known
from fleetctl.cli.decisions import bundle_decisions
from fleetctl.engine import claims
from fleetctl.engine.context import Engine, usage_stream
from fleetctl.engine.journal import append_sealed
from fleetctl.engine.ledgers import bundle
from fleetctl.engine.moving import copy_into
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.engine.redeciding import Redecided
from fleetctl.engine.rotating import rotate
from fleetctl.errors import BadInput, EngineRefused, NotVerified, SafetyRefused, Tampered
from fleetctl.ledger.chain import Head, seal
from fleetctl.ledger.entries import Admitted
from fleetctl.ledger.keyfiles import public_pem
from fleetctl.model.declared import Declared
from fleetctl.pool1.claim import Figure
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.wire import decide
from fleetctl.store.sqlite import SqliteStore
from fleetctl.units import DurationMs
from tests.support import engines as te


def exported(engine: Engine, folder: Path) -> Path:
    """The bundle in a folder, and the steward's key beside it."""
    for name, data in bundle(engine):
        path = folder / "bundle" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "steward.pem").write_bytes(public_pem(engine.steward_key))
    return folder / "bundle"


def again(folder: Path, *names: str) -> list[tuple[Redecided, dict[str, Any]]]:
    """Every admission of the bundle with what `pool1 decide` answers to what it is given, which is the same verdict."""
    known = Known(steward_key=folder.parent / "steward.pem")
    _, found, _ = bundle_decisions(folder, known, names, te.AT_MS)
    out = []
    for item in found:
        given = json.loads(json.dumps(item.given()))
        answer = decide(given)
        assert answer["verdict"] == item.verdict.outcome.value
        assert answer.get("borrowed_uj", 0) == item.verdict.borrowed_uj
        assert answer["reasons"] == [reason.value for reason in item.verdict.reasons]
        out.append((item, answer | {"given": given}))
    return out


def tree(chance: random.Random) -> list[Declared]:
    """Two parents and their children; figures that move, a node that comes and goes."""
    parents = [te.entitlement("p", energy_uj=0, devices=0), te.entitlement("q", energy_uj=100, devices=4)]
    children = [
        te.entitlement(
            key,
            energy_uj=(guarantee := chance.randint(0, 900)),
            devices=chance.randint(8, 16),
            parent=parent,
            over_quota_weight=chance.randint(0, 3),
            limit_uj=chance.choice([None, guarantee + chance.randint(0, 300)]),
        )
        for key, parent in (("a", "p"), ("b", "p"), ("c", "q"), ("d", "q"))
    ]
    return [*parents, *children, *([te.entitlement("e", parent="p")] if chance.random() < 0.3 else [])]


def claim_something(engine: Engine, chance: random.Random, number: int) -> bool:
    found = claims.admit(
        engine,
        claim=f"c{number}",
        entitlement=chance.choice("pqabcd"),
        gang_size=chance.randint(1, 3),
        devices_per_member=chance.randint(1, 2),
        estimate_uj=chance.randint(0, 400),
        grade=chance.choice(list(Grade)),
        workload_class=chance.choice([None, "train"]),
    )
    if found.verdict.admitted and chance.random() < 0.5:
        claims.release(
            engine, claim=f"c{number}", reading=Figure(energy_uj=chance.randint(0, 500), grade=Grade.HW_SHUNT)
        )
    return found.verdict.admitted


def reapply(engine: Engine, chance: random.Random) -> None:
    """Another tree, every danger of it accepted; one that open claims forbid is left alone."""
    declared = te.fleet(*tree(chance))
    try:
        dangers = plan_fleet(engine, declared, Source(), host="h").plan.dangers
        te.applied(engine, declared, accept=[item.id for item in dangers])
    except EngineRefused:
        pass


@pytest.mark.parametrize("seed", range(6))
def test_after_any_history_every_admission_comes_out_as_it_was_sealed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    engine = te.new_engine(tmp_path / "engine", checkpoint_every=5)
    te.applied(engine, te.fleet(*tree(chance)))
    admitted = 0
    for number in range(40):
        if chance.random() < 0.25:
            reapply(engine, chance)
        admitted += claim_something(engine, chance, number)
    found = again(exported(engine, tmp_path))
    assert len(found) == admitted > 5
    assert all(item.agrees and not item.carried for item, _ in found)
    assert [(item.sealed.reserved_uj, item.sealed.devices) for item, _ in found] == [
        (answer["reserved_uj"], answer["devices"]) for _, answer in found
    ]
    names = [item.sealed.claim for item, _ in found][::3]
    assert [item.sealed.claim for item, _ in again(tmp_path / "bundle", *names)] == names


def test_the_tree_is_the_one_of_the_moment(tmp_path: Path) -> None:
    """A guarantee that was lowered since, and one that was raised, change nothing of what was decided before."""
    engine = te.new_engine(tmp_path / "engine")
    numbers = {"c0": 100, "c1": 300, "c2": 0}
    for number, (claim, energy) in enumerate(numbers.items()):
        te.applied(engine, te.fleet(te.entitlement(energy_uj=(100, 400, 400)[number])))
        found = claims.admit(
            engine,
            claim=claim,
            entitlement="ent",
            gang_size=1,
            devices_per_member=1,
            estimate_uj=energy,
            grade=Grade.ESTIMATOR,
        )
        assert found.verdict.admitted
    te.applied(engine, te.fleet(te.entitlement(energy_uj=1)), accept=["shrink-below-use:entitlement/ent"])
    found = again(exported(engine, tmp_path))
    assert [item.agrees for item, _ in found] == [True] * 3
    assert [answer["given"]["tree"][0]["guarantee_uj"] for _, answer in found] == [100, 400, 400]


def seal_anyway(engine: Engine, **changes: Any) -> None:
    """A steward that writes down what pool/1 does not grant."""
    event = Admitted(
        claim="favour",
        entitlement=te.ENT,
        reserved_uj=50,
        borrowed_uj=0,
        devices=1,
        grade="ModelBased",
        at_ms=te.AT_MS,
    )
    with engine.store.write(0) as tx:
        stream = usage_stream(tx)
        at = tx.stream(stream)
        assert at is not None
        head = Head(ledger=engine.ledger(stream), length=at.length, address=at.head)
        append_sealed(tx, stream, seal(replace(event, **changes), head, engine.sealing()))


@pytest.mark.parametrize(
    ("changes", "agrees", "reasons"),
    [
        ({}, True, []),
        ({"reserved_uj": 101}, False, ["never-fits"]),
        ({"devices": 65}, False, ["devices-exceed-guarantee"]),
        ({"borrowed_uj": 1}, False, []),
        ({"entitlement": "nobody"}, False, ["unknown-entitlement"]),
    ],
)
def test_what_was_sealed_against_the_standard_is_found(
    tmp_path: Path, changes: dict[str, Any], agrees: bool, reasons: list[str]
) -> None:
    """A ledger that verifies in every way, of a steward that did not decide by §4."""
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(te.entitlement(energy_uj=100)))
    seal_anyway(engine, **changes)
    ((item, answer),) = again(exported(engine, tmp_path))
    assert (item.agrees, answer["reasons"]) == (agrees, reasons)


def test_a_copied_engine_starts_from_what_was_copied(tmp_path: Path) -> None:
    source = te.new_engine(tmp_path / "source")
    te.applied(source, te.fleet(te.entitlement(energy_uj=100)))
    folder = tmp_path / "copy"
    folder.mkdir(mode=0o700)
    engine = te.over(SqliteStore.create(folder / "state.db"), id="eng_copy")
    copy_into(source, engine, {})
    seal_anyway(engine)
    bare = exported(engine, tmp_path / "bare")
    with pytest.raises(Tampered) as caught:  # with an empty journal nothing seals what it started from
        again(bare)
    assert (caught.value.code, caught.value.exit_code) == ("first-state-missing", 3)
    te.applied(engine, te.fleet(te.entitlement(energy_uj=101)))
    ((item, _),) = again(exported(engine, tmp_path / "applied"))
    assert item.agrees


def test_windows_are_decided_each_on_its_own_usage(tmp_path: Path) -> None:
    """readings A05: usage begins anew with what was carried over, which nobody decided."""
    clock = te.ToldClock(step_ms=1)
    engine = te.new_engine(tmp_path / "engine", clock=clock)

    def weekly(energy_uj: int) -> Declared:
        return te.entitlement("p", energy_uj=energy_uj, devices=4, period_ms=DurationMs(7 * 24 * te.HOUR))

    te.applied(engine, te.fleet(weekly(100)))
    ask = {"entitlement": "p", "gang_size": 1, "devices_per_member": 1, "grade": Grade.ESTIMATOR}
    assert claims.admit(engine, claim="c1", estimate_uj=40, **ask).verdict.admitted  # type: ignore[arg-type]  # its keywords
    assert claims.admit(engine, claim="c2", estimate_uj=60, **ask).verdict.admitted  # type: ignore[arg-type]  # its keywords
    claims.release(engine, claim="c2")
    clock.at_ms += 8 * 24 * te.HOUR
    rotate(engine)
    te.applied(engine, te.fleet(weekly(120)))
    assert claims.admit(engine, claim="c3", estimate_uj=80, **ask).verdict.admitted  # type: ignore[arg-type]  # its keywords
    found = again(exported(engine, tmp_path))
    assert [(item.sealed.claim, item.entry, item.carried, item.agrees) for item, _ in found] == [
        ("c1", 0, False, True),
        ("c2", 1, False, True),
        ("c1:2", 0, True, True),
        ("c3", 1, False, True),
    ]
    usage = [answer["given"]["usage"] for _, answer in found]
    assert usage[0] == {} and usage[2] == {}
    (carried,) = usage[3].values()
    assert carried == {"spent_uj": 0, "reserved_uj": 40, "devices": 1}


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b"[1]",
        b"[{}]",
        b"[null]",
        b'[{"kind":"settings"}]',
        b"[" + b"9" * 5_000 + b"]",
        b"\xff",
        b"",
        b"[]",
    ],
)
def test_a_document_that_nobody_named_changes_nothing(tmp_path: Path, content: bytes) -> None:
    """Only those that the journal names are sealed; whatever else lies there is anybody's."""
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(te.entitlement(energy_uj=100)))
    seal_anyway(engine)
    folder = exported(engine, tmp_path)
    (folder / "documents" / f"{sha256_hex(content)}.json").write_bytes(content)
    ((item, _),) = again(folder)
    assert item.agrees


def test_a_claim_that_nobody_admitted_is_no_answer(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(te.entitlement(energy_uj=100)))
    seal_anyway(engine)
    folder = exported(engine, tmp_path)
    assert [item.sealed.claim for item, _ in again(folder, "favour")] == ["favour"]
    with pytest.raises(BadInput) as caught:
        again(folder, "favour", "never")
    assert caught.value.code == "claim-not-admitted"


def test_a_bundle_without_claims_has_none(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.one_pool())
    assert again(exported(engine, tmp_path)) == []


@pytest.mark.parametrize("damage", ["entry", "plan", "first"])
def test_a_bundle_that_does_not_verify_decides_nothing(tmp_path: Path, damage: str) -> None:
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(te.entitlement(energy_uj=100)))
    seal_anyway(engine)
    folder = exported(engine, tmp_path)
    if damage == "entry":
        path = folder / "entitlements.cborseq"
        path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    else:
        mark = b'"kind":"settings"' if damage == "first" else b'"operations"'
        found = [path for path in (folder / "documents").iterdir() if mark in path.read_bytes()]
        assert found
        for path in found:
            path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    with pytest.raises(SafetyRefused if damage != "entry" else NotVerified) as caught:
        again(folder)
    assert caught.value.exit_code == 3
