"""What git knows of a fleet's files: their commit, whether it holds them as they are, where they lie, who came before.

The repository is untrusted. Only commands that read objects run: none of them starts hooks, filters, pagers, monitors or a
network, and the environment cannot point them elsewhere. Without git, or outside a repository, nothing is known.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from fleetctl.cli.keptroots import keep_roots, read_roots
from fleetctl.cli.usercache import allowed
from fleetctl.frozen import dataclass

_SAFE = (
    "--no-pager",
    "--no-replace-objects",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "protocol.allow=never",
    "-c",
    "safe.bareRepository=explicit",
)
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_TIMEOUT_S = 60
_LINK_MODE = b"120000"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFacts:
    """`commit` carries `+dirty` when the files are not what it holds; `origin` is (root commit, path in the repository)."""

    commit: str | None = None
    origin: tuple[str, str] | None = None
    repository: Path | None = None
    shallow: bool = False

    def is_ancestor(self, commit: str) -> bool | None:
        """Whether `commit` is an ancestor of the files' one (or that one). None when nobody can say."""
        if self.repository is None or self.commit is None or not _COMMIT.fullmatch(commit):
            return None
        head = self.commit.removesuffix("+dirty")
        code = _status(self.repository, "merge-base", "--is-ancestor", commit, head)
        if code == 0:
            return True
        # In a whole repository every ancestor is there: a commit that is not there is none.
        return None if self.shallow or code is None else False


def git_facts(path: Path, files: Iterable[str], *, looks: bool = False) -> GitFacts:
    """Facts about a fleet at `path` (a folder or a file) that was read from `files`, names relative to the folder.

    `looks`: nothing is done by what is found, so that the first commits may be taken from the user's cache.
    """
    real = path.resolve()
    folder = real if real.is_dir() else real.parent
    # One process for three answers, of which the first may hold newlines.
    told = _text(folder, "rev-parse", "--show-toplevel", "--is-shallow-repository", "HEAD^{commit}") or ""
    top, answer, head = ("\n\n" + told).rsplit("\n", 2)
    if not _COMMIT.fullmatch(head):
        return GitFacts()
    repository = Path(top.removeprefix("\n\n"))
    shallow = answer != "false"
    dirty = not _holds(repository, head, folder, files, whole=real.is_dir())
    return GitFacts(
        commit=f"{head}+dirty" if dirty else head,
        origin=None if shallow else _origin(repository, head, real, remembers=looks and allowed()),
        repository=repository,
        shallow=shallow,
    )


def _origin(repository: Path, head: str, real: Path, *, remembers: bool) -> tuple[str, str] | None:
    roots = _remembered_roots(repository, head) if remembers else _roots(repository, head)
    try:
        path = real.relative_to(repository.resolve()).as_posix()
    except ValueError:
        return None
    return (min(roots), path) if roots else None


def _roots(repository: Path, head: str, *without: str) -> list[str]:
    """Commits without a parent from which `head` comes, but not those `without`; none when git does not say."""
    return (_text(repository, "rev-list", "--max-parents=0", head, *(f"^{commit}" for commit in without)) or "").split()


def _remembered_roots(repository: Path, head: str) -> list[str]:
    """As `_roots`, walking only what came since the commit that was looked at last."""
    kept = read_roots(repository)
    if kept is None or _status(repository, "merge-base", "--is-ancestor", kept[0], head) != 0:
        roots = _roots(repository, head)
    elif kept[0] == head:
        return kept[1]
    else:
        roots = [*kept[1], *_roots(repository, head, kept[0])]
    keep_roots(repository, head, roots)
    return roots


def _holds(repository: Path, head: str, folder: Path, files: Iterable[str], *, whole: bool) -> bool:
    """Whether the commit has these files with this content and, where they are a `whole` folder, no other fleet files.

    Compared by blob hashes that are computed here: asking git would run whatever filters the repository names.
    """
    try:
        inside = folder.relative_to(repository.resolve()).as_posix()
    except ValueError:
        return False
    tree = f"{head}:" if inside == "." else f"{head}:{inside}"
    listed = _run(repository, "ls-tree", "-r", "-z", "--full-tree", tree)
    if listed is None:
        return False
    committed = {name: blob for name, mode, blob in _entries(listed) if mode != _LINK_MODE}
    wanted = {name for name in committed if _is_fleet_file(name)}
    names = {name for name in files if not (folder / name).is_symlink()}
    if whole and wanted - names:
        return False
    return all(name in committed and _is_blob(folder / name, committed[name]) for name in names)


def _entries(listed: bytes) -> Iterable[tuple[str, bytes, str]]:
    for line in listed.split(b"\0"):
        about, tab, name = line.partition(b"\t")
        if tab:
            mode, _, rest = about.partition(b" ")
            yield os.fsdecode(name), mode, rest.partition(b" ")[2].decode("ascii")


def _is_fleet_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) and not any(part.startswith(".") for part in name.split("/"))


def _is_blob(path: Path, blob: str) -> bool:
    try:
        content = path.read_bytes()
    except OSError:
        return False
    # A checkout may write CRLF for LF; both give one fleet.
    return blob in (_blob_hash(content, len(blob)), _blob_hash(content.replace(b"\r\n", b"\n"), len(blob)))


def _blob_hash(content: bytes, digits: int) -> str:
    made = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % len(content))
    made.update(content)
    return made.hexdigest()


def _text(folder: Path, *arguments: str) -> str | None:
    found = _run(folder, *arguments)
    return None if found is None else os.fsdecode(found).strip()


def _run(folder: Path, *arguments: str) -> bytes | None:
    done = _completed(folder, arguments)
    return done.stdout if done is not None and done.returncode == 0 else None


def _status(folder: Path, *arguments: str) -> int | None:
    done = _completed(folder, arguments)
    return None if done is None else done.returncode


def _completed(folder: Path, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(
            ["git", *_SAFE, *arguments],
            cwd=folder,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Ours without anything that steers git, and without a prompt, a lazy download or a lock."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": "",
        "LC_ALL": "C",
    }
