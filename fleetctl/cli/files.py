"""Files that a user names: read within bounds, written whole or not at all, private where they must be."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fleetctl.diagnostics import code
from fleetctl.errors import Unreachable

PATH_UNREADABLE = code(
    "path-unreadable",
    "A file cannot be read",
    trigger="a file given on the command line does not exist, is a folder or a device, or may not be read",
)
PATH_UNWRITABLE = code(
    "path-unwritable",
    "A file cannot be written",
    trigger="the place of an output file does not exist, is full, or may not be written to",
)


@contextmanager
def open_input(path: str | Path) -> Iterator[BinaryIO]:
    """A file (or a pipe, such as a shell's process substitution) to read from. Raises Unreachable."""
    try:
        source = open(path, "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    with source:
        try:
            yield source
        except OSError as error:
            raise _unreadable(path, error) from None


def read_bytes(path: str | Path, at_most: int) -> bytes:
    """The content of a file, cut off one byte past `at_most`. Raises Unreachable."""
    with open_input(path) as source:
        return source.read(at_most + 1)


def read_regular(path: Path, at_most: int) -> bytes:
    """As `read_bytes`, of a regular file only: nothing in a repository can make us wait on a pipe. Raises Unreachable."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as source:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Unreachable(PATH_UNREADABLE.at(f"{path} is not a regular file"))
            return source.read(at_most + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def write_whole(path: str | Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write through a temporary file beside it and a rename: what was there stays until all of it is on the disk.

    A link's target is written, and what is no file (a terminal, a pipe, `/dev/null`) is written to, never replaced.
    Raises Unreachable.
    """
    try:
        if _is_no_file(path):
            with open(path, "wb") as stream:
                stream.write(data)
            return
        target = Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    replace_whole(target, data, mode=mode)


def replace_whole(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """As `write_whole`, in the place of whatever is there: no link is followed, and no pipe waited for. Raises Unreachable."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from None
        raise


def _is_no_file(path: str | Path) -> bool:
    """Whether something is there that is not a regular file; a folder is, and opening it says so."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


@contextmanager
def temporary_folder(beside: Path) -> Iterator[Path]:
    """A folder 0700 in another one, gone with what is in it at the end. Raises Unreachable."""
    make_folder(beside)
    try:
        folder = tempfile.TemporaryDirectory(prefix=".fleetctl-", dir=beside)
    except (OSError, ValueError) as error:
        raise _unwritable(beside, error) from None
    with folder as name:
        yield Path(name)


def make_folder(path: Path) -> None:
    """A folder 0700 with its parents, if it is not there. Raises Unreachable."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None


def _unreadable(path: str | Path, error: OSError | ValueError) -> Unreachable:
    return Unreachable(PATH_UNREADABLE.at(f"{path}: {_reason(error)}; check the path and who may read it"))


def _unwritable(path: str | Path, error: OSError | ValueError) -> Unreachable:
    return Unreachable(PATH_UNWRITABLE.at(f"{path}: {_reason(error)}; check the folder and who may write to it"))


def _reason(error: OSError | ValueError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
