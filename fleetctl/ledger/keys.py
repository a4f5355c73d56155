"""Ed25519 keys and signatures, exactly (ledger.md "Ed25519, said exactly"). Key material comes in as bytes; files are `keyfiles`' matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import NewType, Protocol

from nacl import bindings
from nacl.exceptions import BadSignatureError

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput
from fleetctl.frozen import dataclass
from fleetctl.ledger.identifiers import check_identifier

PublicKey = NewType("PublicKey", bytes)
"""32 bytes, a canonical point of prime order; made by `public_key`."""

KEY_BYTES = 32
SIGNATURE_BYTES = 64

UNACCEPTABLE_KEY = code(
    "unacceptable-key",
    "A public key is not one that a signature can be trusted under",
    trigger="a key that is not 32 bytes, off the curve, not canonical, or not of prime order",
)


class Signer(Protocol):
    """Something that holds a private key: a file, an agent, a device."""

    @property
    def kid(self) -> str:
        """The identifier that its signatures carry: the steward's or the witness's."""
        ...

    @property
    def public_key(self) -> PublicKey:
        """The key that its signatures verify under."""
        ...

    def sign(self, message: bytes) -> bytes:
        """A 64-byte Ed25519 signature over `message`."""
        ...


@dataclass(frozen=True, slots=True)
class SeedSigner:
    """A signer that holds its 32-byte seed in memory. The seed is never shown."""

    kid: str
    public_key: PublicKey = field(init=False)
    _secret: bytes = field(repr=False)

    def __init__(self, kid: str, seed: bytes) -> None:
        if len(seed) != KEY_BYTES:
            raise ValueError("an Ed25519 seed is 32 bytes")
        raw, secret = bindings.crypto_sign_seed_keypair(seed)
        object.__setattr__(self, "kid", check_identifier(kid, "key id"))
        object.__setattr__(self, "public_key", PublicKey(raw))
        object.__setattr__(self, "_secret", secret)

    def sign(self, message: bytes) -> bytes:
        signed: bytes = bindings.crypto_sign(message, self._secret)
        return signed[:SIGNATURE_BYTES]


def public_key(raw: bytes) -> PublicKey:
    """`raw` as a key to verify with. Raises BadInput unless it is a canonical point of prime order.

    A small-order or mixed-order key would verify signatures that nobody made, so it is refused when it is loaded.
    """
    if len(raw) != KEY_BYTES or not bindings.crypto_core_ed25519_is_valid_point(raw):
        raise BadInput(
            UNACCEPTABLE_KEY.at(
                f"{raw[:KEY_BYTES].hex()} is not a canonical Ed25519 point of prime order; ask its owner for the key again"
            )
        )
    return PublicKey(raw)


def verifies(key: PublicKey, message: bytes, signature: bytes) -> bool:
    """Whether `signature` holds. R is not the identity and S < L, which libsodium checks."""
    if len(signature) != SIGNATURE_BYTES:
        return False
    try:
        bindings.crypto_sign_open(signature + message, key)
    except BadSignatureError:
        return False
    return True


open_signed: Callable[[bytes, bytes], bytes] = bindings.crypto_sign_open
"""`open_signed(signature + message, key)`, for loops; raises nacl.exceptions.BadSignatureError."""
