"""The workflows keep their promises: least permissions, no pasted values, no credentials for forks, pinned actions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

GITHUB = Path(__file__).resolve().parents[2] / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = sorted((GITHUB / "actions").rglob("action.yml"))
FROM_THE_EVENT = re.compile(r"github\.event\.(comment|issue|review)|\.(title|body|head_ref|label)\b")


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    return dict(read(path)["jobs"])


def steps(path: Path) -> Iterator[dict[str, Any]]:
    document = read(path)
    for job in document["jobs"].values() if "jobs" in document else [document["runs"]]:
        yield from job["steps"]


def triggers(path: Path) -> set[str]:
    return set(read(path)[True])  # YAML 1.1 reads the key `on` as true


@pytest.mark.parametrize("path", [*WORKFLOWS, *ACTIONS], ids=lambda path: path.relative_to(GITHUB).as_posix())
def test_nothing_is_pasted_into_a_script_and_actions_are_pinned(path: Path) -> None:
    for step in steps(path):
        assert "${{" not in step.get("run", ""), step
        assert re.fullmatch(r"\./\.github/actions/\w+|[\w.-]+/[\w./-]+@v[0-9]+", step.get("uses", "a/b@v1")), step
    assert not FROM_THE_EVENT.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_permissions_are_read_only(path: Path) -> None:
    assert triggers(path) <= {"pull_request", "push", "schedule", "workflow_dispatch"}
    assert read(path)["permissions"] in ({}, {"contents": "read"})
    for job in jobs(path).values():
        assert job.get("permissions", {"contents": "read"}) == {"contents": "read"}
        assert job["timeout-minutes"] <= 30
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_pull_request_of_a_fork_gets_no_credentials(path: Path) -> None:
    if "pull_request" not in triggers(path):
        return
    for job in jobs(path).values():
        if "secrets." in str(job) or "environment" in job:
            assert job["if"] == "github.event.pull_request.head.repo.full_name == github.repository"


def test_what_is_applied_is_what_the_plan_job_of_the_same_run_found() -> None:
    apply = jobs(GITHUB / "workflows" / "apply.yml")["apply"]
    (step,) = [step for step in apply["steps"] if "fleetctl apply" in step.get("run", "")]
    assert apply["environment"] == "fleet-apply"
    assert '--expect "$DIGEST"' in step["run"]
    assert step["env"]["DIGEST"] == "${{ needs.plan.outputs.digest }}"
