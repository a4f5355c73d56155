"""Checkpoints: the fold of an entitlement stream at (length, head), sealed by the steward, so that a start need not read all history.

A checkpoint is a cache: deleting it changes nothing but time, and `ledger verify` never uses it. Only a verification from genesis or
from an earlier checkpoint seals one. It is used only if its signature holds and its head is the stored entry's address, and every later
entry is verified in full (ledger.md "Verifying").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, NotVerified
from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.cbor import MAX_INT, Value
from fleetctl.ledger.chain import address_of
from fleetctl.ledger.fields import DIGEST, GRADE, IDENTIFIER, POSITIVE, UINT, Kind
from fleetctl.ledger.identifiers import GRADE_RANK, GRADES, LedgerId, steward_of
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.ledger.statement import BadStatement, read_statement, seal_statement
from fleetctl.ledger.usage import ClassEvidence, Fold, OpenClaim, Tally, claims_digest
from fleetctl.ledger.verify import Start, Verification, examine_from

MAX_CHECKPOINT = 256 * 1024 * 1024
_MAX_ITEMS = 16 * 1024 * 1024

CHECKPOINT_REFUSED = code(
    "checkpoint-refused",
    "A ledger checkpoint cannot be used",
    trigger="a checkpoint that is malformed, not the steward's, of another ledger, or not at the stored entry",
    exit_code=3,
)
CHECKPOINT_IMPOSSIBLE = code(
    "checkpoint-impossible",
    "This verification cannot be kept as a checkpoint",
    trigger="sealing a checkpoint of a journal, by another than the steward, or of sums beyond 2^63-1",
)

_KEYS = {
    "pool_checkpoint",
    "ledger",
    "steward",
    "length",
    "head",
    "usage",
    "open",
    "evidence",
    "claims",
    "claims_digest",
}
_USAGE = (IDENTIFIER, UINT, GRADE)
_OPEN = (IDENTIFIER, IDENTIFIER, UINT, UINT, POSITIVE, GRADE, UINT, UINT)
_EVIDENCE = (IDENTIFIER, IDENTIFIER, UINT, UINT, UINT, UINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """An opened checkpoint: its signature holds. `claims` ids were ever admitted; `claims_digest` pins the index that keeps them."""

    ledger: LedgerId
    length: int
    head: bytes
    claims: int
    claims_digest: bytes
    settled: tuple[tuple[str, int, str], ...]
    open_claims: tuple[tuple[str, OpenClaim], ...]
    evidence: tuple[tuple[str, str, ClassEvidence], ...]

    def fold(self, was_used: Callable[[str], bool], carried: int = 0) -> Fold:
        """The fold at this point; `was_used` answers from the index of claim ids that the store keeps, `carried` is as `Fold` has it."""
        tallies: dict[str, Tally] = {}
        for name, spent_uj, grade in self.settled:
            tallies[name] = Tally(spent_uj=spent_uj, settled_rank=_RANK[grade])
        for _, opened in self.open_claims:
            tally = tallies.setdefault(opened.entitlement, Tally())
            tally.reserved_uj += opened.reserved_uj
            tally.devices += opened.devices
            tally.count_open(opened.grade, 1)
        return Fold.restored(
            self.ledger,
            tallies=tallies,
            open_claims=dict(self.open_claims),
            evidence={(entitlement, name): seen for entitlement, name, seen in self.evidence},
            claims=self.claims,
            digest=self.claims_digest,
            was_used=was_used,
            carried=carried,
        )

    def holds_index(self, claims: Iterable[str]) -> bool:
        """Whether `claims`, in order of admission, are exactly the ids this checkpoint was sealed over."""
        return claims_digest(self.ledger, claims) == self.claims_digest


_RANK: dict[str, int] = {str(grade): rank for grade, rank in GRADE_RANK.items()}


def seal_checkpoint(verification: Verification, signer: Signer) -> bytes:
    """The state that a successful verification ended in, signed by the steward. Raises NotVerified or BadInput."""
    verification.require()
    fold, ledger = verification.fold, verification.ledger
    if fold is None or signer.kid != steward_of(ledger):
        raise BadInput(
            CHECKPOINT_IMPOSSIBLE.at(f"{ledger} sealed by {signer.kid}; only entitlement streams have checkpoints")
        )
    settled = [(name, tally) for name, tally in fold.tallies if tally.settled_rank >= 0]
    if any(tally.spent_uj > MAX_INT for _, tally in settled):
        raise BadInput(CHECKPOINT_IMPOSSIBLE.at("a sum is beyond 2^63-1 microjoules; rotate the ledger"))
    core = {
        "pool_checkpoint": "1",
        "ledger": ledger,
        "steward": signer.kid,
        "length": verification.length,
        "head": verification.head,
        "usage": [[name, tally.spent_uj, GRADES[tally.settled_rank]] for name, tally in settled],
        "open": [_open_row(claim, opened) for claim, opened in fold.open_claims.items()],
        "evidence": [[*key, *seen] for key, seen in sorted(fold.evidence.items())],
        "claims": fold.claims,
        "claims_digest": fold.claims_digest,
    }
    return seal_statement(core, signer)


def open_checkpoint(data: bytes, *, ledger: LedgerId, key: PublicKey) -> Checkpoint:
    """The checkpoint that `data` is, when the steward of `ledger` sealed it. Raises NotVerified; the caller then replays from genesis."""
    try:
        statement = read_statement(data, max_bytes=MAX_CHECKPOINT, max_items=_MAX_ITEMS)
        if statement.kid != steward_of(ledger) or not statement.signed_by(key):
            raise BadStatement(f"it is not sealed by {steward_of(ledger)}")
        return _parsed(statement.core, ledger)
    except BadStatement as error:
        raise NotVerified(CHECKPOINT_REFUSED.at(f"{ledger}: {error}; delete it and verify from genesis")) from None


def resume(
    checkpoint: Checkpoint,
    *,
    last_entry: bytes | None,
    tail: bytes,
    key: PublicKey,
    was_used: Callable[[str], bool],
    processes: int | None = None,
) -> Verification:
    """The ledger from the checkpoint on: `last_entry` are the stored bytes of entry `length - 1`, `tail` all entries after it.

    Raises NotVerified when the stored entry is another one, or when the tail does not verify in full.
    """
    _check_anchor(checkpoint, last_entry)
    start = Start(
        ledger=checkpoint.ledger, length=checkpoint.length, address=checkpoint.head, fold=checkpoint.fold(was_used)
    )
    return examine_from(start, tail, key=key, processes=processes).require()


def _check_anchor(checkpoint: Checkpoint, last_entry: bytes | None) -> None:
    if checkpoint.length == 0 and last_entry is None:
        return
    try:
        address = address_of(cose.read(last_entry or b"", 0).payload)
    except cose.BadEnvelope:
        address = b""
    if address != checkpoint.head:
        raise NotVerified(
            CHECKPOINT_REFUSED.at(
                f"{checkpoint.ledger}: the stored entry {checkpoint.length - 1} is not the one it was sealed at; "
                "delete the checkpoint and verify from genesis"
            )
        )


def _open_row(claim: str, opened: OpenClaim) -> list[object]:
    entitlement, workload_class, *rest = opened
    return [claim, entitlement, *rest, *([workload_class] if workload_class is not None else [])]


def _parsed(core: dict[str, Value], ledger: LedgerId) -> Checkpoint:
    if core.keys() != _KEYS or core["pool_checkpoint"] != "1":
        raise BadStatement("its core is not that of a checkpoint")
    for name, kind in (("length", UINT), ("head", DIGEST), ("claims", UINT), ("claims_digest", DIGEST)):
        why = kind.check(core[name])
        if why:
            raise BadStatement(f"`{name}` {why}")
    if core["ledger"] != ledger or core["steward"] != steward_of(ledger):
        raise BadStatement("it is of another ledger")
    return Checkpoint(
        ledger=ledger,
        length=cast(int, core["length"]),
        head=cast(bytes, core["head"]),
        claims=cast(int, core["claims"]),
        claims_digest=cast(bytes, core["claims_digest"]),
        settled=tuple((name, spent, grade) for name, spent, grade in _rows(core["usage"], _USAGE)),
        open_claims=tuple(_open_claim(row) for row in _rows(core["open"], _OPEN, IDENTIFIER)),
        evidence=tuple((row[0], row[1], ClassEvidence(*row[2:])) for row in _rows(core["evidence"], _EVIDENCE)),
    )


def _open_claim(row: list[Any]) -> tuple[str, OpenClaim]:
    claim, entitlement, reserved, borrowed, devices, grade, seq, at_ms, *named = row
    return claim, OpenClaim(entitlement, named[0] if named else None, reserved, borrowed, devices, grade, seq, at_ms)


def _rows(value: Value, kinds: tuple[Kind, ...], optional: Kind | None = None) -> list[list[Any]]:
    """The rows of a table, each value checked. Raises BadStatement."""
    most = (*kinds, optional) if optional else kinds
    if not isinstance(value, list):
        raise BadStatement("one of its tables is not an array")
    for row in value:
        if not isinstance(row, list) or not len(kinds) <= len(row) <= len(most):
            raise BadStatement("a row has another number of columns")
        for kind, item in zip(most, row, strict=False):
            why = kind.check(item)
            if why:
                raise BadStatement(f"a column {why}")
    return cast("list[list[Any]]", value)
