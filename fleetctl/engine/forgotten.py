"""Journals that a witness signed and a state knows nothing of: a recovery opened them, and the state is from before it, or went
another way since. Its own journal may be whole by every witness, so nothing else would tell.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from fleetctl.engine.context import Engine
from fleetctl.engine.receipts import judged_against
from fleetctl.ledger.chain import empty
from fleetctl.ledger.identifiers import LedgerId, is_ledger_id, kind_of, steward_of, stream_of
from fleetctl.ledger.receipts import Receipt, WitnessKey, read_receipt
from fleetctl.ledger.statement import BadStatement


def forgotten_journals(
    engine: Engine,
    sealed: Iterable[bytes],
    roster: Sequence[WitnessKey],
    *,
    streams: Container[str],
    accounts: Iterable[Mapping[str, Any]],
) -> list[tuple[bytes, Receipt]]:
    """The receipts among `sealed` by witnesses of the roster that speak of journals which are not in `streams`.

    `accounts` say what recoveries of this state gave up: such a journal is accounted for.
    """
    accounted = {item.get("ledger") for account in accounts for item in account.get("lost", ())}
    found = []
    for item in dict.fromkeys(sealed):
        ledger = ledger_of(item)
        if ledger is None or ledger in accounted or steward_of(ledger) != engine.steward:
            continue
        if kind_of(ledger) != "journal" or stream_of(ledger) in streams:
            continue
        start = empty(ledger)
        (judged,) = judged_against(engine, start, start.address, [item], roster)
        if judged.verdict == "ahead" and judged.receipt is not None:
            found.append((item, judged.receipt))
    return found


def ledger_of(sealed: bytes) -> LedgerId | None:
    """The ledger that a receipt speaks of, unverified; None for what is no receipt."""
    try:
        ledger = read_receipt(sealed)[0].ledger
    except BadStatement:
        return None
    return LedgerId(ledger) if is_ledger_id(ledger) else None
