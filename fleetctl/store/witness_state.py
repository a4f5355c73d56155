"""What a witness remembers, in an SQLite file of its own: `ports.WitnessState`.

A witness that forgets what it signed would sign a second history, so it is made only by `init`, and a file that is
missing, or was never initialised, or belongs to another key is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, SafetyRefused
from fleetctl.ledger.identifiers import check_identifier
from fleetctl.ledger.keys import PublicKey, public_key
from fleetctl.ledger.witness import Known, Stewards, check_roster
from fleetctl.store import sql
from fleetctl.store.errors_table import row_unreadable
from fleetctl.store.sqlite_db import Database, Form

WITNESS_MISSING = code(
    "witness-state-missing",
    "The witness has no state here",
    trigger="a witness is started or used whose state is missing or was never initialised",
    exit_code=3,
)
WITNESS_EXISTS = code(
    "witness-exists",
    "There is a witness already",
    trigger="a witness is to be made where one is in use",
    exit_code=3,
)
WITNESS_OTHER = code(
    "witness-other-key",
    "The witness's state belongs to another witness",
    trigger="a witness is started with another id or private key than its state was made for",
    exit_code=3,
)

MAX_EVIDENCE: Final = 100
"""Proofs kept for one ledger: one is enough to convict, and a stolen key must not fill the disk."""

_WAIT_MS = 2_000

_FIRST = (
    "CREATE TABLE meta (name {text} PRIMARY KEY NOT NULL, value {text} NOT NULL){strict}",
    """CREATE TABLE stewards (
        steward {text} NOT NULL, public_key {bytes} NOT NULL, PRIMARY KEY (steward, public_key)){strict}""",
    """CREATE TABLE heads (
        ledger {text} PRIMARY KEY NOT NULL, length {int} NOT NULL, head {bytes} NOT NULL, receipt {bytes} NOT NULL,
        at_ms {int} NOT NULL, public_key {bytes} NOT NULL){strict}""",
    """CREATE TABLE evidence (
        ledger {text} NOT NULL, digest {bytes} NOT NULL, at_ms {int} NOT NULL, content {bytes} NOT NULL,
        PRIMARY KEY (ledger, digest)){strict}""",
)

_ENTRIES_KEPT = (
    """CREATE TABLE entries (
        ledger {text} NOT NULL, seq {int} NOT NULL, sealed {bytes} NOT NULL, PRIMARY KEY (ledger, seq)){strict}""",
)

WITNESS_FORM = Form(
    what="a witness's state",
    application_id=0x666C7731,  # "flw1"
    migrations=(_FIRST, _ENTRIES_KEPT),
    missing=WITNESS_MISSING,
    exists=WITNESS_EXISTS,
    written="SELECT COUNT(*) FROM meta",
)

_ADD_STEWARD = sql.insert("stewards", ("steward", "public_key")) + " ON CONFLICT (steward, public_key) DO NOTHING"
_STEWARDS = "SELECT steward, public_key FROM stewards ORDER BY steward, public_key"
_KNOWN = "SELECT length, head, receipt, at_ms, public_key FROM heads WHERE ledger = :ledger"
_FIRST_HEAD = (
    sql.insert("heads", ("ledger", "length", "head", "receipt", "at_ms", "public_key"))
    + " ON CONFLICT (ledger) DO NOTHING RETURNING ledger"
)
_MOVE_HEAD = (
    "UPDATE heads SET length = :length, head = :head, receipt = :receipt, at_ms = :at_ms, public_key = :public_key "
    "WHERE ledger = :ledger AND length = :old_length AND head = :old_head AND at_ms = :old_at_ms RETURNING ledger"
)
_KEEP_ENTRY = sql.insert("entries", ("ledger", "seq", "sealed")) + " ON CONFLICT (ledger, seq) DO NOTHING"
_ENTRIES = (
    "SELECT seq, sealed FROM entries WHERE ledger = :ledger AND seq >= :start AND seq < :stop ORDER BY seq LIMIT :most"
)
_COUNT_EVIDENCE = "SELECT COUNT(*) FROM evidence WHERE ledger = :ledger"
_ADD_EVIDENCE = (
    sql.insert("evidence", ("ledger", "digest", "at_ms", "content")) + " ON CONFLICT (ledger, digest) DO NOTHING"
)
_EVIDENCE = "SELECT at_ms, content FROM evidence WHERE ledger = :ledger ORDER BY at_ms, digest"


class SqliteWitnessState:
    """A witness's state in a file, private to its owner. Safe over threads and processes."""

    def __init__(self, database: Database, stewards: Stewards) -> None:
        self._database = database
        self._stewards = stewards

    @classmethod
    def init(
        cls, path: str | os.PathLike[str], *, witness: str, own_key: PublicKey, stewards: Stewards
    ) -> SqliteWitnessState:
        """A new witness with its roster.

        Raises BadInput for a name that cannot be, SafetyRefused when a witness is there or its own key is on the roster,
        Unreachable when the file cannot be made.
        """
        check_identifier(witness, "witness")
        for steward in stewards:
            check_identifier(steward, "steward")
        check_roster(stewards, own_key)
        database = Database.create(os.fspath(path), WITNESS_FORM)
        rows = [{"steward": steward, "public_key": key} for steward, keys in stewards.items() for key in keys]
        with database.write(_WAIT_MS) as connection:
            if connection.rows(WITNESS_FORM.written) != [(0,)]:
                raise SafetyRefused(WITNESS_EXISTS.at(f"{path} was made by somebody else just now"))
            connection.run(sql.PUT_META, {"name": "witness", "value": witness})
            connection.run(sql.PUT_META, {"name": "public_key", "value": own_key.hex()})
            connection.run_many(_ADD_STEWARD, rows)
        database.close()
        return cls.open(path, witness=witness, own_key=own_key)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, witness: str, own_key: PublicKey) -> SqliteWitnessState:
        """The state of the witness with this id and key. Makes none.

        Raises SafetyRefused when it is missing, not initialised, another witness's, or its roster holds the witness's own
        key, Unreachable when it cannot be opened.
        """
        database = Database.open(os.fspath(path), WITNESS_FORM)
        try:
            _check_owner(database, witness, own_key)
            stewards = _roster(database)
            check_roster(stewards, own_key)
        except BaseException:
            database.close()
            raise
        return cls(database, stewards)

    @property
    def stewards(self) -> Mapping[str, Sequence[PublicKey]]:
        return self._stewards

    def known(self, ledger: str) -> Known | None:
        with self._database.read() as connection:
            found = connection.rows(_KNOWN, {"ledger": ledger})
        if not found:
            return None
        length, head, receipt, at_ms, key = found[0]
        return Known(length=length, head=head, receipt=receipt, at_ms=at_ms, key=_key(f"heads/{ledger}", key))

    def move(
        self, ledger: str, before: Known | None, after: Known, *, start: int = 0, entries: Sequence[bytes] = ()
    ) -> bool:
        values: dict[str, Any] = {
            "ledger": ledger,
            "length": after.length,
            "head": after.head,
            "receipt": after.receipt,
            "at_ms": after.at_ms,
            "public_key": after.key,
        }
        statement = _FIRST_HEAD
        if before is not None:
            statement = _MOVE_HEAD
            values |= {"old_length": before.length, "old_head": before.head, "old_at_ms": before.at_ms}
        with self._database.write(_WAIT_MS) as connection:
            if not connection.rows(statement, values):
                return False
            connection.run_many(
                _KEEP_ENTRY,
                ({"ledger": ledger, "seq": seq, "sealed": sealed} for seq, sealed in enumerate(entries, start)),
            )
            return True

    def entries(self, ledger: str, start: int, most: int) -> list[bytes]:
        """A witness of an earlier version kept none: what it was shown then is not here."""
        with self._database.read() as connection:
            known = connection.rows(_KNOWN, {"ledger": ledger})
            stop = known[0][0] if known else 0
            values = {"ledger": ledger, "start": start, "stop": stop, "most": most}
            found = connection.rows(_ENTRIES, values)
        return [sealed for index, (seq, sealed) in enumerate(found, start) if seq == index]

    def keep_evidence(self, ledger: str, evidence: bytes, at_ms: int) -> None:
        """The first MAX_EVIDENCE of a ledger are kept."""
        values = {"ledger": ledger, "digest": sha256(evidence).digest(), "at_ms": at_ms, "content": evidence}
        with self._database.write(_WAIT_MS) as connection:
            if connection.rows(_COUNT_EVIDENCE, {"ledger": ledger})[0][0] < MAX_EVIDENCE:
                connection.run(_ADD_EVIDENCE, values)

    def evidence(self, ledger: str) -> list[tuple[int, bytes]]:
        """Time in Unix milliseconds and content of every proof, oldest first."""
        with self._database.read() as connection:
            return [(at_ms, content) for at_ms, content in connection.rows(_EVIDENCE, {"ledger": ledger})]

    def add_steward(self, steward: str, key: PublicKey, *, own_key: PublicKey) -> None:
        """Trust one more key. Raises SafetyRefused for the witness's own."""
        check_identifier(steward, "steward")
        check_roster({steward: [key]}, own_key)
        with self._database.write(_WAIT_MS) as connection:
            connection.run(_ADD_STEWARD, {"steward": steward, "public_key": key})
        self._stewards = _roster(self._database)

    def close(self) -> None:
        """Further use is a RuntimeError."""
        self._database.close()


def _check_owner(database: Database, witness: str, own_key: PublicKey) -> None:
    with database.read() as connection:
        found = {name: connection.rows(sql.META, {"name": name}) for name in ("witness", "public_key")}
    if not all(found.values()):
        raise SafetyRefused(WITNESS_MISSING.at(f"{database.path} was never initialised; run `fleetctl witness init`"))
    if found != {"witness": [(witness,)], "public_key": [(own_key.hex(),)]}:
        raise SafetyRefused(
            WITNESS_OTHER.at(
                f"{database.path} is the state of {found['witness'][0][0]} with key {found['public_key'][0][0]}, not of "
                f"{witness} with key {own_key.hex()}; start it with the private key it was made with"
            )
        )


def _roster(database: Database) -> dict[str, list[PublicKey]]:
    with database.read() as connection:
        found = connection.rows(_STEWARDS)
    roster: dict[str, list[PublicKey]] = {}
    for steward, key in found:
        roster.setdefault(steward, []).append(_key(f"stewards/{steward}", key))
    return roster


def _key(where: str, raw: bytes) -> PublicKey:
    try:
        return public_key(raw)
    except BadInput as error:
        raise row_unreadable(where, "its key is none that a signature can be trusted under") from error
