"""What makes keys and memories makes all of it or nothing, so that the same command works once its words are right."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import FLEET, NOW, Home


def test_a_witness_that_was_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    home = Home(path=tmp_path).with_engine(fleet=FLEET)
    (key,) = home.path.glob("state/fleetctl/eng_test/steward.pub.pem")
    command = ("witness", "init", "--id", "audit-1", "--steward-key", str(key), "--steward")
    assert home.run(*command, "no name").exit == 1
    assert not (home.path / "state/fleetctl/witness/audit-1").exists()
    home.ok(*command, "root-steward")


def test_a_copy_that_was_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    home = Home(path=tmp_path).with_engine(fleet=FLEET)
    home.ok("apply", ".", "--yes", "--now", NOW)
    command = ("state", "copy", f"sqlite:{tmp_path}/copy.db", "--engine", "eng_copy", "--steward")
    assert home.run(*command, "no name").exit == 1
    assert not (home.path / "state/fleetctl/eng_copy").exists()
    home.ok(*command, "copy-steward")


def test_an_init_that_failed_can_be_tried_again(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    (home.work / ".github").write_text("a file where a folder should be")
    assert home.run("init").exit == 1
    assert sorted(path.name for path in home.work.iterdir()) == [".github"]
    (home.work / ".github").unlink()
    home.ok("init")


def test_what_the_system_refuses_is_no_defect(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    done = home.run("init", "x" * 300)
    assert (done.exit, "File name too long" in done.err, "internal-error" in done.err) == (1, True, False)
