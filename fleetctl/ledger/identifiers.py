"""Names that go into a ledger, compared as bytes (pins of ledger.md "A sealed entry"). Nothing is normalised: a name fits or is refused."""

from __future__ import annotations

import re
from typing import Literal, NewType

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput

LedgerId = NewType("LedgerId", str)
"""`<steward>/<stream>`, such as `root-steward/entitlements`."""

StreamKind = Literal["entitlements", "journal"]
Grade = Literal["HwShunt", "ModelBased", "Estimator"]

GRADES: tuple[Grade, ...] = ("HwShunt", "ModelBased", "Estimator")
"""Provenance of an energy figure, strongest first (pool/1 §2.3)."""
GRADE_RANK = {grade: rank for rank, grade in enumerate(GRADES)}

IDENTIFIER_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
MAX_IDENTIFIER = 128

is_identifier = re.compile(IDENTIFIER_PATTERN, re.ASCII).fullmatch
is_ledger_id = re.compile(f"{IDENTIFIER_PATTERN}/{IDENTIFIER_PATTERN}", re.ASCII).fullmatch

BAD_IDENTIFIER = code(
    "bad-ledger-identifier",
    "A name cannot go into a ledger",
    trigger="a steward, stream, claim, entitlement, class or witness name outside [A-Za-z0-9][A-Za-z0-9._:-]{0,127}",
)


def check_identifier(text: str, what: str) -> str:
    """`text` itself, when it is an identifier. Raises BadInput."""
    if not is_identifier(text):
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise BadInput(
            BAD_IDENTIFIER.at(
                f"{what} {shown!r} is not an identifier; use 1 to {MAX_IDENTIFIER} ASCII letters, digits, "
                "`.`, `_`, `:` or `-`, starting with a letter or digit"
            )
        )
    return text


def ledger_id(steward: str, stream: str) -> LedgerId:
    """The id of a steward's stream. Raises BadInput unless both are identifiers."""
    return LedgerId(f"{check_identifier(steward, 'steward')}/{check_identifier(stream, 'stream')}")


def parse_ledger_id(text: str) -> LedgerId:
    """`text` as a ledger id. Raises BadInput."""
    steward, _, stream = text.partition("/")
    return ledger_id(steward, stream)


def steward_of(ledger: LedgerId) -> str:
    """The steward whose key seals `ledger`."""
    return ledger.partition("/")[0]


def stream_of(ledger: LedgerId) -> str:
    """The stream's name within its steward's ledgers."""
    return ledger.partition("/")[2]


def kind_of(ledger: LedgerId) -> StreamKind:
    """Which events the stream holds: `journal`, and `journal:…` after a recovery, hold configuration; every other stream holds usage."""
    return "journal" if stream_of(ledger).partition(":")[0] == "journal" else "entitlements"
