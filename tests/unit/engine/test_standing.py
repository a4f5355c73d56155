"""How entitlements stand: figures derived from the ledger under today's tree, and what still fits (pool/1 §2.2, §4, §6.1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.engine import claims
from fleetctl.engine.context import Engine
from fleetctl.engine.standing import Room, Standing, Standings, named, read_standings, room
from fleetctl.errors import EngineRefused
from fleetctl.model.usage import EntitlementUse
from fleetctl.pool1.admission import decide
from fleetctl.pool1.claim import Claim, Figure
from fleetctl.pool1.grade import Grade
from fleetctl.pool1.tree import Entitlement, Tree, TreeState, Usage
from fleetctl.render import entitlements as views
from fleetctl.render.text import to_text
from tests.support import engines as te

TOP = te.entitlement("top", energy_uj=0, devices=0)


def lab(name: str, guarantee: int, **fields: object) -> object:
    return te.entitlement(name, energy_uj=guarantee, parent="top", over_quota_weight=1, **fields)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = te.new_engine(tmp_path / "engine")
    te.applied(made, te.fleet(TOP, lab("a", 300), lab("b", 200)))
    return made


def admit(engine: Engine, claim: str, energy: int, grade: Grade = Grade.MODEL_BASED, entitlement: str = "a") -> None:
    found = claims.admit(
        engine,
        claim=claim,
        entitlement=entitlement,
        gang_size=1,
        devices_per_member=2,
        estimate_uj=energy,
        grade=grade,
    )
    assert found.verdict.admitted


def standing(engine: Engine, key: str) -> Standing:
    return read_standings(engine).by_id[te.id_of("entitlement", key)]


def test_spent_reserved_borrowed_share_and_headroom(engine: Engine) -> None:
    """readings A09, A72: borrowed is what claims were admitted with; the grade is the weakest of the figures that count."""
    admit(engine, "c1", 200, Grade.HW_SHUNT)
    claims.release(engine, claim="c1", reading=Figure(energy_uj=150, grade=Grade.HW_SHUNT))
    assert standing(engine, "a").grade == "HwShunt"
    admit(engine, "c2", 200)
    found = standing(engine, "a")
    assert found.use == EntitlementUse(spent_uj=150, reserved_uj=200, devices=2, open_claims=1)
    assert (found.borrowed_uj, found.grade) == (50, "ModelBased")
    assert found.room == Room(share_uj=100, left_uj=0, headroom_uj=50, deficit_uj=0)
    other = standing(engine, "b")
    assert (other.use, other.grade) == (EntitlementUse(), None)
    assert other.room == Room(share_uj=0, left_uj=200, headroom_uj=200, deficit_uj=0)


def test_a_lowered_guarantee_leaves_a_deficit_and_takes_nothing_back(engine: Engine) -> None:
    """readings A35: G 300 to 100 with S 300; what an open claim was admitted to borrow is no deficit."""
    admit(engine, "c1", 300)
    te.applied(engine, te.fleet(TOP, lab("a", 100), lab("b", 200)), accept=["shrink-below-use:entitlement/a"])
    found = standing(engine, "a")
    assert found.use.reserved_uj == 300 and found.borrowed_uj == 0
    assert found.room == Room(share_uj=100, left_uj=0, headroom_uj=0, deficit_uj=200)
    told = read_standings(engine)
    assert views.tree_json(told)["tree"][1]["deficit_uj"] == 200
    text = to_text(views.tree_document(told), columns=200)
    assert "entitlement/a uses 200 uJ above its guarantee" in text
    claims.release(engine, claim="c1", reading=Figure(energy_uj=90, grade=Grade.HW_SHUNT))
    assert standing(engine, "a").room == Room(share_uj=100, left_uj=10, headroom_uj=110, deficit_uj=0)


def test_usage_of_an_entitlement_that_left_stays_on_record(engine: Engine) -> None:
    """readings A69: it lends nothing and weighs nothing."""
    admit(engine, "c1", 40, entitlement="b")
    claims.release(engine, claim="c1", reading=Figure(energy_uj=40, grade=Grade.HW_SHUNT))
    assert standing(engine, "a").room == Room(share_uj=80, left_uj=300, headroom_uj=380, deficit_uj=0)
    te.applied(engine, te.fleet(TOP, lab("a", 300)), accept=["share:fleet/eu"])
    told = read_standings(engine)
    gone = told.by_id[te.id_of("entitlement", "b")]
    assert (gone.room, gone.use.spent_uj, gone.grade) == (None, 40, "HwShunt")
    assert standing(engine, "a").room == Room(share_uj=0, left_uj=300, headroom_uj=300, deficit_uj=0)
    assert [item["spent_uj"] for item in views.tree_json(told)["orphans"]] == [40]
    (used,) = views.usage_json(told, None)["items"]
    id = te.id_of("entitlement", "b")
    assert (used["entitlement"], used["id"], used["orphan"]) == ("entitlement/b", id, True)
    assert "entitlement/b is no longer in the tree" in to_text(views.tree_document(told), columns=200)
    assert [named(told, name) for name in ("b", id, "a")] == [id, id, te.id_of("entitlement", "a")]
    with pytest.raises(EngineRefused):
        named(told, "never")


figures = st.integers(0, 300)
nodes = st.tuples(figures, st.none() | figures, st.integers(0, 3), figures)


@given(st.lists(nodes, min_size=1, max_size=5), st.booleans())
def test_headroom_is_what_the_largest_admitted_estimate_is(
    found: list[tuple[int, int | None, int, int]], rooted: bool
) -> None:
    """Against the decision itself: `headroom_uj` is admitted where it is more than 0, and one microjoule more never is."""
    top = (
        [] if rooted else [Entitlement(id="top", parent=None, guarantee_uj=0, guarantee_devices=0, over_quota_weight=0)]
    )
    tree = [
        Entitlement(
            id=f"n{index}",
            parent=None if rooted else "top",
            guarantee_uj=guarantee,
            guarantee_devices=1,
            over_quota_weight=weight,
            limit_uj=None if extra is None else guarantee + extra,
        )
        for index, (guarantee, extra, weight, _) in enumerate(found)
    ]
    state = TreeState(
        Tree([*top, *tree]), {f"n{index}": Usage(spent_uj=spent) for index, (*_, spent) in enumerate(found)}
    )
    for item in tree:
        stands = room(state.nodes[item.id])

        def admits(estimate: int, grade: Grade, name: str = item.id) -> bool:
            claim = Claim(entitlement=name, gang_size=1, devices_per_member=1, estimate_uj=estimate, grade=grade)
            return decide(state, claim).admitted

        for most, grade in ((stands.headroom_uj, Grade.MODEL_BASED), (stands.left_uj, Grade.ESTIMATOR)):
            assert most == 0 or admits(most, grade)
            assert not admits(most + 1, grade)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Standings:
    """200 levels, and 300 children of one parent; one deep claim."""
    engine = te.new_engine(tmp_path_factory.mktemp("large"))
    deep = [
        te.entitlement(f"deep-{level:03}", parent=f"deep-{level - 1:03}" if level else None, over_quota_weight=1)
        for level in range(200)
    ]
    wide = [te.entitlement(f"wide-{n:03}", parent="top", energy_uj=10**9 + n, over_quota_weight=n) for n in range(300)]
    te.applied(engine, te.fleet(TOP, *deep, *wide))
    admit(engine, "c1", 123_456_789_012, entitlement="deep-199")
    return read_standings(engine)


@pytest.mark.parametrize("columns", [80, 40])
def test_a_deep_and_a_wide_tree_fit_a_terminal(large: Standings, columns: int) -> None:
    for document in (views.tree_document(large), views.usage_document(large, None)):
        lines = to_text(document, columns=columns, fold=True).splitlines()
        assert max(map(len, lines)) <= columns
        assert sum("deep-199" in line for line in lines) == 1
    assert any(
        line.startswith(". . . . . . . . [199] deep-199") for line in to_text(views.tree_document(large)).splitlines()
    )


def test_through_a_pipe_a_row_is_a_line(large: Standings) -> None:
    lines = to_text(views.tree_document(large)).splitlines()
    assert len(lines) == 1 + 1 + 200 + 300
    (row,) = [line.split() for line in lines if "deep-199" in line]
    assert row[-1] == "ModelBased" and "123456789.012" in row
