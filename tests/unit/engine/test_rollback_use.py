"""Nothing is appended where a witness knows more than this state: not by use, not by a report, and a check says so too.

ledger.md, "The witness": "The engine then refuses to append."
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fleetctl.engine import claims, drifting, reservations
from fleetctl.engine.apply import check_plan
from fleetctl.engine.context import Engine
from fleetctl.errors import SafetyRefused
from fleetctl.pool1.grade import Grade
from tests.support import engines as te
from tests.support import inprocess as tw


def admit(engine: Engine, claim: str) -> object:
    return claims.admit(
        engine,
        claim=claim,
        entitlement="ent",
        gang_size=1,
        devices_per_member=1,
        estimate_uj=1,
        grade=Grade.ESTIMATOR,
    )


COMMANDS: dict[str, Callable[[Engine], object]] = {
    "claims admit": lambda engine: admit(engine, "c2"),
    "claims release": lambda engine: claims.release(engine, claim="c1"),
    "reservations create": lambda engine: reservations.create(engine, tenant="acme", pool="pool-a", gpus=1),
    "reservations end": lambda engine: reservations.end(engine, "res_1"),
    "drift --seal": lambda engine: drifting.seal_report(engine, {"result": "none"}, "none"),
    "check": lambda engine: check_plan(engine, te.planned(engine, te.one_pool(1))),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_appended_to_a_state_that_was_set_back(tmp_path: Path, name: str) -> None:
    witness = tw.InProcess()
    roster = tw.witnessed_by(tw.WITNESSES["witness-a"])
    engine = te.new_engine(tmp_path / "engine", roster, witnesses=(witness,))
    te.applied(engine, te.one_pool(32))
    admit(engine, "c1")
    te.witness(engine)
    backup = te.copied(tmp_path / "engine", tmp_path / "backup")
    te.applied(engine, te.one_pool(16))

    restored = te.open_engine(backup, witnesses=(witness,))
    before = te.dump(backup)
    with pytest.raises(SafetyRefused) as caught:
        COMMANDS[name](restored)
    assert (caught.value.code, caught.value.exit_code) == ("state-rolled-back", 3)
    assert te.dump(backup) == before


@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith("reservations")])
def test_a_witness_that_is_down_stands_in_nobodys_way(tmp_path: Path, name: str) -> None:
    engine = te.new_engine(
        tmp_path / "engine", tw.witnessed_by(tw.WITNESSES["witness-a"]), witnesses=(tw.Down(tw.InProcess()),)
    )
    te.applied(engine, te.one_pool(32))
    admit(engine, "c1")
    COMMANDS[name](engine)
