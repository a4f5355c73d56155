"""The file of a private database: made 0600 in a folder 0700, and not used when others could read or replace it.

Mode bits are checked here, because the superuser is refused by none of them. A database file is never opened and
closed here once it is in use: POSIX drops every lock a process holds on a file as soon as it closes any handle on it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, FleetctlError, Unreachable
from fleetctl.store.errors_table import STATE_CANNOT_OPEN, STATE_READ_ONLY

STATE_PERMISSIONS = code(
    "state-permissions",
    "The state's permissions are too open",
    trigger="others may read or write the state's file, or write to its folder",
)
FILE_EXISTS = code(
    "file-exists",
    "The file exists already",
    trigger="a command that makes a new file is given the name of one that exists",
)


def check_private(path: str, *, writing: bool) -> None:
    """Refuse a database that others can read, write or replace, or that its owner may not use. The file exists.

    Raises Unreachable.
    """
    folder = os.path.dirname(path)
    with refusals(path):
        mode, above = os.stat(path).st_mode, os.stat(folder).st_mode
    if not stat.S_ISREG(mode):
        raise Unreachable(STATE_CANNOT_OPEN.at(f"{path} is not a file; name the state that `fleetctl init` made"))
    if mode & 0o077:
        raise Unreachable(
            STATE_PERMISSIONS.at(f"{path} has mode {_shown(mode)}, so others can open it; run `chmod 600 {path}`")
        )
    if above & 0o022 and not above & stat.S_ISVTX:
        raise Unreachable(
            STATE_PERMISSIONS.at(
                f"{folder} has mode {_shown(above)}, so others can replace what is in it; run `chmod 700 {folder}`"
            )
        )
    if not mode & 0o400:
        raise Unreachable(
            STATE_CANNOT_OPEN.at(f"{path} has mode {_shown(mode)}: its owner may not read it; run `chmod 600 {path}`")
        )
    if writing and not mode & 0o200:
        raise Unreachable(STATE_READ_ONLY.at(f"{path} has mode {_shown(mode)}; run `chmod 600 {path}` to write to it"))
    if writing and not above & 0o200:
        raise Unreachable(
            STATE_READ_ONLY.at(f"{folder} has mode {_shown(above)}; run `chmod 700 {folder}` to write in it")
        )


def make_private(path: str) -> bool:
    """Make an empty file 0600, and its folder 0700 when that is missing. False when the file was there.

    Raises Unreachable.
    """
    with refusals(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        try:
            made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return False
        os.close(made)
        _sync_folder(path)
        return True


def make_new(path: str) -> None:
    """As `make_private`, for a file that must not be there. Raises BadInput when it is."""
    if not make_private(path):
        raise BadInput(FILE_EXISTS.at(f"{path} exists; name a file that does not, nothing is overwritten"))


def forget(path: str) -> None:
    """Remove a database that was not finished, with what SQLite keeps beside it."""
    for name in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


@contextlib.contextmanager
def refusals(path: str) -> Iterator[None]:
    """What the operating system refuses leaves as Unreachable."""
    try:
        yield
    except FleetctlError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unreachable(STATE_CANNOT_OPEN.at(f"{path}: {reason}; check the path and who may open it")) from error


def _sync_folder(path: str) -> None:
    handle = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _shown(mode: int) -> str:
    return f"{stat.S_IMODE(mode):04o}"
