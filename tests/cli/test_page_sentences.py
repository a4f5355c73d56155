"""Sentences of the contract pages that a reader would try as they stand; each test names its sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleetctl.canonical import digest_of
from tests.support.cli import FLEET, NOW, Home

OFFER = "offer/pool-fra1-h100/acme"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(path=tmp_path).with_engine(fleet=FLEET)
    made.ok("apply", ".", "--yes", "--now", NOW)
    return made


def test_a_report_with_something_gone_can_be_sealed(home: Home) -> None:
    """plan-apply.md, Drift: it can seal its report; pins: an object that is gone has `field: null`."""
    home.ok("pools", "unoffer", "pool-fra1-h100", "--to", "acme", "--now", NOW)
    answer = home.json("drift", ".", "--seal", "--now", NOW, exit=2)
    ((item,), entry) = (answer["items"], answer["sealed"])
    assert (item["field"], item["live"]) == (None, None)
    home.ok("ledger", "export", "--bundle", "bundle")
    kept = [json.loads(path.read_bytes()) for path in (home.work / "bundle" / "documents").iterdir()]
    (report,) = [found for found in kept if isinstance(found, dict) and found.get("result") == "drift"]
    assert report["items"] == [{name: value for name, value in item.items() if value is not None}]
    assert home.json("history")["entries"][-1]["entry"] == entry


def test_an_ignored_field_says_what_the_files_declare(home: Home) -> None:
    """cli.md, drift: `ignored` has the shape of `items`, where `declared` is what git says."""
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=16", "--now", NOW)
    ignoring = f"ignoreDrift:\n  - {{object: {OFFER}, field: quota, owner: sre, reason: tuned}}\n"
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 64") + ignoring)
    ((item,), result) = ((answer := home.json("drift", "."))["ignored"], answer["result"])
    assert result == "none"
    assert (item["declared"], item["last_applied"], item["live"]) == (64, 32, 16)


@pytest.mark.parametrize(("path", "exit"), [("fleets/gone", 3), ("gone.yaml", 3), ("gone.json", 1)])
def test_a_missing_path(home: Home, path: str, exit: int) -> None:
    """pins: a missing path is 3 for apply as for plan; cli.md: a plan file that cannot be read is bad input."""
    for agreed in (("--yes",), ()):
        assert home.json("apply", path, *agreed, "--now", NOW, exit=exit)["result"] == "error"


def test_strict_makes_lints_errors(home: Home) -> None:
    """fleet-files.md: lints are warnings; `--strict` makes them errors."""
    home.write("fleet.yaml", FLEET.replace("maxPending: 6h", "maxPendng: 6h"))
    assert [item["severity"] for item in home.json("validate", ".")["diagnostics"]] == ["warning"]
    assert [item["severity"] for item in home.json("validate", ".", "--strict", exit=1)["diagnostics"]] == ["error"]
    assert home.run("validate", ".", "--strict", "--format", "github").out.startswith("::error file=")


@pytest.mark.parametrize("command", ["apply", "check"])
def test_a_plan_of_another_fleet(home: Home, command: str) -> None:
    """pins: another engine or fleet is exit 3; plan-apply.md, Apply, step 2."""
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 64"))
    home.ok("plan", ".", "-o", "plan.json")
    plan: dict[str, Any] = json.loads((home.work / "plan.json").read_bytes())
    plan["body"]["fleet"] = "us-test"
    plan["body"].pop("lastApplied", None)
    plan["digest"] = digest_of(plan["body"])
    home.write("plan.json", json.dumps(plan))
    (refused,) = home.json(command, "plan.json", "--now", NOW, exit=3)["diagnostics"]
    assert (refused["code"], refused["object"]) == ("foreign-plan", OFFER)


def test_entries_are_shown_under_the_names_that_were_sealed(home: Home) -> None:
    """ledger.md, the table of the entitlement ledger: `class`."""
    claim = ("--entitlement", "ent-acme", "--claim", "c1", "--devices", "1", "--energy", "1MJ", "--grade", "ModelBased")
    home.ok("claims", "admit", *claim, "--class", "train", "--now", NOW)
    (entry,) = home.json("ledger", "show")["entries"]
    assert entry["class"] == "train"
    assert "class" in home.ok("ledger", "show").out


def test_a_node_that_left_names_its_pool_by_key(home: Home) -> None:
    """pins: an object is written kind/key everywhere."""
    home.ok("nodes", "join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "8", "--now", NOW)
    assert home.json("nodes", "leave", "n1", "--now", NOW)["pool"] == "pool/pool-fra1-h100"


@pytest.mark.parametrize(
    "arguments",
    [
        ("pools", "get", "pool/pool-fra1-h100"),
        ("quotas", "list", "pool/pool-fra1-h100"),
        ("tenants", "get", "tenant/acme"),
        ("entitlements", "usage", "entitlement/ent-acme"),
        ("nodes", "join", "--pool", "pool/pool-fra1-h100", "--name", "n1", "--gpus", "8", "--now", NOW),
    ],
)
def test_an_object_is_taken_as_it_is_written(home: Home, arguments: tuple[str, ...]) -> None:
    """pins: an object is written kind/key everywhere; so what a command printed can be given to the next."""
    short = [word.rpartition("/")[2] for word in arguments]
    assert home.json(*arguments) == home.json(*short)


def test_a_claim_of_an_entitlement_as_it_is_written(home: Home) -> None:
    """pins, as above; the ledger holds the entitlement's id."""
    claim = ("--claim", "c1", "--devices", "1", "--energy", "1MJ", "--grade", "ModelBased")
    admitted = home.json("claims", "admit", "--entitlement", "entitlement/ent-acme", *claim, "--now", NOW)
    assert (admitted["verdict"], admitted["entitlement"]) == ("Admit", "entitlement/ent-acme")
    assert home.json("ledger", "show")["entries"][0]["entitlement"].startswith("ent_")


def test_figures_are_integers_in_every_answer(home: Home) -> None:
    """cli.md: `usage` of a verification and the pure commands' figures are integers; so are those of the engine's commands."""
    home.write("fleet.yaml", FLEET.replace("40 MJ", "40 GJ").replace("60 MJ", "60 GJ"))
    home.ok("apply", ".", "--yes", "--now", NOW)
    claim = ("--claim", "c1", "--devices", "1", "--energy", "35 GJ", "--grade", "ModelBased")
    home.ok("claims", "admit", "--entitlement", "ent-acme", *claim, "--now", NOW)
    (used,) = home.json("entitlements", "usage")["items"]
    (node,) = home.json("entitlements", "tree")["tree"]
    (verified,) = home.json("ledger", "verify")["usage"].values()
    assert used["reserved_uj"] == node["reserved_uj"] == verified["reserved_uj"] == 35 * 10**15


def test_an_entitlement_that_left_is_in_the_tree_by_its_key(home: Home) -> None:
    """pins: an object is written by its key; readings A69: usage of what left is an orphan."""
    claim = ("--claim", "c1", "--devices", "1", "--energy", "1MJ", "--grade", "ModelBased")
    home.ok("claims", "admit", "--entitlement", "ent-acme", *claim, "--now", NOW)
    home.ok("claims", "release", "--claim", "c1", "--now", NOW)
    home.write("fleet.yaml", FLEET.partition("entitlements:")[0])
    home.ok("apply", ".", "--yes", "--accept", "share:fleet/eu-test", "--now", NOW)
    (orphan,) = home.json("entitlements", "tree")["orphans"]
    assert (orphan["key"], orphan["spent_uj"]) == ("ent-acme", 10**12)


def test_the_environment_agrees_to_nothing(tmp_path: Path) -> None:
    """cli.md: the common options come from the environment; plan-apply.md: dangers are accepted in files or by `--accept`, and
    `apply PATH` without a terminal needs `--yes`.
    """
    ambient = {"FLEETCTL_APPLY_YES": "1", "FLEETCTL_APPLY_ACCEPT": f"shrink-below-use:{OFFER}", "FLEETCTL_NOW": NOW}
    home = Home(path=tmp_path, env=ambient).with_engine(fleet=FLEET)
    assert home.json("apply", ".", exit=64)["diagnostics"][0]["code"] == "not-agreed"
    assert home.json("apply", ".", "--yes")["result"] == "applied"
    home.ok("nodes", "join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "8")
    home.ok("reservations", "create", "--tenant", "acme", "--pool", "pool-fra1-h100", "--gpus", "4")
    home.write("fleet.yaml", FLEET.replace("gpu: 32", "gpu: 2"))
    assert home.json("apply", ".", "--yes", exit=3)["diagnostics"][0]["code"] == "unaccepted-danger"


def test_what_a_plan_would_be_refused_for_is_no_error_of_drift(home: Home) -> None:
    """plan-apply.md, Drift: exit 0 with what is pending, 2 for drift, and never 0 or 2 for an error."""
    home.write(
        "fleet.yaml", FLEET.replace("gpuModel: H100,", "gpuModel: H100, sharing: mig, ownerQuota: {gpu.mig: 1},")
    )
    answer = home.json("drift", ".", "--now", NOW)
    assert (answer["result"], [item["object"] for item in answer["pending"]]) == ("none", ["pool/pool-fra1-h100"])
    assert {item["code"]: item["severity"] for item in answer["diagnostics"]}["conflict"] == "warning"
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=16", "--now", NOW)
    drifted = home.json("drift", ".", "--now", NOW, exit=2)
    assert {item["severity"] for item in drifted["diagnostics"]} == {"warning"}


def test_a_wait_of_nothing_is_refused_in_words_that_fit(home: Home) -> None:
    """fleet-files.md, Values: durations are whole numbers with a unit, and nothing is no duration."""
    (refused,) = home.json("apply", ".", "--yes", "--wait", "0s", exit=64)["diagnostics"]
    assert "`0s` is not a duration; write a whole number from 1 and one of ms, s, m, h, d" in refused["detail"]
