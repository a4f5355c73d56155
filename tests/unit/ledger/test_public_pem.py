"""Public keys are read without a library where they are written as here; every other text is judged by the library (ledger.md "Export")."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from fleetctl.errors import BadInput
from fleetctl.ledger import keyfiles
from fleetctl.ledger.keyfiles import parse_public_pem, public_pem
from fleetctl.ledger.keys import PublicKey
from tests.support.ledgers import signer

PEM = public_pem(signer("root-steward").public_key)


def by_library(pem: bytes) -> bytes | None:
    """The key as the library reads it, None when it does not."""
    try:
        key = serialization.load_pem_public_key(pem)
    except Exception:  # noqa: BLE001 - it raises several kinds
        return None
    return key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else None


def parsed(pem: bytes) -> bytes | None:
    try:
        return parse_public_pem(pem, "here")
    except BadInput:
        return None


@pytest.mark.parametrize("place", range(len(PEM)))
def test_every_changed_character_reads_as_the_library_reads_it(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether a key is acceptable is asked afterwards, of both alike.
    monkeypatch.setattr(keyfiles, "public_key", PublicKey)
    for letter in b"AZaz09+/=-\n\r \x00\xff":
        changed = PEM[:place] + bytes((letter,)) + PEM[place + 1 :]
        found, judged = parsed(changed), by_library(changed)
        assert found is None or found == judged


def test_other_forms_of_the_same_key_are_read() -> None:
    assert parsed(PEM) == parsed(PEM.replace(b"\n", b"\r\n")) == parsed(PEM.rstrip()) == by_library(PEM)


def test_a_key_written_here_loads_no_library() -> None:
    ask = "import sys; from fleetctl.ledger.keyfiles import parse_public_pem as p; p(sys.stdin.buffer.read(), 'here'); sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", ask], input=PEM, check=False).returncode == 0
