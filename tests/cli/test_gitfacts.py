"""What git says of a fleet's files, and that a hostile repository runs nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fleetctl.cli.gitfacts import git_facts
from tests.support.cli import FLEET, NOW, Home

FILE = "fleet.yaml"


class Repository:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "t")
        self.git("config", "user.email", "t@example.org")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            path = self.path / name.replace("__", "/").replace("_yaml", ".yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def test_a_clean_folder(repository: Repository) -> None:
    root = repository.commit(eu__fleet_yaml=FLEET)
    head = repository.commit(other="x")
    facts = git_facts(repository.path / "eu", [FILE])
    assert (facts.commit, facts.origin) == (head, (root, "eu"))
    assert facts.is_ancestor(root) is True
    assert facts.is_ancestor(head) is True
    assert git_facts(repository.path / "eu" / FILE, [FILE]).origin == (root, "eu/fleet.yaml")


@pytest.mark.parametrize("how", ["changed", "untracked", "deleted"])
def test_files_that_the_commit_does_not_hold_are_dirty(repository: Repository, how: str) -> None:
    head = repository.commit(eu__fleet_yaml=FLEET, eu__more_yaml="{}")
    folder = repository.path / "eu"
    files = {FILE, "more.yaml"}
    if how == "changed":
        (folder / FILE).write_text(FLEET + "#")
    elif how == "untracked":
        (folder / "new.yaml").write_text("{}")
        files.add("new.yaml")
    else:
        (folder / "more.yaml").unlink()
        files.remove("more.yaml")
    assert git_facts(folder, files).commit == f"{head}+dirty"


def test_what_else_is_changed_in_the_repository_is_not_the_fleets(repository: Repository) -> None:
    head = repository.commit(eu__fleet_yaml=FLEET)
    (repository.path / "notes.txt").write_text("x")
    assert git_facts(repository.path / "eu", [FILE]).commit == head


def test_a_checkout_with_crlf_is_clean(repository: Repository) -> None:
    head = repository.commit(fleet_yaml=FLEET)
    (repository.path / FILE).write_bytes(FLEET.replace("\n", "\r\n").encode())
    assert git_facts(repository.path, [FILE]).commit == head


def test_a_commit_of_another_branch_is_no_ancestor(repository: Repository) -> None:
    repository.commit(fleet_yaml=FLEET)
    repository.git("checkout", "-q", "-b", "side")
    side = repository.commit(side="x")
    repository.git("checkout", "-q", "main")
    repository.commit(main="x")
    facts = git_facts(repository.path, [FILE])
    assert facts.is_ancestor(side) is False
    assert facts.is_ancestor("a" * 40) is False


def test_nobody_can_say_in_a_shallow_clone(repository: Repository, tmp_path: Path) -> None:
    repository.commit(fleet_yaml=FLEET)
    repository.commit(more="x")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", repository.path.as_uri(), str(clone)], check=True)
    facts = git_facts(clone, [FILE])
    assert facts.commit is not None and facts.origin is None
    assert facts.is_ancestor("a" * 40) is None


@pytest.mark.parametrize("commit", ["--help", "HEAD", "main", "", "a" * 39, "A" * 40])
def test_only_a_commit_hash_is_asked_for(repository: Repository, commit: str) -> None:
    repository.commit(fleet_yaml=FLEET)
    assert git_facts(repository.path, [FILE]).is_ancestor(commit) is None


def test_outside_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / FILE).write_text(FLEET)
    facts = git_facts(tmp_path, [FILE])
    assert (facts.commit, facts.origin, facts.is_ancestor("a" * 40)) == (None, None, None)


def test_without_git_nothing_is_known(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit(fleet_yaml=FLEET)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert git_facts(repository.path, [FILE]).commit is None


def test_the_environment_cannot_point_elsewhere(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = repository.commit(fleet_yaml=FLEET)
    other = Repository(tmp_path / "other")
    other.commit(x="y")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    assert git_facts(repository.path, [FILE]).commit == head


def test_nothing_of_a_hostile_repository_runs(repository: Repository) -> None:
    """Hooks, filters, monitors, pagers, diff drivers and helpers of the repository's own configuration stay where they are."""
    trap = repository.path / "ran"
    program = repository.path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    program.chmod(0o755)
    repository.commit(fleet_yaml=FLEET, _gitattributes="*.yaml filter=evil diff=evil\n")
    (repository.path / "_gitattributes").rename(repository.path / ".gitattributes")
    for name in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.external",
        "core.pager",
        "core.sshCommand",
        "core.editor",
        "credential.helper",
    ):
        repository.git("config", name, str(program))
    hooks = repository.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (hooks / hook).write_text(program.read_text())
        (hooks / hook).chmod(0o755)
    (repository.path / FILE).touch()
    repository.git("status")
    assert trap.exists(), "the trap works: plain git runs it"
    trap.unlink()
    (repository.path / FILE).touch()
    facts = git_facts(repository.path, [FILE])
    assert facts.commit is not None
    assert facts.is_ancestor("a" * 40) is False
    assert not trap.exists()


def test_revert_and_origin_are_dangers(tmp_path: Path) -> None:
    """plan-apply.md, dangers: judged by the history of the repository that the files lie in."""
    home = Home(path=tmp_path)
    repository = Repository(home.work)
    home.with_engine(fleet=FLEET)
    repository.commit()
    first = repository.git("rev-parse", "HEAD")
    second = repository.commit(fleet_yaml=FLEET.replace("gpu: 32", "gpu: 40"))
    applied = home.json("apply", ".", "--yes", "--now", NOW)
    assert applied["result"] == "applied"
    assert home.json("status")["fleets"][0]["commit"] == second
    repository.git("reset", "-q", "--hard", first)
    plan = home.json("plan", ".")
    assert [item["id"] for item in plan["context"]["dangers"]] == ["revert:fleet/eu-test"]
    moved = Repository(tmp_path / "moved")
    moved.commit(fleet_yaml=FLEET, fleetctl_toml='engine = "eng_test"\n')
    (moved.path / "fleetctl_toml").rename(moved.path / "fleetctl.toml")
    dangers = [item["id"] for item in home.json("plan", str(moved.path))["context"]["dangers"]]
    assert "origin:fleet/eu-test" in dangers


def origin(repository: Repository, *, looks: bool) -> tuple[str, str] | None:
    return git_facts(repository.path / "eu", [FILE], looks=looks).origin


def test_first_commits_that_were_kept_are_those_that_a_whole_walk_finds(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache saves a walk and changes no answer: along a branch, across branches, where histories join."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CI", raising=False)
    repository.commit(eu__fleet_yaml=FLEET)
    seen = set()

    def look() -> None:
        whole = origin(repository, looks=False)
        for _ in range(2):  # found and kept, then kept
            assert origin(repository, looks=True) == whole is not None
        seen.add(whole)

    look()
    repository.commit(other="1")
    look()
    for name in ("one", "two", "three"):  # histories of their own; the smallest hash is the answer
        repository.git("checkout", "-q", "--orphan", name)
        repository.commit(eu__fleet_yaml=FLEET, own=name)
        look()
    repository.git("checkout", "-q", "main")
    look()
    for name in ("one", "two", "three"):
        repository.git("merge", "-q", "--allow-unrelated-histories", "-X", "ours", "-m", "join", name)
        look()
    assert len(seen) > 1


@pytest.mark.parametrize("kept", [b"", b"\xff", b"fleetctl-roots/1\n", b"fleetctl-roots/1 " + b"a" * 40 + b" x\n"])
def test_what_is_kept_and_no_answer_is_as_if_nothing_were(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bytes
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CI", raising=False)
    root = repository.commit(eu__fleet_yaml=FLEET)
    assert origin(repository, looks=True) == (root, "eu")
    (file,) = (tmp_path / "cache").rglob("roots/*")
    file.write_bytes(kept)
    assert origin(repository, looks=True) == (root, "eu")
    file.unlink()
    os.mkfifo(file)
    assert origin(repository, looks=True) == (root, "eu")
    assert file.is_file()
    (tmp_path / "cache" / "fleetctl").chmod(0o500)
    assert origin(repository, looks=True) == (root, "eu")


def test_a_build_service_keeps_nothing_and_what_applies_does_not_look_there(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CI", "true")
    root = repository.commit(eu__fleet_yaml=FLEET)
    assert origin(repository, looks=True) == (root, "eu")
    assert not (tmp_path / "cache").exists()
    monkeypatch.delenv("CI")
    head = origin(repository, looks=True)
    (file,) = (tmp_path / "cache").rglob("roots/*")
    file.write_text(f"fleetctl-roots/1 {root} {'0' * 40}\n")
    assert (head, origin(repository, looks=False)) == ((root, "eu"), (root, "eu"))
