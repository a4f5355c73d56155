"""How far a state has its ledgers, how far they can be had, and what speaks of more: what a recovery is decided on.

Nothing is written here. What is on offer (rows of this state behind a break, replicas, entries that witnesses were shown) is a heap
that links put in order; what speaks of more is receipts of witnesses, the journal's pins and the state's own record of its heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import Final, Literal

from fleetctl.diagnostics import code
from fleetctl.engine.context import ENTITLEMENTS, Engine, check_identity, check_open, journal_stream, usage_stream
from fleetctl.engine.journals import parts
from fleetctl.engine.pieces import Piece, Pieces
from fleetctl.engine.streams import journal_events
from fleetctl.engine.witnessing import read_settings, roster
from fleetctl.errors import FleetctlError, NotVerified, SafetyRefused
from fleetctl.frozen import dataclass
from fleetctl.ledger.chain import ADDRESS_BYTES, Head, empty
from fleetctl.ledger.documents import named_documents
from fleetctl.ledger.entries import JournalEvent, Recovered, Rotated
from fleetctl.ledger.identifiers import LedgerId, stream_of
from fleetctl.ledger.receipts import MAX_RECEIPTS, Judged, WitnessKey, judge, read_receipt
from fleetctl.ledger.statement import BadStatement
from fleetctl.ledger.verify import Verification, examine
from fleetctl.ports import Reader, StreamHead

REPLICA_FORKS = code(
    "replica-forks",
    "A replica holds another history of this ledger",
    trigger="`ledger recover --from` with entries that the steward sealed beside those of this state, or beside each other",
    exit_code=3,
)
STEWARD_KEY_CHANGED = code(
    "steward-key-changed",
    "The ledgers are sealed with another key than the one that is configured",
    trigger="`ledger recover` on an engine whose first entries do not verify under the steward's configured key",
    exit_code=3,
)

Kind = Literal["journal", "entitlements"]
KINDS: Final[tuple[Kind, ...]] = ("journal", "entitlements")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """Entries, receipts and documents from outside this state, as they came. `name` is for people."""

    name: str
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
            and (stored.length, stored.head) == (self.kept.length, self.kept.address)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Every stream, the journal in force first, then those of usage in their order."""

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

    def lost(self, kind: Kind) -> tuple[Stand, ...]:
        """Streams of a kind that something is missing of for good."""
        return tuple(item for item in self.stands if item.kind == kind and item.missing)


def survey(engine: Engine, replicas: Sequence[Replica]) -> Survey:
    """Look at this state, ask every witness, and see what can be had. `engine` has the private key: a witness gives entries to the
    steward only.

    Raises SafetyRefused for another engine's or a closed state, or when its key was changed; NotVerified for a replica that forks.
    """
    with engine.store.read() as reader:
        check_identity(engine, reader)
        check_open(reader)
        return _Surveyor(engine, reader, replicas).run()


class _Surveyor:
    def __init__(self, engine: Engine, reader: Reader, replicas: Sequence[Replica]) -> None:
        self.engine, self.reader, self.replicas = engine, reader, replicas
        self.roster: list[WitnessKey] = roster(read_settings(reader), engine.witnesses)
        named = {item.witness for item in self.roster}
        # The settings are as old as the state: a witness that was named since is known by the user's configuration alone.
        self.roster += [
            WitnessKey(witness=item.id, key=item.key, co_located=item.co_located)
            for item in engine.witnesses
            if item.id not in named
        ]
        self.pieces = Pieces(engine.steward, engine.steward_key)
        self.notes: list[str] = []
        self.documents: dict[str, bytes] = {}
        self.offered = [item for replica in replicas for item in replica.receipts]
        self._local: dict[str, Verification] = {}

    def run(self) -> Survey:
        heads = tuple(self.reader.streams())
        names = [item.stream for item in heads]
        for name in names:
            self._local[name] = self._examined(name)
        for replica in self.replicas:
            self.pieces.add(replica.name, replica.entries)
        journal = self._stand("journal", journal_stream(self.reader), (), closed=False)
        events = list(self._journal(journal))
        stands = [journal]
        streams = usage_streams(self.engine, events)
        in_force = usage_stream(self.reader)
        if in_force not in streams:  # the entries that opened it are lost
            streams[in_force] = None
        for index, (stream, ended) in enumerate(streams.items()):
            last = index == len(streams) - 1
            said = self._pinned(events, stream) if last else [Wanted(head=ended, who="the journal")] if ended else []
            if last or ended is not None:  # what a recovery gave up is not looked for again
                stands.append(self._stand("entitlements", stream, said, closed=not last))
        undocumented = tuple(
            digest
            for event in islice(events, journal.kept.length)
            for digest in map(bytes.hex, named_documents(event))
            if self._document(digest) is None
        )
        return Survey(
            stands=tuple(stands),
            heads=heads,
            documents=self.documents,
            undocumented=undocumented,
            notes=(*self.notes, *self._unusable()),
        )

    def _examined(self, stream: str) -> Verification:
        """What this state has of a stream; what lies behind its first fault goes to the heap."""
        rows = list(self.reader.entries(stream))
        found = examine(b"".join(rows), ledger=self.engine.ledger(stream), key=self.engine.steward_key)
        fault = found.first_fault
        if fault is not None and fault.index == 0 and fault.code == "bad-signature":
            raise SafetyRefused(
                STEWARD_KEY_CHANGED.at(
                    f"not even entry 0 of {found.ledger} is sealed with the key of {self.engine.steward} that is configured. Give "
                    "the key that the ledgers were sealed with; they cannot go on under a new one, and `fleetctl state copy` "
                    "makes an engine with this configuration, a new key and new ledgers"
                )
            )
        if fault is not None:
            self.pieces.add("this state", rows)
        return found

    def _stand(self, kind: Kind, stream: str, said: Iterable[Wanted], *, closed: bool) -> Stand:
        ledger = self.engine.ledger(stream)
        stored, local = self.reader.stream(stream), self._local.get(stream)
        kept, addresses = empty(ledger), empty(ledger).address
        if local is not None:
            kept = Head(ledger=ledger, length=local.sound_length, address=local.head_at(local.sound_length))
            addresses = local.addresses[: (kept.length + 1) * ADDRESS_BYTES]
        judged = self._judged(stream, kept, addresses)
        wanted = [*said, *(self._ahead(item, sealed) for sealed, item in judged if item.verdict == "ahead")]
        if stored is not None:
            wanted.append(Wanted(head=Head(ledger=ledger, length=stored.length, address=stored.head), who=_OWN_RECORD))
        known = {
            addresses[at : at + ADDRESS_BYTES]: at // ADDRESS_BYTES for at in range(0, len(addresses), ADDRESS_BYTES)
        }
        self._fetch(kept, wanted, known)
        added = self._reached(kept, wanted, known)
        if kind == "journal":
            added = self._documented(added)
        chain = [addresses[at : at + ADDRESS_BYTES] for at in range(0, len(addresses), ADDRESS_BYTES)]
        chain += [piece.address for piece in added]
        whole = Head(ledger=ledger, length=len(chain) - 1, address=chain[-1])
        missing = [self._contradicted(item, sealed) for sealed, item in judged if item.verdict in _CONTRADICTIONS]
        missing += [found for item in wanted if (found := self._unreached(item, kept, chain, kind)) is not None]
        if not missing:
            self._check_forks(ledger, chain)
        return Stand(
            kind=kind,
            stream=stream,
            stored=stored,
            kept=kept,
            whole=whole,
            added=tuple(added),
            missing=tuple(missing),
            closed=closed,
            receipts=tuple(sealed for sealed, item in judged if _holds(item, chain)),
        )

    def _judged(self, stream: str, kept: Head, addresses: bytes) -> list[tuple[bytes, Judged]]:
        """Every receipt that speaks of a stream, with its verdict on what this state keeps of it."""
        sealed = [item.sealed for item in self.reader.receipts(stream)] + self._answers(kept)
        sealed += [item for item in self.offered if _ledger_of(item) == kept.ledger]
        sealed = list(dict.fromkeys(sealed))[-MAX_RECEIPTS:]
        place = Verification(
            ledger=kept.ledger,
            length=kept.length,
            head=kept.address,
            first={},
            faults=(),
            fault_count=0,
            start=0,
            addresses=addresses,
            fold=None,
        )
        steward, now = [self.engine.steward_key], self.engine.clock.now_ms()
        return list(
            zip(sealed, judge(sealed, place, steward_keys=steward, roster=self.roster, now_ms=now), strict=True)
        )

    def _answers(self, kept: Head) -> list[bytes]:
        """What every witness signed last for a ledger; one that does not say is noted."""
        found = []
        for witness in self.engine.witnesses:
            try:
                sealed = witness.head(kept.ledger)
            except FleetctlError as error:
                self._note(f"witness {witness.id} did not say how far {kept.ledger} is: {error.diagnostics[0].detail}")
                continue
            if sealed is not None:
                found.append(sealed)
        return found

    def _ahead(self, item: Judged, sealed: bytes) -> Wanted:
        receipt = item.receipt
        assert receipt is not None, "only a receipt that was read is ahead"
        head = Head(ledger=receipt.ledger, length=receipt.length, address=receipt.head)
        return Wanted(head=head, who=f"witness {receipt.witness}", receipt=sealed)

    def _contradicted(self, item: Judged, sealed: bytes) -> Wanted:
        return replace(self._ahead(item, sealed), why=item.detail)

    def _fetch(self, kept: Head, wanted: Iterable[Wanted], known: Mapping[bytes, int]) -> None:
        """Ask witnesses for the entries that nobody else has."""
        most = max(
            (item.head.length for item in wanted if self.pieces.leading_to(item.head, known) is None),
            default=kept.length,
        )
        for witness in self.engine.witnesses if most > kept.length else ():
            try:
                entries = witness.fetch(kept.ledger, kept.length, most, self.engine.sealing())
            except NotVerified as error:
                self._note(f"witness {witness.id} gives no entries back: {error.diagnostics[0].detail}")
            except FleetctlError as error:
                self._note(f"witness {witness.id} was asked for entries: {error.diagnostics[0].detail}")
            else:
                self.pieces.add(f"witness {witness.id}", entries)

    def _reached(self, kept: Head, wanted: Sequence[Wanted], known: Mapping[bytes, int]) -> list[Piece]:
        """The entries behind those that are kept: to the furthest head that can be had, and on while nothing else is said."""
        added: list[Piece] = []
        for item in sorted(wanted, key=lambda item: item.head.length, reverse=True):
            path = self.pieces.leading_to(item.head, known)
            if path and path[0].core.seq == kept.length:
                added = path
                break
        tip = Head(
            ledger=kept.ledger, length=kept.length + len(added), address=added[-1].address if added else kept.address
        )
        while len(following := self.pieces.after(tip)) == 1:
            added.append(following[0])
            tip = Head(ledger=kept.ledger, length=tip.length + 1, address=following[0].address)
        return added

    def _documented(self, added: list[Piece]) -> list[Piece]:
        """The entries up to the first whose documents nobody has: without them nothing can be folded."""
        for index, piece in enumerate(added):
            event = piece.event
            if isinstance(event, JournalEvent) and any(
                self._document(digest.hex()) is None for digest in named_documents(event)
            ):
                return added[:index]
        return added

    def _document(self, digest: str) -> bytes | None:
        if digest in self.documents:
            return self.documents[digest]
        if (kept := self.reader.document(digest)) is not None:
            return kept
        for replica in self.replicas:
            if (offered := replica.document(digest)) is not None:
                self.documents[digest] = offered
                return offered
        return None

    def _unreached(self, item: Wanted, kept: Head, chain: Sequence[bytes], kind: Kind) -> Wanted | None:
        """The head with the reason why it cannot be had; None when it is on the chain."""
        if item.head.length < len(chain) and (chain[item.head.length] == item.head.address or item.who == _OWN_RECORD):
            return None  # nobody signed the state's own record of a head: it is mended where the entries say better
        beside = [piece for piece in self.pieces.at(kept.length) if item.head.length > kept.length]
        if item.head.length < len(chain):
            why = f"the entries that can be had lead to another head at {item.head.length}"
        elif self.pieces.leading_to(item.head, {chain[-1]: len(chain) - 1}):
            why = f"the entries from {len(chain) - 1} on can be had, and not the documents that they name, which only a replica holds"
        elif beside and len(chain) - 1 == kept.length and kept.length:
            why = (
                f"what there is does not go on from entry {kept.length - 1} of this state: two histories part before it"
            )
        else:
            why = f"nobody that was asked has all entries from {len(chain) - 1} on"
        return replace(item, why=why)

    def _check_forks(self, ledger: LedgerId, chain: Sequence[bytes]) -> None:
        """Nobody holds an entry of the steward's that stands beside this history."""
        for length, address in enumerate(chain):
            for piece in self.pieces.after(Head(ledger=ledger, length=length, address=address)):
                if length + 1 >= len(chain) or piece.address != chain[length + 1]:
                    raise NotVerified(
                        REPLICA_FORKS.at(
                            f"{piece.whose} holds an entry {length} of {ledger} that {self.engine.steward} sealed, and that "
                            "is not the one of this history: two histories of one ledger. Keep both, find out which one "
                            "was witnessed, and recover without the other"
                        )
                    )

    def _journal(self, stand: Stand) -> Iterator[JournalEvent]:
        """The events of the whole journal, in order, as far as it can be had."""
        for part in parts(self.engine, self.reader):
            own = journal_events(self.engine, self.reader, part.stream)
            most = stand.kept.length if part.stream == stand.stream else part.length
            yield from (event for _, event in islice(own, most))
        yield from (piece.event for piece in stand.added if isinstance(piece.event, JournalEvent))

    def _pinned(self, events: Sequence[JournalEvent], stream: str) -> list[Wanted]:
        """What the journal's last word on usage is, where it is about this stream."""
        for event in reversed(events):
            if stream_of(event.ledger) == stream:
                head = Head(ledger=event.ledger, length=event.ledger_length, address=event.ledger_head)
                return [Wanted(head=head, who="the journal")]
        return []

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _unusable(self) -> Iterator[str]:
        for whose, count in self.pieces.unusable.items():
            yield f"{whose}: {count} entries are not ones that {self.engine.steward} sealed, and were left out"


_OWN_RECORD = "this state's own record"
_CONTRADICTIONS = ("fork", "witness-equivocation")


def usage_streams(engine: Engine, events: Iterable[JournalEvent]) -> dict[str, Head | None]:
    """The streams of usage that a journal speaks of, in order, with the head that each was closed at.

    None: the last one, and those that a recovery gave up.
    """
    found: dict[str, Head | None] = {ENTITLEMENTS: None}
    for event in events:
        if isinstance(event, Rotated):
            closed = Head(ledger=event.from_ledger, length=event.from_length, address=event.from_head)
            found[stream_of(event.from_ledger)] = closed
            found.setdefault(stream_of(event.to_ledger), None)
        elif isinstance(event, Recovered):
            found.setdefault(stream_of(event.ledger), None)
    return found


def _ledger_of(sealed: bytes) -> str | None:
    try:
        return read_receipt(sealed)[0].ledger
    except BadStatement:
        return None


def _holds(item: Judged, chain: Sequence[bytes]) -> bool:
    """Whether a receipt says of a chain what it is."""
    receipt = item.receipt
    return (
        receipt is not None
        and item.verdict in ("witnessed", "prefix", "ahead")
        and receipt.length < len(chain)
        and chain[receipt.length] == receipt.head
    )
