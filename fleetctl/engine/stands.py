"""What a recovery is decided on: how far a state has each stream, how far it can be had, and what speaks of more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal, NamedTuple

from fleetctl.canonical import is_digest
from fleetctl.engine.pieces import Piece
from fleetctl.frozen import dataclass
from fleetctl.ledger.chain import Head
from fleetctl.ledger.identifiers import LedgerId, is_ledger_id
from fleetctl.ledger.receipts import read_receipt
from fleetctl.ports import StreamHead

Kind = Literal["journal", "entitlements"]
KINDS: Final[tuple[Kind, ...]] = ("journal", "entitlements")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """Entries, receipts and documents from outside this state, as they came. `name` is for people, `ledgers` are those it speaks of."""

    name: str
    ledgers: Sequence[str] = ()
    entries: Sequence[bytes] = field(repr=False)
    receipts: Sequence[bytes] = field(default=(), repr=False)
    document: Callable[[str], bytes | None] = lambda _digest: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A head that somebody says a ledger has. `receipt` is a witness's word for it; without one it is this state's own."""

    head: Head
    who: str
    why: str = ""
    """Why it cannot be had; empty while that is not known."""
    receipt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """One stream. `kept` are the sound entries of this state, `whole` is with `added` behind them, `missing` lies beyond or beside.

    `stored` is the state's own record, None for a stream that it does not know. `closed`: another one follows it.
    """

    kind: Kind
    stream: str
    stored: StreamHead | None
    kept: Head
    whole: Head
    added: tuple[Piece, ...] = field(repr=False)
    missing: tuple[Wanted, ...]
    closed: bool
    receipts: tuple[bytes, ...] = field(repr=False)
    """Receipts that hold for `whole`."""

    @property
    def sound(self) -> bool:
        """Whether the state has it as it should be, with nothing to add."""
        stored = self.stored
        return (
            not self.added
            and not self.missing
            and stored is not None
            and (stored.closed or not self.closed)
            and (stored.length, stored.head) == (self.kept.length, self.kept.address)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Every stream: the journal in force, with those that go on from it, then those of usage, in their order."""

    stands: tuple[Stand, ...]
    heads: tuple[StreamHead, ...]
    """The state's streams when it was read."""
    documents: Mapping[str, bytes] = field(repr=False)
    """Documents that the state lacks and a replica has."""
    undocumented: tuple[str, ...]
    """Documents that entries of this state name, and that nobody has."""
    notes: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to recover."""
        return not self.documents and not self.undocumented and all(item.sound for item in self.stands)

    @property
    def journal_in_force(self) -> str:
        """The stream of the last journal: another one than the state's where a recovery opened it that the state forgot."""
        return [item.stream for item in self.stands if item.kind == "journal"][-1]

    def lost(self, kind: Kind) -> tuple[Stand, ...]:
        """Streams of a kind that something is missing of for good."""
        return tuple(item for item in self.stands if item.kind == kind and item.missing)


class End(NamedTuple):
    """Where a stream of usage was closed: by a rotation, or by a recovery that gave up what came after."""

    head: Head
    given_up: bool


def head_in(account: Mapping[str, Any], name: str) -> Head | None:
    """A head as an account has it; None for anything else."""
    match account.get(name):
        case {"ledger": str(ledger), "length": int(length), "head": str(head)} if is_ledger_id(ledger) and is_digest(
            head
        ):
            return Head(ledger=LedgerId(ledger), length=length, address=bytes.fromhex(head))
    return None


def reaches(stand: Stand, head: Head) -> bool:
    """Whether what can be had of a stream passes through a head that does not lie before what this state has of it."""
    at = head.length - stand.kept.length
    if stand.whole.ledger != head.ledger or not 0 <= at <= len(stand.added):
        return False
    return (stand.added[at - 1].address if at else stand.kept.address) == head.address


def cut(stand: Stand, head: Head) -> Stand:
    """A stream as a recovery closed it: what witnesses signed beyond that was given up then."""
    receipts = (sealed for sealed in stand.receipts if read_receipt(sealed)[0].length <= head.length)
    return replace(
        stand,
        whole=head,
        added=stand.added[: head.length - stand.kept.length],
        missing=(),
        closed=True,
        receipts=tuple(receipts),
    )
