"""Key files: PEM PKCS#8 private keys (mode 0600), PEM SubjectPublicKeyInfo public keys, and COSE_Key for exchange.

The only module of this package that touches files. A private key is never printed and never part of an error.
"""

from __future__ import annotations

import binascii
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, Unreachable
from fleetctl.ledger.keys import KEY_BYTES, PublicKey, SeedSigner, public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_KEY_FILE = 16 * 1024
_PEM_HEAD = b"-----BEGIN PUBLIC KEY-----\n"
_PEM_TAIL = b"\n-----END PUBLIC KEY-----\n"
_SPKI = bytes.fromhex("302a300506032b6570032100")
"""SubjectPublicKeyInfo of Ed25519 (RFC 8410 §4) up to the key itself."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

KEY_UNREADABLE = code(
    "key-file-unreadable",
    "A key file cannot be opened",
    trigger="a key file that does not exist, is a folder, or may not be read",
)
KEY_EXISTS = code(
    "key-file-exists",
    "A key file is already there and is not overwritten",
    trigger="creating a key where a file lies",
)
KEY_MODE = code(
    "key-file-mode",
    "A private key file can be read by others",
    trigger="a private key file with any permission for group or others",
)
KEY_FORM = code(
    "key-file-form",
    "A key file is not in the expected form",
    trigger="a private key that is not unencrypted PKCS#8 PEM of Ed25519, a public key that is not SubjectPublicKeyInfo PEM of Ed25519",
)


def create_private_key(path: Path, kid: str, seed: bytes) -> SeedSigner:
    """Write the key made from `seed` (32 random bytes) as `path`, which must not exist, and return its signer.

    Raises BadInput when the file exists, Unreachable when it cannot be made.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signer = SeedSigner(kid, seed)
    pem = Ed25519PrivateKey.from_private_bytes(seed).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _create(path, pem, 0o600)
    return signer


def load_private_key(path: Path, kid: str) -> SeedSigner:
    """The signer whose key lies at `path`. Raises Unreachable, or BadInput for a foreign form or for mode bits that let others read it."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pem, mode = _read(path)
    if b"BEGIN PUBLIC KEY" in pem:
        raise BadInput(KEY_FORM.at(f"{path} is a public key; sealing takes the private one that belongs to it"))
    if mode & _OTHERS:
        raise BadInput(KEY_MODE.at(f"{path} has mode {stat.S_IMODE(mode):04o}; run `chmod 600 {path}`"))
    if not pem.startswith(b"-----BEGIN PRIVATE KEY-----"):
        raise BadInput(KEY_FORM.at(f"{path} is not an unencrypted PKCS#8 PEM (`BEGIN PRIVATE KEY`); convert it first"))
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except Exception:  # noqa: BLE001 - the library raises several kinds, and their text may quote the key
        raise BadInput(KEY_FORM.at(f"{path} does not hold a private key; restore it from its backup")) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInput(KEY_FORM.at(f"{path} holds a key of another algorithm; use an Ed25519 key"))
    return SeedSigner(kid, key.private_bytes_raw())


def create_public_key(path: Path, key: PublicKey) -> None:
    """Write `key` as `path`, which must not exist. Raises as `create_private_key`."""
    _create(path, public_pem(key), 0o644)


def public_pem(key: PublicKey) -> bytes:
    """`key` as PEM SubjectPublicKeyInfo."""
    from cryptography.hazmat.primitives import serialization

    return _foreign(key).public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def load_public_key(path: Path) -> PublicKey:
    """The key at `path`. Raises Unreachable, or BadInput for a foreign form or a key that is not acceptable."""
    return parse_public_pem(_read(path)[0], str(path))


def parse_public_pem(pem: bytes, where: str) -> PublicKey:
    """The key that `pem` holds; `where` names it in errors. Raises BadInput."""
    ours = _as_written(pem)
    if ours is not None:
        return public_key(ours)
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if b"PRIVATE KEY" in pem:
        raise BadInput(KEY_FORM.at(f"{where} is a private key; give the public one, and keep this file to yourself"))
    if not pem.startswith(b"-----BEGIN PUBLIC KEY-----"):
        raise BadInput(KEY_FORM.at(f"{where} is not a SubjectPublicKeyInfo PEM (`BEGIN PUBLIC KEY`); convert it first"))
    try:
        key = serialization.load_pem_public_key(pem)
    except Exception as error:  # noqa: BLE001 - the library raises several kinds for hostile PEM
        raise BadInput(
            KEY_FORM.at(f"{where} does not hold a public key ({type(error).__name__}); ask for it again")
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInput(KEY_FORM.at(f"{where} holds a key of another algorithm; use an Ed25519 key"))
    return public_key(key.public_bytes_raw())


def _as_written(pem: bytes) -> bytes | None:
    """The 32 bytes of a key in exactly the form of `public_pem`, which every plan reads; None for any other form.

    The library that reads them all takes longer to load than a small fleet.
    """
    raw = pem[len(_PEM_HEAD) : -len(_PEM_TAIL)]
    try:
        der = binascii.a2b_base64(raw)
    except binascii.Error:
        return None
    whole = _PEM_HEAD + binascii.b2a_base64(der, newline=False) + _PEM_TAIL
    if pem != whole or not der.startswith(_SPKI) or len(der) != len(_SPKI) + KEY_BYTES:
        return None
    return der[len(_SPKI) :]


def cose_key(key: PublicKey, kid: str) -> bytes:
    """`key` as a COSE_Key (RFC 9052 §7) with its kid."""
    from pycose.keys.curves import Ed25519
    from pycose.keys.okp import OKPKey

    exported = OKPKey(crv=Ed25519, x=bytes(key), optional_params={"KID": kid.encode()})
    encoded: bytes = exported.encode()
    return encoded


def parse_cose_key(data: bytes, where: str) -> PublicKey:
    """The public key that a COSE_Key holds. Raises BadInput."""
    from pycose.keys.cosekey import CoseKey
    from pycose.keys.curves import Ed25519
    from pycose.keys.okp import OKPKey

    try:
        key: object = CoseKey.decode(data)
    except Exception as error:  # noqa: BLE001 - pycose raises many kinds on hostile bytes
        raise BadInput(KEY_FORM.at(f"{where} is not a COSE_Key ({type(error).__name__})")) from None
    if not isinstance(key, OKPKey) or key.crv is not Ed25519 or not isinstance(key.x, bytes):
        raise BadInput(KEY_FORM.at(f"{where} is not an Ed25519 COSE_Key (key type OKP, curve Ed25519)"))
    return public_key(key.x)


def _foreign(key: PublicKey) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(bytes(key))


def _create(path: Path, data: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise BadInput(KEY_EXISTS.at(f"{path} exists; move it away first if it is not needed any more")) from None
    except OSError as error:
        raise Unreachable(KEY_UNREADABLE.at(f"{path} cannot be created: {error.strerror}")) from None
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Unreachable(KEY_UNREADABLE.at(f"{path} cannot be written: {error.strerror}")) from None


def _read(path: Path) -> tuple[bytes, int]:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(MAX_KEY_FILE + 1)
    except OSError as error:
        raise Unreachable(
            KEY_UNREADABLE.at(f"{path} cannot be opened: {error.strerror}; check the path and its permissions")
        ) from None
    if len(data) > MAX_KEY_FILE:
        raise BadInput(KEY_FORM.at(f"{path} is larger than any key file"))
    return data, mode
