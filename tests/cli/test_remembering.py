"""The cache of loaded fleets: it saves reading, shows nothing else, and decides nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetctl.canonical import sha256_hex
from tests.support.cli import FLEET, NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(path=tmp_path, env={"CI": ""}).with_engine(fleet=FLEET.replace("32}", "32, gpus: 1}"))


def cached(home: Home) -> list[Path]:
    return sorted(home.path.glob("cache/fleetctl/fleets/*"))


def forge(home: Home, old: str, new: str) -> None:
    """What is kept, with another content and a checksum that holds."""
    (file,) = cached(home)
    key, _, kept = file.read_bytes().split(b"\n", 2)
    assert old.encode() in kept
    kept = kept.replace(old.encode(), new.encode())
    file.write_bytes(b"\n".join([key, sha256_hex(kept).encode(), kept]))


def test_a_second_plan_says_the_same_with_its_warnings_and_reads_no_yaml(home: Home) -> None:
    first = home.ok("plan", ".", "--now", NOW)
    assert "quota-misspelt" in first.err and len(cached(home)) == 1
    assert home.ok("plan", ".", "--now", NOW) == first
    code = (
        "import sys; from fleetctl.cli.main import cli\n"
        "try: cli.main(['plan', '.', '--now', sys.argv[1]])\n"
        "finally: print(sorted(sys.modules.keys() & {'yaml', 'jsonschema_rs'}), file=sys.stderr)"
    )
    home.write("fleet.yaml", FLEET)
    for loaded in ("['jsonschema_rs', 'yaml']", "[]"):
        done = subprocess.run(
            [sys.executable, "-c", code, NOW],
            cwd=home.work,
            env=home.process_environment(),
            capture_output=True,
            text=True,
        )
        assert done.stderr.splitlines()[-1] == loaded, done.stderr


def test_it_is_for_its_user_alone(home: Home) -> None:
    home.ok("plan", ".")
    (file,) = cached(home)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_file_that_changes_is_read_again(home: Home) -> None:
    home.ok("plan", ".")
    home.write("fleet.yaml", FLEET.replace("H100", "H200"))
    assert "H200" in home.ok("plan", ".").out
    home.write("fleet.yaml", FLEET.replace("maxPending: 6h", "maxPending: 6 h ours"))
    assert home.run("plan", ".").exit == 1
    home.write("more.yaml", "sites: {par1: {kind: shared, region: eu-west}}")
    home.write("fleet.yaml", FLEET)
    assert "site/par1" in home.ok("plan", ".").out
    assert len(cached(home)) == 1


def test_machines_that_join_are_compared_with_what_is_declared(home: Home) -> None:
    """A lint that asks the engine is asked again, although no file changed."""
    home.ok("apply", ".", "--yes", "--now", NOW)
    assert "offers-over-capacity" not in home.ok("plan", ".").err
    home.ok("nodes", "join", "--pool", "pool-fra1-h100", "--name", "n1", "--gpus", "8", "--now", NOW)
    for _ in range(2):
        assert "offers-over-capacity" in home.ok("plan", ".").err


@pytest.mark.parametrize("damage", [b"", b"x", b"\n\n", b"{}", b"a\nb\nc"])
def test_what_is_damaged_is_as_if_it_were_not_there(home: Home, damage: bytes) -> None:
    first = home.ok("plan", ".", "--now", NOW)
    (file,) = cached(home)
    whole = file.read_bytes()
    for content in (damage, whole[:-1], whole[:100], whole.replace(b"gpu", b"gpv", 1)):
        file.write_bytes(content)
        assert home.ok("plan", ".", "--now", NOW) == first
        assert file.read_bytes() == whole


@pytest.mark.parametrize("what", ["pipe", "link to a pipe", "link", "endless", "folder"])
def test_what_is_no_file_is_not_read_and_not_written_through(home: Home, what: str) -> None:
    first = home.ok("plan", ".", "--now", NOW)
    (file,) = cached(home)
    file.unlink()
    other = home.path / "other"
    match what:
        case "pipe":
            os.mkfifo(file)
        case "link to a pipe":
            os.mkfifo(other)
            file.symlink_to(other)
        case "link":
            other.write_bytes(b"mine")
            file.symlink_to(other)
        case "endless":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
    for _ in range(2):
        assert home.ok("plan", ".", "--now", NOW) == first
    assert file.is_dir() if what == "folder" else file.is_file() and not file.is_symlink()
    assert not other.is_file() or other.read_bytes() == b"mine"


def test_apply_import_and_validate_never_ask_it(home: Home) -> None:
    home.ok("plan", ".")
    forge(home, "eu-central", "eu-forged")
    assert "eu-forged" in home.ok("plan", ".").out
    assert "eu-forged" not in home.ok("apply", ".", "--yes", "--now", NOW).out
    assert "eu-forged" not in home.ok("sites", "list").out
    sealed = home.json("drift", ".", "--seal", "--now", NOW)
    assert sealed["result"] == "none" and "eu-forged" not in json.dumps(sealed)


@pytest.mark.parametrize("ci", ["true", "1", "yes"])
def test_a_build_service_keeps_and_reads_nothing(home: Home, ci: str) -> None:
    other = Home(path=home.path, env={"CI": ci})
    other.ok("plan", ".")
    assert cached(home) == []
    home.ok("plan", ".")
    forge(home, "eu-central", "eu-forged")
    assert "eu-forged" not in other.ok("plan", ".").out


def test_a_cache_that_cannot_be_written_is_done_without(home: Home) -> None:
    (home.path / "cache").write_text("a file where a folder should be")
    assert home.ok("plan", ".", "--now", NOW).out == home.ok("plan", ".", "--now", NOW).out


def test_two_paths_do_not_share_what_is_kept(home: Home) -> None:
    """The same bytes as a folder and as one file: places and hints differ."""
    home.ok("plan", ".")
    home.ok("plan", "fleet.yaml")
    assert len(cached(home)) == 2
    os.symlink(home.work, home.path / "link")
    home.ok("plan", str(home.path / "link"))
    assert len(cached(home)) == 2
