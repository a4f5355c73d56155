"""Showing committed heads to witnesses, and refusing to go on where one knows more than this state.

Nothing is shown before it is committed, and whatever a witness does, what was committed stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from fleetctl.canonical import canonical_bytes, sha256_hex
from fleetctl.diagnostics import code
from fleetctl.engine.context import Engine, check_identity, journal_stream, usage_stream
from fleetctl.engine.journal import keep_document
from fleetctl.engine.journals import parts
from fleetctl.engine.state import STATE_TAMPERED
from fleetctl.engine.streams import closed_windows, head_of
from fleetctl.errors import BadInput, FleetctlError, NotVerified, SafetyRefused, Tampered, Unreachable
from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.audit import RECEIPT_FAILED
from fleetctl.ledger.chain import Head, address_of, empty, genesis
from fleetctl.ledger.identifiers import stream_of
from fleetctl.ledger.keys import PublicKey, public_key
from fleetctl.ledger.receipts import (
    FAILING,
    MAX_RECEIPTS,
    Attestation,
    Judged,
    WitnessKey,
    covered_by_key,
    grading,
    judge,
    read_receipt,
)
from fleetctl.ledger.statement import BadStatement
from fleetctl.ledger.verify import Verification
from fleetctl.model.bodies import SettingsBody
from fleetctl.model.ids import SETTINGS_ID
from fleetctl.ports import Reader, StoredReceipt, Witness, WitnessContradicts, WitnessElsewhere

ROLLED_BACK = code(
    "state-rolled-back",
    "A witness knows more than this state, or something else",
    trigger="a witness holds a receipt for a longer ledger or for another head at a length that this state has",
    exit_code=3,
)

_RESUMES: Final = 3
"""Others may move the same ledger at a witness meanwhile, but not for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReceipt:
    """The newest receipt of one witness for one stream."""

    witness: str
    stream: str
    length: int
    verdict: str
    co_located: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """How far the heads are witnessed. `notes` say, for people, which witness did not answer or refused, and why."""

    grade: Attestation
    receipts: tuple[StreamReceipt, ...] = ()
    co_located: bool = False
    covering: int = 0
    """Independent witnesses, counted by key, whose receipts cover both ledgers as far as was asked."""
    required: int = 0
    missing: tuple[str, ...] = ()
    """Independent witnesses of the settings that do not."""
    known: int = 0
    """How many independent witnesses the settings name, counted by key."""
    notes: tuple[str, ...] = ()

    def enough(self, at_least: int = 0) -> bool:
        """Whether as many witnesses cover both heads as the settings require, and at least `at_least`."""
        return self.covering >= max(self.required, at_least)


def roster(settings: SettingsBody, witnesses: Iterable[Witness] = ()) -> list[WitnessKey]:
    """The witnesses that the engine's settings name, with their keys.

    One is co-located when the settings say so, or when it is one of `witnesses` that says so itself, under whatever name.
    """
    beside = {*settings.co_located, *(item.id for item in witnesses if item.co_located)}
    keys_beside = {key for id, key in settings.witnesses.items() if id in beside}
    return [
        WitnessKey(witness=id, key=public_key(bytes.fromhex(key)), co_located=key in keys_beside)
        for id, key in sorted(settings.witnesses.items())
    ]


def read_settings(reader: Reader) -> SettingsBody:
    """The engine's settings without reading everything else. Raises Tampered when they cannot be what an engine wrote."""
    found = reader.object("settings", SETTINGS_ID)
    try:
        body = found.body() if found is not None else SettingsBody()
        assert isinstance(body, SettingsBody)
        roster(body)
    except (ValueError, RecursionError, BadInput) as error:
        raise Tampered(STATE_TAMPERED.at(f"the engine's settings cannot be read: {error}; restore a backup")) from None
    return body


def refuse_rollback(engine: Engine, elsewhere: Iterable[tuple[str, bytes]] = ()) -> None:
    """Ask every witness for its newest receipts, then compare them, and those that are kept, with this state.

    `elsewhere` are further receipts (stream, sealed), such as those of a state that this one is to replace. A witness is
    asked first and this state read after: heads only grow, so an apply that runs beside this one is never mistaken for
    a rollback. One that does not answer says nothing. Raises SafetyRefused.
    """
    with engine.store.read() as reader:
        check_identity(engine, reader)
        streams = (journal_stream(reader), usage_stream(reader))
    answers = newest_answers(engine, streams)
    with engine.store.read() as reader:
        known = roster(read_settings(reader), engine.witnesses)
        kept = [(stream, item.sealed) for stream in streams for item in _newest_by_witness(reader.receipts(stream))]
        others = [(stream, sealed) for stream, sealed in elsewhere if stream in streams]
        for stream, sealed in dict.fromkeys((*answers, *kept, *others)):
            found = _judge(engine, reader, stream, sealed, known)
            if found.verdict in ("ahead", "fork"):
                raise SafetyRefused(
                    ROLLED_BACK.at(
                        f"witness {found.receipt.witness if found.receipt else '?'} contradicts this state of "
                        f"{engine.ledger(stream)} ({found.verdict}): {found.detail}. This state was rolled back or rewritten, and "
                        "nothing is appended to it: bring back what it lacks with `fleetctl ledger recover`"
                    )
                )


def newest_answers(engine: Engine, streams: Iterable[str]) -> list[tuple[str, bytes]]:
    """What every witness that answers signed last: streams with sealed receipts, none of them verified.

    It is asked before the state is read that the receipts are compared with: heads only grow.
    """
    wanted = list(streams)
    return [item for witness in engine.witnesses for item in _newest(engine, witness, wanted)]


def check_receipts(engine: Engine, reader: Reader, verifications: Iterable[Verification], *, full: bool) -> None:
    """The receipts that are kept are what they claim to be. `full` looks at the newest MAX_RECEIPTS of each stream, else the newest of each witness.

    Raises NotVerified.
    """
    known = roster(read_settings(reader), engine.witnesses)
    for found in verifications:
        kept = reader.receipts(stream_of(found.ledger))
        looked_at = kept[-MAX_RECEIPTS:] if full else _newest_by_witness(kept)
        judged = judge(
            [item.sealed for item in looked_at],
            found,
            steward_keys=[engine.steward_key],
            roster=known,
            now_ms=engine.clock.now_ms(),
        )
        wrong = [item for item in judged if item.verdict in FAILING]
        if wrong:
            raise NotVerified(
                RECEIPT_FAILED.at(
                    f"{found.ledger}: a receipt by {item.receipt.witness if item.receipt else 'nobody known'} is "
                    f"{item.verdict}: {item.detail}"
                )
                for item in wrong
            )


def witness_heads(engine: Engine) -> Witnessed:
    """Show both heads, and those of closed windows that a witness has not signed, to every witness and keep the receipts. Never raises
    for what a witness does.

    Coverage is judged for the heads as they stand now: what others append meanwhile takes nothing away from it.
    """
    notes: list[str] = []
    fresh: list[StoredReceipt] = []
    proofs: list[bytes] = []
    with engine.store.read() as reader:
        heads = {stream: head_of(engine, reader, stream) for stream in (journal_stream(reader), usage_stream(reader))}
        heads |= _unsigned_windows(engine, reader)
    try:
        for witness in engine.witnesses:
            for stream, head in heads.items():
                try:
                    fresh += _receipts(engine, witness, stream, head)
                except FleetctlError as error:
                    notes.append(_note(witness.id, error.diagnostics[0].detail))
                    if isinstance(error, WitnessContradicts) and (proof := _proof(engine, stream, error.receipt)):
                        proofs.append(proof)
                        notes.append(
                            f"what it signed is kept as document {sha256_hex(proof)}: two histories, one witness"
                        )
                    if isinstance(error, Unreachable):  # it is not waited for once for each ledger
                        break
    except KeyboardInterrupt:
        notes.append("interrupted; finish with `fleetctl ledger witness`")
    if fresh or proofs:
        try:
            with engine.store.write(60_000) as tx:
                for receipt in fresh:
                    tx.put_receipt(receipt)
                for proof in proofs:
                    keep_document(tx, proof)
        except FleetctlError as error:  # what was committed stands, and the witness has it
            notes.append(f"the receipts could not be kept, `fleetctl ledger witness` asks again: {error}")
    found = witnessed(engine, notes, {stream: head.length for stream, head in heads.items()})
    return replace(found, notes=(*found.notes, *_unasked(engine, found)))


def _unasked(engine: Engine, found: Witnessed) -> Iterator[str]:
    """Witnesses that are missing because nothing says where they are, where that matters."""
    asked = {item.id for item in engine.witnesses}
    if not found.enough() or found.grade != "witnessed":
        for id in found.missing:
            if id not in asked:
                yield (
                    f"witness {id} is in the engine's settings, and nothing says where it is: add it to `witnesses` in "
                    f"config.toml, or give --witness {id}=URL"
                )


def _proof(engine: Engine, stream: str, sealed: bytes) -> bytes | None:
    """The document that keeps a receipt which contradicts this ledger. None for one that does not: it is only not what was asked for.

    It is no receipt of the ledger: who lies must not be able to stop what goes on by lying.
    """
    with engine.store.read() as reader:
        found = _judge(engine, reader, stream, sealed, roster(read_settings(reader), engine.witnesses))
    if found.verdict not in ("fork", "ahead", "witness-equivocation") or found.receipt is None:
        return None
    return canonical_bytes({"contradicts": found.receipt.ledger, "receipt": sealed.hex(), "verdict": found.verdict})


def _note(witness: str, detail: str) -> str:
    return f"witness {detail}" if detail.startswith(witness) else f"witness {witness}: {detail}"


def witnessed(engine: Engine, notes: Iterable[str] = (), heads: Mapping[str, int] | None = None) -> Witnessed:
    """How far the ledgers are witnessed by the receipts that are kept. `heads` are lengths by stream to be covered; absent: all of each."""
    with engine.store.read() as reader:
        settings = read_settings(reader)
        known = roster(settings, engine.witnesses)
        by_stream: list[tuple[str, Head, list[Judged]]] = []
        in_force = (journal_stream(reader), usage_stream(reader))
        for stream in (*in_force, *closed_windows(engine, reader)):
            head = head_of(engine, reader, stream)
            kept = reader.receipts(stream, head.length) if stream not in in_force else []
            newest = _newest_by_witness(kept or reader.receipts(stream))
            judged = [_judge(engine, reader, stream, item.sealed, known) for item in newest]
            by_stream.append((stream, head, judged))
    grades = [grading(judged, head.length, settings.required_witnesses) for _, head, judged in by_stream]
    wanted = heads or {}
    covering = set.intersection(
        *(_covering(judged, wanted.get(stream, head.length)) for stream, head, judged in by_stream)
    )
    return Witnessed(
        grade=_weakest([item.grade for item in grades]),
        receipts=tuple(
            StreamReceipt(
                witness=item.receipt.witness,
                stream=stream,
                length=item.receipt.length,
                verdict=item.verdict,
                co_located=item.co_located,
            )
            for stream, head, judged in by_stream
            for item in judged
            if item.receipt is not None and (stream in in_force or item.receipt.length < head.length)
        ),
        co_located=any(item.co_located for item in grades),
        covering=len(covering),
        required=settings.required_witnesses,
        missing=tuple(item.witness for item in known if not item.co_located and item.key not in covering),
        known=len({item.key for item in known if not item.co_located}),
        notes=tuple(notes),
    )


def _unsigned_windows(engine: Engine, reader: Reader) -> dict[str, Head]:
    """Heads of closed windows for which no receipt of some witness is kept: nobody asks for the others again."""
    found: dict[str, Head] = {}
    for stream in closed_windows(engine, reader):
        head = head_of(engine, reader, stream)
        signed = {item.witness for item in reader.receipts(stream, head.length)}
        if any(witness.id not in signed for witness in engine.witnesses):
            found[stream] = head
    return found


def journal_covered(engine: Engine) -> list[range]:
    """The places of the journal that as many independent witnesses cover as the settings require, by the receipts that are kept."""
    out = []
    with engine.store.read() as reader:
        settings = read_settings(reader)
        known, required = roster(settings, engine.witnesses), settings.required_witnesses
        for part in parts(engine, reader):
            newest = _newest_by_witness(reader.receipts(part.stream))
            judged = [_judge(engine, reader, part.stream, item.sealed, known) for item in newest]
            covered = grading(judged, part.length, required).witnessed_length or 0
            out.append(range(part.start, part.start + covered))
    return out


def _receipts(engine: Engine, witness: Witness, stream: str, head: Head) -> list[StoredReceipt]:
    """A fresh receipt that covers `head`, or none when one is kept already.

    A witness that knows the ledger at another place of the same chain (a receipt was lost, or another process was
    faster) is asked again from there; where that is beyond `head`, its word for it is enough. Raises Unreachable,
    NotVerified.
    """
    known = _known_place(engine, witness, stream, head)
    if known == head:
        return []
    start = known or empty(head.ledger)
    for _ in range(_RESUMES):
        try:
            return [_accepted(engine, stream, _ask(engine, witness, stream, start, head))]
        except WitnessElsewhere as elsewhere:
            start = replace(head, length=elsewhere.length, address=elsewhere.head)
            with engine.store.read() as reader:
                if not _on_chain(engine, reader, stream, start):
                    raise
            if elsewhere.receipt is not None and start.length >= head.length:
                return [_accepted(engine, stream, elsewhere.receipt)]
    return [_accepted(engine, stream, _ask(engine, witness, stream, start, head))]


def _known_place(engine: Engine, witness: Witness, stream: str, head: Head) -> Head | None:
    """Where the newest good receipt of a witness is, up to `head`. None without one: an empty ledger wants a receipt too."""
    with engine.store.read() as reader:
        known = roster(read_settings(reader), engine.witnesses)
        kept = [item for item in reader.receipts(stream) if item.witness == witness.id and item.length <= head.length]
        for item in sorted(kept, key=lambda item: item.length, reverse=True):
            found = _judge(engine, reader, stream, item.sealed, known)
            if found.receipt is not None and found.verdict in ("witnessed", "prefix"):
                return replace(head, length=found.receipt.length, address=found.receipt.head)
    return None


def _ask(engine: Engine, witness: Witness, stream: str, start: Head, head: Head) -> bytes:
    with engine.store.read() as reader:
        entries = list(reader.entries(stream, start.length, max(start.length, head.length)))
    return witness.advance(head.ledger, start.length, start.address, entries)


def _accepted(engine: Engine, stream: str, sealed: bytes) -> StoredReceipt:
    """An answer as a receipt to keep. Raises NotVerified for one that says nothing good of this ledger."""
    with engine.store.read() as reader:
        found = _judge(engine, reader, stream, sealed, roster(read_settings(reader), engine.witnesses))
    receipt = found.receipt
    if receipt is None or found.verdict not in ("witnessed", "prefix"):
        raise NotVerified(RECEIPT_FAILED.at(f"its receipt is {found.verdict}: {found.detail}"))
    return stored_receipt(stream, sealed)


def stored_receipt(stream: str, sealed: bytes) -> StoredReceipt:
    """A receipt as it is kept, with what it says of itself. Raises BadStatement for what is none."""
    receipt, _ = read_receipt(sealed)
    return StoredReceipt(
        stream=stream,
        witness=receipt.witness,
        length=receipt.length,
        head=receipt.head,
        at_ms=receipt.at_ms,
        sealed=sealed,
    )


def judged_against(
    engine: Engine, head: Head, addresses: bytes, receipts: Sequence[bytes], known: Sequence[WitnessKey], start: int = 0
) -> list[Judged]:
    """Verdicts on receipts, compared with a ledger of which only addresses are known: those from `start` on, the one before in front."""
    place = Verification(
        ledger=head.ledger,
        length=head.length,
        head=head.address,
        first={},
        faults=(),
        fault_count=0,
        start=start,
        addresses=addresses,
        fold=None,
    )
    return judge(receipts, place, steward_keys=[engine.steward_key], roster=known, now_ms=engine.clock.now_ms())


def _on_chain(engine: Engine, reader: Reader, stream: str, place: Head) -> bool:
    head = head_of(engine, reader, stream)
    return place.length <= head.length and _address_at(reader, head, place.length) == place.address


def _newest(engine: Engine, witness: Witness, streams: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """What one witness says of streams. One that does not answer for the first is not waited for again."""
    for stream in streams:
        try:
            sealed = witness.head(engine.ledger(stream))
        except Unreachable:
            return
        except NotVerified:
            continue
        if sealed is not None:
            yield stream, sealed


def _newest_by_witness(receipts: Iterable[StoredReceipt]) -> list[StoredReceipt]:
    newest: dict[str, StoredReceipt] = {}
    for item in receipts:
        if item.witness not in newest or newest[item.witness].length <= item.length:
            newest[item.witness] = item
    return [newest[witness] for witness in sorted(newest)]


def _judge(engine: Engine, reader: Reader, stream: str, sealed: bytes, known: Sequence[WitnessKey]) -> Judged:
    """The verdict on one receipt, comparing its head with the stored entry at its length."""
    head = head_of(engine, reader, stream)
    length = _stated_length(sealed)
    at = _address_at(reader, head, length) if length <= head.length else head.address
    (found,) = judged_against(engine, head, at, [sealed], known, start=min(length, head.length))
    return found


def _stated_length(sealed: bytes) -> int:
    try:
        return read_receipt(sealed)[0].length
    except BadStatement:
        return 0


def _address_at(reader: Reader, head: Head, length: int) -> bytes:
    if length == 0:
        return genesis(head.ledger)
    if length == head.length:
        return head.address
    stream = head.ledger.partition("/")[2]
    data = b"".join(reader.entries(stream, length - 1, length))
    try:
        return address_of(cose.read(data, 0).payload)
    except (cose.BadEnvelope, IndexError) as error:
        raise Tampered(ROLLED_BACK.at(f"entry {length - 1} of {head.ledger} cannot be read: {error}")) from None


def _covering(judged: Iterable[Judged], length: int) -> set[PublicKey]:
    """Keys of independent witnesses whose receipts cover the ledger to at least `length`."""
    return {key for key, covered in covered_by_key(judged).items() if covered >= length}


def _weakest(grades: Sequence[Attestation]) -> Attestation:
    order: tuple[Attestation, ...] = ("self-attested", "witnessed-to", "witnessed")
    return min(grades, key=order.index)
