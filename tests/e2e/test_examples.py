"""Every example is a fleet that works: it validates, plans to what plans/ holds, applies, and shows no drift."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import plans
from tests.support.cli import ROOT, Home

EXAMPLES = [example for group in plans.GROUPS.values() for example in group]
DEPENDENT = {"provider/customer": "platform/initech-dc", "two-fleets/offers": "capacity/pool-osl1-h100"}
"""Examples that name objects of the fleet before them, with one such name."""


def home_of(group: str, path: Path) -> Home:
    """A home whose working folder holds a group's examples and a new engine for them, as `scripts/plans.py` makes it."""
    home = Home(path=path)
    (home.work / ".git").write_text("", encoding="ascii")
    shutil.copytree(ROOT / "examples" / group, home.work / group)
    home.ok("init", group, "--engine", f"eng_example_{group}", "--test-clock", "--no-example", "--now", plans.NOW)
    return home


def test_every_example_is_listed() -> None:
    found = {path.parent.relative_to(ROOT / "examples").as_posix() for path in ROOT.glob("examples/**/*.yaml")}
    assert found == set(EXAMPLES)


def test_plans_holds_one_pair_of_files_for_each_example() -> None:
    kept = {path.relative_to(plans.PLANS).as_posix() for path in plans.PLANS.rglob("*.*")}
    assert kept == {f"{example}.{form}" for example in EXAMPLES for form in ("json", "txt")}


def created(example: str) -> dict[str, list[dict[str, Any]]]:
    """What an example creates, by kind, as its kept plan says."""
    plan = json.loads((plans.PLANS / f"{example}.json").read_text(encoding="utf-8"))
    found: dict[str, list[dict[str, Any]]] = {}
    for operation in plan["body"]["operations"]:
        found.setdefault(operation["kind"], []).append(operation["after"] | {"id": operation["id"]})
    return found


def test_the_examples_show_what_they_are_for() -> None:
    site = created("one-site")
    assert [len(site["site"]), len(site["tenant"])] == [1, 3]
    assert {(pool["gpuModel"], pool["sharing"]) for pool in site["pool"]} >= {("H100", "exclusive"), ("A100", "mig")}
    assert "timeslice" in {pool["sharing"] for pool in site["pool"]}

    cloud = created("neocloud")
    assert [len(cloud[kind]) for kind in ("site", "pool", "tenant")] == [6, 40, 12]

    parents = {item["id"]: item.get("parent") for item in created("research")["entitlement"]}
    assert max(len(path_to_root(id, parents)) for id in parents) == 4

    assert "custom" in {site["kind"] for site in created("provider/platform")["site"]}
    assert {pool["class"] for pool in created("provider/platform")["pool"]} == {"provider"}
    assert sorted(pool["protect"] for pool in created("market")["market-pool"]) == [False, True]
    assert ("pool" in created("two-fleets/offers"), "offer" in created("two-fleets/capacity")) == (False, False)


def path_to_root(id: str | None, parents: dict[str, str | None]) -> list[str]:
    return [] if id is None else [id, *path_to_root(parents[id], parents)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_validates_without_a_word(example: str, tmp_path: Path) -> None:
    answer = Home(path=tmp_path).json("validate", str(ROOT / "examples" / example))
    assert answer["diagnostics"] == []


@pytest.mark.parametrize("group", plans.GROUPS)
def test_an_example_plans_as_kept_applies_and_then_has_nothing_to_do(group: str, tmp_path: Path) -> None:
    """plan-apply.md: the plan is the reviewed one; after its apply the plan is empty and nothing has drifted."""
    home = home_of(group, tmp_path)
    for entry, example in enumerate(plans.GROUPS[group]):
        text = home.ok("plan", example, "-o", "plan.json", "--now", plans.NOW, "--width", "120").out
        kept = plans.PLANS / example
        assert plans.json_part((home.work / "plan.json").read_bytes()) == kept.with_suffix(".json").read_text("utf-8")
        assert plans.text_part(text) == kept.with_suffix(".txt").read_text("utf-8")

        applied = home.json("apply", "plan.json", "--now", plans.NOW)
        assert (applied["result"], applied["entry"]) == ("applied", entry)
        assert home.json("plan", example, "--detailed-exitcode")["result"] == "nothing-to-do"
        drift = home.json("drift", example, "--full")
        assert (drift["result"], drift["items"], drift["pending"]) == ("none", [], [])
        verified = home.json("ledger", "verify", cwd=home.work / group)
        assert (verified["result"], verified["journal"]["length"]) == ("ok", entry + 1)


@pytest.mark.parametrize("example", DEPENDENT)
def test_an_example_refuses_to_go_before_the_fleet_that_it_builds_on(example: str, tmp_path: Path) -> None:
    home = home_of(example.partition("/")[0], tmp_path)
    refused = home.json("plan", example, exit=1)
    assert {(item["code"], item["file"]) for item in refused["diagnostics"]} == {("external-not-found", "fleet.yaml")}
    assert any(f"`{DEPENDENT[example]}`" in item["detail"] for item in refused["diagnostics"])
    assert all("apply that fleet first" in item["detail"] for item in refused["diagnostics"])
    applied = home.run("apply", example, "--yes")
    assert (applied.exit, applied.error, "external-not-found" in applied.err) == (1, None, True)
    heads = home.json("ledger", "head", cwd=home.work / example.partition("/")[0])
    assert [head["length"] for head in heads["heads"]] == [0, 0]


@pytest.mark.parametrize(
    "place",
    [
        {"PYTHONHASHSEED": "0", "TZ": "Pacific/Chatham", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "4294967295", "TZ": "America/St_Johns", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "0"},
    ],
    ids=["ascii", "utf-8"],
)
def test_plans_are_the_same_in_every_place(place: dict[str, str]) -> None:
    """plan-apply.md: the same files and state give the same bytes on every machine, locale, time zone and hash seed."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "plans.py"), "--check"],
        env=dict(os.environ) | place,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
