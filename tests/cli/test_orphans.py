"""Entitlements that left the tree and whose use stays on record (readings A69)."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import FLEET, NOW, Home


def test_the_usage_of_one_that_left_is_found_by_its_key_and_by_its_id(tmp_path: Path) -> None:
    home = Home(path=tmp_path).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)
    figures = ("--devices", "1", "--energy", "5 MJ", "--grade", "HwShunt")
    home.ok("claims", "admit", "--entitlement", "ent-acme", "--claim", "c1", *figures, "--now", NOW)
    home.ok("claims", "release", "--claim", "c1", "--now", NOW, "--energy", "4 MJ", "--grade", "HwShunt")
    home.write("fleet.yaml", FLEET[: FLEET.index("entitlements:")])
    home.ok("apply", ".", "--yes", "--accept", "share:fleet/eu-test", "--now", NOW)
    (row,) = home.json("entitlements", "usage")["items"]
    assert (row["entitlement"], row["orphan"], row["spent_uj"]) == ("entitlement/ent-acme", True, 4 * 10**12)
    for name in ("ent-acme", row["id"]):
        assert home.json("entitlements", "usage", name)["items"] == [row]
    (found,) = home.json("entitlements", "usage", "nobody", exit=1)["diagnostics"]
    assert found["code"] == "not-found"
