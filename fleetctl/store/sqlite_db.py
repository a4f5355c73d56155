"""One SQLite file: finding it, opening it, its schema, its one write transaction and its readings.

Engines and witnesses keep different tables in files of this one form. WAL, so that readers and the writer do not
block each other; `synchronous=FULL`, so that a commit is on the disk before it returns.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fleetctl.diagnostics import Code, code
from fleetctl.errors import SafetyRefused, Unreachable
from fleetctl.frozen import dataclass
from fleetctl.store import files
from fleetctl.store.errors_table import STATE_READ_ONLY
from fleetctl.store.migrations import SQLITE_TYPES, Migration, migrate
from fleetctl.store.sqlite_connection import SHORT_WAIT_MS, Connection, busy

STATE_FOREIGN = code(
    "state-foreign",
    "The database is not what is looked for",
    trigger="the file is a database of another program or of another kind",
    exit_code=3,
)
SCHEMA_NEWER = code(
    "schema-newer",
    "The state was written by a newer fleetctl",
    trigger="the state's schema version is beyond what this version of fleetctl knows",
)
SCHEMA_OLDER = code(
    "schema-older",
    "The state must be migrated first",
    trigger="a state with an older schema is opened for reading only",
)

_IDLE_READERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a file must be: its mark in the header, its schema, and the codes for one that is missing or there."""

    what: str
    application_id: int
    migrations: tuple[Migration, ...]
    missing: Code
    exists: Code
    written: str
    """Statement that gives 0 while nothing but the schema was written."""


class Database:
    """A file of one form: one write transaction at a time, and readings that never wait for it. Safe over threads."""

    def __init__(self, path: str, form: Form, *, read_only: bool) -> None:
        self.path = path
        self._form = form
        self._read_only = read_only
        self._writing = threading.Lock()
        self._writer: Connection | None = None
        self._pool_lock = threading.Lock()
        self._pool: list[Connection] = []
        self._closed = False

    @classmethod
    def create(cls, path: str, form: Form) -> Database:
        """A new file, or one whose creation was cut short before anything was written.

        Raises SafetyRefused when there is one in use, Unreachable when it cannot be made.
        """
        path = os.path.abspath(path)
        files.make_private(path)
        files.check_private(path, writing=True)
        database = cls(path, form, read_only=False)
        try:
            database._initialise()
        except BaseException:
            # The file stays: another creation may have begun to use it, and the next one takes over what is blank.
            database.close()
            raise
        return database

    @classmethod
    def open(cls, path: str, form: Form, *, read_only: bool = False) -> Database:
        """An existing file. Makes none: SafetyRefused when it is missing or another form's, Unreachable otherwise."""
        path = os.path.abspath(path)
        with files.refusals(path):
            if not os.path.lexists(path):
                raise SafetyRefused(form.missing.at(f"{path} does not exist; {form.what} is never made by opening it"))
        files.check_private(path, writing=not read_only)
        database = cls(path, form, read_only=read_only)
        try:
            database._check()
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent reading."""
        connection = self._take_reader()
        try:
            connection.begin_read()
            yield connection
        finally:
            connection.rollback()
            self._give_back(connection)

    @contextmanager
    def write(self, wait_ms: int) -> Iterator[Connection]:
        """The write transaction: commits at a normal exit, else leaves nothing. Raises Busy after `wait_ms`."""
        if self._read_only:
            raise Unreachable(STATE_READ_ONLY.at(f"{self.path} was opened for reading only"))
        waited_from = time.monotonic()
        if not self._writing.acquire(timeout=wait_ms / 1_000):
            raise busy(self.path, wait_ms)
        try:
            left = wait_ms - int((time.monotonic() - waited_from) * 1_000)
            connection = self._take_writer()
            try:
                connection.begin_write(max(left, 0))
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
        finally:
            self._writing.release()

    def close(self) -> None:
        """Further use is a RuntimeError."""
        with self._pool_lock:
            self._closed = True
            connections, self._pool = self._pool, []
        if self._writer is not None:
            connections.append(self._writer)
            self._writer = None
        for connection in connections:
            connection.close()

    def _initialise(self) -> None:
        with self.write(SHORT_WAIT_MS) as connection:
            if _is_blank(connection):
                self._migrate(connection, 0)
                connection.run(f"PRAGMA application_id = {self._form.application_id}")
                return
            ours = connection.application_id() == self._form.application_id
            if not ours or connection.rows(self._form.written) != [(0,)]:
                raise SafetyRefused(self._form.exists.at(f"{self.path} is in use; nothing was changed in it"))

    def _check(self) -> None:
        with self.read() as connection:
            version = check_form(connection, self._form)
        if version == len(self._form.migrations):
            return
        if self._read_only:
            raise Unreachable(
                SCHEMA_OLDER.at(f"{self.path} has schema {version}; run a command that writes, which migrates it")
            )
        with self.write(SHORT_WAIT_MS) as connection:
            self._migrate(connection, connection.schema_version())

    def _migrate(self, connection: Connection, version: int) -> None:
        reached = migrate(connection.run, self._form.migrations, SQLITE_TYPES, version)
        connection.run(f"PRAGMA user_version = {reached}")

    def _take_reader(self) -> Connection:
        with self._pool_lock:
            self._check_open()
            if self._pool:
                return self._pool.pop()
        connection = Connection(self.path, read_only=self._read_only)
        connection.run("PRAGMA query_only = ON")
        return connection

    def _give_back(self, connection: Connection) -> None:
        with self._pool_lock:
            if connection.usable and not self._closed and len(self._pool) < _IDLE_READERS:
                return self._pool.append(connection)
        connection.close()

    def _take_writer(self) -> Connection:
        self._check_open()
        if self._writer is None or not self._writer.usable:
            self._writer = Connection(self.path, read_only=False)
            self._writer.use_wal()
        return self._writer

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"{self.path} is closed")


def check_form(connection: Connection, form: Form) -> int:
    """The schema version of a file of this form.

    Raises SafetyRefused for a blank file or another form's, Unreachable for a newer schema.
    """
    if _is_blank(connection):
        raise SafetyRefused(form.missing.at(f"{connection.path} is blank; {form.what} is never made by opening it"))
    found = connection.application_id()
    if found != form.application_id:
        raise SafetyRefused(
            STATE_FOREIGN.at(
                f"{connection.path} does not hold {form.what} (application id {found:#010x}); name the right file"
            )
        )
    version, known = connection.schema_version(), len(form.migrations)
    if version > known:
        raise Unreachable(
            SCHEMA_NEWER.at(
                f"{connection.path} has schema {version}, this fleetctl knows up to {known}; use the newer fleetctl"
            )
        )
    return version


def _is_blank(connection: Connection) -> bool:
    return connection.application_id() == 0 and connection.rows("SELECT 1 FROM sqlite_master LIMIT 1") == []


def new_copy(source: Connection, path: str) -> None:
    """Copy into a new private file. Raises BadInput when it exists; nothing stays of a copy that failed."""
    files.make_new(path)
    try:
        target = Connection(path, read_only=False)
        try:
            source.copy_into(target, SHORT_WAIT_MS)
            target.one_file()
        finally:
            target.close()
    except BaseException:
        files.forget(path)
        raise
