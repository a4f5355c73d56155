"""A second opinion on every signature by pycose, which is not the verifier: it accepts envelopes that the pinned form refuses.

Its `decode` fails under cbor2 6, so the envelope is read with cbor2 and handed to `from_cose_obj` as a rebuilt list.
`pycose.extensions.x509` is never imported: it needs oscrypto, which fails on current OpenSSL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetctl.ledger import cose
from fleetctl.ledger.identifiers import LedgerId, steward_of
from fleetctl.ledger.keys import PublicKey

if TYPE_CHECKING:
    from pycose.keys.okp import OKPKey


def disagreements(data: bytes, *, ledger: LedgerId, key: PublicKey) -> list[int]:
    """Indices of the entries that pycose does not verify under the steward's key, up to the first frame that cannot be read."""
    from pycose.keys.curves import Ed25519
    from pycose.keys.okp import OKPKey

    foreign = OKPKey(crv=Ed25519, x=bytes(key))
    kid = steward_of(ledger).encode()
    refused = []
    offset = index = 0
    while offset < len(data):
        try:
            end = cose.read(data, offset).end
        except cose.BadEnvelope as error:
            refused.append(index)
            if error.end < 0:
                break
            end = error.end
        else:
            if not _agrees(data[offset:end], foreign, kid):
                refused.append(index)
        offset, index = end, index + 1
    return refused


def _agrees(envelope: bytes, key: OKPKey, kid: bytes) -> bool:
    import cbor2
    from pycose.headers import KID, Algorithm
    from pycose.messages.sign1message import Sign1Message

    try:
        tagged = cbor2.loads(envelope)
        protected, unprotected, payload, signature = tagged.value
        message = Sign1Message.from_cose_obj([protected, dict(unprotected), payload, signature], True)
        message.key = key
        header = message.phdr
        return tagged.tag == 18 and header[KID] == kid and Algorithm in header and bool(message.verify_signature())
    except Exception:  # noqa: BLE001 - pycose raises eight kinds on one-bit flips; all of them are a no
        return False
