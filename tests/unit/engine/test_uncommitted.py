"""The danger `revert` after an apply of uncommitted files: of the values that came from them, and of no others.

plan-apply.md, "Dangers": "the live value was applied from a commit that is not an ancestor of this one, or from uncommitted files".
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetctl.engine.apply import apply_plan, check_plan
from fleetctl.engine.context import Engine
from fleetctl.engine.planning import Source, plan_fleet
from fleetctl.errors import BadInput, SafetyRefused, Stale
from fleetctl.model.declared import Fleet
from fleetctl.plan.planfile import read_plan, write_plan
from tests.support import engines as te

A, B, C = "a" * 40, "b" * 40, "c" * 40
REVERT = "revert:fleet/eu"


def files(quota: int = 32, description: str = "one", other: str = "two", priority: int = 0) -> Fleet:
    return te.fleet(
        te.pool("pool-a", description=description),
        te.pool("pool-b", description=other),
        te.offer("pool-a", gpus=quota, priority=priority),
    )


def source(commit: str, *strangers: str) -> Source:
    """Files at a commit; all but the `strangers` are its ancestors."""
    return Source(commit=commit, origin=("root", "fleet"), is_ancestor=lambda other: other not in strangers)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Committed files were applied, then others that changed the offer's quota and pool-a's description."""
    made = te.new_engine(tmp_path / "engine")
    te.applied(made, files(), source=source(A))
    te.applied(made, files(quota=20, description="tried"), source=source(f"{A}+dirty"))
    return made


def dangers(engine: Engine, declared: Fleet, where: Source) -> list[str]:
    return [item.id for item in plan_fleet(engine, declared, where, host="host").plan.dangers]


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        (files(quota=20, description="tried", other="new"), []),
        (files(quota=20, description="tried", priority=3), []),
        (files(quota=21, description="tried"), [REVERT]),
        (files(quota=20, description="one"), [REVERT]),
        (files(quota=20, description="one", other="new", priority=3), [REVERT]),
        (files(), [REVERT]),
    ],
    ids=["another object", "another field", "the quota", "the description", "one of many", "all back"],
)
def test_only_a_value_that_came_from_uncommitted_files_is_in_danger(
    engine: Engine, declared: Fleet, found: list[str]
) -> None:
    assert dangers(engine, declared, source(B)) == found
    assert dangers(engine, declared, source(f"{A}+dirty")) == found
    data = te.planned(engine, declared, source=source(B))
    if found:
        with pytest.raises(SafetyRefused, match=REVERT):
            apply_plan(engine, data)
    apply_plan(engine, data, accept=found)
    te.check_whole(engine)


def test_an_apply_of_committed_files_settles_what_was_not(engine: Engine) -> None:
    te.applied(engine, files(quota=20, description="tried", other="new"), source=source(B))
    assert dangers(engine, files(), source(C)) == []


def test_an_object_that_came_from_uncommitted_files_is_in_danger_as_a_whole(engine: Engine) -> None:
    more = te.fleet(*files(quota=20, description="tried").objects[2:], te.pool("pool-c"))
    te.applied(engine, more, source=source(f"{A}+dirty"))
    assert REVERT in dangers(engine, files(quota=20, description="tried"), source(B))
    renamed = te.fleet(*files(quota=20, description="tried").objects[2:], te.pool("pool-c", description="x"))
    assert dangers(engine, renamed, source(B)) == [REVERT]


def test_where_the_last_committed_files_are_of_no_ancestor_everything_is_in_danger(engine: Engine) -> None:
    declared = files(quota=20, description="tried", other="new")
    assert dangers(engine, declared, source(B, A)) == [REVERT]
    data = te.planned(engine, declared, source=source(B, A))
    with pytest.raises(SafetyRefused, match=REVERT):
        check_plan(engine, data)


def test_where_no_committed_files_were_ever_applied_every_value_came_from_others(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, files(), source=source(f"{A}+dirty"))
    assert dangers(engine, files(other="new"), source(B)) == [REVERT]
    te.applied(engine, files(quota=20), source=source(f"{A}+dirty"), accept=[REVERT])
    assert dangers(engine, files(quota=20, other="new"), source(B)) == [REVERT]


def test_what_was_applied_outside_git_between_counts_as_uncommitted(engine: Engine) -> None:
    te.applied(engine, files(quota=20, description="tried", other="free"), source=Source())
    te.applied(engine, files(quota=20, description="tried", other="free", priority=1), source=source(f"{A}+dirty"))
    assert dangers(engine, files(quota=20, description="tried", priority=1), source(B)) == [REVERT]


def test_the_body_names_the_last_committed_files_and_apply_holds_it_to_the_journal(engine: Engine) -> None:
    declared = files(quota=20, description="tried", other="new")
    file = plan_fleet(engine, declared, source(B), host="host").file
    assert file.body_json["lastApplied"] == {
        "commit": f"{A}+dirty",
        "ancestor": True,
        "settled": {"commit": A, "ancestor": True},
    }
    assert read_plan(write_plan(file)).body == file.body
    forged = forge(file, settled={"commit": C, "ancestor": True})
    with pytest.raises(Stale) as caught:
        apply_plan(engine, forged)
    assert caught.value.code == "stale-source"
    for settled in ({}, {"commit": 5}, {"commit": A, "ancestor": "yes"}, {"commit": A, "more": 1}, {"ancestor": True}):
        with pytest.raises(BadInput):
            apply_plan(engine, forge(file, settled=settled))


def forge(file: Any, *, settled: dict[str, Any]) -> bytes:
    """The plan file with another `settled`, and the digest that then fits."""
    from fleetctl.canonical import digest_of

    body = {**file.body_json, "lastApplied": {**file.body_json["lastApplied"], "settled": settled}}
    return write_plan(replace(file, body_json=body, digest=digest_of(body)))
