"""Every single-bit flip and every single-byte substitution of a good ledger is refused; there is no harmless one."""

from __future__ import annotations

import pytest

from fleetctl.ledger.verify import examine
from tests.support.ledgers import ENTITLEMENTS, JOURNAL, STEWARD, admitted, applied, join, released, seal_all

LEDGER = join(seal_all([admitted("c0"), released("c0")]))
SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.clause("pool/1 §7.13", "pool/1 §7.14", "pool/1 §6.5", "pool/1 §6.6")
def test_every_substitution_of_a_byte_is_refused(shard: int) -> None:
    assert examine(LEDGER, ledger=ENTITLEMENTS, key=STEWARD.public_key).ok
    accepted = []
    for at in range(shard, len(LEDGER), SHARDS):
        for value in range(256):
            if value != LEDGER[at]:
                changed = LEDGER[:at] + bytes((value,)) + LEDGER[at + 1 :]
                if examine(changed, ledger=ENTITLEMENTS, key=STEWARD.public_key).ok:
                    accepted.append((at, value))
    assert accepted == []


def test_every_bit_of_a_journal_entry_is_refused() -> None:
    data = join(seal_all([applied(0)], ledger=JOURNAL))
    assert examine(data, ledger=JOURNAL, key=STEWARD.public_key).ok
    for at in range(len(data)):
        for bit in range(8):
            changed = data[:at] + bytes((data[at] ^ 1 << bit,)) + data[at + 1 :]
            assert not examine(changed, ledger=JOURNAL, key=STEWARD.public_key).ok, (at, bit)


def test_every_cut_but_those_between_entries_is_refused() -> None:
    first = len(join(seal_all([admitted("c0")])))
    for size in range(len(LEDGER) + 1):
        seen = examine(LEDGER[:size], ledger=ENTITLEMENTS, key=STEWARD.public_key)
        assert seen.ok == (size in (0, first, len(LEDGER)))
