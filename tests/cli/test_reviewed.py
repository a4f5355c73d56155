"""What was reviewed is what is applied, whatever becomes of the fleet file in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(path=tmp_path).with_engine(fleet=FLEET)


def quota(home: Home) -> int:
    (row,) = home.json("quotas", "list", "pool-fra1-h100", "--as", "acme")["items"]
    maximum: int = row["max"]
    return maximum


def test_a_fleet_file_edited_after_the_plan_changes_nothing_of_it(home: Home) -> None:
    home.ok("plan", ".", "-o", "plan.json")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 320"))
    home.ok("apply", "plan.json", "--now", NOW)
    assert quota(home) == 32


def test_a_fleet_file_edited_after_its_digest_was_approved_is_refused(home: Home) -> None:
    """plan-apply: `--expect DIGEST` re-plans and refuses unless the digest is the approved one."""
    approved = home.json("plan", ".")["digest"]
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 320"))
    refused = home.json("apply", ".", "--yes", "--expect", approved, "--now", NOW, exit=3)
    assert [item["code"] for item in refused["diagnostics"]] == ["unexpected-plan"]
    assert home.json("ledger", "head")["heads"][1]["length"] == 0
    home.write("fleet.yaml", "# the same, said otherwise\n" + FLEET.replace("gpu: 32", '"gpu": 32'))
    home.ok("apply", ".", "--yes", "--expect", approved, "--now", NOW)
    assert quota(home) == 32
