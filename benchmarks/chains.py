"""Long entitlement ledgers, sealed for real with one fixed key."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.peers.ed25519 import SEED
from fleetctl.ledger.chain import Head, Sealed, empty, seal
from fleetctl.ledger.entries import Admitted, Event, Released
from fleetctl.ledger.identifiers import LedgerId, ledger_id
from fleetctl.ledger.keys import SeedSigner, Signer

STEWARD = SeedSigner("bench", SEED)
LEDGER: LedgerId = ledger_id("bench", "entitlements")
AT_MS = 1_790_000_000_000
OPEN = 64
"""Claims that stay open for a while: a release follows this many admissions later."""


def events(count: int) -> Iterator[Event]:
    """`count` events: claims of 37 entitlements, admitted, and released later."""
    for seq in range(count):
        number, ends = divmod(seq, 2)
        at_ms = AT_MS + 1_000 * seq
        if ends and number >= OPEN:
            number -= OPEN
            yield Released(claim=f"c{number}", spent_uj=900_000 + number % 1_000, grade="HwShunt", at_ms=at_ms)
        else:
            yield Admitted(
                claim=f"c{number}" if not ends else f"early{number}",
                entitlement=f"ent_{number % 37}",
                workload_class="train",
                reserved_uj=1_000_000,
                borrowed_uj=0,
                devices=8,
                grade="ModelBased",
                at_ms=at_ms,
            )


def chain(count: int, signer: Signer = STEWARD, ledger: LedgerId = LEDGER) -> Iterator[Sealed]:
    """`count` entries from genesis."""
    head: Head = empty(ledger)
    for event in events(count):
        sealed = seal(event, head, signer)
        head = sealed.head
        yield sealed
