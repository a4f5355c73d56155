"""What makes keys and memories makes all of it or nothing, so that the same command works once its words are right."""

from __future__ import annotations

import subprocess
import sys
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


def test_engines_that_are_made_at_once_are_all_configured(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    folders = [home.work / str(number) for number in range(6)]
    running = []
    for folder in folders:
        folder.mkdir()
        running.append(
            subprocess.Popen(
                [sys.executable, "-m", "fleetctl", "init", "--no-example"],
                cwd=folder,
                env=home.process_environment(),
                stdout=subprocess.DEVNULL,
            )
        )
    assert [process.wait(60) for process in running] == [0] * 6
    assert [home.run("status", cwd=folder).exit for folder in folders] == [0] * 6


def test_a_configuration_that_is_too_large_is_not_read_in_part(tmp_path: Path) -> None:
    home = Home(path=tmp_path).with_engine()
    (config,) = home.path.glob("config/fleetctl/config.toml")
    config.write_text("#" * 1024 * 1024 + "\n" + config.read_text())
    assert (home.run("status").exit, home.run("init", "other").exit) == (1, 1)
    assert "eng_test" in config.read_text()
