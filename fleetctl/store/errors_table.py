"""What a database says, in our words: one table from SQLite's result codes to our errors.

Whatever is raised here, the transaction it happened in has left nothing behind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from fleetctl.diagnostics import Code, code
from fleetctl.errors import Busy, FleetctlError, SafetyRefused, Tampered, Unreachable

STATE_BUSY = code(
    "state-busy",
    "Another process is writing to this state",
    trigger="the write transaction of another process did not end within the wait",
    exit_code=4,
)
STATE_READ_ONLY = code(
    "state-read-only",
    "The state can be read but not written",
    trigger="a command that writes meets a database, folder or file system that does not allow it",
)
STATE_CANNOT_OPEN = code(
    "state-cannot-open",
    "The state cannot be opened",
    trigger="the operating system refuses to open the database or a file beside it",
)
STATE_CORRUPT = code(
    "state-corrupt",
    "The state is damaged",
    trigger="SQLite finds the database file malformed, or a table or column of it missing",
)
STATE_NOT_A_DATABASE = code(
    "state-not-a-database",
    "The file is not a database",
    trigger="the file where the state should be is not an SQLite database",
)
STATE_IO_ERROR = code(
    "state-io-error",
    "Reading or writing the state failed",
    trigger="the operating system reports an I/O error, a quota or a file-size limit",
)
DISK_FULL = code(
    "disk-full",
    "No room is left to write the state",
    trigger="the disk, or the size allowed to the database, is full",
)
STATE_CONSTRAINT = code(
    "state-constraint",
    "The write contradicts what is stored",
    trigger="a row would break a rule of the database, such as a second journal entry for one plan",
    exit_code=3,
)
STATE_FAILED = code(
    "state-failed",
    "The database refused a statement",
    trigger="SQLite answers with a result that has no row in the table of errors",
)
ROW_UNREADABLE = code(
    "row-unreadable",
    "A stored row cannot be what the engine wrote",
    trigger="a row's text is not the value its column holds: the database was edited or damaged",
    exit_code=3,
)

_Row = tuple[type[FleetctlError], Code, str]
_FAILED: _Row = (Unreachable, STATE_FAILED, "nothing was written; `fleetctl doctor` examines the state")
_CORRUPT: _Row = (
    Unreachable,
    STATE_CORRUPT,
    "copy the file away, then restore a backup with `fleetctl state restore`",
)
_TABLE: dict[int, _Row] = {
    sqlite3.SQLITE_ERROR: _CORRUPT,  # with fixed statements: a table or column that is not there
    sqlite3.SQLITE_CORRUPT: _CORRUPT,
    sqlite3.SQLITE_NOTADB: (Unreachable, STATE_NOT_A_DATABASE, "name the state that `fleetctl init` made"),
    sqlite3.SQLITE_BUSY: (Busy, STATE_BUSY, "wait for it to end, or give a longer --wait"),
    sqlite3.SQLITE_LOCKED: (Busy, STATE_BUSY, "wait for it to end, or give a longer --wait"),
    sqlite3.SQLITE_READONLY: (Unreachable, STATE_READ_ONLY, "make file and folder writable for their owner"),
    sqlite3.SQLITE_CANTOPEN: (Unreachable, STATE_CANNOT_OPEN, "check the path and who may open it"),
    sqlite3.SQLITE_PERM: (Unreachable, STATE_CANNOT_OPEN, "check the path and who may open it"),
    sqlite3.SQLITE_AUTH: (Unreachable, STATE_CANNOT_OPEN, "check the path and who may open it"),
    sqlite3.SQLITE_FULL: (Unreachable, DISK_FULL, "nothing was written; make room and run the command again"),
    sqlite3.SQLITE_IOERR: (
        Unreachable,
        STATE_IO_ERROR,
        "nothing was written; check the disk, its quota and file-size limits, then run the command again",
    ),
    sqlite3.SQLITE_CONSTRAINT: (SafetyRefused, STATE_CONSTRAINT, "nothing was written"),
}


def translate(error: sqlite3.Error, path: str) -> FleetctlError:
    """Our error for SQLite's. Extended result codes count as their primary code."""
    primary = getattr(error, "sqlite_errorcode", None)
    if primary is None:
        # The binding itself gave up on a value, such as text that is not UTF-8.
        return row_unreadable(path, str(error))
    kind, problem, advice = _TABLE.get(primary & 0xFF, _FAILED)
    return kind(problem.at(f"{path}: {error}; {advice}"))


def row_unreadable(where: str, what: str) -> Tampered:
    """The error for a row that no engine wrote."""
    return Tampered(
        ROW_UNREADABLE.at(f"{where}: {what}; compare with a backup, then `fleetctl state restore` or `state rebuild`")
    )


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Errors of SQLite inside leave as ours. Misuse of the binding (a bug) stays what it is."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except sqlite3.Error as error:
        raise translate(error, path) from error
