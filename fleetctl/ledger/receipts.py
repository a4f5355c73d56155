"""Witness receipts (pool/1 §6.7): a witness's signed word that a ledger reached this head at this length, and what it is worth here.

A receipt that does not verify and one that verifies but covers another head are different verdicts (§6.8), and length and head are
always compared together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, cast

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.ledger.chain import Head
from fleetctl.ledger.fields import DIGEST, IDENTIFIER, LEDGER, UINT, Kind
from fleetctl.ledger.identifiers import LedgerId, steward_of
from fleetctl.ledger.keys import PublicKey, Signer
from fleetctl.ledger.statement import BadStatement, Statement, read_statement, seal_statement
from fleetctl.ledger.verify import Verification

Verdict = Literal[
    "witnessed",
    "prefix",
    "fork",
    "ahead",
    "bad-signature",
    "malformed",
    "not-independent",
    "unknown-witness",
    "wrong-ledger",
    "stale",
    "future",
    "witness-equivocation",
    "not-compared",
]
Attestation = Literal["witnessed", "witnessed-to", "self-attested"]

FAILING: frozenset[Verdict] = frozenset(
    ("fork", "ahead", "bad-signature", "malformed", "not-independent", "witness-equivocation")
)
"""Verdicts that fail a verification; the others only fail to raise the grade."""

LOST: frozenset[Verdict] = frozenset(("ahead", "fork", "witness-equivocation"))
"""Those that say nothing against a stream which a recovery gave up: the journal tells of the loss."""

MAX_RECEIPT = 4 * 1024
MAX_RECEIPTS = 1_000
SKEW_MS = 300_000
"""How far a witness's clock may run ahead of ours."""

TOO_MANY_RECEIPTS = code(
    "too-many-receipts",
    "More receipts than are read at once",
    trigger=f"over {MAX_RECEIPTS} receipts given to one verification",
)

FIELDS: dict[str, Kind] = {
    "ledger": LEDGER,
    "steward": IDENTIFIER,
    "length": UINT,
    "head": DIGEST,
    "witness": IDENTIFIER,
    "at_ms": UINT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one receipt says. `head` is 32 bytes, `at_ms` the witness's Unix milliseconds."""

    ledger: LedgerId
    steward: str
    length: int
    head: bytes
    witness: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessKey:
    """One key of the roster. A co-located witness keeps its key beside the steward's: its receipts are checked and never raise the grade."""

    witness: str
    key: PublicKey
    co_located: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A receipt with its verdict. `receipt` is None when it is malformed."""

    verdict: Verdict
    receipt: Receipt | None
    key: PublicKey | None = None
    """What it is signed with, of the roster."""
    co_located: bool = False
    detail: str = ""

    def to_json(self) -> dict[str, object]:
        """`{"witness", "length", "verdict"}`; the first two are null for a malformed receipt."""
        read = self.receipt
        return {
            "witness": read.witness if read else None,
            "length": read.length if read else None,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """What the receipts amount to. `witnessed_length` is set for `witnessed` and `witnessed-to`."""

    grade: Attestation
    witnessed_length: int | None
    co_located: bool


def issue(head: Head, *, at_ms: int, signer: Signer) -> bytes:
    """A receipt for `head` by the witness that `signer` is."""
    return seal_statement(
        {
            "pool_witness": "1",
            "ledger": head.ledger,
            "steward": steward_of(head.ledger),
            "length": head.length,
            "head": head.address,
            "witness": signer.kid,
            "at_ms": at_ms,
        },
        signer,
    )


def read_receipt(data: bytes) -> tuple[Receipt, Statement]:
    """What `data` says, and the statement to check its signature with. Raises BadStatement."""
    statement = read_statement(data, max_bytes=MAX_RECEIPT)
    core = statement.core
    if core.keys() != {"pool_witness", *FIELDS} or core["pool_witness"] != "1":
        raise BadStatement("its core is not that of a pool_witness receipt")
    for name, kind in FIELDS.items():
        why = kind.check(core[name])
        if why:
            raise BadStatement(f"`{name}` {why}")
    if core["witness"] != statement.kid:
        raise BadStatement(f"its core names another witness than its key, {statement.kid}")
    receipt = Receipt(
        ledger=LedgerId(cast(str, core["ledger"])),
        steward=cast(str, core["steward"]),
        length=cast(int, core["length"]),
        head=cast(bytes, core["head"]),
        witness=statement.kid,
        at_ms=cast(int, core["at_ms"]),
    )
    return receipt, statement


def apart(receipts: Iterable[bytes], *ledgers: LedgerId) -> list[list[bytes]]:
    """Receipts that speak of none of `ledgers`, then those for each, with the longest last and no more than are read at once.

    What cannot be read is in all of them.
    """
    found: dict[LedgerId | None, list[tuple[int, bytes]]] = {ledger: [] for ledger in (None, *ledgers)}
    for sealed in dict.fromkeys(receipts):
        try:
            receipt = read_receipt(sealed)[0]
        except BadStatement:
            for items in found.values():
                items.append((2**63, sealed))
            continue
        found.get(receipt.ledger, found[None]).append((receipt.length, sealed))
    return [_newest(items) for items in found.values()]


def _newest(found: list[tuple[int, bytes]]) -> list[bytes]:
    return [sealed for _, sealed in sorted(found, key=lambda item: item[0])[-MAX_RECEIPTS:]]


def judge(
    receipts: Sequence[bytes],
    verification: Verification,
    *,
    steward_keys: Sequence[PublicKey],
    roster: Sequence[WitnessKey],
    now_ms: int,
    max_age_ms: int | None = None,
) -> list[Judged]:
    """A verdict on each receipt, in their order. `steward_keys` are all keys the steward has or had.

    Raises BadInput for more than MAX_RECEIPTS.
    """
    if len(receipts) > MAX_RECEIPTS:
        raise BadInput(TOO_MANY_RECEIPTS.at(f"{len(receipts)} receipts; give the newest {MAX_RECEIPTS} at most"))
    court = _Court(verification, steward_keys, roster, now_ms, max_age_ms)
    return _without_equivocation([court.judge(data) for data in receipts])


@dataclass(frozen=True, slots=True)
class _Court:
    verification: Verification
    steward_keys: Sequence[PublicKey]
    roster: Sequence[WitnessKey]
    now_ms: int
    max_age_ms: int | None

    def judge(self, data: bytes) -> Judged:
        try:
            receipt, statement = read_receipt(data)
        except BadStatement as error:
            return Judged(verdict="malformed", receipt=None, detail=str(error))
        known = [item for item in self.roster if item.witness == receipt.witness]
        signed = next((item for item in known if statement.signed_by(item.key)), None)
        if any(item.key in self.steward_keys for item in known) or (
            signed is None and any(map(statement.signed_by, self.steward_keys))
        ):
            return Judged(verdict="not-independent", receipt=receipt, detail="it is signed with a key of the steward")
        if not known:
            return Judged(verdict="unknown-witness", receipt=receipt, detail="no key of this witness was given")
        if signed is None:
            return Judged(verdict="bad-signature", receipt=receipt, detail="it does not verify under the witness's key")
        ledger = self.verification.ledger
        if receipt.ledger != ledger or receipt.steward != steward_of(ledger):
            return Judged(verdict="wrong-ledger", receipt=receipt, detail=f"it is about {receipt.ledger}")
        verdict, detail = self._compare(receipt)
        return Judged(verdict=verdict, receipt=receipt, key=signed.key, co_located=signed.co_located, detail=detail)

    def _compare(self, receipt: Receipt) -> tuple[Verdict, str]:
        ledger, n = self.verification, receipt.length
        if "authenticity" in ledger.first and n > ledger.authentic_length:
            return "not-compared", f"entry {ledger.authentic_length} is not authentic"
        if n < ledger.start:
            return "not-compared", "it lies before the checkpoint"
        if n > ledger.length:
            return "ahead", f"valid receipt covering a longer ledger: {n} entries, this copy has {ledger.length}"
        if ledger.head_at(n) != receipt.head:
            return "fork", f"the head at {n} is another one: this history was rewritten"
        if receipt.at_ms > self.now_ms + SKEW_MS:
            return "future", "its time lies ahead of ours"
        if self.max_age_ms is not None and receipt.at_ms < self.now_ms - self.max_age_ms:
            return "stale", "it is older than asked for"
        if n == ledger.length:
            return "witnessed", f"this head, at {n}"
        return "prefix", f"witnessed to {n}, self-attested after"


_SIGNED: frozenset[Verdict] = frozenset(("witnessed", "prefix", "fork", "ahead", "stale", "future", "not-compared"))


def _without_equivocation(judged: list[Judged]) -> list[Judged]:
    """One witness, one length, two heads: both receipts say so. A witness is its key, whatever names it has."""
    heads: dict[tuple[PublicKey | None, int], set[bytes]] = {}
    for item in judged:
        if item.receipt and item.verdict in _SIGNED:
            heads.setdefault((item.key, item.receipt.length), set()).add(item.receipt.head)
    out = []
    for item in judged:
        read = item.receipt
        if read and item.verdict in _SIGNED and len(heads[item.key, read.length]) > 1:
            detail = f"{read.witness} signed two heads at {read.length}; keep both receipts"
            item = replace(item, verdict="witness-equivocation", detail=detail)
        out.append(item)
    return out


def _signed(judged: Iterable[Judged]) -> list[Receipt]:
    return [item.receipt for item in judged if item.receipt and item.verdict in _SIGNED]


def covered_by_key(judged: Iterable[Judged]) -> dict[PublicKey, int]:
    """The greatest length that each independent witness covers. Witnesses are counted by key: two names of one key are one."""
    covered: dict[PublicKey, int] = {}
    for item in judged:
        if item.receipt and item.key and item.verdict in ("witnessed", "prefix") and not item.co_located:
            covered[item.key] = max(covered.get(item.key, 0), item.receipt.length)
    return covered


def grading(judged: Sequence[Judged], length: int, required: int = 1) -> Grading:
    """The grade of a ledger of `length` entries by the greatest length that `required` independent witnesses cover (pool/1 §6.8).

    Fewer than one are never enough.
    """
    covering = [item for item in judged if item.receipt and item.verdict in ("witnessed", "prefix")]
    covered = sorted(covered_by_key(judged).values(), reverse=True)
    needed = max(required, 1)
    most = covered[needed - 1] if len(covered) >= needed else None
    if most is not None and (most == length or most > 0):
        return Grading(grade="witnessed" if most == length else "witnessed-to", witnessed_length=most, co_located=False)
    return Grading(grade="self-attested", witnessed_length=None, co_located=any(item.co_located for item in covering))


def clock_warnings(judged: Sequence[Judged]) -> list[str]:
    """Witnesses whose time falls while the length grows: not a failure, but somebody should look."""
    warnings = []
    latest: dict[str, Receipt] = {}
    for receipt in sorted(_signed(judged), key=lambda item: (item.length, item.at_ms)):
        before = latest.get(receipt.witness)
        if before and receipt.length > before.length and receipt.at_ms < before.at_ms:
            warnings.append(
                f"witness {receipt.witness} is inconsistent: its time falls from length {before.length} to {receipt.length}"
            )
        latest[receipt.witness] = receipt
    return warnings
