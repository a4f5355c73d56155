"""The receipts that are kept, judged against this state: how far it is witnessed, and by whom."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from fleetctl.diagnostics import code
from fleetctl.engine.context import META_EARLIER, Engine, journal_stream, usage_stream
from fleetctl.engine.journals import parts
from fleetctl.engine.state import STATE_TAMPERED
from fleetctl.engine.streams import closed_windows, head_of
from fleetctl.engine.windows import spans_of
from fleetctl.errors import BadInput, NotVerified, Tampered
from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.chain import Head, address_of, genesis
from fleetctl.ledger.identifiers import stream_of
from fleetctl.ledger.keys import PublicKey, public_key
from fleetctl.ledger.receipts import (
    FAILING,
    LOST,
    MAX_RECEIPTS,
    Attestation,
    Judged,
    WitnessKey,
    covered_by_key,
    grading,
    judge,
    read_receipt,
)
from fleetctl.ledger.report import RECEIPT_FAILED
from fleetctl.ledger.statement import BadStatement
from fleetctl.ledger.verify import Verification
from fleetctl.model.bodies import SettingsBody
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


def earlier_witnesses(reader: Reader) -> dict[str, str]:
    """The witnesses (id, hexadecimal key) that the settings named before this state was set back, and not the ones it has.

    They say what it lacks, and raise no grade.
    """
    try:
        found = json.loads(reader.meta(META_EARLIER) or "{}")
        settings = SettingsBody(witnesses=found)
        roster(settings)
    except (ValueError, TypeError, AttributeError, RecursionError, BadInput):
        return {}
    return {id: key for id, key in settings.witnesses.items() if id not in read_settings(reader).witnesses}


def wider_roster(
    reader: Reader, witnesses: Iterable[Witness] = (), also: Mapping[str, str] | None = None
) -> list[WitnessKey]:
    """As `roster`, with earlier witnesses and those of `also`: for what contradicts a state, whatever its settings have forgotten."""
    settings = read_settings(reader)
    forgotten = {**earlier_witnesses(reader), **(also or {})}
    more = SettingsBody(witnesses={id: key for id, key in forgotten.items() if id not in settings.witnesses})
    return [*roster(settings, witnesses), *roster(more)]


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


def check_receipts(engine: Engine, reader: Reader, verifications: Iterable[Verification], *, full: bool) -> None:
    """The receipts that are kept are what they claim to be. `full` looks at the newest MAX_RECEIPTS of each stream, else the newest of each witness.

    Raises NotVerified.
    """
    known = roster(read_settings(reader), engine.witnesses)
    given_up = {item.ledger for item in spans_of(engine, reader) if item.given_up}
    for found in verifications:
        failing = FAILING - LOST if found.ledger in given_up else FAILING
        kept = reader.receipts(stream_of(found.ledger))
        looked_at = kept[-MAX_RECEIPTS:] if full else newest_by_witness(kept)
        judged = judge(
            [item.sealed for item in looked_at],
            found,
            steward_keys=[engine.steward_key],
            roster=known,
            now_ms=engine.clock.now_ms(),
        )
        wrong = [item for item in judged if item.verdict in failing]
        if wrong:
            raise NotVerified(
                RECEIPT_FAILED.at(
                    f"{found.ledger}: a receipt by {item.receipt.witness if item.receipt else 'nobody known'} is "
                    f"{item.verdict}: {item.detail}"
                )
                for item in wrong
            )


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
            newest = newest_by_witness(kept or reader.receipts(stream))
            judged = [judge_receipt(engine, reader, stream, item.sealed, known) for item in newest]
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


def journal_covered(engine: Engine) -> list[range]:
    """The places of the journal that as many independent witnesses cover as the settings require, by the receipts that are kept."""
    out = []
    with engine.store.read() as reader:
        settings = read_settings(reader)
        known, required = roster(settings, engine.witnesses), settings.required_witnesses
        for part in parts(engine, reader):
            newest = newest_by_witness(reader.receipts(part.stream))
            judged = [judge_receipt(engine, reader, part.stream, item.sealed, known) for item in newest]
            covered = grading(judged, part.length, required).witnessed_length or 0
            out.append(range(part.start, part.start + covered))
    return out


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


def on_chain(engine: Engine, reader: Reader, stream: str, place: Head) -> bool:
    head = head_of(engine, reader, stream)
    return place.length <= head.length and _address_at(reader, head, place.length) == place.address


def newest_by_witness(receipts: Iterable[StoredReceipt]) -> list[StoredReceipt]:
    newest: dict[str, StoredReceipt] = {}
    for item in receipts:
        if item.witness not in newest or newest[item.witness].length <= item.length:
            newest[item.witness] = item
    return [newest[witness] for witness in sorted(newest)]


def judge_receipt(engine: Engine, reader: Reader, stream: str, sealed: bytes, known: Sequence[WitnessKey]) -> Judged:
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
