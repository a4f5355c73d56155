"""Showing committed heads to witnesses, and refusing to go on where one knows more than this state.

Nothing is shown before it is committed, and whatever a witness does, what was committed stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleetctl.diagnostics import code
from fleetctl.engine.context import Engine, journal_stream, usage_stream
from fleetctl.engine.streams import head_of
from fleetctl.errors import NotVerified, SafetyRefused, Tampered, Unreachable
from fleetctl.ledger import cose
from fleetctl.ledger.chain import Head, address_of, genesis
from fleetctl.ledger.keys import public_key
from fleetctl.ledger.receipts import Attestation, Judged, WitnessKey, grading, judge, read_receipt
from fleetctl.ledger.statement import BadStatement
from fleetctl.ledger.verify import Verification
from fleetctl.model.bodies import SettingsBody
from fleetctl.model.codec import decode
from fleetctl.model.ids import SETTINGS_ID
from fleetctl.ports import Reader, StoredReceipt, Witness

ROLLED_BACK = code(
    "state-rolled-back",
    "A witness knows more than this state, or something else",
    trigger="a witness holds a receipt for a longer ledger or for another head at a length that this state has",
    exit_code=3,
)


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
    """Independent witnesses, counted by key, whose receipts cover both heads."""
    required: int = 0
    notes: tuple[str, ...] = ()

    def enough(self, at_least: int = 0) -> bool:
        """Whether as many witnesses cover both heads as the settings require, and at least `at_least`."""
        return self.covering >= max(self.required, at_least)


def roster(settings: SettingsBody) -> list[WitnessKey]:
    """The witnesses that the engine's settings name, with their keys."""
    return [
        WitnessKey(witness=id, key=public_key(bytes.fromhex(key)), co_located=id in settings.co_located)
        for id, key in sorted(settings.witnesses.items())
    ]


def read_settings(reader: Reader) -> SettingsBody:
    """The engine's settings without reading everything else."""
    found = reader.object("settings", SETTINGS_ID)
    body = found.body() if found is not None else decode("settings", {})
    assert isinstance(body, SettingsBody)
    return body


def refuse_rollback(engine: Engine) -> None:
    """Ask every witness for its newest receipts, then compare. One that does not answer says nothing.

    The witness is asked first and this state read after: heads only grow, so an apply that runs beside this one is
    never mistaken for a rollback. Raises SafetyRefused.
    """
    with engine.store.read() as reader:
        streams = (journal_stream(reader), usage_stream(reader))
    answers = [
        (stream, sealed)
        for witness in engine.witnesses
        for stream in streams
        if (sealed := _newest(witness, engine.ledger(stream))) is not None
    ]
    if not answers:
        return
    with engine.store.read() as reader:
        known = roster(read_settings(reader))
        for stream, sealed in answers:
            found = _judge(engine, reader, stream, sealed, known)
            if found.verdict in ("ahead", "fork"):
                raise SafetyRefused(
                    ROLLED_BACK.at(
                        f"witness {found.receipt.witness if found.receipt else '?'} contradicts this state of "
                        f"{engine.ledger(stream)} ({found.verdict}): {found.detail}. This state was rolled back or rewritten; "
                        "restore the newest copy, nothing is appended to this one"
                    )
                )


def witness_heads(engine: Engine) -> Witnessed:
    """Show both heads to every witness and keep the receipts. Never raises for what a witness does."""
    notes: list[str] = []
    fresh: list[StoredReceipt] = []
    for witness in engine.witnesses:
        with engine.store.read() as reader:
            jobs = [_job(engine, reader, witness, stream) for stream in (journal_stream(reader), usage_stream(reader))]
        for job in jobs:
            if job is None:
                continue
            try:
                sealed = witness.advance(job.head.ledger, job.old_length, job.old_head, job.entries)
            except (Unreachable, NotVerified) as error:
                notes.append(f"witness {witness.id}: {error.diagnostics[0].detail}")
                continue
            except KeyboardInterrupt:
                notes.append(f"witness {witness.id}: interrupted; finish with `fleetctl ledger witness`")
                break
            with engine.store.read() as reader:
                found = _judge(engine, reader, job.stream, sealed, roster(read_settings(reader)))
            if found.receipt is None or found.verdict not in ("witnessed", "prefix"):
                notes.append(f"witness {witness.id}: its receipt is {found.verdict}: {found.detail}")
                continue
            fresh.append(
                StoredReceipt(
                    stream=job.stream,
                    witness=found.receipt.witness,
                    length=found.receipt.length,
                    head=found.receipt.head,
                    at_ms=found.receipt.at_ms,
                    sealed=sealed,
                )
            )
    if fresh:
        with engine.store.write(60_000) as tx:
            for receipt in fresh:
                tx.put_receipt(receipt)
    return witnessed(engine, notes)


def witnessed(engine: Engine, notes: Iterable[str] = ()) -> Witnessed:
    """How far the heads are witnessed by the receipts that are kept."""
    with engine.store.read() as reader:
        settings = read_settings(reader)
        known = roster(settings)
        by_stream: list[tuple[str, Head, list[Judged]]] = []
        for stream in (journal_stream(reader), usage_stream(reader)):
            newest = _newest_by_witness(reader.receipts(stream))
            judged = [_judge(engine, reader, stream, item.sealed, known) for item in newest]
            by_stream.append((stream, head_of(engine, reader, stream), judged))
    grades = [grading(judged, head.length) for _, head, judged in by_stream]
    covering = set.intersection(*(_covering(judged, known) for _, _, judged in by_stream))
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
            for stream, _, judged in by_stream
            for item in judged
            if item.receipt is not None
        ),
        co_located=any(item.co_located for item in grades),
        covering=len(covering),
        required=settings.required_witnesses,
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    stream: str
    head: Head
    old_length: int
    old_head: bytes
    entries: Sequence[bytes]


def _job(engine: Engine, reader: Reader, witness: Witness, stream: str) -> _Job | None:
    head = head_of(engine, reader, stream)
    kept = [item for item in reader.receipts(stream) if item.witness == witness.id and item.length <= head.length]
    newest = max(kept, key=lambda item: item.length, default=None)
    if newest is not None and (newest.length, newest.head) == (head.length, head.address):
        return None
    old_length, old_head = (newest.length, newest.head) if newest else (0, genesis(head.ledger))
    entries = list(reader.entries(stream, old_length, head.length))
    return _Job(stream=stream, head=head, old_length=old_length, old_head=old_head, entries=entries)


def _newest(witness: Witness, ledger: str) -> bytes | None:
    try:
        return witness.head(ledger)
    except (Unreachable, NotVerified):
        return None


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
    place = Verification(
        ledger=head.ledger,
        length=head.length,
        head=head.address,
        first={},
        faults=(),
        fault_count=0,
        start=min(length, head.length),
        addresses=at,
        fold=None,
    )
    (found,) = judge([sealed], place, steward_keys=[engine.steward_key], roster=known, now_ms=engine.clock.now_ms())
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


def _covering(judged: Iterable[Judged], known: Sequence[WitnessKey]) -> set[bytes]:
    """Keys of independent witnesses whose receipts cover the very head."""
    keys = {item.witness: bytes(item.key) for item in known}
    return {
        keys[item.receipt.witness]
        for item in judged
        if item.receipt is not None and item.verdict == "witnessed" and not item.co_located
    }


def _weakest(grades: Sequence[Attestation]) -> Attestation:
    order: tuple[Attestation, ...] = ("self-attested", "witnessed-to", "witnessed")
    return min(grades, key=order.index)
