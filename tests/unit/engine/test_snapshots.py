"""`status --snapshot`: everything that a plan is compared with, under the steward's signature (cli.md; plan-apply: "In a pull request")."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fleetctl.engine import claims, reservations
from fleetctl.engine.context import Engine
from fleetctl.engine.planning import read_snapshot
from fleetctl.engine.snapshots import snapshot_file, verified_snapshot
from fleetctl.errors import NotVerified, Tampered, Unreachable
from fleetctl.model.live import object_from_json, state_digest
from fleetctl.pool1.grade import Grade
from tests.support import engines as te
from tests.support.cli import ROOT
from tests.support.ledgers import signer

SCHEMA = json.loads((ROOT / "schemas" / "snapshot.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An engine with a fleet, a removed object, a machine, a booking, and usage too large for a JSON number."""
    engine = te.new_engine(tmp_path / "engine")
    pools = (te.pool("pool-a"), te.pool("pool-b"), te.entitlement(energy_uj=2**62))
    declared = te.fleet(*pools, te.offer("pool-a"))
    te.applied(engine, declared)
    te.applied(engine, te.fleet(*pools), accept=["share:fleet/eu"])
    te.applied(engine, declared)
    reservations.join_node(engine, pool="pool-a", name="n1", gpus=8)
    reservations.create(engine, tenant="acme", pool="pool-a", gpus=3)
    claims.admit(
        engine,
        claim="c1",
        entitlement="ent",
        gang_size=1,
        devices_per_member=2,
        estimate_uj=2**61,
        grade=Grade.HW_SHUNT,
    )
    return engine


def said(engine: Engine) -> Any:
    return verified_snapshot(snapshot_file(engine), steward=engine.steward, key=engine.steward_key)


def test_it_holds_what_the_engine_holds(engine: Engine) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(json.loads(snapshot_file(engine)))
    found = said(engine)
    with engine.store.read() as reader:
        live = read_snapshot(engine, reader)
    objects = [object_from_json(item) for item in found["objects"]]
    assert {(item.kind, item.id): item for item in objects} == live.objects
    assert found["state"] == state_digest(((item.kind, item.id), item.digest()) for item in objects).hex()
    assert [(row["resource"], row["max"]) for row in found["quotas"] if row["tenant"] == "acme"] == [("gpu", 32)]
    assert [(row["tenant"], row["reservations"], row["resources"]) for row in found["booked"]] == [
        ("acme", 1, {"gpu": 3})
    ]
    assert list(found["inventoryGpus"].values()) == [8]
    (use,) = found["usage"].values()
    assert use == {"spentUj": 0, "reservedUj": str(2**61), "devices": 2, "openClaims": 1}
    assert (found["journal"]["length"], found["entitlements"]["length"]) == (3, 1)
    assert found["fleets"]["eu"]["entry"] == 2


@pytest.mark.parametrize(
    "edit",
    [
        lambda whole: whole["snapshot"]["quotas"][0].update(max=1),
        lambda whole: whole["snapshot"].update(engine="eng_other"),
        lambda whole: whole.update(signature=whole["signature"][:-2] + "00"),
        lambda whole: whole.update(signature="no"),
        lambda whole: whole.pop("snapshot"),
    ],
)
def test_every_edit_is_refused(engine: Engine, edit: Callable[[Any], object]) -> None:
    whole = json.loads(snapshot_file(engine))
    edit(whole)
    with pytest.raises(NotVerified) as caught:
        verified_snapshot(json.dumps(whole).encode(), steward=engine.steward, key=engine.steward_key)
    assert caught.value.code == "snapshot-unverified"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"snapshot": {}}', b"[" * 100_000, b"\xff"])
def test_what_is_no_snapshot_is_refused(engine: Engine, data: bytes) -> None:
    with pytest.raises(NotVerified):
        verified_snapshot(data, steward=engine.steward, key=engine.steward_key)


def test_another_key_or_steward_signs_nothing(engine: Engine) -> None:
    data = snapshot_file(engine)
    for steward, key in ((engine.steward, signer("stranger").public_key), ("somebody", engine.steward_key)):
        with pytest.raises(NotVerified):
            verified_snapshot(data, steward=steward, key=key)


def test_nothing_is_signed_without_the_key_or_of_an_edited_state(tmp_path: Path) -> None:
    engine = te.new_engine(tmp_path / "engine")
    te.applied(engine, te.one_pool())
    with pytest.raises(Unreachable):
        snapshot_file(te.open_engine(tmp_path / "engine", signer=None))
    te.edit(tmp_path / "engine", "UPDATE objects SET name = 'other' WHERE kind = 'pool'")
    with pytest.raises(Tampered):
        snapshot_file(te.open_engine(tmp_path / "engine"))
