"""One connection to an SQLite file: how it is opened, its errors, its transactions."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from fleetctl.errors import Busy, FleetctlError, Unreachable
from fleetctl.store.errors_table import STATE_BUSY, STATE_CANNOT_OPEN, translate, translated

_NOTHING: Final[Mapping[str, Any]] = {}
SHORT_WAIT_MS: Final = 5_000
"""For what only waits for something short: a reader for a recovery, a creation for another."""
_SLICE_S = 0.02
_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS flushes the drive's cache only when told
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA trusted_schema = OFF",  # a restored file may come from anywhere
    "PRAGMA cell_size_check = ON",
)


class Connection:
    """One SQLite connection. Raises our errors only."""

    def __init__(self, path: str, *, read_only: bool) -> None:
        self.path = path
        self.failed: FleetctlError | None = None
        self.usable = True
        self._noting = _Noting(self)
        uri = f"file:{quote(path)}?mode={'ro' if read_only else 'rw'}"  # neither creates a file
        with translated(path):
            self._raw = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False, timeout=SHORT_WAIT_MS / 1_000
            )
            try:
                for pragma in _PRAGMAS:
                    self._raw.execute(pragma)
            except sqlite3.Error:
                self._raw.close()
                raise

    def rows(self, statement: str, values: Mapping[str, Any] = _NOTHING) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._noting:
            return self._raw.execute(statement, values).fetchall()

    def run(self, statement: str, values: Mapping[str, Any] = _NOTHING) -> None:
        with self._noting:
            self._raw.execute(statement, values)

    def run_many(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        with self._noting:
            self._raw.executemany(statement, values)

    def schema_version(self) -> int:
        return self._number("PRAGMA user_version")

    def application_id(self) -> int:
        return self._number("PRAGMA application_id")

    def use_wal(self) -> None:
        """Raises Unreachable where the file system cannot have a write-ahead log."""
        if self.rows("PRAGMA journal_mode = WAL") != [("wal",)]:
            raise Unreachable(
                STATE_CANNOT_OPEN.at(f"{self.path} lies where no write-ahead log is possible; use a disk")
            )

    def one_file(self) -> None:
        """Leave nothing beside the file, so that it can be carried about as it is."""
        self.rows("PRAGMA journal_mode = DELETE")

    def begin_read(self) -> None:
        """Fix the moment that every query until the end sees."""
        self.run("BEGIN DEFERRED")
        self.rows("SELECT 1 FROM sqlite_master LIMIT 1")

    def begin_write(self, wait_ms: int) -> None:
        """Take the write lock. Raises Busy after `wait_ms`.

        Waits in slices of its own rather than in SQLite's busy handler, which an interrupt cannot reach.
        """
        deadline = time.monotonic() + wait_ms / 1_000
        self.run("PRAGMA busy_timeout = 0")
        while True:
            self.failed = None
            try:
                return self.run("BEGIN IMMEDIATE")
            except Busy:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise busy(self.path, wait_ms) from None
                time.sleep(min(left, _SLICE_S))

    def commit(self) -> None:
        """Make it durable, or leave nothing and raise. A transaction in which a statement failed is not committed,
        even if somebody caught the error.
        """
        failed = self.failed
        if failed is not None:
            self.rollback()
            raise failed
        try:
            self.run("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Leave nothing. Does not raise: what led here is the error to report."""
        if self._raw.in_transaction:
            try:
                self._raw.execute("ROLLBACK")
            except sqlite3.Error:
                self.usable = False  # closing it undoes what is left
                self._raw.close()
        self.failed = None

    def copy_into(self, target: Connection, wait_ms: int) -> None:
        """The online backup: a consistent copy of everything committed. Raises Busy when the target is being written."""
        tries = wait_ms // 250 + 1

        def tick(status: int, remaining: int, total: int) -> None:
            nonlocal tries
            tries -= 1
            if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and tries < 0:
                raise busy(target.path, wait_ms)

        target.run("PRAGMA busy_timeout = 0")
        with translated(target.path):
            self._raw.backup(target._raw, progress=tick, sleep=0.25)

    def close(self) -> None:
        with translated(self.path):
            self._raw.close()

    def _number(self, pragma: str) -> int:
        found: int = self.rows(pragma)[0][0]
        return found


class _Noting:
    """Around each statement: an error leaves as ours and is remembered, and after one no statement runs.

    When a disk is full SQLite undoes the whole transaction; a statement after that would commit by itself.
    A class, because a generator costs as much as a small statement.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        if self._connection.failed is not None:
            raise self._connection.failed

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.Error) and not isinstance(
            error, (sqlite3.ProgrammingError, sqlite3.InterfaceError)
        ):
            self._connection.failed = translate(error, self._connection.path)
            raise self._connection.failed from error


def busy(path: str, wait_ms: int) -> Busy:
    return Busy(
        STATE_BUSY.at(
            f"{path} was being written for longer than {wait_ms} ms; wait for that command to end, or give a longer --wait"
        )
    )
