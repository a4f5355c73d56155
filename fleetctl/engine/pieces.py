"""Sealed entries from anywhere, put in their places by what they link to.

An entry's address is the hash of its core, and its core names the address before. So a head says by itself which entries lead to
it: whoever hands them over can leave some out, and can change none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.chain import Head, address_of
from fleetctl.ledger.entries import BadCore, Core, Event, decode_core
from fleetctl.ledger.keys import PublicKey, verifies


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One sealed entry that could be read. `whose` says, for people, who handed it over."""

    whose: str
    sealed: bytes = field(repr=False)
    envelope: cose.Envelope = field(repr=False)
    address: bytes
    core: Core

    @property
    def event(self) -> Event:
        return self.core.event

    def sealed_by(self, steward: str, key: PublicKey) -> bool:
        """Whether the steward sealed it."""
        found = self.envelope
        return (
            found.end == len(self.sealed)
            and found.unprotected_empty
            and found.protected == cose.protected_header(steward)
            and self.core.steward == steward
            and verifies(key, cose.to_be_signed(steward, found.payload), found.signature)
        )


@dataclasses.dataclass(slots=True)
class Pieces:
    """A heap of entries. Only those that `steward` sealed under `key` are ever handed out."""

    steward: str
    key: PublicKey
    known: set[bytes] = field(default_factory=set)
    """Addresses of entries that are there already: those are not taken in again."""
    unusable: dict[str, int] = field(default_factory=dict)
    """How many entries of whom could not be read, or are not the steward's."""
    _by_address: dict[bytes, list[Piece]] = field(default_factory=dict)
    _by_prev: dict[bytes, list[Piece]] = field(default_factory=dict)

    def add(self, whose: str, entries: Iterable[bytes]) -> None:
        """Take entries in, of any stream, in any order."""
        for sealed in entries:
            envelope = _envelope(sealed)
            if envelope is not None and address_of(envelope.payload) in self.known:
                continue
            piece = _read(whose, sealed, envelope)
            if piece is None or not piece.sealed_by(self.steward, self.key):
                self.unusable[whose] = self.unusable.get(whose, 0) + 1
                continue
            self._by_address.setdefault(piece.address, []).append(piece)
            self._by_prev.setdefault(piece.core.prev, []).append(piece)

    def leading_to(self, target: Head, known: Mapping[bytes, int]) -> list[Piece] | None:
        """The entries from a known place (address → length) to `target`, in order; None when one of them is not here."""
        found: list[Piece] = []
        address, length = target.address, target.length
        while known.get(address) != length:
            pieces = self._by_address.get(address)
            if not pieces or pieces[0].core.seq != length - 1:
                return None
            found.append(pieces[0])
            address, length = pieces[0].core.prev, length - 1
        return found[::-1]

    def after(self, head: Head) -> list[Piece]:
        """The different entries that go on from `head`: more than one is a fork."""
        found = {piece.address: piece for piece in self._by_prev.get(head.address, ()) if piece.core.seq == head.length}
        return list(found.values())

    def at(self, seq: int) -> Iterator[Piece]:
        """Every entry with this index, of whatever stream."""
        return (piece for found in self._by_address.values() for piece in found[:1] if piece.core.seq == seq)


def _envelope(sealed: bytes) -> cose.Envelope | None:
    try:
        return cose.read(sealed, 0)
    except (cose.BadEnvelope, IndexError):
        return None


def _read(whose: str, sealed: bytes, envelope: cose.Envelope | None) -> Piece | None:
    if envelope is None:
        return None
    try:
        core = _core(envelope.payload)
    except BadCore:
        return None
    return Piece(whose=whose, sealed=sealed, envelope=envelope, address=address_of(envelope.payload), core=core)


def _core(payload: bytes) -> Core:
    try:
        return decode_core(payload, "entitlements")
    except BadCore:
        return decode_core(payload, "journal")
