"""Ledgers for tests: fixed keys, short makers of events, honest chains, and envelopes that no honest signer would make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from nacl import bindings

from fleetctl.ledger import chain, cose
from fleetctl.ledger.cbor import encode_bytes
from fleetctl.ledger.entries import Admitted, Applied, Event, Released
from fleetctl.ledger.identifiers import Grade, LedgerId, ledger_id
from fleetctl.ledger.keys import PublicKey, SeedSigner

AT_MS = 1_790_000_000_000
ORDER = 2**252 + 27742317777372353535851937790883648493
"""L, the order of the prime-order group."""
FIELD = 2**255 - 19


def signer(kid: str, name: str | None = None) -> SeedSigner:
    """A key that depends on nothing but its name (the kid, unless another key under the same kid is wanted)."""
    return SeedSigner(kid, seed(name or kid))


def seed(name: str) -> bytes:
    """The 32 bytes that `signer` makes its key from."""
    return sha256(f"test key {name}".encode()).digest()


STEWARD = signer("root-steward")
WITNESS = signer("witness-a")
ENTITLEMENTS = ledger_id("root-steward", "entitlements")
JOURNAL = ledger_id("root-steward", "journal")


def admitted(
    claim: str,
    *,
    entitlement: str = "ml",
    workload_class: str | None = "train",
    reserved_uj: int = 1_000_000,
    borrowed_uj: int = 0,
    devices: int = 8,
    grade: Grade = "ModelBased",
    at_ms: int = AT_MS,
) -> Admitted:
    return Admitted(
        claim=claim,
        entitlement=entitlement,
        workload_class=workload_class,
        reserved_uj=reserved_uj,
        borrowed_uj=borrowed_uj,
        devices=devices,
        grade=grade,
        at_ms=at_ms,
    )


def released(claim: str, *, spent_uj: int = 900_000, grade: Grade = "HwShunt", at_ms: int = AT_MS) -> Released:
    return Released(claim=claim, spent_uj=spent_uj, grade=grade, at_ms=at_ms)


def applied(number: int, *, pins: chain.Head | None = None, at_ms: int = AT_MS) -> Applied:
    """The `number`th apply; `pins` is the entitlement ledger as it stood."""
    head = pins or chain.empty(ENTITLEMENTS)
    return Applied(
        actor="local:ada@host",
        state_before=digest(f"state {number}"),
        state_after=digest(f"state {number + 1}"),
        ledger=head.ledger,
        ledger_head=head.address,
        ledger_length=head.length,
        at_ms=at_ms,
        fleet="fleet-a",
        plan=digest(f"plan {number}"),
        context=digest(f"context {number}"),
        config=digest(f"config {number}"),
        operations=number,
    )


def digest(text: str) -> bytes:
    """Some 32 bytes that stand for a digest."""
    return sha256(text.encode()).digest()


def history(claims: int) -> list[Event]:
    """`claims` claims admitted and released in turn, so twice as many events, over three entitlements."""
    events: list[Event] = []
    for number in range(claims):
        at = AT_MS + 2_000 * number
        events.append(admitted(f"c{number}", entitlement=f"team-{number % 3}", reserved_uj=1_000 + number, at_ms=at))
        events.append(released(f"c{number}", spent_uj=900 + number, at_ms=at + 1_000))
    return events


def seal_all(
    events: Iterable[Event], *, ledger: LedgerId = ENTITLEMENTS, key: SeedSigner = STEWARD
) -> list[chain.Sealed]:
    """An honest ledger of these events, from genesis."""
    sealed: list[chain.Sealed] = []
    head = chain.empty(ledger)
    for event in events:
        sealed.append(chain.seal(event, head, key))
        head = sealed[-1].head
    return sealed


def join(sealed: Sequence[chain.Sealed]) -> bytes:
    """The ledger's bytes as exported."""
    return b"".join(item.data for item in sealed)


def payload_of(entry: bytes) -> bytes:
    """The core's bytes of one sealed entry."""
    return cose.read(entry, 0).payload


def sign_core(core: bytes, key: SeedSigner = STEWARD, kid: str | None = None) -> bytes:
    """Any core bytes under a perfect envelope and a good signature."""
    name = kid or key.kid
    return cose.build(name, core, key.sign(cose.to_be_signed(name, core)))


def sign_header(protected: bytes, core: bytes, *, unprotected: bytes = b"\xa0", key: SeedSigner = STEWARD) -> bytes:
    """A perfect core under any headers, signed as COSE says."""
    signed = b"\x84\x6aSignature1" + encode_bytes(protected) + b"\x40" + encode_bytes(core)
    return (
        cose.HEAD + encode_bytes(protected) + unprotected + encode_bytes(core) + cose.SIGNATURE_HEAD + key.sign(signed)
    )


def sign_with_nonce(key_seed: bytes, message: bytes, nonce: bytes) -> bytes:
    """A valid signature that is not the deterministic one (RFC 8032 §5.1.6 with another r)."""
    public, secret = bindings.crypto_sign_seed_keypair(key_seed)
    expanded = _sha512(secret[:32])[:32]
    scalar = bytearray(expanded)
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    r = bindings.crypto_core_ed25519_scalar_reduce(_sha512(nonce))
    point = bindings.crypto_scalarmult_ed25519_base_noclamp(r)
    challenge = bindings.crypto_core_ed25519_scalar_reduce(_sha512(point + public + message))
    product = bindings.crypto_core_ed25519_scalar_mul(
        challenge, bindings.crypto_core_ed25519_scalar_reduce(bytes(scalar) + bytes(32))
    )
    return point + bindings.crypto_core_ed25519_scalar_add(r, product)


def add_order(signature: bytes, times: int = 1) -> bytes:
    """The same signature with S replaced by S + times * L."""
    scalar = int.from_bytes(signature[32:], "little") + times * ORDER
    return signature[:32] + scalar.to_bytes(32, "little")


SMALL_ORDER_POINTS = tuple(
    bytes.fromhex(text)
    for text in (
        "0100000000000000000000000000000000000000000000000000000000000000",  # the identity
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",  # order 2
        "0000000000000000000000000000000000000000000000000000000000000000",  # order 4
        "0000000000000000000000000000000000000000000000000000000000000080",  # order 4
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",  # order 8
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",  # order 8
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",  # order 8
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",  # order 8
    )
)


def mixed_order(key: PublicKey, torsion: bytes) -> bytes:
    """A point of mixed order: a good key plus a small-order point."""
    mixed: bytes = bindings.crypto_core_ed25519_add(bytes(key), torsion)
    return mixed


def _sha512(data: bytes) -> bytes:
    from hashlib import sha512

    return sha512(data).digest()
