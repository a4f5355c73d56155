"""An engine's store in one SQLite file: `ports.Store`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fleetctl.diagnostics import code
from fleetctl.errors import Unreachable
from fleetctl.store import files, sql
from fleetctl.store.errors_table import STATE_CORRUPT
from fleetctl.store.migrations import MIGRATIONS
from fleetctl.store.session import SqlReader, SqlWriter
from fleetctl.store.sqlite_connection import Connection
from fleetctl.store.sqlite_db import Database, Form, check_form, new_copy

ENGINE_MISSING = code(
    "engine-missing",
    "No engine here",
    trigger="the state that is named or configured does not exist, or is blank",
    exit_code=3,
)
ENGINE_EXISTS = code(
    "engine-exists",
    "There is an engine already",
    trigger="an engine is to be made where one is in use",
    exit_code=3,
)

ENGINE_FORM = Form(
    what="an engine's state",
    application_id=0x666C6331,  # "flc1"
    migrations=MIGRATIONS,
    missing=ENGINE_MISSING,
    exists=ENGINE_EXISTS,
    written=sql.WRITTEN,
)


class SqliteStore:
    """An engine's state in a file, private to its owner. Safe over threads and processes, not over a fork."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> SqliteStore:
        """A new store, empty. Takes over a file whose creation was cut short before the first write.

        Raises SafetyRefused when an engine is there, Unreachable when the file cannot be made.
        """
        return cls(Database.create(os.fspath(path), ENGINE_FORM))

    @classmethod
    def open(cls, path: str | os.PathLike[str], read_only: bool = False) -> SqliteStore:
        """An existing store; an older schema is migrated unless `read_only`.

        Raises SafetyRefused when no engine is there, Unreachable when it cannot be opened, is damaged, too open to
        others or newer than this code.
        """
        return cls(Database.open(os.fspath(path), ENGINE_FORM, read_only=read_only))

    @property
    def path(self) -> str:
        """Absolute."""
        return self._database.path

    @contextmanager
    def read(self) -> Iterator[SqlReader]:
        """One consistent reading, of the moment it begins."""
        with self._database.read() as connection:
            reader = SqlReader(connection)
            try:
                yield reader
            finally:
                reader.end()

    @contextmanager
    def write(self, wait_ms: int) -> Iterator[SqlWriter]:
        """The one write transaction: on the disk at a normal exit of the context, else nothing is left of it.

        Raises Busy when another writer holds it for longer than `wait_ms`.
        """
        with self._database.write(wait_ms) as connection:
            writer = SqlWriter(connection)
            try:
                yield writer
            finally:
                writer.end()

    def backup(self, target: str) -> None:
        """A consistent copy of what is committed, into a new file 0600. Raises BadInput when the file exists."""
        with self._database.read() as source:
            new_copy(source, os.path.abspath(target))

    def close(self) -> None:
        """Further use is a RuntimeError."""
        self._database.close()


def check_file(path: str | os.PathLike[str]) -> None:
    """Whether a file can be restored: an engine's state, sound in every page, index and reference.

    Raises SafetyRefused or Unreachable, and leaves the file as it is.
    """
    with _sound(os.path.abspath(path)):
        pass


def restore_file(source: str | os.PathLike[str], target: str | os.PathLike[str], wait_ms: int) -> None:
    """Make the state at `target` what the sound backup at `source` is: all of it in one transaction, or nothing.

    Processes that have the target open see the old state or the new one. Whether the backup may come back is for the
    caller to ask the witness first. Raises as `check_file`, and Busy when the target is written for longer than
    `wait_ms`.
    """
    path = os.path.abspath(target)
    with _sound(os.path.abspath(source)) as backup:
        if not os.path.lexists(path):
            new_copy(backup, path)
            return
        files.check_private(path, writing=True)
        current = Connection(path, read_only=False)
        try:
            check_form(current, ENGINE_FORM)
            backup.copy_into(current, wait_ms)
        finally:
            current.close()


@contextmanager
def _sound(path: str) -> Iterator[Connection]:
    database = Database.open(path, ENGINE_FORM, read_only=True)
    database.close()
    connection = Connection(path, read_only=True)
    try:
        faults = [str(row[0]) for row in connection.rows("PRAGMA integrity_check(1)")]
        if faults != ["ok"] or connection.rows("PRAGMA foreign_key_check"):
            shown = faults[0] if faults != ["ok"] else "a ledger entry belongs to no stream"
            raise Unreachable(STATE_CORRUPT.at(f"{path}: {shown}; restore another backup"))
        yield connection
    finally:
        connection.close()
