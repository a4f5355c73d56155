"""Every JSON answer of every command is what `schemas/output.schema.json` says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from fleetctl.cli.main import cli
from tests.support.cli import FLEET, NOW, Home
from tests.support.schemas import COMMANDS, OUTPUT, PLAN, check

WITHOUT_JSON = {"completion": "prints a script", "witness serve": "prints its URL and serves"}


def leaves(command: click.Command, name: str = "") -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield name.strip()
        return
    context = click.Context(command)
    for child in command.list_commands(context):
        found = command.get_command(context, child)
        assert found is not None
        yield from leaves(found, f"{name} {child}")


def test_every_command_has_its_schema_and_nothing_else_has_one() -> None:
    assert set(leaves(cli)) - set(WITHOUT_JSON) == set(COMMANDS)


@pytest.mark.parametrize("schema", [OUTPUT, PLAN], ids=["output", "plan"])
def test_the_schemas_are_schemas(schema: Any) -> None:
    Draft202012Validator.check_schema(schema)


class Answers:
    """Runs commands and holds what they answer to their schemas."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.seen: set[str] = set()

    def ask(self, command: str, *arguments: str, exit: int = 0, **options: Any) -> Any:
        answer = self.home.json(*command.split(), *arguments, exit=exit, **options)
        check(f"commands/$defs/{command.replace(' ', '%20')}", answer)
        self.seen.add(command)
        return answer


def test_every_answer_is_as_its_schema_says(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    ask = Answers(home)
    at = ("--now", NOW)
    ask.ask("init", ".", "--engine", "eng_test", "--test-clock", *at)
    home.write("fleet.yaml", FLEET)
    _start(ask)
    ask.ask("validate", ".")
    ask.ask("plan", ".", "-o", "plan.json")
    ask.ask("show", "plan.json")
    ask.ask("check", "plan.json")
    ask.ask("apply", "plan.json", *at)
    ask.ask("apply", "plan.json", *at)
    ask.ask("check", "plan.json")
    ask.ask("plan", ".")
    _capacity(ask, at)
    _use(ask, at)
    ask.ask("drift", ".", exit=2)
    ask.ask("drift", ".", "--seal", *at, exit=2)
    ask.ask("status", "--snapshot", "snapshot.json", *at)
    ask.ask("history")
    ask.ask("doctor", exit=1)
    ask.ask("settings list")
    ask.ask("settings set", "shareThresholdPercent", "20", *at)
    _rotation(ask, at)
    _ledgers(ask)
    ask.ask("fmt", ".")
    ask.ask("fmt", "--check", ".")
    ask.ask("import", "pool", "pool-fra1-h100")
    ask.ask("import", "--all", "--fleet", "eu-test", "-o", "all.yml")
    ask.ask("import", "--refresh", "offer/pool-fra1-h100/acme", "--path", "fleet.yaml")
    ask.ask("state backup", "backup.db")
    ask.ask("state restore", "backup.db")
    ask.ask("state copy", f"sqlite:{home.work}/copy.db", "--engine", "eng_copy")
    ask.ask("state rebuild")
    ask.ask("state move", f"sqlite:{home.work}/moved.db")
    ask.ask("status")
    assert set(COMMANDS) - ask.seen == set()


def _start(ask: Answers) -> None:
    ask.ask("version")
    ask.ask("schema")
    ask.ask("explain", "stale-plan")
    ask.ask("explain", "no-history")
    tree = [{"id": "A", "guarantee_uj": 100, "guarantee_devices": 8, "over_quota_weight": 1}]
    for estimate, grade in (("50", "HwShunt"), ("200", "Estimator")):
        claim = {"entitlement": "A", "gang_size": 1, "devices_per_member": 1, "estimate_uj": estimate, "grade": grade}
        ask.ask("pool1 decide", stdin=json.dumps({"tree": tree, "claim": claim}))
    ask.ask("pool1 preempt", stdin='{"workloads": []}')
    shares = {"total_uj": 10, "grade": "HwShunt", "basis": "time", "occupants": [{"id": "a", "weight": 1}]}
    ask.ask("pool1 attribute", stdin=json.dumps(shares))
    for count in (1, 3):
        seen = [{"class": "train", "energy_uj": 5, "grade": "HwShunt"}] * count
        ask.ask("pool1 derive", stdin=json.dumps({"class": "train", "observations": seen}))
    work = {"id": "w", "devices": 1, "observed_ms": 10, "energy_uj": 0, "grade": "HwShunt"}
    ask.ask("pool1 idle", stdin=json.dumps({"policy": {"window_ms": 5, "threshold_uw": 1}, "workloads": [work]}))


def _capacity(ask: Answers, at: tuple[str, str]) -> None:
    ask.ask("tenants create", "beta", *at)
    ask.ask("tenants list")
    ask.ask("tenants get", "acme")
    ask.ask("sites create", "par1", "--kind", "shared", "--region", "eu-west", *at)
    ask.ask("sites list")
    ask.ask("pools create", "p2", "--site", "par1", "--class", "metal-host", "--gpu-model", "H100", *at)
    ask.ask("pools offer", "p2", "--to", "beta", "--quota", "gpu=8", *at)
    ask.ask("pools update", "p2", "--gpu-model", "H200", *at)
    ask.ask("pools list")
    ask.ask("pools get", "p2")
    ask.ask("pools capacity", "p2")
    ask.ask("quotas list", "p2")
    ask.ask("quotas set", "pool-fra1-h100", "acme", "gpu=30", *at)
    ask.ask("pools unoffer", "p2", "--to", "beta", *at)
    ask.ask("pools archive", "p2", *at)
    ask.ask("pools archive", "p2", *at)
    ask.ask("tenants delete", "beta", "--dry-run")
    for _ in range(2):
        ask.ask("tenants delete", "beta", "--accept", "remove:tenant/beta", *at)
    ask.ask("tenants delete", "beta", "--dry-run")
    ask.ask("events list")
    ask.ask("authz list")


def _use(ask: Answers, at: tuple[str, str]) -> None:
    ask.ask(
        "nodes join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "16", "--product", "H100-SXM5-80GB", *at
    )
    ask.ask("nodes list")
    reserve = ("--tenant", "acme", "--pool", "pool-fra1-h100", "--gpus", "8")
    pays = ("--entitlement", "ent-acme", "--energy", "5MJ", "--grade", "ModelBased")
    made = ask.ask("reservations create", *reserve, *pays, *at)
    ask.ask("reservations create", *reserve, "--key", "k", *at)
    ask.ask("reservations list")
    ask.ask("reservations get", made["reservation"]["id"])
    ask.ask("claims list")
    ask.ask(
        "claims admit",
        "--entitlement",
        "ent-acme",
        "--claim",
        "c1",
        "--devices",
        "1",
        *pays[2:],
        "--class",
        "train",
        *at,
    )
    ask.ask("claims admit", "--entitlement", "ent-acme", "--claim", "c2", "--devices", "99", *pays[2:], *at)
    ask.ask("claims list")
    derive = ("claims admit", "--entitlement", "ent-acme", "--devices", "1", "--class", "train", "--estimate", "derive")
    ask.ask(*derive, "--claim", "c3", *at)
    ask.ask("claims victims")
    ask.ask("claims idle")
    said = ("claims report", "--claim", "c1", "--units", "3", "--energy", "1MJ", "--grade", "HwShunt")
    ask.ask(*said, *at)
    ask.ask("claims victims", "--raw")
    ask.ask(*said, "--observed", "10m", "--observed-energy", "10kJ", *at)
    ask.ask("claims victims", "--for", "ent-acme")
    ask.ask("claims idle", "--window", "10m", "--threshold", "90W", *at)
    ask.ask("claims release", "--claim", "c1", "--energy", "1MJ", "--grade", "HwShunt", *at)
    ask.ask(*derive, "--claim", "c4", "--required", "1", *at)
    ask.ask("claims release", "--claim", "c4", *at)
    ask.ask("reservations end", made["reservation"]["id"], *at)
    ask.ask("reservations end", made["reservation"]["id"], *at)
    ask.ask("entitlements tree")
    ask.ask("entitlements usage")
    ask.ask("nodes join", "--pool", "pool-fra1-h100", "--name", "n2", "--gpus", "1", *at)
    ask.ask("nodes leave", "n2", *at)


def _rotation(ask: Answers, at: tuple[str, str]) -> None:
    claim = ("--entitlement", "ent-acme", "--claim", "goes-on", "--devices", "1")
    ask.ask("claims admit", *claim, "--energy", "2MJ", "--grade", "ModelBased", *at)
    ask.ask("claims report", "--claim", "goes-on", "--units", "1", "--energy", "1MJ", "--grade", "HwShunt", *at)
    ask.ask("ledger rotate", "--window", "w2", "--accept", "reset-usage:ledger", *at)
    ask.ask("claims list")
    ask.ask("claims release", "--claim", "goes-on", "--energy", "3MJ", "--grade", "HwShunt", *at)
    ask.ask("entitlements usage", "--window", "entitlements")
    ask.ask("entitlements tree")
    ask.ask("history")


def _ledgers(ask: Answers) -> None:
    ask.ask("ledger head")
    ask.ask("ledger show")
    ask.ask("ledger show", "--stream", "journal")
    ask.ask("ledger witness")
    ask.ask("ledger recover")
    ask.ask("ledger export", "-o", "ledger.cborseq")
    ask.ask("ledger export", "--bundle", "bundle")
    ask.ask("ledger verify")
    key = "bundle/keys/steward-root-steward.pub.pem"
    ask.ask("ledger verify", "bundle", "--steward-key", key)
    assert ask.ask("ledger decisions", "bundle", "--steward-key", key)["decisions"]
    ask.ask("ledger verify", "ledger.cborseq", "--steward-key", key, "--min-length", "999", exit=3)
    ask.ask("witness init", "--id", "audit-1", "--steward-key", key, "--steward", "root-steward")
    ask.ask("witness head", "--id", "audit-1", "root-steward/journal")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("plan",),
        ("plan", "missing"),
        ("show", "missing.json"),
        ("status",),
        ("explain", "nonsense"),
        ("pool1", "decide", "missing"),
    ],
)
def test_every_error_is_as_its_schema_says(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = Home(path=tmp_path).run("--format", "json", *arguments)
    assert done.exit in (1, 3, 64)
    check("error", done.json)
