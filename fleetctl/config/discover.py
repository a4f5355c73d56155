"""Which files a path means, and their bytes. Names are relative to the path, with `/`, and files come in sorted order.

Only regular files `*.yaml` and `*.yml` count; what begins with a dot is left out. A symbolic link inside the folder is
read once, by its real path; one that leads out of it or round in circles is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from fleetctl.diagnostics import Code, Diagnostic, Span, code
from fleetctl.frozen import dataclass
from fleetctl.model.texts import FORBIDDEN

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_FLEET_BYTES = 128 * 1024 * 1024
_SUFFIXES = (".yaml", ".yml")

# An empty or unreadable source is refused before any diff, so that it can never mean "delete everything".
PATH_NOT_FOUND = code(
    "path-not-found",
    "The fleet's path does not exist",
    trigger="PATH names nothing, or not a folder or file",
    exit_code=3,
)
NO_FLEET_FILES = code(
    "no-fleet-files", "The folder has no fleet files", trigger="no *.yaml or *.yml file in PATH", exit_code=3
)
FILE_UNREADABLE = code(
    "file-unreadable",
    "A file or folder of the fleet cannot be read",
    trigger="permissions, a broken link, or an error of the disk",
    exit_code=3,
)
FILE_TOO_LARGE = code(
    "file-too-large",
    "A fleet file is too large",
    trigger="a file over 16 MiB, or files over 128 MiB in all",
    exit_code=3,
)
NOT_A_FILE = code(
    "not-a-regular-file",
    "A FIFO, device or socket stands where a fleet file is expected",
    trigger="a *.yaml or *.yml name that is no regular file",
    exit_code=3,
)
LINK_OUTSIDE = code(
    "link-outside-folder",
    "A symbolic link leads out of the fleet's folder",
    trigger="a link whose target is not inside PATH",
    exit_code=3,
)
LINK_LOOP = code(
    "link-loop",
    "A symbolic link leads round in circles",
    trigger="a link to itself or to a folder above it",
    exit_code=3,
)
BAD_FILE_NAME = code(
    "bad-file-name",
    "A file's name cannot be shown safely",
    trigger="control, bidirectional or invisible characters, or bytes that are not UTF-8, in a file name",
    exit_code=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFile:
    """A file to read: its shown name and where it really is."""

    name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBytes:
    """A file's shown name and what is in it."""

    name: str
    data: bytes


def read_files(path: str | os.PathLike[str]) -> tuple[list[FileBytes], list[Diagnostic]]:
    """Every fleet file of `path` in sorted order, and what could not be read. Never raises for what is on disk."""
    files, problems = find_files(path)
    out: list[FileBytes] = []
    total = 0
    for file in files:
        try:
            data = _read(file.path)
            total += len(data)
            if total > MAX_FLEET_BYTES:
                raise _Refused(FILE_TOO_LARGE, "with this file the fleet is over 128 MiB; split it into several fleets")
        except _Refused as refused:
            problems.append(_at(refused, file.name))
        else:
            out.append(FileBytes(name=file.name, data=data))
    return out, problems


def find_files(path: str | os.PathLike[str]) -> tuple[list[FleetFile], list[Diagnostic]]:
    """The fleet files of `path`, sorted by name, and what is wrong with the others."""
    given = os.fspath(path)
    try:
        root = os.path.realpath(given, strict=True)
        kind = os.stat(root).st_mode
    except (OSError, ValueError) as error:
        why = f"{_quoted(given)} cannot be opened ({_reason(error)}); give a folder or a file of fleet files"
        return [], [PATH_NOT_FOUND.at(why)]
    if stat.S_ISREG(kind):
        return [FleetFile(name=_shown(os.path.basename(given)), path=root)], []
    if not stat.S_ISDIR(kind):
        return [], [PATH_NOT_FOUND.at(f"{_quoted(given)} is neither a folder nor a regular file")]
    walk = _Walk(root)
    walk.run()
    if not walk.files and not walk.problems:
        return [], [NO_FLEET_FILES.at(f"{_quoted(given)} has no *.yaml or *.yml file; hidden ones are left out")]
    files = [FleetFile(name=name, path=real) for real, name in walk.files.items()]
    return sorted(files, key=lambda file: file.name), walk.problems


class _Refused(Exception):
    def __init__(self, code: Code, detail: str) -> None:
        self.code = code
        self.detail = detail


class _Walk:
    """One pass over a folder. `files` maps real paths to shown names."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.files: dict[str, str] = {}
        self.problems: list[Diagnostic] = []
        self._seen: set[str] = {root}
        self._todo = [root]

    def run(self) -> None:
        while self._todo:
            folder = self._todo.pop()
            try:
                entries = list(_entries(folder))
            except _Refused as refused:
                self._report(refused, folder)
                continue
            for entry in entries:
                try:
                    self._visit(entry)
                except _Refused as refused:
                    self._report(refused, entry.path)

    def _visit(self, entry: os.DirEntry[str]) -> None:
        if entry.name.startswith("."):
            return
        wanted = entry.name.endswith(_SUFFIXES)
        real = entry.path
        if entry.is_symlink():
            found = self._target(entry, wanted)
            if found is None:
                return
            real = found
        try:
            mode = os.stat(real, follow_symlinks=False).st_mode
        except OSError as error:
            raise _Refused(FILE_UNREADABLE, f"it cannot be looked at ({_reason(error)})") from None
        if stat.S_ISDIR(mode):
            self._enter(real)
        elif wanted:
            if not stat.S_ISREG(mode):
                raise _Refused(NOT_A_FILE, "it is a FIFO, device or socket; only regular files are read")
            self._take(real)

    def _target(self, entry: os.DirEntry[str], wanted: bool) -> str | None:
        """The real path of a link, or None for a link that no rule asks to follow."""
        try:
            real = os.path.realpath(entry.path, strict=True)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _Refused(LINK_LOOP, "the link leads back to itself; remove it") from None
            if not wanted:
                return None
            why = f"the link's target cannot be reached ({_reason(error)}); mend or remove the link"
            raise _Refused(FILE_UNREADABLE, why) from None
        if not wanted and not os.path.isdir(real):
            return None
        if not _inside(real, self.root):
            raise _Refused(LINK_OUTSIDE, "the link's target is outside the folder; copy the file into it")
        if os.path.isdir(real) and _inside(os.path.dirname(entry.path), real):
            raise _Refused(LINK_LOOP, "the link leads to a folder that holds it; remove it")
        return real

    def _enter(self, folder: str) -> None:
        if folder not in self._seen:
            self._seen.add(folder)
            self._todo.append(folder)

    def _take(self, real: str) -> None:
        name = os.path.relpath(real, self.root).replace(os.sep, "/")
        if _shown(name) != name:
            raise _Refused(BAD_FILE_NAME, "its name has invisible or control characters, or is not UTF-8; rename it")
        self.files[real] = name

    def _report(self, refused: _Refused, path: str) -> None:
        self.problems.append(_at(refused, os.path.relpath(path, self.root).replace(os.sep, "/")))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        # Root passes every permission check, so the bits are looked at here.
        if not os.stat(folder).st_mode & 0o444:
            raise _Refused(FILE_UNREADABLE, "nobody may read this folder; allow reading it")
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise _Refused(FILE_UNREADABLE, f"the folder cannot be listed ({_reason(error)})") from None


def _read(path: str) -> bytes:
    """The bytes of a regular file. O_NONBLOCK, so that a FIFO that took the file's place cannot hold the reader up."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise _Refused(FILE_UNREADABLE, f"it cannot be opened ({_reason(error)})") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _Refused(NOT_A_FILE, "it is a FIFO, device or socket; only regular files are read")
        if not status.st_mode & 0o444:
            raise _Refused(FILE_UNREADABLE, "nobody may read this file; allow reading it")
        try:
            data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise _Refused(FILE_UNREADABLE, f"it cannot be read ({_reason(error)})") from None
    if len(data) > MAX_FILE_BYTES:
        raise _Refused(FILE_TOO_LARGE, "it is over 16 MiB; split it into several files")
    return data


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _at(refused: _Refused, name: str) -> Diagnostic:
    return refused.code.at(refused.detail, span=Span(_shown(name), 1, 1))


def _quoted(path: str | bytes) -> str:
    """A path as it was given, in backticks, with escapes where it cannot be shown as it is."""
    return f"`{ascii(os.fsdecode(path))[1:-1]}`"


def _shown(name: str) -> str:
    """The name, with escapes where it cannot be shown as it is."""
    if name.isascii() and name.isprintable():
        return name
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return ascii(name)[1:-1]
    return ascii(name)[1:-1] if FORBIDDEN.search(name) or "\n" in name or "\t" in name else name


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
