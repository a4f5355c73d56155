"""Verification of one ledger from its bytes (ledger.md "Verifying"): ten steps for each entry, four verdicts kept apart.

 1 frame    2 envelope    3 header    4 signature           authenticity
 5 core canonical         6 core's shape                    canonicity
 7 `steward` = kid = the expected steward                   authenticity
 8 `seq` is the index     9 `prev` is the address before    sequence
10 the event is consistent with those before it             claims

After a fault the walk takes the entry as it stands for its anchor and goes on, so that later damage is listed too.
Any fault means that nothing is derived from any part of the stream.
"""

from __future__ import annotations

from dataclasses import field
from hashlib import sha256
from typing import Literal

from fleetctl.diagnostics import code
from fleetctl.errors import NotVerified
from fleetctl.frozen import dataclass
from fleetctl.ledger import cose, fastcore, signatures
from fleetctl.ledger.chain import ADDRESS_BYTES, Head, genesis
from fleetctl.ledger.entries import Admitted, BadCore, Released, decode_core
from fleetctl.ledger.identifiers import LedgerId, StreamKind, kind_of, steward_of
from fleetctl.ledger.keys import SIGNATURE_BYTES, PublicKey
from fleetctl.ledger.usage import EntitlementUsage, Fold

Axis = Literal["authenticity", "canonicity", "sequence", "claims"]
AXES: tuple[Axis, ...] = ("authenticity", "canonicity", "sequence", "claims")
"""In the order in which they rank at one index."""

MAX_FAULTS = 1_000
"""How many faults are listed; the rest are counted."""
SMALL = 2_000
"""Entries below which starting processes costs more than it saves."""

LEDGER_FAULT = code(
    "ledger-fault",
    "A ledger does not verify",
    trigger="an entry that is not authentic, not canonical, out of sequence, or about a claim that was not open",
    exit_code=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with the entry at `index`. `code` is stable (readings/ledger-attacks.md); `step` is the numbered step that found it."""

    index: int
    axis: Axis
    step: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a whole walk found.

    `head` is the last readable entry's address; `first` holds each axis' first fault, `faults` the first MAX_FAULTS; `addresses` are
    those from entry `start` on, with the head before it in front.
    """

    ledger: LedgerId
    length: int
    head: bytes
    first: dict[Axis, Fault]
    faults: tuple[Fault, ...]
    fault_count: int
    start: int
    addresses: bytes = field(repr=False)
    fold: Fold | None = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether every axis holds."""
        return not self.first

    @property
    def first_fault(self) -> Fault | None:
        """The lowest index over all axes; at one index the axes rank as in AXES."""
        return min(self.first.values(), key=_rank, default=None)

    @property
    def sound_length(self) -> int:
        """How many entries come before the first fault."""
        return self.first_fault.index if self.first_fault else self.length

    @property
    def authentic_length(self) -> int:
        """How many entries come before the first that is not authentic."""
        fault = self.first.get("authenticity")
        return fault.index if fault else self.length

    @property
    def usage(self) -> dict[str, EntitlementUsage] | None:
        """Usage by entitlement; None when anything is wrong, and for a journal."""
        return self.fold.usage if self.fold is not None else None

    @property
    def tip(self) -> Head:
        """The head, to seal on."""
        return Head(ledger=self.ledger, length=self.length, address=self.head)

    def head_at(self, length: int) -> bytes:
        """The address of entry `length - 1`, or genesis. Meaningful up to `authentic_length`.

        Raises IndexError beyond the ledger, or before the checkpoint that the walk started from.
        """
        at = (length - self.start) * ADDRESS_BYTES
        if not self.start <= length <= self.length:
            raise IndexError(length)
        return self.addresses[at : at + ADDRESS_BYTES]

    def require(self) -> Verification:
        """Itself, when everything holds. Raises NotVerified with one diagnostic per axis that does not."""
        if self.ok:
            return self
        raise NotVerified(
            LEDGER_FAULT.at(
                f"{self.ledger}: entry {fault.index} fails {fault.axis} with {fault.code}: {fault.detail}; "
                "compare with another copy, and trust neither until they agree"
            )
            for fault in sorted(self.first.values(), key=_rank)
        )


def verify(data: bytes, *, ledger: LedgerId, key: PublicKey, processes: int | None = None) -> Verification:
    """Every entry of `data` (a CBOR sequence), from genesis, under the steward's `key`. Raises NotVerified."""
    return examine(data, ledger=ledger, key=key, processes=processes).require()


def examine(data: bytes, *, ledger: LedgerId, key: PublicKey, processes: int | None = None) -> Verification:
    """The same walk with all that it found, for a report. Signatures of large ledgers spread over `processes` (default: every core)."""
    start = Start(ledger=ledger, length=0, address=genesis(ledger), fold=Fold(ledger))
    return examine_from(start, data, key=key, processes=processes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a walk begins: genesis, or a checkpoint that was accepted. The fold is moved along."""

    ledger: LedgerId
    length: int
    address: bytes
    fold: Fold


def examine_from(start: Start, data: bytes, *, key: PublicKey, processes: int | None = None) -> Verification:
    """The walk over the entries that follow `start`; indices count from the ledger's beginning."""
    kid = steward_of(start.ledger)
    spread = processes or (signatures.cores() if len(data) > SMALL * _typical_entry(kid) else 1)
    checker = signatures.checker(data, kid, key, spread)
    try:
        walk = _Walk(start, data, checker)
        walk.run()
        for index in checker.finish():
            walk.faults.add(
                index, "authenticity", 4, "bad-signature", "the signature does not hold under the steward's key"
            )
    finally:
        checker.close()
    return walk.result()


def _typical_entry(kid: str) -> int:
    return 280 + 2 * len(kid)


def _rank(fault: Fault) -> tuple[int, int, int]:
    return (fault.index, AXES.index(fault.axis), fault.step)


class _Faults:
    """The faults found so far: one per index and axis, by the earliest step."""

    def __init__(self) -> None:
        self.first: dict[Axis, Fault] = {}
        self.listed: dict[tuple[int, Axis], Fault] = {}
        self.count = 0

    def add(self, index: int, axis: Axis, step: int, name: str, detail: str) -> None:
        fault = Fault(index=index, axis=axis, step=step, code=name, detail=detail)
        held = self.listed.get((index, axis))
        if held is None:
            self.count += 1
        if held is not None or len(self.listed) < MAX_FAULTS:
            self.listed[index, axis] = min(held or fault, fault, key=_rank)
        self.first[axis] = min(self.first.get(axis, fault), fault, key=_rank)


class _Walk:
    """Steps 1 to 3 and 5 to 10 in order; step 4 is handed to the checker in stretches of pinned envelopes."""

    def __init__(self, start: Start, data: bytes, checker: signatures.Checker) -> None:
        self.data, self.checker, self.start = data, checker, start
        self.kid = steward_of(start.ledger)
        self.kind: StreamKind = kind_of(start.ledger)
        self.prefix = cose.envelope_prefix(self.kid)
        self.faults = _Faults()
        self.addresses: list[bytes] = []
        self.index = start.length
        self.next_seq = start.length
        self.prev: bytes | None = start.address  # None after an entry whose address cannot be known
        self.head = start.address
        self.claims_readable = True
        self.fold = start.fold
        self.last_at_ms = 0
        self.read_fast = fastcore.reader(self.kid) if data and self.kind == "entitlements" else _never_fast

    def run(self) -> None:
        """Frame by frame, to the end or to the first place where no frame can be found."""
        offset, size = 0, len(self.data)
        stretch, stretch_index = 0, self.index
        while offset < size:
            payload = self._pinned(offset)
            if payload is None or self.index - stretch_index == signatures.STRETCH:
                self._hand_over(stretch_index, stretch, offset)
                stretch, stretch_index = offset, self.index
            if payload is not None:
                self._entry(self.data[payload[0] : payload[1]])
                offset = payload[1] + _AFTER_PAYLOAD
                continue
            offset = self._careful(offset)
            if offset < 0:
                return
            stretch, stretch_index = offset, self.index
        self._hand_over(stretch_index, stretch, offset)

    def _hand_over(self, first: int, start: int, end: int) -> None:
        if end > start:
            self.checker.add(first, start, end)

    def _pinned(self, offset: int) -> tuple[int, int] | None:
        """Where the payload starts and ends, when steps 1 to 3 hold at a glance. None says nothing."""
        data = self.data
        start = offset + len(self.prefix)
        if start + 3 > len(data) or not data.startswith(self.prefix, offset):
            return None
        lead, size = data[start], data[start + 1]
        if lead == 0x58 and size >= 24:
            body = start + 2
        elif lead == 0x59 and size:
            size = size << 8 | data[start + 2]
            body = start + 3
        else:
            return None
        end = body + size
        if end + _AFTER_PAYLOAD > len(data) or data[end : end + 2] != cose.SIGNATURE_HEAD:
            return None
        return body, end

    def _careful(self, offset: int) -> int:
        """Steps 1 to 3 on a frame that is not as usual. Where the next frame starts, or -1."""
        try:
            envelope = cose.read(self.data, offset)
        except cose.BadEnvelope as error:
            self.faults.add(self.index, "authenticity", 1 if error.code == "bad-frame" else 2, error.code, error.why)
            self._unreadable("no core can be read from it")
            if error.end < 0:
                return -1
            self._next(None)
            return error.end
        if envelope.unprotected_empty and envelope.protected == cose.protected_header(self.kid):
            self.checker.add(self.index, offset, envelope.end)
        else:
            self.faults.add(self.index, "authenticity", 3, "bad-header", f"its header is not {{1: -8, 4: {self.kid}}}")
        self._entry(envelope.payload)
        return envelope.end

    def _entry(self, core: bytes) -> None:
        """Steps 5 to 10 on one core."""
        address = sha256(core).digest()
        fast = self.read_fast(core)
        if fast is not None:
            self._sequence(fast.seq, fast.prev)
            if self.claims_readable:
                self._claims(fast.move(self.fold), fast.claim)
            self.next_seq = fast.seq + 1
        else:
            self._careful_entry(core)
        self._next(address)

    def _careful_entry(self, core: bytes) -> None:
        try:
            seq, prev, steward, event = decode_core(core, self.kind)
        except BadCore as error:
            self.faults.add(self.index, "canonicity", 5 if error.code == "non-canonical" else 6, error.code, error.why)
            self._unreadable("its core cannot be read")
            return
        if steward != self.kid:
            self.faults.add(
                self.index, "authenticity", 7, "kid-mismatch", f"its core names {steward}, its key is {self.kid}'s"
            )
        self._sequence(seq, prev)
        if self.claims_readable and isinstance(event, (Admitted, Released)):
            self._claims(self.fold.apply(event, seq), event.claim)
        elif self.claims_readable:
            self._journal_time(event.at_ms)
        self.next_seq = seq + 1

    def _unreadable(self, why: str) -> None:
        self.faults.add(self.index, "sequence", 8, "unreadable", why)
        self.claims_readable = False
        self.next_seq += 1

    def _next(self, address: bytes | None) -> None:
        self.addresses.append(address or _NO_ADDRESS)
        self.prev = address
        self.head = address or self.head
        self.index += 1

    def _sequence(self, seq: int, prev: bytes) -> None:
        """Steps 8 and 9."""
        if seq == self.next_seq and prev == self.prev:
            return
        step = 9 if seq == self.next_seq else 8
        if self.index == 0:
            self.faults.add(
                0, "sequence", step, "genesis", f"the ledger {self.start.ledger} does not start with this entry"
            )
        elif seq > self.next_seq:
            self.faults.add(self.index, "sequence", 8, "gap", f"seq {seq} where {self.next_seq} should follow")
        elif seq < self.next_seq:
            detail = (
                f"seq {seq} again where {self.next_seq} should follow; if both verify, the steward signed two histories"
            )
            self.faults.add(self.index, "sequence", 8, "dup", detail)
        elif self.prev is not None:
            self.faults.add(self.index, "sequence", 9, "link", "`prev` is not the address of the entry before")

    def _claims(self, fault: str | None, claim: str) -> None:
        """Step 10 for usage."""
        if fault is not None:
            self.faults.add(self.index, "claims", 10, fault, f"claim {claim}")

    def _journal_time(self, at_ms: int) -> None:
        """Step 10 for the journal: its time never decreases."""
        if at_ms < self.last_at_ms:
            self.faults.add(self.index, "claims", 10, "time-reversed", f"at_ms {at_ms} after {self.last_at_ms}")
        self.last_at_ms = max(self.last_at_ms, at_ms)

    def result(self) -> Verification:
        """All that was found."""
        clean = not self.faults.first
        return Verification(
            ledger=self.start.ledger,
            length=self.index,
            head=self.head,
            first=self.faults.first,
            faults=tuple(sorted(self.faults.listed.values(), key=_rank)),
            fault_count=self.faults.count,
            start=self.start.length,
            addresses=b"".join((self.start.address, *self.addresses)),
            fold=self.fold if clean and self.kind == "entitlements" else None,
        )


_NO_ADDRESS = bytes(ADDRESS_BYTES)
_AFTER_PAYLOAD = len(cose.SIGNATURE_HEAD) + SIGNATURE_BYTES


def _never_fast(_core: bytes) -> None:
    return None
