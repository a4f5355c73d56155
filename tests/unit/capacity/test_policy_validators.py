"""Better Compute 4B and 4D: the policy validators, field by field. Cases are files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetctl.capacity.policy import (
    PolicyProblem,
    path_text,
    pool_words,
    refuse_errors,
    validate_policy,
)
from fleetctl.diagnostics import REGISTRY
from fleetctl.errors import EngineRefused
from fleetctl.model.policy_fields import POLICY, Kind, field_at, misspelt
from fleetctl.model.policy_forms import from_json, to_json

CASES = Path(__file__).parents[2] / "cases" / "policy"


def _cases() -> list[Any]:
    found = []
    for file in sorted(CASES.glob("*.json")):
        topic = json.loads(file.read_text("utf-8"))
        for case in topic["cases"]:
            clause = case.get("clause", topic["clause"])
            found.append(pytest.param(case, id=f"{file.stem}: {case['name']} ({clause})"))
    return found


def _validate(policy: Mapping[str, Any], pool: Mapping[str, Any] | None = None) -> list[PolicyProblem]:
    pool = pool or {}
    canonical, misfits = from_json(policy)
    return validate_policy(
        canonical,
        pool_class=pool.get("class", "metal-host"),
        sharing=pool.get("sharing", "exclusive"),
        gpu_model=pool.get("gpu_model", "H100"),
        site_kind=pool.get("site", "shared"),
        platform_owned=pool.get("platform_owned", True),
        attestors=pool.get("attestors", ["tpm", "x509pop"]),
        billing_configured=pool.get("billing", True),
        products=pool.get("products", ()),
        misfits=misfits,
    )


@pytest.mark.parametrize("case", _cases())
def test_policy_case(case: Mapping[str, Any]) -> None:
    problems = _validate(case["policy"], case.get("pool"))
    assert [{"code": item.code.name, "path": path_text(item.path)} for item in problems] == case["problems"]
    for item in problems:
        assert item.detail.startswith(f"{path_text(item.path)}: ")
        assert item.code.engine_code == "INVALID_INPUT"


@pytest.mark.parametrize("case", _cases())
def test_a_policy_without_misfits_comes_back_equal(case: Mapping[str, Any]) -> None:
    canonical, misfits = from_json(case["policy"])
    if "canonical" in case:
        assert canonical == case["canonical"]
    if not misfits:
        assert from_json(to_json(canonical)) == (canonical, [])


def test_every_known_field_of_the_guide_is_in_a_case() -> None:
    seen: set[str] = set()
    for param in _cases():
        for name, value in param.values[0]["policy"].items():
            seen.add(name)
            if isinstance(value, dict):
                seen |= {f"{name}.{inner}" for inner in value}
    wanted = set(POLICY.fields)
    wanted |= {f"{name}.{inner}" for name, known in POLICY.fields.items() for inner in known.fields}
    assert wanted - seen == set()


@pytest.mark.parametrize("case", json.loads((CASES / "values" / "pool-words.json").read_text("utf-8"))["cases"])
def test_pool_words(case: Mapping[str, Any]) -> None:
    """Better-compute 4B gpuModel, class / sharing / agent."""
    fields = {"gpu_model": "H100", "pool_class": "metal-host", "sharing": "exclusive", "agent": "bcd", **case["fields"]}
    problems = pool_words(**fields)
    assert [{"code": item.code.name, "path": path_text(item.path)} for item in problems] == case["problems"]


def test_an_engine_refusal_reads_policy_and_leaves_lints_out() -> None:
    """Seed 000: a validator's failure reads `policy: …` and is INVALID_INPUT."""
    problems = _validate({"perGpu": {"vcpu": 0}, "lostAfter": "15m", "disruptionBudget": 2})
    with pytest.raises(EngineRefused) as caught:
        refuse_errors(problems, subject="pool/p")
    assert [item.code.name for item in caught.value.diagnostics] == ["policy-disruption-budget", "policy-per-gpu"]
    assert all(item.detail.startswith("policy: ") and item.subject == "pool/p" for item in caught.value.diagnostics)
    assert caught.value.engine_code == "INVALID_INPUT"
    refuse_errors([item for item in problems if item.severity == "warning"])


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"maxPending": "6h"}, "maxPending"),
        ({"maxPendingMs": 0}, "maxPending"),
        ({"maxPendingMs": "21600000"}, "maxPending"),
        ({"maxPendingMs": True}, "maxPending"),
        ({"disruptionBudget": "0.10"}, "disruptionBudget"),
        ({"disruptionBudget": 1}, "disruptionBudget"),
        ({"hugepages": {"size": "1Gi", "count": 2**53}}, "hugepages.count"),
        ({"overcommit": {"vcpu": "1e3"}}, "overcommit.vcpu"),
        ({"acceptance": [None]}, "acceptance[0]"),
    ],
)
def test_what_is_not_canonical_is_refused(policy: Any, path: str) -> None:
    """Pins, "Canonical JSON of an object": a stored or planned policy is checked, not trusted."""
    problems = validate_policy(
        policy,
        pool_class="metal-host",
        sharing="exclusive",
        gpu_model="H100",
        site_kind="shared",
        platform_owned=True,
        attestors=(),
        billing_configured=True,
    )
    assert "policy-value" in [item.code.name for item in problems]
    assert path_text(problems[0].path) == path


def test_large_figures_are_text_in_canonical_form() -> None:
    canonical, misfits = from_json({"hugepages": {"size": "1Gi", "count": 2**53}, "y": 2**60})
    assert (canonical, misfits) == ({"hugepages": {"size": "1Gi", "count": str(2**53)}, "y": str(2**60)}, [])
    assert [item.code.name for item in _validate({"hugepages": {"size": "1Gi", "count": 2**53}})] == []


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(max_size=12)
    | st.sampled_from(["6h", "1-3", "all-1g.10gb", "meter", "gpu=x:NoSchedule"])
    | st.builds(lambda text: {"$decimal": text}, st.sampled_from(["1.5", "-0.0", "nan", "0.05"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "vcpu", "size", "count", "load", "replicas", "x"]) | st.text(max_size=4),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(sorted(POLICY.fields)) | st.text(max_size=10), _values, max_size=6),
    st.sampled_from(["metal-host", "vps-host", "provider"]),
    st.sampled_from(["exclusive", "mig", "mps"]),
)
def test_any_policy_gets_an_answer(policy: dict[str, Any], pool_class: str, sharing: str) -> None:
    """Rule 10: hostile input gets a diagnostic, never a traceback, and what converts comes back equal."""
    problems = _validate(policy, {"class": pool_class, "sharing": sharing})
    assert all(REGISTRY[item.code.name] is item.code for item in problems)
    canonical, _ = from_json(policy)
    assert from_json(to_json(canonical))[0] == canonical


def test_paths_lead_to_fields() -> None:
    assert field_at(("acceptance", 0, "kind")) is POLICY.fields["hardwareProfile"]
    assert field_at(("overcommit", "anything")) is POLICY.fields["overcommit"].item
    assert field_at(("hugepages", "count", "x")) is None
    assert field_at(("nothing",)) is None
    assert POLICY.fields["maxPending"].kind is Kind.DURATION


@pytest.mark.parametrize(
    ("name", "meant"),
    [("max_pending", "maxPending"), ("lostafter", "lostAfter"), ("cpus", None), ("maxPending", None), ("x" * 99, None)],
)
def test_misspelt_names(name: str, meant: str | None) -> None:
    assert misspelt(name, POLICY.fields) == meant


def test_messages_are_printable_whatever_a_policy_holds() -> None:
    """Rule 10: hostile names reach a terminal escaped and cut."""
    hostile = "\x1b[31m\n\u202e" + "x" * 10_000
    problems = _validate({"overcommit": {f"gpu{hostile}": 2}, "cpu": {"governor": hostile}, "maxPending": hostile})
    assert len(problems) == 3
    for item in problems:
        assert item.detail.isprintable()
        assert len(item.detail) < 500
