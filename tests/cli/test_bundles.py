"""Exported bundles in hands that nobody trusts: what is missing or changed is said."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import FLEET, NOW, Home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(path=tmp_path_factory.mktemp("home")).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)
    home.ok("tenants", "create", "other", "--now", NOW)
    home.ok("drift", ".", "--seal", "--now", NOW)
    home.ok("ledger", "export", "--bundle", "bundle")
    return home


def verified(home: Home, bundle: Path, exit: int) -> Any:
    (key,) = home.path.glob("state/fleetctl/eng_test/steward.pub.pem")
    return home.json("ledger", "verify", str(bundle), "--steward-key", str(key), exit=exit)


@pytest.mark.parametrize("holds", ["fleetctl-plan", '"config":', "tenants.create", '"items":'])
@pytest.mark.parametrize(
    "damage",
    [Path.unlink, lambda path: path.write_bytes(path.read_bytes() + b" "), lambda path: path.write_bytes(b"")],
    ids=["missing", "changed", "emptied"],
)
def test_a_document_that_the_journal_names_must_be_there(
    home: Home, tmp_path: Path, holds: str, damage: Callable[[Path], object]
) -> None:
    """ledger.md Documents: body, context, request and report are kept under their digests; the auditor sees when not."""
    bundle = tmp_path / "bundle"
    shutil.copytree(home.work / "bundle", bundle)
    assert verified(home, bundle, 0)["journal"]["result"] == "ok"
    (document,) = [path for path in (bundle / "documents").iterdir() if holds in path.read_text("utf-8")]
    damage(document)
    report = verified(home, bundle, 3)
    assert (report["result"], report["journal"]["result"], report["journal"]["reasons"]) == (
        "failed",
        "failed",
        ["document-missing"],
    )


def test_a_bundle_of_an_unused_engine_says_whose_it_may_be_and_asks_who_is_expected(tmp_path: Path) -> None:
    """pins.md: `--steward` defaults to the kid of entry 0. What an unsigned file beside the ledgers says decides nothing."""
    home = Home(path=tmp_path).with_engine()
    home.ok("ledger", "export", "--bundle", "bundle")
    (key,) = home.path.glob("state/fleetctl/eng_test/steward.pub.pem")
    command = ("ledger", "verify", "bundle", "--steward-key", str(key))
    (found,) = home.json(*command, exit=64)["diagnostics"]
    assert found["code"] == "steward-key-needed"
    assert "the bundle names `root-steward`, which nothing signs" in found["detail"]
    assert "add `--steward root-steward`" in found["detail"]
    assert home.json(*command, "--steward", "root-steward")["length"] == 0
    for said in ('{"steward": {"id": "not an id"}}', '{"steward": []}', "[]"):
        (home.work / "bundle" / "names.json").write_text(said, encoding="utf-8")
        (found,) = home.json(*command, exit=64)["diagnostics"]
        assert found["detail"].endswith("whose ledger it is; give its steward's id with --steward")


def test_a_table_of_names_that_is_no_json_is_named(home: Home, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(home.work / "bundle", bundle)
    (bundle / "names.json").write_text('{"objects": 5')
    told = verified(home, bundle, 1)["diagnostics"]
    assert [item["code"] for item in told] == ["json-unreadable"] and "names.json: " in told[0]["detail"]
