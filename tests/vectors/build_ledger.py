"""Builds `ledger.json`: the pinned bytes of the format, for other implementations and for a change of ours to show.

Run from the root to write it again: `python -m tests.vectors.build_ledger`. A test rebuilds it and compares, and reads it with other
libraries than ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fleetctl.ledger import chain, checkpoint, receipts, verify, witness
from fleetctl.ledger.entries import Called, Event, Migrated, Recovered, Reported, Rotated
from fleetctl.ledger.identifiers import ledger_id
from tests.support.ledgers import (
    AT_MS,
    ENTITLEMENTS,
    JOURNAL,
    STEWARD,
    WITNESS,
    admitted,
    applied,
    digest,
    join,
    payload_of,
    released,
    seal_all,
    seed,
)

OUT = Path(__file__).parent / "ledger.json"


def usage_events() -> list[Event]:
    """Both usage events, with and without a class, at every width of integer."""
    return [
        admitted("c1", reserved_uj=23, borrowed_uj=0),
        admitted("c2", workload_class=None, reserved_uj=2**63 - 1, borrowed_uj=256, devices=24, grade="Estimator"),
        released("c1", spent_uj=0, grade="Estimator"),
        admitted("claim-with-a-name-of-more-than-23-characters", reserved_uj=65_536, borrowed_uj=255, grade="HwShunt"),
        released("c2", spent_uj=2**32, grade="ModelBased"),
    ]


def journal_events(pins: chain.Head) -> list[Event]:
    """Every journal event, `applied` with and without its optional fields."""
    plain = applied(0, pins=pins)
    common: dict[str, Any] = {
        name: getattr(plain, name)
        for name in ("actor", "state_before", "state_after", "ledger", "ledger_head", "ledger_length", "at_ms")
    }
    return [
        plain,
        replace(plain, commit="9fceb02d0ae598e9", accepted=("shrink:offer/p/acme",), approved_by=("ada", "grace")),
        Called(**common, method="update", object="pool/pool-fra1-h100", request=digest("request")),
        Rotated(
            **common,
            from_ledger=pins.ledger,
            from_length=pins.length,
            from_head=pins.address,
            to_ledger=ledger_id("root-steward", "entitlements:2026w50"),
        ),
        Reported(**common, report=digest("report"), result="drift"),
        Migrated(**common, schema=2),
        Recovered(**common, evidence=(digest("lost head"), digest("receipt"))),
    ]


def described(sealed: Sequence[chain.Sealed]) -> list[dict[str, object]]:
    return [
        {
            "seq": item.seq,
            "address": item.address.hex(),
            "core": payload_of(item.data).hex(),
            "entry": item.data.hex(),
        }
        for item in sealed
    ]


def build() -> str:
    """The file's text."""
    usage = seal_all(usage_events())
    journal = seal_all(journal_events(usage[-1].head), ledger=JOURNAL)
    seen = verify.verify(join(usage[:4]), ledger=ENTITLEMENTS, key=STEWARD.public_key)
    content = {
        "keys": {key.kid: {"seed": seed(key.kid).hex(), "public": key.public_key.hex()} for key in (STEWARD, WITNESS)},
        "genesis": {str(ledger): chain.genesis(ledger).hex() for ledger in (ENTITLEMENTS, JOURNAL)},
        "streams": {str(ENTITLEMENTS): described(usage), str(JOURNAL): described(journal)},
        "receipt": receipts.issue(usage[-1].head, at_ms=AT_MS, signer=WITNESS).hex(),
        "checkpoint": checkpoint.seal_checkpoint(seen, STEWARD).hex(),
        "witness_request": witness.build_request(usage[0].head, [item.data for item in usage[1:3]]).hex(),
    }
    return json.dumps(content, indent=1) + "\n"


if __name__ == "__main__":
    OUT.write_text(build())
