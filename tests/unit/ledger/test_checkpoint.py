"""A checkpoint is a cache: a replay from genesis equals a resume at every prefix, and nothing but the right one is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from fleetctl.errors import BadInput, NotVerified
from fleetctl.ledger import chain
from fleetctl.ledger.checkpoint import Checkpoint, open_checkpoint, resume, seal_checkpoint
from fleetctl.ledger.entries import Admitted, Event
from fleetctl.ledger.identifiers import ledger_id
from fleetctl.ledger.usage import Fold
from fleetctl.ledger.verify import Verification, verify
from tests.support.ledgers import (
    ENTITLEMENTS,
    JOURNAL,
    STEWARD,
    admitted,
    applied,
    history,
    join,
    payload_of,
    released,
    seal_all,
    sign_core,
    signer,
)
from tests.unit.ledger.test_usage import streams

KEY = STEWARD.public_key
GOOD = seal_all([*history(3), admitted("open", workload_class=None)])


def state(fold: Fold | None) -> dict[str, Any]:
    assert fold is not None
    return {
        "usage": fold.usage,
        "open": list(fold.open_claims.items()),
        "evidence": fold.evidence,
        "claims": fold.claims,
        "digest": fold.claims_digest,
    }


def checkpoint_at(sealed: Sequence[chain.Sealed], length: int) -> tuple[Checkpoint, bytes]:
    seen = verify(join(sealed[:length]), ledger=ENTITLEMENTS, key=KEY)
    data = seal_checkpoint(seen, STEWARD)
    return open_checkpoint(data, ledger=ENTITLEMENTS, key=KEY), data


def resumed(checkpoint: Checkpoint, sealed: Sequence[chain.Sealed], events: Sequence[Event]) -> Verification:
    used = {event.claim for event in events[: checkpoint.length] if isinstance(event, Admitted)}
    return resume(
        checkpoint,
        last_entry=sealed[checkpoint.length - 1].data if checkpoint.length else None,
        tail=join(sealed[checkpoint.length :]),
        key=KEY,
        was_used=used.__contains__,
    )


@settings(max_examples=25, deadline=None)
@given(streams())
def test_replay_from_genesis_equals_resume_at_every_prefix(events: list[Event]) -> None:
    sealed = seal_all(events)
    whole = verify(join(sealed), ledger=ENTITLEMENTS, key=KEY)
    for length in range(len(sealed) + 1):
        checkpoint, data = checkpoint_at(sealed, length)
        seen = resumed(checkpoint, sealed, events)
        assert (seen.length, seen.head) == (whole.length, whole.head)
        assert state(seen.fold) == state(whole.fold)
        # A checkpoint sealed on a resumed walk is the very checkpoint of a walk from genesis.
        assert seal_checkpoint(seen, STEWARD) == seal_checkpoint(whole, STEWARD)
        assert checkpoint.holds_index(e.claim for e in events[:length] if isinstance(e, Admitted))
        assert not checkpoint.holds_index(["another"])
        assert open_checkpoint(data, ledger=ENTITLEMENTS, key=KEY) == checkpoint


def test_claims_of_before_the_checkpoint_stay_used() -> None:
    checkpoint, _ = checkpoint_at(GOOD, 6)
    for late, code in ((admitted("c0"), "duplicate-admit"), (released("c0"), "double-release")):
        entry = chain.seal(late, GOOD[5].head, STEWARD)
        with pytest.raises(NotVerified) as refused:
            resumed(checkpoint, [*GOOD[:6], entry], [*history(3), late])
        assert code in str(refused.value)


def test_the_stored_entry_must_be_the_one_it_was_sealed_at() -> None:
    checkpoint, _ = checkpoint_at(GOOD, 4)
    for last in (GOOD[2].data, None, b"", GOOD[3].data[:-70]):
        with pytest.raises(NotVerified) as refused:
            resume(checkpoint, last_entry=last, tail=b"", key=KEY, was_used=lambda _: False)
        assert refused.value.code == "checkpoint-refused"


def test_every_later_entry_is_verified_in_full() -> None:
    checkpoint, _ = checkpoint_at(GOOD, 4)
    tail = bytearray(join(GOOD[4:]))
    tail[-1] ^= 1
    with pytest.raises(NotVerified) as refused:
        resume(checkpoint, last_entry=GOOD[3].data, tail=bytes(tail), key=KEY, was_used=lambda _: False)
    assert "entry 6" in str(refused.value) and "bad-signature" in str(refused.value)
    with pytest.raises(NotVerified):
        resume(checkpoint, last_entry=GOOD[3].data, tail=join(GOOD[5:]), key=KEY, was_used=lambda _: False)


def test_only_the_stewards_own_checkpoint_of_this_ledger_is_used() -> None:
    _, data = checkpoint_at(GOOD, 4)
    core = payload_of(data)
    stranger = signer("root-steward", "a stranger")
    refused_ones = {
        "another key": sign_core(core, stranger),
        "another kid": sign_core(core, signer("mallory")),
        "another marker": sign_core(core.replace(b"\x6fpool_checkpoint\x611", b"\x6fpool_checkpoint\x612")),
        "an unknown grade": sign_core(core.replace(b"HwShunt", b"HwShUnt")),
        "an entry": GOOD[0].data,
        "nothing": b"",
        "a byte more": data + b"\x00",
    }
    for name, given_data in refused_ones.items():
        with pytest.raises(NotVerified) as refused:
            open_checkpoint(given_data, ledger=ENTITLEMENTS, key=KEY)
        assert refused.value.code == "checkpoint-refused", name
    with pytest.raises(NotVerified):
        open_checkpoint(data, ledger=ledger_id("root-steward", "entitlements:2"), key=KEY)


def test_only_a_verification_that_holds_seals_one() -> None:
    seen = verify(join(GOOD), ledger=ENTITLEMENTS, key=KEY)
    failed = verify(join(GOOD[:2]), ledger=ENTITLEMENTS, key=KEY)
    with pytest.raises(BadInput):
        seal_checkpoint(seen, signer("mallory"))
    fault = next(iter(verify_faults()))
    with pytest.raises(NotVerified):
        seal_checkpoint(replace(failed, first={"claims": fault}), STEWARD)
    journal = verify(join(seal_all([applied(0)], ledger=JOURNAL)), ledger=JOURNAL, key=KEY)
    with pytest.raises(BadInput):
        seal_checkpoint(journal, STEWARD)


def verify_faults() -> Sequence[Any]:
    from fleetctl.ledger.verify import examine

    return examine(join(GOOD[1:]), ledger=ENTITLEMENTS, key=KEY).faults


def test_sums_beyond_the_range_are_not_kept() -> None:
    most = 2**63 - 1
    events: list[Event] = []
    for claim in ("c0", "c1"):
        events += [admitted(claim), released(claim, spent_uj=most)]
    seen = verify(join(seal_all(events)), ledger=ENTITLEMENTS, key=KEY)
    assert seen.usage is not None and seen.usage["ml"].spent_uj == 2 * most
    with pytest.raises(BadInput) as refused:
        seal_checkpoint(seen, STEWARD)
    assert refused.value.code == "checkpoint-impossible"


def test_a_checkpoint_may_outgrow_a_frame() -> None:
    """An entry is at most 4 MiB; a checkpoint of many open claims is larger."""
    sealed = seal_all([admitted(f"claim-{number:0100}", reserved_uj=1) for number in range(1_000)])
    seen = verify(join(sealed), ledger=ENTITLEMENTS, key=KEY)
    data = seal_checkpoint(seen, STEWARD)
    opened = open_checkpoint(data, ledger=ENTITLEMENTS, key=KEY)
    assert len(opened.open_claims) == 1_000 and state(opened.fold(lambda _: False)) == state(seen.fold)
