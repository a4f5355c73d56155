"""New streams after a loss: the old ones closed as they are, and a `recovered` entry that holds what is left of them as evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from fleetctl.canonical import Digest, canonical_bytes, sha256_hex
from fleetctl.engine.context import META_JOURNAL, META_STREAM, Engine, journal_stream, usage_stream
from fleetctl.engine.continuing import used_before
from fleetctl.engine.journal import append_sealed, keep_document, sealing_time, write_journal
from fleetctl.engine.stands import KINDS, Kind, Stand, Survey, Wanted
from fleetctl.engine.state import sealed_state
from fleetctl.engine.streams import head_of, last_at_ms, verify_stream
from fleetctl.ledger.chain import Head, Sealed, empty, genesis, seal
from fleetctl.ledger.entries import Admitted, Recovered
from fleetctl.ledger.identifiers import stream_of
from fleetctl.ledger.usage import Fold
from fleetctl.ledger.windows import numbered, successor
from fleetctl.ports import Writer
from fleetctl.units import format_ms


def reopen(engine: Engine, tx: Writer, found: Survey, accepted: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Close what something is missing of, and go on in new streams. `accepted` are the ids of the losses.

    Returns the ids of the new ledgers and the place of `recovered`.
    """
    before = {"journal": journal_stream(tx), "entitlements": usage_stream(tx)}
    heads = {kind: head_of(engine, tx, stream) for kind, stream in before.items()}
    state, now = sealed_state(engine, tx), sealing_time(engine, tx)
    lost = [kind for kind in KINDS if found.lost(kind)]
    evidence = _evidence(tx, engine, found, heads, accepted)
    opened = []
    for kind in lost:
        stream = _free_name(tx, kind, now, found)
        ledger = engine.ledger(stream)
        tx.close_stream(before[kind])
        tx.open_stream(stream, ledger, genesis(ledger))
        tx.set_meta({"journal": META_JOURNAL, "entitlements": META_STREAM}[kind], stream)
        opened.append(str(ledger))
    place = write_journal(
        engine,
        tx,
        Recovered,
        state_before=state,
        state_after=state,
        at_ms=now,
        evidence=tuple(map(bytes.fromhex, evidence)),
    )
    if "entitlements" in lost:
        _carry_over(engine, tx, before["entitlements"], usage_stream(tx))
    return tuple(opened), place


def _free_name(tx: Writer, kind: Kind, now: int, found: Survey) -> str:
    """A name that was never used: by its time, so that not even a state that forgot an earlier recovery takes it again, and none
    that a witness speaks of, whatever the clock says.
    """
    spoken_of = {stream_of(item.head.ledger) for stand in found.stands for item in stand.missing}
    spoken_of.update(item.stream for item in tx.streams())
    spoken_of.update(item.stream for item in tx.receipts())
    return numbered(f"{kind}:r{format_ms(now).replace('-', '').replace(':', '')}", spoken_of.__contains__)


def _evidence(
    tx: Writer, engine: Engine, found: Survey, heads: dict[str, Head], accepted: Sequence[str]
) -> list[Digest]:
    """The documents that say what was lost and who signed it, kept; the account comes first."""
    missing = [(stand, item) for stand in found.stands for item in stand.missing]
    receipts = dict.fromkeys(item.receipt for _, item in missing if item.receipt is not None)
    documents = [canonical_bytes({"receipt": sealed.hex()}) for sealed in receipts]
    account = {
        "recovery": "1",
        "engine": engine.id,
        "accepted": list(accepted),
        "journal": _head_json(heads["journal"]),
        "entitlements": _head_json(heads["entitlements"]),
        "lost": [_missing_json(stand, item) for stand, item in missing],
        "receipts": [sha256_hex(content) for content in documents],
    }
    return [keep_document(tx, content) for content in (canonical_bytes(account), *documents)]


def _head_json(head: Head) -> dict[str, Any]:
    return {"ledger": head.ledger, "length": head.length, "head": head.address.hex()}


def _missing_json(stand: Stand, item: Wanted) -> dict[str, Any]:
    return {**_head_json(item.head), "kept": stand.whole.length, "who": item.who, "why": item.why}


def _carry_over(engine: Engine, tx: Writer, old: str, new: str) -> None:
    """Admit the claims that are open in what is left of a stream first in the new one, whole: nothing of them was charged.

    Reservations and reports go with them.
    """
    found = verify_stream(engine, tx, old)
    fold = cast(Fold, found.fold)
    head, names, taken = empty(engine.ledger(new)), dict[str, str](), set[str]()
    now, sealed = max(engine.clock.now_ms(), last_at_ms(engine, tx, old)), list[Sealed]()

    def is_taken(id: str) -> bool:
        return id in taken or used_before(tx, new, id) is not None

    for claim, opened in fold.open_claims.items():
        names[claim] = successor(claim, carried=fold.is_carried(claim), is_taken=is_taken)
        taken.add(names[claim])
        sealed.append(
            seal(
                Admitted(
                    at_ms=now,
                    claim=names[claim],
                    entitlement=opened.entitlement,
                    workload_class=opened.workload_class,
                    reserved_uj=opened.reserved_uj,
                    borrowed_uj=opened.borrowed_uj,
                    devices=opened.devices,
                    grade=opened.grade,
                ),
                head,
                engine.sealing(),
            )
        )
        head = sealed[-1].head
    if sealed:
        append_sealed(tx, new, *sealed)
    for item in list(tx.reservations()):
        if item.state == "active" and item.claim in names:
            tx.put_reservation(replace(item, claim=names[item.claim]))
    for report in list(tx.reports(old)):
        if report.claim in names:
            tx.put_report(replace(report, stream=new, claim=names[report.claim]))
            tx.drop_report(old, report.claim)
