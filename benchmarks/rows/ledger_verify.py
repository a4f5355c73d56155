"""Verify a whole ledger, every signature, on every core, against raw Ed25519 verification in a loop on one core."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from nacl import bindings

from benchmarks.chains import LEDGER, STEWARD, chain
from benchmarks.peers.ed25519 import SEED, verify_loop
from benchmarks.series import Line, Row, Sample, alternate, rates
from fleetctl.ledger import cose
from fleetctl.ledger.signatures import cores
from fleetctl.ledger.verify import verify

WHAT = "ledger verify"
ENTRIES = 50_000
RAW = 10_000


def measure(folder: Path) -> Row:
    sealed = [item.data for item in chain(ENTRIES)]
    data = b"".join(sealed)
    signed = [_signed(entry) for entry in sealed[:RAW]]
    taken = alternate(lambda: _verify(data), lambda: verify_loop(signed), lambda: _verify(data, processes=1))
    many, raw, one = (
        rates(name, count, samples)
        for name, count, samples in zip(
            ("ledger verify, all cores", "raw verify, one core", "ledger verify, one process"),
            (ENTRIES, RAW, ENTRIES),
            taken,
            strict=True,
        )
    )
    used = cores()
    return Row(
        lines=(
            Line(what=f"{ENTRIES:,} entries, {used} cores", ours=many, peer=raw, goal="rate", target=0.6 * used),
            Line(what=f"{ENTRIES:,} entries, one process", ours=one, peer=raw, goal="rate"),
        ),
        notes=(f"The target is 0.6 × {used} cores × raw.", "Both sides verify the same messages."),
    )


def _verify(data: bytes, processes: int | None = None) -> Sample:
    began, cpu = time.perf_counter(), _cpu()
    verify(data, ledger=LEDGER, key=STEWARD.public_key, processes=processes)
    return Sample(wall_s=time.perf_counter() - began, cpu_s=_cpu() - cpu)


def _signed(entry: bytes) -> bytes:
    """Signature and message of one entry, as libsodium takes them."""
    envelope = cose.read(entry, 0)
    message = cose.to_be_signed("bench", envelope.payload)
    _, secret = bindings.crypto_sign_seed_keypair(SEED)
    signed: bytes = bindings.crypto_sign(message, secret)
    assert signed[:64] == envelope.signature, "Ed25519 is deterministic"
    return signed


def _cpu() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )
