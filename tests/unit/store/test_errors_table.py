"""Each result of SQLite as our error, made by SQLite itself where a test can."""

from __future__ import annotations

import sqlite3

import pytest

from fleetctl.errors import Busy, FleetctlError, SafetyRefused, Tampered, Unreachable
from fleetctl.store.errors_table import translate, translated


def error(number: int, text: str = "said by SQLite") -> sqlite3.Error:
    made = sqlite3.OperationalError(text)
    made.sqlite_errorcode = number
    return made


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (sqlite3.SQLITE_BUSY, Busy, "state-busy"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, Busy, "state-busy"),
        (sqlite3.SQLITE_LOCKED, Busy, "state-busy"),
        (sqlite3.SQLITE_FULL, Unreachable, "disk-full"),
        (sqlite3.SQLITE_IOERR_WRITE, Unreachable, "state-io-error"),
        (sqlite3.SQLITE_READONLY_DBMOVED, Unreachable, "state-read-only"),
        (sqlite3.SQLITE_CANTOPEN_ISDIR, Unreachable, "state-cannot-open"),
        (sqlite3.SQLITE_PERM, Unreachable, "state-cannot-open"),
        (sqlite3.SQLITE_CORRUPT_INDEX, Unreachable, "state-corrupt"),
        (sqlite3.SQLITE_NOTADB, Unreachable, "state-not-a-database"),
        (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, SafetyRefused, "state-constraint"),
        (sqlite3.SQLITE_NOMEM, Unreachable, "state-failed"),
    ],
)
def test_each_result_has_its_error(number: int, kind: type[FleetctlError], code: str) -> None:
    made = translate(error(number), "/state.db")
    assert type(made) is kind and made.code == code
    assert made.exit_code == made.diagnostics[0].code.exit_code
    assert made.diagnostics[0].detail.startswith("/state.db: said by SQLite; ")


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SELECT * FROM nowhere", Unreachable),
        ("INSERT INTO t VALUES (NULL)", SafetyRefused),
        ("SELECT CAST(x'ff' AS TEXT)", Tampered),
    ],
)
def test_errors_that_sqlite_makes(statement: str, kind: type[FleetctlError]) -> None:
    raw = sqlite3.connect(":memory:")
    raw.execute("CREATE TABLE t (a TEXT NOT NULL)")
    with pytest.raises(kind), translated("/state.db"):
        raw.execute(statement).fetchall()
    raw.close()


def test_misuse_stays_a_bug() -> None:
    raw = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.ProgrammingError), translated("/state.db"):
        raw.execute("SELECT :a", {})
    raw.close()
