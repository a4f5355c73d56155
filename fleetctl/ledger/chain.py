"""The chain: genesis, content addresses, and sealing one entry on a head."""

from __future__ import annotations

from hashlib import sha256

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.entries import Event, encode_core
from fleetctl.ledger.identifiers import LedgerId, kind_of, steward_of
from fleetctl.ledger.keys import Signer

ADDRESS_BYTES = 32

WRONG_STREAM = code(
    "wrong-ledger-stream",
    "An event does not belong on this ledger, or its signer may not seal it",
    trigger="a usage event on a journal, a journal event on an entitlement stream, or a signer that is not the ledger's steward",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How far a ledger goes: `length` entries, the last with address `address` (genesis when there is none)."""

    ledger: LedgerId
    length: int
    address: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """One sealed entry: its index, its content address, its bytes, and the head after it."""

    seq: int
    address: bytes
    data: bytes
    head: Head


def genesis(ledger: LedgerId) -> bytes:
    """`prev` of entry 0. It holds the ledger's id, so that no entry of one ledger can open another."""
    return sha256(f"pool/1 genesis\n{ledger}".encode()).digest()


def empty(ledger: LedgerId) -> Head:
    """The head of a ledger without entries."""
    return Head(ledger=ledger, length=0, address=genesis(ledger))


def address_of(core: bytes) -> bytes:
    """The content address of an entry: SHA-256 of its core's bytes, so that links do not depend on signatures."""
    return sha256(core).digest()


def seal(event: Event, head: Head, signer: Signer) -> Sealed:
    """`event` as the entry after `head`, signed by the ledger's steward.

    Raises BadInput when the event is of the other stream's kind or the signer is not the ledger's steward. Seal inside the transaction
    that stores the entry: only the committed one may ever leave the process.
    """
    kid = signer.kid
    if event.KIND != kind_of(head.ledger) or kid != steward_of(head.ledger):
        raise BadInput(
            WRONG_STREAM.at(
                f"`{event.EVENT}` signed by {kid} cannot go on {head.ledger}; seal it with the key of {steward_of(head.ledger)} "
                f"on a stream of kind {event.KIND}"
            )
        )
    core = encode_core(event, seq=head.length, prev=head.address, steward=kid)
    data = cose.build(kid, core, signer.sign(cose.to_be_signed(kid, core)))
    address = sha256(core).digest()
    after = Head(ledger=head.ledger, length=head.length + 1, address=address)
    return Sealed(seq=head.length, address=address, data=data, head=after)
