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
