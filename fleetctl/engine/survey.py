"""Looking at a state for a recovery: how far it has its ledgers, how far they can be had, and what speaks of more.

Nothing is written here. What is on offer (rows of this state behind a break, replicas, entries that witnesses were shown) is a heap
that links put in order; what speaks of more is receipts of witnesses, the journal's pins and the state's own record of its heads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from fleetctl.diagnostics import code
from fleetctl.engine.context import ENTITLEMENTS, Engine, check_identity, check_open, journal_stream, usage_stream
from fleetctl.engine.forgotten import forgotten_journals, ledger_of
from fleetctl.engine.journals import parts
from fleetctl.engine.pieces import Piece, Pieces
from fleetctl.engine.receipts import judged_against, wider_roster
from fleetctl.engine.stands import End, Kind, Replica, Stand, Survey, Wanted, cut, head_in, reaches
from fleetctl.engine.streams import journal_events
from fleetctl.errors import FleetctlError, NotVerified, SafetyRefused, Unreachable
from fleetctl.ledger.chain import ADDRESS_BYTES, Head, empty
from fleetctl.ledger.documents import named_documents
from fleetctl.ledger.entries import Event, JournalEvent, Recovered, Rotated
from fleetctl.ledger.identifiers import LedgerId, is_ledger_id, kind_of, steward_of, stream_of
from fleetctl.ledger.receipts import MAX_RECEIPTS, Judged, WitnessKey, read_receipt
from fleetctl.ledger.statement import BadStatement
from fleetctl.ledger.verify import Verification, examine
from fleetctl.ports import Reader, Witness

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
        self.roster: list[WitnessKey] = wider_roster(reader, engine.witnesses)
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
        self._silent: set[str] = set()

    def run(self) -> Survey:
        heads = tuple(self.reader.streams())
        names = [item.stream for item in heads]
        for name in names:
            self._local[name] = self._examined(name)
        for replica in self.replicas:
            self.pieces.add(replica.name, replica.entries)
        journals = self._journals()
        before, events = self._events(journals)
        journals[-1] = self._with_forgotten(journals, events)
        undocumented = tuple(
            digest
            for event in islice(events, before + journals[0].kept.length)
            for digest in map(bytes.hex, named_documents(event))
            if self._document(digest) is None
        )
        return Survey(
            stands=(*journals, *self._usage(events)),
            heads=heads,
            documents=self.documents,
            undocumented=undocumented,
            notes=(*self.notes, *self._unusable()),
        )

    def _journals(self) -> list[Stand]:
        """The journal in force, and those that recoveries opened after it which this state does not know."""
        stand = self._stand("journal", journal_stream(self.reader), (), closed=False)
        found: list[Stand] = []
        while (after := self._goes_on(stand, {item.stream for item in found})) is not None:
            ended, ledger = after
            found.append(cut(stand, ended))
            stand = self._stand("journal", stream_of(ledger), (), closed=False)
        return [*found, stand]

    def _goes_on(self, stand: Stand, passed: set[str]) -> tuple[Head, LedgerId] | None:
        """Where a journal was closed by a recovery, and the journal that this opened; None for the last. Raises NotVerified for two."""
        spoken_of = {item for replica in self.replicas for item in replica.ledgers}
        spoken_of |= {ledger_of(sealed) or "" for sealed in self.offered}
        spoken_of |= {str(self.engine.ledger(item.stream)) for item in self.reader.receipts()}
        known = {*passed, stand.stream, *(item.stream for item in self.reader.streams())}
        found: list[tuple[Head, LedgerId]] = []
        for name in sorted(filter(is_ledger_id, spoken_of)):
            ledger = LedgerId(name)
            if steward_of(ledger) != self.engine.steward or kind_of(ledger) != "journal" or stream_of(ledger) in known:
                continue
            for piece in self.pieces.after(empty(ledger)):
                account = self._account(piece.event)
                ended = head_in(account, "journal") if account else None
                if ended is not None and reaches(stand, ended):
                    found.append((ended, ledger))
        if len(found) > 1:
            raise NotVerified(
                REPLICA_FORKS.at(
                    f"{' and '.join(ledger for _, ledger in found)} both go on from {stand.whole.ledger}: two recoveries of one state. "
                    "Find out which one was witnessed, and recover without the other"
                )
            )
        return found[0] if found else None

    def _with_forgotten(self, journals: Sequence[Stand], events: Iterable[Event]) -> Stand:
        """The last journal; what witnesses signed in others that do not go on from it is missing behind it."""
        sealed = forgotten_journals(
            self.engine,
            [*(item.sealed for item in self.reader.receipts()), *self.offered],
            self.roster,
            streams={item.stream for item in journals}.union(item.stream for item in self.reader.streams()),
            accounts=[found for event in events if (found := self._account(event)) is not None],
        )
        wanted = (
            Wanted(
                head=Head(ledger=found.ledger, length=found.length, address=found.head),
                who=f"witness {found.witness}",
                why="a recovery opened it, and it does not go on from what this state has",
                receipt=receipt,
            )
            for receipt, found in sealed
        )
        return replace(journals[-1], missing=(*journals[-1].missing, *wanted))

    def _account(self, event: Event) -> dict[str, Any] | None:
        """What a `recovered` entry says of what was kept and lost; None for another entry, or where nobody has it."""
        if not isinstance(event, Recovered) or not event.evidence:
            return None
        content = self._document(event.evidence[0].hex())
        try:
            account = json.loads(content or b"null")
        except (ValueError, RecursionError):
            return None
        return account if isinstance(account, dict) else None

    def _usage(self, events: Sequence[JournalEvent]) -> Iterator[Stand]:
        """The streams of usage that the journal speaks of."""
        streams = self._usage_streams(events)
        in_force = usage_stream(self.reader)
        if in_force not in streams:  # the entries that opened it are lost
            streams[in_force] = None
        for index, (stream, ended) in enumerate(streams.items()):
            if index == len(streams) - 1:
                yield self._stand("entitlements", stream, self._pinned(events, stream), closed=False)
            elif ended is not None:
                said = Wanted(head=ended.head, who="the journal")
                stand = self._stand("entitlements", stream, [said], closed=True)
                yield cut(stand, ended.head) if ended.given_up and reaches(stand, ended.head) else stand

    def _usage_streams(self, events: Iterable[JournalEvent]) -> dict[str, End | None]:
        """The streams of usage in order, with where each was closed: None for the last, and where nobody can say."""
        found: dict[str, End | None] = {ENTITLEMENTS: None}
        for event in events:
            if isinstance(event, Rotated):
                closed = Head(ledger=event.from_ledger, length=event.from_length, address=event.from_head)
                found[stream_of(event.from_ledger)] = End(closed, given_up=False)
                found.setdefault(stream_of(event.to_ledger), None)
            elif isinstance(event, Recovered) and stream_of(event.ledger) not in found:
                given_up = head_in(self._account(event) or {}, "entitlements")
                if given_up is not None and stream_of(given_up.ledger) in found:
                    found[stream_of(given_up.ledger)] = End(given_up, given_up=True)
                found[stream_of(event.ledger)] = None
        return found

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
        sound = found.sound_length
        self.pieces.known.update(found.head_at(length) for length in range(1, sound + 1))
        if fault is not None:
            self.pieces.add("this state", rows[sound:])
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
        found = [item.sealed for item in self.reader.receipts(stream)] + self._answers(kept)
        found += [item for item in self.offered if ledger_of(item) == kept.ledger]
        sealed = sorted(dict.fromkeys(found), key=_stated_length)[-MAX_RECEIPTS:]
        return list(zip(sealed, judged_against(self.engine, kept, addresses, sealed, self.roster), strict=True))

    def _answers(self, kept: Head) -> list[bytes]:
        """What every witness signed last for a ledger; one that does not say is noted."""
        found = []
        for witness in self._asked():
            try:
                sealed = witness.head(kept.ledger)
            except FleetctlError as error:
                self._hear(witness, error)
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

    def _fetch(self, kept: Head, wanted: Sequence[Wanted], known: Mapping[bytes, int]) -> None:
        """Ask witnesses for the entries that nobody else has."""
        for witness in self._asked():
            lacking = [item.head.length for item in wanted if self.pieces.leading_to(item.head, known) is None]
            if (most := max(lacking, default=0)) <= kept.length:
                return
            try:
                entries = witness.fetch(kept.ledger, kept.length, most, self.engine.sealing())
            except FleetctlError as error:
                self._hear(witness, error)
                self._note(f"witness {witness.id} gives no entries back: {error.diagnostics[0].detail}")
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

    def _events(self, journals: Sequence[Stand]) -> tuple[int, list[JournalEvent]]:
        """The events of the whole journal, in order, as far as it can be had; and how many are before the stream in force."""
        *earlier, in_force = parts(self.engine, self.reader)
        found: list[JournalEvent] = []
        for part, most in (*((part, part.length) for part in earlier), (in_force, journals[0].kept.length)):
            found += [event for _, event in islice(journal_events(self.engine, self.reader, part.stream), most)]
        for stand in journals:
            found += [piece.event for piece in stand.added if isinstance(piece.event, JournalEvent)]
        return in_force.start, found

    def _pinned(self, events: Sequence[JournalEvent], stream: str) -> list[Wanted]:
        """What the journal's last word on usage is, where it is about this stream."""
        for event in reversed(events):
            if stream_of(event.ledger) == stream:
                head = Head(ledger=event.ledger, length=event.ledger_length, address=event.ledger_head)
                return [Wanted(head=head, who="the journal")]
        return []

    def _asked(self) -> Iterator[Witness]:
        """The witnesses, but for those that did not answer: nobody is waited for twice."""
        return (witness for witness in self.engine.witnesses if witness.id not in self._silent)

    def _hear(self, witness: Witness, error: FleetctlError) -> None:
        if isinstance(error, Unreachable):
            self._silent.add(witness.id)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _unusable(self) -> Iterator[str]:
        for whose, count in self.pieces.unusable.items():
            yield f"{whose}: {count} entries are not ones that {self.engine.steward} sealed, and were left out"


_OWN_RECORD = "this state's own record"
_CONTRADICTIONS = ("fork", "witness-equivocation")


def _holds(item: Judged, chain: Sequence[bytes]) -> bool:
    """Whether a receipt says of a chain what it is."""
    receipt = item.receipt
    return (
        receipt is not None
        and item.verdict in ("witnessed", "prefix", "ahead")
        and receipt.length < len(chain)
        and chain[receipt.length] == receipt.head
    )


def _stated_length(sealed: bytes) -> int:
    try:
        return read_receipt(sealed)[0].length
    except BadStatement:
        return -1
