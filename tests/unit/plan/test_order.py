"""The total order of a plan, and that nothing of the machine reaches it."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.model.ids import KINDS, Kind, ObjectId
from fleetctl.model.operation import Operation, Precondition, Verb
from fleetctl.plan.order import in_order, order_key

ROOT = Path(__file__).parents[3]


def _operation(verb: Verb, kind: Kind, key: str, id: str | None = None) -> Operation:
    return Operation(verb=verb, kind=kind, key=key, id=ObjectId(id or key), precondition=Precondition(version=1))


operations = st.lists(
    st.builds(
        _operation,
        st.sampled_from(["create", "update", "rename", "adopt", "release", "remove"]),
        st.sampled_from(KINDS),
        st.sampled_from("abcdef"),
    ),
    max_size=12,
    unique_by=lambda item: (item.kind, item.id),
)
parents = st.dictionaries(
    st.sampled_from([ObjectId(letter) for letter in "abcdef"]), st.none() | st.sampled_from("abcdef")
)


@given(items=operations, above=parents, data=st.data())
def test_the_order_is_total(items: list[Operation], above: dict[ObjectId, str | None], data: st.DataObject) -> None:
    """Also over parents that form a cycle, which the rules of the kind refuse later."""
    first = in_order(items, above)
    assert in_order(data.draw(st.permutations(items)), above) == first
    assert sorted(map(repr, first)) == sorted(map(repr, items))


def test_a_circle_of_parents_has_one_order() -> None:
    """plan-apply.md: the order is total and stated, whatever the order that the operations come in."""
    tenants = [_operation("create", "tenant", key) for key in "abe"]
    above: dict[ObjectId, str | None] = {ObjectId("a"): "b", ObjectId("b"): "e", ObjectId("e"): "b"}
    for items in permutations(tenants):
        assert [item.key for item in in_order(items, above)] == ["b", "e", "a"]


@given(items=operations, chain=st.permutations("abcdef"))
def test_parents_come_before_children_and_leave_after_them(items: list[Operation], chain: list[str]) -> None:
    above: dict[ObjectId, str | None] = {ObjectId(b): a for a, b in zip(chain, chain[1:], strict=False)}
    above[ObjectId(chain[0])] = None
    found = in_order(items, above)
    for kind in ("tenant", "entitlement"):
        made = [item.id for item in found if item.kind == kind and item.verb in ("create", "update", "rename", "adopt")]
        gone = [item.id for item in found if item.kind == kind and item.verb == "remove"]
        assert made == sorted(made, key=chain.index)
        assert gone == sorted(gone, key=chain.index, reverse=True)


@given(items=operations)
def test_phases(items: list[Operation]) -> None:
    """Leaves leave, the rest comes, the rest leaves, releases."""
    phases = [order_key(item, 0)[0] for item in in_order(items, {})]
    assert phases == sorted(phases)
    for item in items:
        leaf = item.kind in ("offer", "procurement", "order", "transfer")
        expected = {"remove": 1 if leaf else 3, "release": 4}.get(item.verb, 2)
        assert order_key(item, 0)[0] == expected


def test_a_parent_that_is_not_known_counts_as_a_root() -> None:
    found = in_order(
        [_operation("create", "entitlement", key) for key in "ba"], {ObjectId("a"): "elsewhere", ObjectId("b"): "a"}
    )
    assert [item.key for item in found] == ["a", "b"]


def test_a_long_chain_takes_no_recursion() -> None:
    ids = [ObjectId(f"n{number:05d}") for number in range(20_000)]
    above: dict[ObjectId, str | None] = {b: a for a, b in zip(ids, ids[1:], strict=False)} | {ids[0]: None}
    found = in_order([_operation("create", "entitlement", id) for id in reversed(ids)], above)
    assert [item.id for item in found] == ids


_SCRIPT = """
import sys
from fleetctl.plan.planfile import write_plan
from tests.support.random_fleets import Seeded, random_objects
from tests.support.worlds import World, fleet

for seed in range(6):
    choose, world = Seeded(seed), World()
    first = {name: {**fields, "protect": False} if "protect" in fields else fields for name, fields in random_objects(choose).items()}
    world.converge(fleet(first))
    wanted = fleet({name: fields for name, fields in random_objects(choose).items() if not name.startswith("pool/")
        and not name.startswith("offer/")})
    sys.stdout.buffer.write(write_plan(world.file(world.plan(wanted), wanted)))
"""


@pytest.fixture(scope="module")
def bytes_here() -> bytes:
    return _bytes({})


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "4294967295"},
        {"TZ": "Pacific/Apia", "LC_ALL": "C"},
        {"TZ": "America/New_York", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "0", "PYTHONHASHSEED": "7"},
    ],
    ids=str,
)
def test_the_same_bytes_on_every_machine(env: dict[str, str], bytes_here: bytes) -> None:
    assert _bytes(env) == bytes_here


def _bytes(env: dict[str, str]) -> bytes:
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0", **env},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert len(ran.stdout) > 20_000
    return ran.stdout
