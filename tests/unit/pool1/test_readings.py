"""pool/1 readings A01 to A79 and the vectors: what is decided, and what follows. Cases are files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetctl.errors import BadInput
from fleetctl.pool1 import wire
from fleetctl.pool1.admission import apply, basis_of, decide
from fleetctl.pool1.claim import NOTHING_RAN, Figure, charged
from fleetctl.pool1.explain import explain
from fleetctl.pool1.lints import claim_remarks, tree_remarks
from fleetctl.pool1.tree import TreeState
from tests.support.pool1_notation import GRADES, read_claim, read_state, write_usage, write_verdict

CASES = Path(__file__).parents[2] / "cases" / "pool1"


def _cases(name: str) -> list[Any]:
    found = json.loads((CASES / f"{name}.json").read_text("utf-8"))["cases"]
    return [pytest.param(case, id=f"{case['id']}: {case.get('why', case.get('claim'))}") for case in found]


@pytest.mark.parametrize("case", _cases("readings") + _cases("vectors"))
@pytest.mark.clause(
    "pool/1 §7.1",
    "pool/1 §7.2",
    "pool/1 §7.4",
    "pool/1 §7.5",
    "pool/1 §7.6",
    "pool/1 §2.1",
    "pool/1 §2.2 (1)",
    "pool/1 §2.2 (2)",
    "pool/1 §4",
    "pool/1 §4.4",
    "pool/1 §4.5",
)
def test_decide(case: Mapping[str, Any]) -> None:
    state, claim = read_state(case["tree"]), read_claim(case["claim"])
    before = write_usage(state)
    verdict = decide(state, claim)
    assert write_verdict(verdict, like=case["verdict"]) == case["verdict"]
    assert write_usage(state) == before
    if "lints" in case:
        remarks = [*tree_remarks(state.tree), *claim_remarks(claim)]
        assert [remark.lint.value for remark in remarks] == case["lints"]


@pytest.mark.parametrize("case", _cases("readings") + _cases("vectors"))
@pytest.mark.clause("pool/1 §7.6")
def test_explain_agrees_with_the_verdict(case: Mapping[str, Any]) -> None:
    """4.5: a verdict comes with its reason, in the figures that it rests on."""
    verdict = decide(read_state(case["tree"]), read_claim(case["claim"]))
    told = explain(verdict)
    tests = told["tests"]
    assert isinstance(tests, list)
    failed = [item["clause"] for item in tests if not item["passed"]]
    if verdict.admitted:
        assert set(failed) <= {"4.3"}
        assert bool(failed) == (verdict.borrowed_uj > 0)
    else:
        assert failed
    if verdict.outcome.value == "Deny":
        assert len(failed) == 1
        assert tests[-1]["passed"] is False


@pytest.mark.parametrize("case", _cases("sequences"))
@pytest.mark.clause("pool/1 §7.11")
def test_sequence(case: Mapping[str, Any]) -> None:
    """What admissions and releases do to usage (§3, §6.2)."""
    state = read_state(case["tree"])
    open_claims: dict[str, Any] = {}
    last: Figure | None = None
    for step in case["steps"]:
        if "claim" in step:
            verdict = decide(state, read_claim(step["claim"]))
            assert write_verdict(verdict, like=step["verdict"]) == step["verdict"]
            if verdict.admitted:
                apply(state, verdict)
                open_claims[step.get("as", "")] = verdict
        elif "release" in step:
            verdict = open_claims.pop(step["release"])
            last = charged(verdict.reserved_uj, _reading(step["reading"]))
            state.release(
                verdict.claim.entitlement,
                reserved_uj=verdict.reserved_uj,
                devices=verdict.devices,
                actual_uj=last.energy_uj,
            )
        elif "rotate" in step:
            state = TreeState(state.tree)
        elif "retree" in step:
            state = state.with_tree(read_state(step["retree"]).tree)
        elif "charged" in step:
            assert last == _reading(step["charged"])
        elif "share" in step:
            assert {name: basis_of(state.nodes[name]).share_uj for name in step["share"]} == step["share"]
        else:
            usage = write_usage(state)
            assert {name: usage[name] for name in step["usage"]} == step["usage"]


def _reading(text: str | None) -> Figure | None:
    if text is None:
        return None
    if text == "nothing ran":
        return NOTHING_RAN
    energy, grade = text.split()
    return Figure(energy_uj=int(energy), grade=GRADES[grade])


@pytest.mark.parametrize("case", _cases("pure-commands"))
@pytest.mark.clause(
    "pool/1 §7.3",
    "pool/1 §7.8",
    "pool/1 §7.9",
    "pool/1 §7.18",
    "pool/1 §7.19",
    "pool/1 §7.20",
    "pool/1 §7.21",
    "pool/1 §7.22",
    "pool/1 §7.23",
    "pool/1 §7.24",
    "pool/1 §7.25",
    "pool/1 §7.26",
    "pool/1 §7.27",
    "pool/1 §7.28",
    "pool/1 §2.5 (1)",
    "pool/1 §2.5 (2)",
    "pool/1 §2.5 (3)",
    "pool/1 §2.6 (1)",
    "pool/1 §2.6 (2)",
    "pool/1 §2.6 (3)",
    "pool/1 §2.7 (1)",
    "pool/1 §2.7 (2)",
    "pool/1 §2.7 (3)",
    "pool/1 §2.7 (4)",
    "pool/1 §5.1",
    "pool/1 §5.2 (1)",
    "pool/1 §5.2 (2)",
)
def test_pure_command(case: Mapping[str, Any]) -> None:
    command = wire.COMMANDS[case["command"]]
    if "error" in case:
        with pytest.raises(BadInput) as caught:
            command(case["input"])
        assert caught.value.code == case["error"]
    else:
        assert command(case["input"]) == case["output"]


@pytest.mark.clause("pool/1 §7.7", "pool/1 §3")
def test_decide_answers_as_the_command_line_promises() -> None:
    """cli, `pool1 decide`: figures may be integers or decimal text on input and are integers on output."""
    data = {
        "tree": [
            {"id": "P", "guarantee_uj": 0, "guarantee_devices": 0, "over_quota_weight": 0, "parent": None},
            {"id": "A", "parent": "P", "guarantee_uj": "100", "guarantee_devices": 8, "over_quota_weight": 1},
            {
                "id": "B",
                "parent": "P",
                "guarantee_uj": 200,
                "guarantee_devices": 8,
                "over_quota_weight": 1,
                "priority": "-3",
            },
        ],
        "usage": {"A": {"spent_uj": 50, "reserved_uj": "30"}, "gone": {"spent_uj": 5}},
        "claim": {
            "entitlement": "A",
            "gang_size": 2,
            "devices_per_member": 2,
            "estimate_uj": "120",
            "grade": "ModelBased",
            "class": "train",
        },
    }
    answer = wire.decide(data)
    told = answer.pop("explain")
    assert answer == {
        "verdict": "Admit",
        "reasons": [],
        "reserved_uj": 120,
        "devices": 4,
        "borrowed_uj": 100,
        "grade": "ModelBased",
        "share_uj": 100,
    }
    assert isinstance(told, dict)
    assert told["figures"]["used_uj"] == 80
    assert told["figures"]["siblings_surplus_uj"] == 200
    assert told["lints"] == []


def test_a_refusal_carries_no_reservation() -> None:
    answer = wire.decide(
        {
            "tree": [{"id": "A", "guarantee_uj": 1, "guarantee_devices": 1, "over_quota_weight": 0}],
            "claim": {
                "entitlement": "B",
                "gang_size": 1,
                "devices_per_member": 1,
                "estimate_uj": 1,
                "grade": "Estimator",
            },
        }
    )
    assert {name: value for name, value in answer.items() if name != "explain"} == {
        "verdict": "Deny",
        "reasons": ["unknown-entitlement"],
        "grade": "Estimator",
    }
