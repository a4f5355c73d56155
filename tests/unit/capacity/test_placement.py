"""Where whole GPUs go: the tightest node that holds all, else as few nodes as can be, else nowhere."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.capacity.placement import FreeNode, free_nodes, place
from fleetctl.model.ids import ObjectId

nodes = st.dictionaries(
    st.sampled_from([ObjectId(f"node_{letter}") for letter in "abcdef"]), st.integers(1, 8), max_size=6
).map(lambda found: [FreeNode(id, free) for id, free in found.items()])


@given(nodes=nodes, gpus=st.integers(1, 50))
def test_a_place_is_exact_and_within_every_node(nodes: list[FreeNode], gpus: int) -> None:
    found = place(gpus, nodes)
    free = {node.id: node.free for node in nodes}
    if found is None:
        assert sum(free.values()) < gpus
        return
    assert sum(taken for _, taken in found) == gpus
    assert all(0 < taken <= free[id] for id, taken in found)
    assert len({id for id, _ in found}) == len(found)


@given(nodes=nodes, gpus=st.integers(1, 20))
def test_it_touches_as_few_nodes_as_can_be(nodes: list[FreeNode], gpus: int) -> None:
    found = place(gpus, nodes)
    if found is None:
        return
    fewest = next(
        size
        for size in range(1, len(nodes) + 1)
        if any(sum(node.free for node in some) >= gpus for some in itertools.combinations(nodes, size))
    )
    assert len(found) == fewest


@given(nodes=nodes, gpus=st.integers(1, 8))
def test_the_tightest_node_that_holds_all(nodes: list[FreeNode], gpus: int) -> None:
    fitting = sorted((node.free, node.id) for node in nodes if node.free >= gpus)
    if fitting:
        assert place(gpus, nodes) == ((fitting[0][1], gpus),)


@given(
    nodes=st.permutations(
        [FreeNode(ObjectId(f"node_{letter}"), free) for letter, free in zip("abcde", [4, 4, 2, 8, 8], strict=True)]
    ),
    gpus=st.integers(1, 26),
)
def test_the_order_of_nodes_does_not_count(nodes: list[FreeNode], gpus: int) -> None:
    assert place(gpus, nodes) == place(gpus, sorted(nodes))


@pytest.mark.parametrize(
    ("booked", "left"),
    [
        ([], {"node_a": 8, "node_b": 4}),
        ([("node_a", 3), ("node_a", 1)], {"node_a": 4, "node_b": 4}),
        ([("node_a", 8)], {"node_b": 4}),
        ([("node_a", 9)], {"node_b": 4}),
        ([("node_gone", 2)], {"node_a": 8, "node_b": 4}),
    ],
)
def test_what_is_left(booked: list[tuple[str, int]], left: Mapping[str, int]) -> None:
    """A node that left, or lost GPUs beneath its bookings, offers nothing and breaks nothing."""
    gpus = {ObjectId("node_b"): 4, ObjectId("node_a"): 8}
    found = free_nodes(gpus, [(ObjectId(node), amount) for node, amount in booked])
    assert {node.id: node.free for node in found} == left
    assert found == sorted(found)
