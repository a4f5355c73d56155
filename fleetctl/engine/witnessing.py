"""Showing committed heads to witnesses, and refusing to go on where one knows more than this state.

Nothing is shown before it is committed, and whatever a witness does, what was committed stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from fleetctl.canonical import canonical_bytes, sha256_hex
from fleetctl.engine.context import Engine, check_identity, journal_stream, usage_stream
from fleetctl.engine.forgotten import forgotten_journals
from fleetctl.engine.journal import keep_document
from fleetctl.engine.journals import account_of, journal_history
from fleetctl.engine.receipts import (
    ROLLED_BACK,
    Witnessed,
    judge_receipt,
    newest_by_witness,
    on_chain,
    read_settings,
    roster,
    stored_receipt,
    wider_roster,
    witnessed,
)
from fleetctl.engine.streams import closed_windows, head_of
from fleetctl.errors import FleetctlError, NotVerified, SafetyRefused, Unreachable
from fleetctl.ledger.chain import Head, empty
from fleetctl.ledger.entries import Recovered
from fleetctl.ledger.receipts import Receipt, WitnessKey
from fleetctl.ledger.report import RECEIPT_FAILED
from fleetctl.ports import Reader, StoredReceipt, Witness, WitnessContradicts, WitnessElsewhere

_RESUMES: Final = 3
"""Others may move the same ledger at a witness meanwhile, but not for ever."""


def refuse_rollback(
    engine: Engine, elsewhere: Iterable[tuple[str, bytes]] = (), also: Mapping[str, str] | None = None
) -> None:
    """Ask every witness for its newest receipts, then compare them, and those that are kept, with this state.

    `elsewhere` are further receipts (stream, sealed), such as those of a state that this one is to replace, and `also` the
    witnesses (id, hexadecimal key) that its settings name. A witness is
    asked first and this state read after: heads only grow, so an apply that runs beside this one is never mistaken for
    a rollback. One that does not answer says nothing. Raises SafetyRefused.
    """
    elsewhere = tuple(elsewhere)
    with engine.store.read() as reader:
        check_identity(engine, reader)
        streams = (journal_stream(reader), usage_stream(reader))
    answers = newest_answers(engine, streams)
    with engine.store.read() as reader:
        known = wider_roster(reader, engine.witnesses, also)
        kept = [(stream, item.sealed) for stream in streams for item in newest_by_witness(reader.receipts(stream))]
        others = [(stream, sealed) for stream, sealed in elsewhere if stream in streams]
        for stream, sealed in dict.fromkeys((*answers, *kept, *others)):
            found = judge_receipt(engine, reader, stream, sealed, known)
            if found.verdict in ("ahead", "fork"):
                raise SafetyRefused(
                    ROLLED_BACK.at(
                        f"witness {found.receipt.witness if found.receipt else '?'} contradicts this state of "
                        f"{engine.ledger(stream)} ({found.verdict}): {found.detail}. This state was rolled back or rewritten, and "
                        "nothing is appended to it: bring back what it lacks with `fleetctl ledger recover`"
                    )
                )
        for _, signed in _forgotten(engine, reader, [sealed for _, sealed in elsewhere], known):
            raise SafetyRefused(
                ROLLED_BACK.at(
                    f"witness {signed.witness} signed {signed.ledger} at {signed.length}, a journal that a recovery opened and that "
                    "this state knows nothing of: it is from before that, or went another way"
                )
            )


def _forgotten(
    engine: Engine, reader: Reader, sealed: Sequence[bytes], known: Sequence[WitnessKey]
) -> list[tuple[bytes, Receipt]]:
    if not sealed:
        return []
    recovered = ((place, event) for place, event in journal_history(engine, reader) if isinstance(event, Recovered))
    return forgotten_journals(
        engine,
        sealed,
        known,
        streams={item.stream for item in reader.streams()},
        accounts=[account_of(event, reader, place) for place, event in recovered],
    )


def newest_answers(engine: Engine, streams: Iterable[str]) -> list[tuple[str, bytes]]:
    """What every witness that answers signed last: streams with sealed receipts, none of them verified.

    It is asked before the state is read that the receipts are compared with: heads only grow.
    """
    wanted = list(streams)
    return [item for witness in engine.witnesses for item in _newest(engine, witness, wanted)]


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
        found = judge_receipt(engine, reader, stream, sealed, roster(read_settings(reader), engine.witnesses))
    if found.verdict not in ("fork", "ahead", "witness-equivocation") or found.receipt is None:
        return None
    return canonical_bytes({"contradicts": found.receipt.ledger, "receipt": sealed.hex(), "verdict": found.verdict})


def _note(witness: str, detail: str) -> str:
    return f"witness {detail}" if detail.startswith(witness) else f"witness {witness}: {detail}"


def _unsigned_windows(engine: Engine, reader: Reader) -> dict[str, Head]:
    """Heads of closed windows for which no receipt of some witness is kept: nobody asks for the others again."""
    found: dict[str, Head] = {}
    for stream in closed_windows(engine, reader):
        head = head_of(engine, reader, stream)
        signed = {item.witness for item in reader.receipts(stream, head.length)}
        if any(witness.id not in signed for witness in engine.witnesses):
            found[stream] = head
    return found


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
                if not on_chain(engine, reader, stream, start):
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
            found = judge_receipt(engine, reader, stream, item.sealed, known)
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
        found = judge_receipt(engine, reader, stream, sealed, roster(read_settings(reader), engine.witnesses))
    receipt = found.receipt
    if receipt is None or found.verdict not in ("witnessed", "prefix"):
        raise NotVerified(RECEIPT_FAILED.at(f"its receipt is {found.verdict}: {found.detail}"))
    return stored_receipt(stream, sealed)


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
