"""Plan files that somebody made or changed: refused with a code, and what is applied folds like any other plan.

plan-apply.md, "Apply", steps 1, 2, 8 and 9; architecture.md rule 10: plans are hostile input.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetctl.canonical import digest_of
from fleetctl.engine.apply import apply_plan, check_plan
from fleetctl.errors import BadInput, EngineRefused, FleetctlError, SafetyRefused
from fleetctl.plan.planfile import read_plan
from tests.support import engines as te
from tests.support import inprocess as tw
from tests.support import tampering

VALUES: tuple[Any, ...] = (0, 2**53 - 1, "", "x", [], {"x": "y"}, True)
DELETED = object()
Path_ = tuple[Any, ...]


@pytest.fixture(scope="module")
def ground(memory: Path) -> tuple[Path, dict[str, Any]]:
    folder = memory / "ground"
    return folder, json.loads(tampering.build(folder))


def paths(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Every place in a JSON value, but the whole of it."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in entries:
        yield (*path, name)
        yield from paths(inner, (*path, name))


def changed(plan: dict[str, Any], path: Path_, value: Any) -> bytes:
    """The plan with another value at a place, and digests that fit."""
    out: dict[str, Any] = copy.deepcopy(plan)
    holder = out
    for name in path[:-1]:
        holder = holder[name]
    if value is DELETED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return sealed(out)


def sealed(plan: dict[str, Any]) -> bytes:
    """The file with digests that fit."""
    try:
        return json.dumps(
            plan | {"digest": digest_of(plan["body"]), "contextDigest": digest_of(plan["context"])}
        ).encode()
    except (TypeError, ValueError):  # no canonical JSON: the digests cannot fit
        return json.dumps(plan).encode()


def test_every_byte_of_the_file_counts_or_says_nothing(ground: tuple[Path, dict[str, Any]]) -> None:
    data = sealed(ground[1])
    honest = read_plan(data)
    for at in range(len(data)):
        for bit in (1, 32):
            flipped = bytes([*data[:at], data[at] ^ bit, *data[at + 1 :]])
            try:
                found = read_plan(flipped)
            except (BadInput, SafetyRefused):
                continue
            assert (found.digest, found.context_digest) == (honest.digest, honest.context_digest)
            assert found.body == honest.body


@pytest.mark.parametrize("part", ["body", "context"])
def test_a_plan_with_any_value_replaced_and_its_digests_made_to_fit(
    ground: tuple[Path, dict[str, Any]], tmp_path: Path, part: str
) -> None:
    """No traceback, and whatever `check` lets through is applied like a plan of its own: everything verifies afterwards."""
    folder, plan = ground
    engine = tampering.opened(folder)
    accepted = []
    for path in paths(plan[part]):
        for value in (DELETED, *VALUES) if part == "body" else (DELETED, "", [], 2**53 - 1):
            data = changed(plan, (part, *path), value)
            try:
                check_plan(engine, data)
            except FleetctlError as error:
                assert error.exit_code in (1, 3, 4)
                assert not isinstance(error, EngineRefused)
            else:
                accepted.append(data)
    engine.store.close()
    assert len(accepted) > 30

    for number, data in enumerate(accepted[:: 1 + len(accepted) // 60]):
        engine = tampering.opened(te.copied(folder, tmp_path / str(number)))
        apply_plan(engine, data)  # what `check` lets through
        te.check_whole(engine)
        engine.store.close()


def operations(plan: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plan["body"]["operations"]
    return found


def test_an_edited_plan_is_refused_until_its_digest_fits(ground: tuple[Path, dict[str, Any]]) -> None:
    folder, plan = ground
    edited = copy.deepcopy(plan)
    operations(edited)[1]["after"]["quota"]["gpu"] = 1_000
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(tampering.opened(folder), json.dumps(edited).encode())
    assert (caught.value.code, caught.value.exit_code) == ("plan-edited", 3)


def test_a_plan_for_another_engine_is_foreign(ground: tuple[Path, dict[str, Any]]) -> None:
    folder, plan = ground
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(tampering.opened(folder), changed(plan, ("body", "engine"), "eng_other"))
    assert caught.value.code == "foreign-plan"


def test_a_plan_of_another_fleet_touches_nothing_that_it_does_not_own(ground: tuple[Path, dict[str, Any]]) -> None:
    """pins: a plan of another fleet is exit 3."""
    folder, plan = ground
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(tampering.opened(folder), changed(plan, ("body", "fleet"), "other"))
    assert caught.value.code == "foreign-plan"


@pytest.mark.parametrize("field", ["quota", "name"])
def test_a_before_that_never_was_hides_no_danger(ground: tuple[Path, dict[str, Any]], field: str) -> None:
    """Dangers compare before and after: a false `before` would make a shrink look like growth (step 9)."""
    folder, plan = ground
    forged = copy.deepcopy(plan)
    update = next(item for item in operations(forged) if item["verb"] == "update" and item["kind"] == "offer")
    update["before"][field] = {"gpu": 0} if field == "quota" else "other"
    update["after"]["quota"] = {"gpu": 1}
    with pytest.raises(SafetyRefused) as caught:
        apply_plan(tampering.opened(folder), sealed(forged))
    assert (caught.value.code, caught.value.exit_code) == ("plan-false", 3)


def test_protection_does_not_come_off_and_the_object_away_in_one_plan(tmp_path: Path) -> None:
    """plan-apply.md, "Dangers": removing a protected object takes two applied plans."""
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.fleet(te.pool("pool-a", protect=True), te.pool("pool-b")))
    plan = json.loads(
        te.planned(engine, te.fleet(te.pool("pool-a"), te.pool("pool-b")), accept=["unprotect:pool/pool-a"])
    )
    (unprotect,) = operations(plan)
    removal = {key: value for key, value in unprotect.items() if key != "after"} | {
        "verb": "remove",
        "reversible": False,
    }
    plan["body"]["operations"] = [unprotect, removal]
    plan["body"]["acceptances"] += [{"danger": "share:fleet/eu"}]
    plan["context"]["dangers"] += [{"id": "share:fleet/eu", "figures": {"objects": 9, "gpus": 9}}]
    with pytest.raises(BadInput) as caught:
        apply_plan(engine, sealed(plan))
    assert caught.value.code == "plan-unreadable"
    te.check_whole(engine)


def test_no_plan_changes_the_engines_settings(tmp_path: Path) -> None:
    """plan-apply.md, "Dangers": settings are changed by a journalled command; nothing in a repository weakens a guard."""
    engine = te.new_engine(tmp_path / "engine", tw.witnessed_by(tw.WITNESSES["witness-a"], required=1))
    plan = json.loads(te.planned(engine, te.one_pool()))
    with engine.store.read() as reader:
        live = reader.object("settings", "settings")
    assert live is not None
    state: dict[str, Any] = dict(live.state())
    plan["body"]["operations"] = [
        {
            "verb": "adopt",
            "kind": "settings",
            "key": "engine",
            "id": "settings",
            "precondition": {"version": 1},
            "reversible": True,
            "reason": "owned by no fleet before",
            "before": state,
            "after": state | {"requiredWitnesses": 0},
        }
    ]
    with pytest.raises(FleetctlError) as caught:
        apply_plan(engine, sealed(plan))
    assert caught.value.code == "plan-unreadable"
    assert te.lengths(engine) == (0, 0)
