"""Raw Ed25519: libsodium through PyNaCl's bindings in a loop on one core, with nothing around it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nacl import bindings

from benchmarks.series import Sample

SEED = bytes(range(32))
TYPICAL = 330
"""Bytes of what is signed for one Admitted entry."""


def sign_loop(messages: Sequence[bytes]) -> Sample:
    """Sign each message."""
    _, secret = bindings.crypto_sign_seed_keypair(SEED)
    sign = bindings.crypto_sign
    began, cpu = time.perf_counter(), time.process_time()
    for message in messages:
        sign(message, secret)
    return Sample(wall_s=time.perf_counter() - began, cpu_s=time.process_time() - cpu)


def verify_loop(signed: Sequence[bytes]) -> Sample:
    """Verify each signed message (signature first, as libsodium wants it)."""
    public, _ = bindings.crypto_sign_seed_keypair(SEED)
    verify = bindings.crypto_sign_open
    began, cpu = time.perf_counter(), time.process_time()
    for message in signed:
        verify(message, public)
    return Sample(wall_s=time.perf_counter() - began, cpu_s=time.process_time() - cpu)
