"""What runs, held to what the ledger says once more of it is known: reservations whose claim has ended or goes on under another id."""

from __future__ import annotations

from dataclasses import replace

from fleetctl.engine.context import Engine
from fleetctl.engine.journals import journal_history
from fleetctl.engine.streams import events
from fleetctl.ledger.entries import Admitted, Released, Rotated
from fleetctl.ledger.identifiers import kind_of, stream_of
from fleetctl.ledger.usage import Fold
from fleetctl.model.changes import Event
from fleetctl.model.operational import Reservation
from fleetctl.ports import Reader, Writer
from fleetctl.units import UnixMs


def settle(engine: Engine, tx: Writer, fold: Fold) -> tuple[str, ...]:
    """Reservations of this state whose claim the ledger has ended, ended as it says; those whose claim went on, tied to it."""
    renamed, released = _claims_after(engine, tx)
    ended = []
    for item in list(tx.reservations()):
        claim = item.claim
        if item.state != "active" or claim is None:
            continue
        while claim in renamed:
            claim = renamed[claim]
        if claim in fold.open_claims:
            if claim != item.claim:
                tx.put_reservation(replace(item, claim=claim))
            continue
        at_ms = released.get(claim, engine.clock.now_ms())
        done = replace(item, state="ended", ended_at_ms=at_ms, reason=None if claim in released else _LOST)
        tx.put_reservation(done)
        tx.add_events([_event(done)], UnixMs(at_ms))
        ended.append(str(item.id))
    return tuple(ended)


def _claims_after(engine: Engine, tx: Reader) -> tuple[dict[str, str], dict[str, int]]:
    """Claims that a rotation renamed, old id to new; and the times of releases."""
    renamed: dict[str, str] = {}
    released: dict[str, int] = {}
    for item in tx.streams():
        if kind_of(engine.ledger(item.stream)) == "entitlements":
            said = (event for _, event in events(engine, tx, item.stream))
            released.update({event.claim: event.at_ms for event in said if isinstance(event, Released)})
    for _, rotated in journal_history(engine, tx):
        if not isinstance(rotated, Rotated):
            continue
        closing = [event for _, event in events(engine, tx, stream_of(rotated.from_ledger), rotated.ledger_length)]
        opening = (event for _, event in events(engine, tx, stream_of(rotated.to_ledger)))
        for old, new in zip(closing, opening, strict=False):
            if isinstance(old, Released) and isinstance(new, Admitted):
                renamed[old.claim] = new.claim
    return renamed, released


def unheld(tx: Reader, fold: Fold) -> tuple[str, ...]:
    """Open claims that reservations made which are not in this state."""
    held = {item.claim for item in tx.reservations() if item.state == "active"}
    return tuple(claim for claim in fold.open_claims if claim.startswith("res_") and claim not in held)


def _event(item: Reservation) -> Event:
    return Event(
        type="reservation.ended",
        object=f"reservation/{item.id}",
        tenant=item.tenant,
        data={"pool": item.pool, "gpus": item.gpus, "state": item.state},
    )


_LOST = "its claim is not in the ledger any more"
