"""Capacity and use by the command line: what each tenant sees, verdicts, claims, settings, state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(path=tmp_path).with_engine(fleet=FLEET)
    made.ok("apply", ".", "--yes", "--now", NOW)
    return made


def test_a_tenant_sees_the_pools_it_is_offered_with_its_quota(home: Home) -> None:
    """Seed, "Offerings": the answer of pools.list as the offered tenant gets it."""
    (pool,) = home.json("pools", "list", "--as", "acme")["items"]
    assert (pool["owned"], pool["archived"], pool["body"]["gpuModel"]) == (False, False, "H100")
    assert pool["quotas"] == [{"tenant": "acme", "resource": "gpu", "max": 32, "used": 0, "available": 32}]
    home.ok("tenants", "create", "other", "--now", NOW)
    assert home.json("pools", "list", "--as", "other")["items"] == []
    assert (
        home.json("pools", "get", "pool-fra1-h100", "--as", "other", exit=1)["diagnostics"][0]["engineCode"]
        == "NOT_FOUND"
    )


def test_the_eight_methods(home: Home) -> None:
    made = home.json(
        "pools", "create", "p2", "--site", "fra1", "--class", "metal-host", "--gpu-model", "H200", "--now", NOW
    )
    assert (made["result"], made["label"], made["method"]) == ("done", "pool/p2", "pools.create")
    assert (
        home.json(
            "pools", "create", "p2", "--site", "fra1", "--class", "metal-host", "--gpu-model", "H200", "--now", NOW
        )["result"]
        == "nothing-to-do"
    )
    conflict = home.json(
        "pools", "create", "p2", "--site", "fra1", "--class", "vps-host", "--gpu-model", "H200", "--now", NOW, exit=1
    )
    assert conflict["diagnostics"][0]["engineCode"] == "CONFLICT"
    home.ok("pools", "update", "p2", "--policy", '{"maxPending": "12h", "disruptionBudget": 0.1}', "--now", NOW)
    assert home.json("pools", "get", "p2")["body"]["policy"] == {"maxPendingMs": 43_200_000, "disruptionBudget": "0.1"}
    home.ok("pools", "offer", "p2", "--to", "acme", "--quota", "gpu=8", "--now", NOW)
    home.ok("pools", "offer", "p2", "--to", "acme", "--quota", "vcpu=64", "--now", NOW)
    assert {(row["resource"], row["max"]) for row in home.json("quotas", "list", "p2", "--as", "acme")["items"]} == {
        ("gpu", 8),
        ("vcpu", 64),
    }
    assert home.json("pools", "capacity", "p2")["gpus"] == 0
    # Seed, "Offerings": unoffer answers `{ removed: boolean }`.
    assert home.json("pools", "unoffer", "p2", "--to", "acme", "--now", NOW)["removed"] is True
    gone = home.json("pools", "unoffer", "p2", "--to", "acme", "--now", NOW)
    assert (gone["result"], gone["removed"]) == ("nothing-to-do", False)
    home.ok("pools", "archive", "p2", "--now", NOW)
    assert home.json("pools", "archive", "p2", "--now", NOW)["result"] == "nothing-to-do"
    assert [item["key"] for item in home.json("pools", "list")["items"]] == ["pool-fra1-h100"]
    types = [item["type"] for item in home.json("events", "list")["items"]]
    assert {"pool.created", "pool.updated", "pool.offered", "pool.unoffered", "pool.archived"} <= set(types)


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"maxPending": "6H"}, "maxPending"),
        ({"trustProvisioningNetwork": 1}, "trustProvisioningNetwork"),
        ({"acceptance": [{"kind": 1}]}, "acceptance[0].kind"),
        ({"sharing": {"replicas": 0}}, "sharing.replicas"),
    ],
)
def test_every_refusal_of_a_policy_is_the_validators(home: Home, policy: dict[str, object], field: str) -> None:
    """readings/better-compute 4B, 4D: INVALID_INPUT that reads `policy: …`, whichever rule it is."""
    answer = home.json("pools", "update", "pool-fra1-h100", "--policy", json.dumps(policy), "--now", NOW, exit=1)
    (found,) = answer["diagnostics"]
    assert found["engineCode"] == "INVALID_INPUT" and found["detail"].startswith(f"policy: {field}: ")


def test_a_pool_of_machines_that_are_deployed_whole_has_no_capacity(home: Home) -> None:
    """Seed, "Classes": only `host` nodes add schedulable capacity."""
    home.ok(
        *("pools", "create", "whole", "--site", "fra1", "--class", "metal-dedicated", "--gpu-model", "H100"),
        *("--now", NOW),
    )
    home.ok("nodes", "join", "--pool", "whole", "--name", "n1", "--gpus", "8", "--now", NOW)
    found = home.json("pools", "capacity", "whole")
    assert (found["nodes"], found["gpus"], found["booked_gpus"]) == (1, 0, 0)


@pytest.mark.parametrize(
    "asked",
    [
        ("pools", "offer", "pool-fra1-h100", "--to", "acme", "--quota", "gpu=32"),
        ("pools", "offer", "pool-fra1-h100", "--to", "beta", "--quota", "gpu=32"),
        ("pools", "unoffer", "pool-fra1-h100", "--to", "acme"),
        ("pools", "unoffer", "pool-fra1-h100", "--to", "beta"),
        ("pools", "update", "pool-fra1-h100", "--gpu-model", "H100"),
        ("pools", "archive", "pool-fra1-h100"),
        ("quotas", "set", "pool-fra1-h100", "acme", "gpu=32"),
    ],
    ids=" ".join,
)
def test_a_pool_is_changed_by_its_owner_alone_even_where_nothing_would_change(
    home: Home, asked: tuple[str, ...]
) -> None:
    """Seed, "Offerings": only the owner can call it, anyone else gets NOT_FOUND."""
    home.ok("tenants", "create", "beta", "--now", NOW)
    for tenant in ("acme", "beta"):
        answer = home.json("--as", tenant, *asked, "--now", NOW, exit=1)
        assert [item["engineCode"] for item in answer["diagnostics"]] == ["NOT_FOUND"]


@pytest.mark.parametrize("to", ["acme", "root"])
def test_a_fleet_of_another_tenant_that_offers_a_pool_is_told_not_found(home: Home, to: str) -> None:
    """Seed, "Offerings": anyone but the owner, the tenant that has the offer too."""
    receiver = "eu-test/acme" if to == "acme" else to
    home.write(
        "other/fleet.yaml",
        "apiVersion: fleetctl/v1\nfleet: other\ntenant: acme\n"
        f"offers:\n  o: {{to: {receiver}, pool: eu-test/pool-fra1-h100, quota: {{gpu: 64}}}}\n",
    )
    answer = home.json("plan", "other", "--now", NOW, exit=1)
    assert [item["engineCode"] for item in answer["diagnostics"]] == ["NOT_FOUND"]


def test_a_quota_that_is_set_says_so(home: Home) -> None:
    """Seed, "The pools API": `quota.updated` from `quotas.set`."""
    last = home.json("events", "list")["next"]
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=3", "--now", NOW)
    (event,) = home.json("events", "list", "--since", str(last))["items"]
    assert (event["type"], event["data"]) == ("quota.updated", {"toTenantId": "acme", "quota": {"gpu": 3}})
    home.ok("quotas", "set", "pool-fra1-h100", "root", "gpu=90", "--now", NOW)
    (event,) = home.json("events", "list", "--since", str(last + 1))["items"]
    assert (event["type"], event["data"]) == ("quota.updated", {"quota": {"gpu": 90}})


@pytest.mark.parametrize("again", [{"gpu": 3}, {"gpu": 3, "vcpu": 4}])
def test_offering_again_is_an_offer_whatever_changes(home: Home, again: dict[str, int]) -> None:
    """Seed, "The pools API": `pool.offered`; `quota.updated` comes from `quotas.set` alone."""
    last = home.json("events", "list")["next"]
    quota = [word for resource, count in again.items() for word in ("--quota", f"{resource}={count}")]
    home.ok("pools", "offer", "pool-fra1-h100", "--to", "acme", *quota, "--now", NOW)
    (event,) = home.json("events", "list", "--since", str(last))["items"]
    assert event["type"] == "pool.offered" and again.items() <= event["data"]["quota"].items()


def test_events_go_on_where_the_last_answer_ended(home: Home) -> None:
    first = home.json("events", "list", "--limit", "1")
    rest = home.json("events", "list", "--since", str(first["next"]))
    assert [item["seq"] for item in first["items"] + rest["items"]] == list(range(1, rest["next"] + 1))


def test_reservations_and_claims(home: Home) -> None:
    home.ok("nodes", "join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "16", "--now", NOW)
    create = ("reservations", "create", "--tenant", "acme", "--pool", "pool-fra1-h100", "--now", NOW)
    pays = ("--entitlement", "ent-acme", "--grade", "ModelBased", "--energy")
    made = home.json(*create, "--gpus", "8", *pays, "5MJ", "--key", "k1")
    assert (made["reservation"]["state"], made["claim"]["verdict"], made["existing"]) == ("active", "Admit", False)
    assert home.json(*create, "--gpus", "8", *pays, "5MJ", "--key", "k1")["existing"] is True
    failed = home.json(*create, "--gpus", "1", *pays, "50MJ")
    assert (failed["reservation"]["state"], failed["claim"]["reasons"]) == ("failed", ["never-fits"])
    (claim,) = home.json("claims", "list")["items"]
    assert (claim["reserved_uj"], claim["devices"]) == (5 * 10**12, 8)
    ended = home.json(
        "reservations", "end", made["reservation"]["id"], "--energy", "4MJ", "--grade", "HwShunt", "--now", NOW
    )
    assert ended["release"]["spent_uj"] == 4 * 10**12
    assert home.json("claims", "list")["items"] == []
    assert home.json("entitlements", "usage", "ent-acme")["items"][0]["spent_uj"] == 4 * 10**12


def test_a_queue_and_a_deny_are_answers(home: Home) -> None:
    """cli.md, exit codes: 0."""
    admit = ("claims", "admit", "--entitlement", "ent-acme", "--grade", "Estimator", "--now", NOW)
    assert home.json(*admit, "--claim", "c1", "--devices", "8", "--energy", "40MJ")["verdict"] == "Admit"
    queued = home.json(*admit, "--claim", "c2", "--devices", "1", "--energy", "1J")
    assert (queued["verdict"], queued["entry"]) == ("Queue", None)
    assert home.json(*admit, "--claim", "c3", "--devices", "99", "--energy", "1J")["verdict"] == "Deny"
    assert (
        home.json(*admit, "--claim", "c1", "--devices", "1", "--energy", "1J", exit=1)["diagnostics"][0]["code"]
        == "duplicate-claim"
    )
    home.ok("claims", "release", "--claim", "c1", "--now", NOW)
    assert (
        home.json("claims", "release", "--claim", "c1", "--now", NOW, exit=1)["diagnostics"][0]["code"]
        == "claim-not-open"
    )


def test_running_work_is_reported_on_ranked_and_judged(home: Home) -> None:
    """cli.md: `claims report`, `victims [--raw]`, `idle`; answers as those of `pool1 preempt` and `pool1 idle`."""
    admit = ("claims", "admit", "--entitlement", "ent-acme", "--grade", "ModelBased", "--devices", "1", "--now", NOW)
    for claim in ("w1", "w2"):
        home.ok(*admit, "--claim", claim, "--energy", "20MJ")
    later = "2026-12-01T12:10Z"
    report = ("claims", "report", "--claim", "w1", "--grade", "HwShunt", "--now", later)
    seen = ("--observed", "10m", "--observed-energy", "6kJ")
    said = home.json(*report, "--units", "3", "--energy", "1MJ", *seen)
    assert (said["result"], said["report"]["observed_uj"]) == ("done", 6 * 10**9)
    assert home.json(*report, "--units", "3", "--energy", "1MJ", *seen)["result"] == "nothing-to-do"
    falls = home.json(*report, "--units", "3", "--energy", "900kJ", exit=1)
    assert falls["diagnostics"][0]["code"] == "report-falls"
    assert (falls["diagnostics"][0]["object"], falls["diagnostics"][0]["engineCode"]) == ("claim/w1", "INVALID_STATE")

    found = home.json("claims", "victims")
    assert (found["ranked"], found["order"]) == ("past-guarantee", [])  # 40 of 40 MJ are within the guarantee
    raw = home.json("claims", "victims", "--raw")
    assert (raw["ranked"], raw["order"], raw["undefined"]) == ("all", ["w1", "w2"], ["w2"])
    assert [item.get("freed_uj") for item in raw["items"]] == [19 * 10**12, None]
    text = home.ok("claims", "victims", "--raw", "--width", "200").out
    assert "raw order of pool/1 section 5.2" in text and "~333.333 kJ" in text and "undefined" in text
    assert "fleetctl's own rule" in home.ok("claims", "victims").out

    asked = ("claims", "idle", "--window", "10m", "--threshold")
    idle = home.json(*asked, "11W", "--now", later)
    assert (idle["verdicts"], idle["reclamation_order"]) == ({"w1": "Idle", "w2": "NoVerdict"}, ["w1"])
    assert idle["why"] == {"w1": "below", "w2": "no-reading"}
    assert home.json(*asked, "10W", "--now", later)["verdicts"]["w1"] == "Working"
    assert home.json(*asked, "11W", "--now", "2026-12-01T13:00Z")["why"]["w1"] == "stale"
    assert home.json("claims", "idle")["reclamation_order"] == []
    assert "nothing is reclaimed" in home.ok("claims", "idle", "--window", "10m").out
    assert "Reclaim in this order: w1" in home.ok(*asked, "11W", "--now", later).out
    for claim in ("w1", "w2"):
        home.ok("claims", "release", "--claim", claim, "--energy", "0J", "--grade", "Estimator", "--now", NOW)
    assert home.json("claims", "victims", "--raw")["order"] == []


def test_a_declined_estimate_is_an_answer_that_appends_nothing(home: Home) -> None:
    """pool/1 2.6: the counts are reported; cli.md, exit codes: an answer is 0."""
    ask = ("claims", "admit", "--entitlement", "ent-acme", "--devices", "1", "--class", "eval", "--estimate", "derive")
    before = home.json("ledger", "head")
    declined = home.json(*ask, "--claim", "d0", "--now", NOW)
    assert (declined["declined"], declined["seen"], declined["evidence"], declined["required"], declined["entry"]) == (
        "too-little-evidence",
        0,
        0,
        3,
        None,
    )
    assert "too little evidence" in home.ok(*ask, "--claim", "d0", "--now", NOW).out
    assert home.json("ledger", "head") == before
    given = ("claims", "admit", "--entitlement", "ent-acme", "--devices", "1", "--class", "eval", "--energy", "1J")
    home.ok(*given, "--grade", "Estimator", "--claim", "d1", "--now", NOW)
    home.ok("claims", "release", "--claim", "d1", "--energy", "2J", "--grade", "HwShunt", "--now", NOW)
    made = home.json(*ask, "--required", "1", "--claim", "d2", "--now", NOW)
    assert made["estimate"] == {
        "estimate_uj": 2_000_000,
        "grade": "ModelBased",
        "spread": [2_000_000, 2_000_000],
        "seen": 1,
        "evidence": 1,
    }
    assert (made["verdict"], made["reserved_uj"]) == ("Admit", 2_000_000)
    home.ok("claims", "release", "--claim", "d2", "--energy", "0J", "--grade", "Estimator", "--now", NOW)
    refused = home.json(*ask[:6], "--estimate", "derive", "--claim", "d3", "--now", NOW, exit=1)
    assert refused["diagnostics"][0]["code"] == "empty-class"


_CLAIM = ("claims", "admit", "--entitlement", "e", "--claim", "c", "--devices", "1")
_REPORT = ("claims", "report", "--claim", "c", "--units", "1", "--energy", "1J", "--grade", "HwShunt")


@pytest.mark.parametrize(
    "arguments",
    [
        _CLAIM,
        (*_CLAIM, "--energy", "1J"),
        (*_CLAIM, "--estimate", "derive", "--energy", "1J", "--grade", "HwShunt"),
        (*_CLAIM, "--estimate", "guess"),
        (*_CLAIM, "--energy", "1J", "--grade", "HwShunt", "--required", "1"),
        _REPORT[:-2],
        (*_REPORT, "--observed", "10m"),
        (*_REPORT, "--observed-energy", "1J"),
        (*_REPORT, "--observed", "0m", "--observed-energy", "0J"),
        (*_REPORT, "--zero-weight"),
        ("claims", "report", "--claim", "c", "--units", "-1", "--energy", "1J", "--grade", "HwShunt"),
        ("claims", "report", "--claim", "c", "--units", "1", "--energy", "-1J", "--grade", "HwShunt"),
        ("claims", "report", "--claim", "c", "--units", "1", "--energy", "9999999 GJ", "--grade", "HwShunt"),
        ("claims", "victims", "--raw", "--for", "e"),
        ("claims", "idle", "--threshold", "90"),
        ("claims", "idle", "--window", "90"),
        (
            "claims",
            "admit",
            "--entitlement",
            "e",
            "--claim",
            "c",
            "--devices",
            "1",
            "--energy",
            "5XJ",
            "--grade",
            "Estimator",
        ),
        (
            "claims",
            "admit",
            "--entitlement",
            "e",
            "--claim",
            "c",
            "--devices",
            "1",
            "--energy",
            "5MJ",
            "--grade",
            "Guess",
        ),
        ("claims", "release", "--claim", "c", "--energy", "5MJ"),
        ("reservations", "create", "--tenant", "a", "--pool", "p", "--gpus", "1", "--energy", "5MJ"),
        ("pools", "offer", "p", "--to", "a", "--quota", "gpu"),
        ("pools", "offer", "p", "--to", "a", "--quota", "gpu=1e3"),
        ("pools", "offer", "p", "--to", "a", "--quota", "gpu=1", "--priority", "1001"),
        ("pools", "update", "p"),
        ("ledger", "export", "--bundle", "b", "-o", "f"),
        ("ledger", "verify", "file"),
        ("settings", "set", "nothing", "1"),
        ("plan",),
        ("plan", "a", "b"),
        ("nonsense",),
        ("pools", "nonsense"),
        (),
        ("--format", "yaml", "status"),
        ("status", "--format", "github"),
        ("status", "--now", "yesterday"),
    ],
)
def test_usage_errors_are_64_in_text_and_json(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """cli.md: click's own 2 is mapped, so that 2 means only one thing; pins: JSON says `error` too."""
    home = Home(path=tmp_path)
    done = home.run(*arguments)
    assert (done.exit, done.error, done.out) == (64, None, "")
    assert done.err.strip()
    if "--format" not in arguments:
        done = home.run("--format", "json", *arguments)
        assert (done.exit, done.json["result"]) == (64, "error")


def test_settings_are_journalled(home: Home) -> None:
    before = home.json("settings", "list")["settings"]
    assert before["shareThresholdPercent"] == 10
    assert home.json("settings", "set", "shareThresholdPercent", "20", "--now", NOW)["method"] == "settings.set"
    assert home.json("settings", "list")["settings"]["shareThresholdPercent"] == 20
    assert (
        home.json("settings", "set", "shareThresholdPercent", "0", exit=1)["diagnostics"][0]["code"] == "setting-value"
    )
    assert home.json("history", "settings/engine")["entries"][0]["method"] == "settings.set"
    (found,) = home.json("settings", "set", "requiredApprovals", "1", exit=1)["diagnostics"]
    assert found["code"] == "setting-value" and "every apply would be refused" in found["detail"]
    assert home.json("settings", "set", "requiredApprovals", "0", "--now", NOW)["result"] == "nothing-to-do"


def test_backup_and_restore(home: Home) -> None:
    home.ok("state", "backup", "backup.db")
    assert home.run("state", "backup", "backup.db").exit == 1
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=8", "--now", NOW)
    assert home.json("state", "restore", "backup.db")["journal_length"] == 1
    assert home.json("quotas", "list", "pool-fra1-h100", "--as", "acme")["items"][0]["max"] == 32


def test_a_backup_of_another_engine_is_refused(home: Home, tmp_path: Path) -> None:
    other = Home(path=tmp_path / "other")
    other.path.mkdir()
    other.with_engine("eng_other").ok("state", "backup", str(home.work / "other.db"))
    assert home.run("state", "restore", "other.db").exit == 3
    assert (
        home.run("state", "restore", "other.db", "--state", f"sqlite:{home.path}/state/fleetctl/eng_test/state.db").exit
        == 3
    )
    assert home.json("ledger", "verify")["result"] == "ok"


def test_a_moved_state_is_closed_and_the_new_one_goes_on(home: Home) -> None:
    old = f"sqlite:{home.path}/state/fleetctl/eng_test/state.db"
    home.ok("state", "move", f"sqlite:{home.work}/moved/state.db", "--now", NOW)
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=8", "--now", NOW)
    assert home.json("drift", ".", exit=2)["items"][0]["live"] == 8
    assert (
        home.json("apply", ".", "--yes", "--now", NOW, "--state", old, exit=3)["diagnostics"][0]["code"]
        == "engine-closed"
    )
    assert home.run("state", "move", f"sqlite:{home.work}/moved/state.db", "--now", NOW).exit == 1


def test_a_copy_is_another_engine_with_the_same_configuration(home: Home) -> None:
    made = home.json("state", "copy", f"sqlite:{home.work}/copy/state.db", "--engine", "eng_copy", "--now", NOW)
    (home.work / "elsewhere").mkdir()
    elsewhere = home.write("elsewhere/fleetctl.toml", 'engine = "eng_copy"\n').parent
    assert made["objects"] == 6
    assert home.json("pools", "list", cwd=elsewhere)["items"][0]["key"] == "pool-fra1-h100"
    assert home.json("ledger", "head", cwd=elsewhere)["heads"][1]["length"] == 0
    assert home.json("ledger", "verify", cwd=elsewhere)["result"] == "ok"


def test_rebuild_gives_the_same_state(home: Home) -> None:
    home.ok("quotas", "set", "pool-fra1-h100", "acme", "gpu=8", "--now", NOW)
    before = home.json("status")
    assert home.json("state", "rebuild")["entries"] == 2
    assert home.json("status") == before
