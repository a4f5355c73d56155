"""`tenants delete`: what ends is shown before and after, in text and JSON, and other fleets learn of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import FLEET, NOW, Home
from tests.support.schemas import check

AT = ("--now", NOW)
ACCEPT = ("--accept", "remove:tenant/acme")
WEST = """\
apiVersion: fleetctl/v1
fleet: west
tenant: root
sites:
  sea1: {kind: shared, region: us-west}
pools:
  sea1-h100: {idempotencyKey: pool-sea1-h100, site: sea1, class: metal-host, gpuModel: H100, policy: {maxPending: 6h}}
offers:
  acme: {to: eu-test/acme, pool: sea1-h100, quota: {gpu: 8}}
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """acme runs in a pool of its own and, on an entitlement of nobody's, in root's; beta runs in acme's."""
    home = Home(path=tmp_path).with_engine(fleet=FLEET.replace("ent-acme, tenant: acme", "ent-any, tenant: any"))
    home.ok("apply", ".", "--yes", *AT)
    home.ok("tenants", "create", "beta", *AT)
    home.ok("sites", "create", "par1", "--kind", "custom", "--region", "eu-west", "--as", "acme", *AT)
    pool = ("p-own", "--site", "par1", "--class", "metal-host", "--gpu-model", "H100")
    home.ok("pools", "create", *pool, "--as", "acme", *AT)
    home.ok("pools", "offer", "p-own", "--to", "beta", "--quota", "gpu=8", "--as", "acme", *AT)
    for where, name in (("p-own", "n1"), ("pool-fra1-h100", "n2")):
        home.ok("nodes", "join", "--pool", where, "--name", name, "--gpus", "8", *AT)
    estimate = ("--entitlement", "ent-any", "--energy", "5MJ", "--grade", "ModelBased")
    for tenant, where, *paid in (("beta", "p-own"), ("acme", "p-own"), ("acme", "pool-fra1-h100", *estimate)):
        home.ok("reservations", "create", "--tenant", tenant, "--pool", where, "--gpus", "3", *paid, *AT)
    return home


def test_from_a_look_to_the_end(home: Home) -> None:
    surveyed = home.process("tenants", "delete", "acme", "--dry-run", "--format", "json")
    answer = json.loads(surveyed.stdout)
    assert (surveyed.returncode, answer["result"], answer["entry"]) == (0, "planned", None)
    (danger,) = answer["dangers"]
    assert (danger["id"], danger["figures"]["gpus"]) == ("remove:tenant/acme", 6)
    assert answer["teardown"]["fleets"] == ["eu-test"]

    refused = home.process("tenants", "delete", "acme", *AT)
    assert (refused.returncode, refused.stdout) == (3, "")
    for shown in ("pool/p-own", "offer/pool-fra1-h100/acme", "site/par1", "error: unaccepted-danger", "2 reservations"):
        assert shown in refused.stderr, shown

    done = home.process("tenants", "delete", "acme", *ACCEPT, *AT, "--format", "json")
    receipt = json.loads(done.stdout)
    assert (done.returncode, receipt["result"], receipt["accepted"]) == (0, "done", ["remove:tenant/acme"])
    assert {item["state"] for item in receipt["teardown"]["reservations"]} == {"ended"}
    assert {name: receipt["teardown"][name] for name in ("pools", "sites", "offers", "others", "nodes")} == {
        "pools": ["pool/p-own"],
        "sites": ["site/par1"],
        "offers": ["offer/p-own/beta", "offer/pool-fra1-h100/acme"],
        "others": {"reservations": 1, "gpus": 3},
        "nodes": 1,
    }
    assert home.process("tenants", "get", "acme").returncode == 1
    again = home.process("tenants", "delete", "acme", *ACCEPT, *AT)
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True)
    verified = home.process("ledger", "verify", "--format", "json")
    assert (verified.returncode, json.loads(verified.stdout)["result"]) == (0, "ok")


def test_afterwards_every_look_agrees(home: Home) -> None:
    home.ok("tenants", "delete", "acme", *ACCEPT, *AT)
    events = [(item["type"], item["data"]) for item in home.json("events", "list")["items"][-4:]]
    assert [type for type, _ in events] == ["reservation.ended"] * 2 + ["pool.archived", "pool.unoffered"]
    assert events[2][1] == {"unoffered": ["beta"], "reason": "tenant deleted"}
    assert events[3][1] == {"toTenantId": "acme"}
    quotas = home.json("quotas", "list", "p-own")["items"]
    assert [(item["tenant"], item["max"], item["used"], item["available"]) for item in quotas] == [
        ("acme", 0, 0, 0),
        ("beta", 0, 3, 0),
    ]
    assert {item["tenant"] for item in home.json("authz", "list")["items"]} == {"root"}
    usage = home.json("entitlements", "usage")["items"]
    assert [(item["spent_uj"], item["reserved_uj"], item["grade"]) for item in usage] == [
        (5_000_000_000_000, 0, "Estimator")
    ]
    history = home.json("history", "offer/pool-fra1-h100/acme")["entries"]
    assert (history[-1]["method"], history[-1]["accepted"]) == ("tenants.delete", ["remove:tenant/acme"])
    drift = home.json("drift", ".", "--full", exit=2)
    assert {f"{item['kind']}/{item['key']}" for item in drift["items"]} == {"tenant/acme", "offer/pool-fra1-h100/acme"}
    assert {item["field"] for item in drift["items"]} == {None}
    before = home.json("status")
    home.ok("state", "rebuild")
    assert home.json("status") == before
    home.ok("ledger", "export", "--bundle", "bundle")
    names = json.loads((home.work / "bundle" / "names.json").read_text())["objects"]
    assert names["acme"]["removed"] is True


def test_files_that_still_have_it_make_another_one(home: Home) -> None:
    home.ok("tenants", "delete", "acme", *ACCEPT, *AT)
    planned = home.ok("plan", ".")
    assert "tenant-made-anew" in planned.out and "removed live" in planned.out
    home.ok("apply", ".", "--yes", *AT)
    assert home.json("tenants", "get", "acme")["version"] == 2
    assert home.json("pools", "list", "--as", "acme", "--archived")["items"][0]["archived"] is True
    assert home.json("drift", ".")["items"] == []


def test_another_repository_is_told(home: Home, tmp_path: Path) -> None:
    west = tmp_path / "west"
    west.mkdir()
    (west / "fleetctl.toml").write_text((home.work / "fleetctl.toml").read_text())
    (west / "fleet.yaml").write_text(WEST)
    home.ok("apply", ".", "--yes", *AT, cwd=west)
    assert home.json("tenants", "delete", "acme", "--dry-run")["teardown"]["fleets"] == ["eu-test", "west"]
    home.ok("tenants", "delete", "acme", *ACCEPT, *AT)
    (problem,) = home.json("plan", ".", cwd=west, exit=1)["diagnostics"]
    assert (problem["code"], problem["object"]) == ("not-found", "offer/pool-sea1-h100/acme")
    assert "was deleted" in problem["detail"] and problem["line"] == 9
    (gone,) = home.json("drift", ".", cwd=west, exit=2)["items"]
    assert (gone["key"], gone["field"]) == ("pool-sea1-h100/acme", None)
    (west / "fleet.yaml").write_text(WEST[: WEST.index("offers:")])
    assert home.json("plan", ".", cwd=west)["result"] == "nothing-to-do"


def test_what_stands_in_the_way_is_listed(home: Home) -> None:
    mine = "  mine: {idempotencyKey: ent-acme, tenant: acme, guarantee: {energy: 1 MJ, devices: 1}}\n"
    home.write("fleet.yaml", (home.work / "fleet.yaml").read_text() + mine)
    home.ok("apply", ".", "--yes", *AT, "--accept", "revert:fleet/eu-test")
    home.ok("tenants", "create", "lab", "--parent", "acme", *AT)
    for more in (ACCEPT, (), ("--dry-run",)):
        found = home.json("tenants", "delete", "acme", *more, *AT, exit=1)["diagnostics"]
        assert [(item["code"], item["object"]) for item in found] == [
            ("tenant-in-use", "tenant/lab"),
            ("tenant-in-use", "entitlement/ent-acme"),
        ]
    assert "files of fleet eu-test" in found[1]["detail"]


@pytest.mark.parametrize(
    ("arguments", "exit", "code"),
    [
        (("root",), 1, "invalid-state"),
        (("nobody",), 1, "not-found"),
        (("acme", "--as", "acme"), 1, "access-denied"),
        (("acme", "--as", "nobody"), 1, "not-found"),
        (("acme", "--accept", "acme"), 64, "usage"),
        ((), 64, "usage"),
    ],
)
def test_refusals(home: Home, arguments: tuple[str, ...], exit: int, code: str) -> None:
    found = home.json("tenants", "delete", *arguments, *AT, exit=exit)["diagnostics"]
    assert [item["code"] for item in found] == [code]


def test_a_required_witness_that_is_missing_is_5_and_the_deletion_stands(home: Home) -> None:
    """cli.md, exit 5: committed, and `ledger witness` finishes it."""
    home.run("settings", "set", "requiredWitnesses", "1", *AT)
    done = home.json("tenants", "delete", "acme", *ACCEPT, *AT, exit=5)
    check("commands/$defs/tenants%20delete", done)
    assert (done["result"], done["grade"], done["witnesses"]["missing"] != []) == ("done", "self-attested", True)
    assert home.json("tenants", "list")["items"][0]["key"] == "beta"
