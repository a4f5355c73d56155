"""A single signed statement in the envelope of an entry: receipts, checkpoints, and whatever else stands on its own."""

from __future__ import annotations

from collections.abc import Mapping

from fleetctl.frozen import dataclass
from fleetctl.ledger import cose
from fleetctl.ledger.cbor import MAX_ITEMS, Unreadable, Value, decode, encode
from fleetctl.ledger.identifiers import is_identifier
from fleetctl.ledger.keys import PublicKey, Signer, verifies


class BadStatement(ValueError):
    """Bytes that are not one statement of the pinned form."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One read statement. `signed_by` has to be asked before `core` is believed."""

    kid: str
    core: dict[str, Value]
    payload: bytes
    signature: bytes

    def signed_by(self, key: PublicKey) -> bool:
        """Whether the signature holds under `key`."""
        return verifies(key, cose.to_be_signed(self.kid, self.payload), self.signature)


def seal_statement(core: Mapping[str, object], signer: Signer) -> bytes:
    """`core`, signed. Raises ValueError for values that the encoding does not have."""
    payload = encode(core)
    return cose.build(signer.kid, payload, signer.sign(cose.to_be_signed(signer.kid, payload)))


def read_statement(data: bytes, *, max_bytes: int, max_items: int = MAX_ITEMS) -> Statement:
    """The statement that `data` is, to its last byte. Raises BadStatement; the signature is not checked yet."""
    if len(data) > max_bytes:
        raise BadStatement(f"it is larger than {max_bytes} bytes")
    try:
        envelope = cose.read(data, 0, max_frame=max_bytes)
        core = decode(envelope.payload, max_items=max_items)
    except (cose.BadEnvelope, Unreadable) as error:
        raise BadStatement(str(error)) from None
    kid = cose.kid_of(envelope.protected)
    if kid is None or not is_identifier(kid) or not envelope.unprotected_empty:
        raise BadStatement("its header is not {1: -8, 4: kid}")
    if envelope.end != len(data):
        raise BadStatement(f"{len(data) - envelope.end} bytes follow it")
    if not isinstance(core, dict):
        raise BadStatement("its core is not a map")
    return Statement(kid, core, envelope.payload, envelope.signature)
