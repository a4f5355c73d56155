"""Keys and signatures (ledger.md "Ed25519, said exactly") and the files they lie in."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from nacl import bindings

from fleetctl.errors import BadInput, Unreachable
from fleetctl.ledger import keyfiles
from fleetctl.ledger.keys import PublicKey, SeedSigner, public_key, verifies
from tests.support.ledgers import SMALL_ORDER_POINTS, STEWARD, seed, sign_with_nonce

WYCHEPROOF = Path(__file__).parents[2] / "vectors" / "wycheproof" / "ed25519_test.json"


def other_library(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def accepted(key: bytes) -> bool:
    try:
        public_key(key)
    except BadInput:
        return False
    return True


def test_wycheproof_has_one_verdict_in_both_libraries_under_every_accepted_key() -> None:
    """The libraries differ under small-order and mixed-order keys alone, and those are refused before any signature is looked at."""
    counted = 0
    for group in json.loads(WYCHEPROOF.read_text())["testGroups"]:
        key = bytes.fromhex(group["publicKey"]["pk"])
        for test in group["tests"]:
            message, signature = bytes.fromhex(test["msg"]), bytes.fromhex(test["sig"])
            if not accepted(key):
                assert test["result"] != "valid", test["tcId"]
                assert set(test["flags"]) & {"SmallOrderPublicKey", "MixedOrderPublicKey"}, test["tcId"]
                continue
            ours = verifies(PublicKey(key), message, signature)
            assert ours == other_library(key, message, signature) == (test["result"] == "valid"), test["tcId"]
            counted += 1
    assert counted > 150


def test_an_identity_r_is_refused_even_when_the_equation_holds() -> None:
    """R = identity, S = h*a: the key's owner alone can make it, and the other library accepts it."""
    message = b"message"
    zero_nonce = sign_with_nonce(seed("root-steward"), message, b"any")
    assert verifies(STEWARD.public_key, message, zero_nonce)
    forged = _identity_signature(message)
    assert other_library(bytes(STEWARD.public_key), message, forged)
    assert not verifies(STEWARD.public_key, message, forged)


def _identity_signature(message: bytes) -> bytes:
    from hashlib import sha512

    def reduced(data: bytes) -> bytes:
        value: bytes = bindings.crypto_core_ed25519_scalar_reduce(data)
        return value

    scalar = bytearray(sha512(seed("root-steward")).digest()[:32])
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    r = SMALL_ORDER_POINTS[0]
    challenge = reduced(sha512(r + STEWARD.public_key + message).digest())
    s: bytes = bindings.crypto_core_ed25519_scalar_mul(challenge, reduced(bytes(scalar) + bytes(32)))
    return r + s


def test_small_order_keys_never_load() -> None:
    assert not any(map(accepted, SMALL_ORDER_POINTS))


@pytest.mark.parametrize("size", [0, 63, 65])
def test_a_signature_is_64_bytes(size: int) -> None:
    assert not verifies(STEWARD.public_key, b"m", bytes(size))


def test_a_signer_does_not_show_its_secret() -> None:
    secret = seed("root-steward")
    assert secret.hex() not in repr(STEWARD) and repr(secret) not in repr(STEWARD)
    with pytest.raises(BadInput):
        SeedSigner("not an identifier", secret)


def test_key_files_round_trip(tmp_path: Path) -> None:
    private, public = tmp_path / "steward.pem", tmp_path / "steward.pub.pem"
    made = keyfiles.create_private_key(private, "root-steward", seed("x"))
    keyfiles.create_public_key(public, made.public_key)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    loaded = keyfiles.load_private_key(private, "root-steward")
    assert loaded.sign(b"m") == made.sign(b"m")
    assert keyfiles.load_public_key(public) == made.public_key
    foreign = serialization.load_pem_private_key(private.read_bytes(), password=None)
    assert isinstance(foreign, Ed25519PrivateKey) and foreign.private_bytes_raw() == seed("x")


def test_an_existing_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "steward.pem"
    path.write_bytes(b"precious")
    with pytest.raises(BadInput) as refused:
        keyfiles.create_private_key(path, "root-steward", seed("x"))
    assert refused.value.code == "key-file-exists" and path.read_bytes() == b"precious"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_private_key_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "steward.pem"
    keyfiles.create_private_key(path, "root-steward", seed("x"))
    path.chmod(mode)
    with pytest.raises(BadInput) as refused:
        keyfiles.load_private_key(path, "root-steward")
    assert refused.value.code == "key-file-mode" and "chmod 600" in str(refused.value)


def test_missing_files_and_folders_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pem", tmp_path):
        with pytest.raises(Unreachable):
            keyfiles.load_private_key(path, "root-steward")
        with pytest.raises(Unreachable):
            keyfiles.load_public_key(path)
    with pytest.raises(Unreachable):
        keyfiles.create_private_key(tmp_path / "no" / "k.pem", "root-steward", seed("x"))


def foreign_private(form: str) -> bytes:
    key = Ed25519PrivateKey.from_private_bytes(seed("x"))
    pem, pkcs8, bare = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    if form == "encrypted":
        return key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"secret"))
    if form == "openssh":
        return key.private_bytes(pem, serialization.PrivateFormat.OpenSSH, bare)
    if form == "der":
        return key.private_bytes(serialization.Encoding.DER, pkcs8, bare)
    if form == "other algorithm":
        return ec.generate_private_key(ec.SECP256R1()).private_bytes(pem, pkcs8, bare)
    if form == "torn":
        return key.private_bytes(pem, pkcs8, bare)[:60]
    return b"\x00" * 20_000 if form == "large" else b""


@pytest.mark.parametrize("form", ["encrypted", "openssh", "der", "other algorithm", "torn", "large", "empty"])
def test_foreign_private_keys_are_refused_without_showing_them(tmp_path: Path, form: str) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(foreign_private(form))
    path.chmod(0o600)
    with pytest.raises(BadInput) as refused:
        keyfiles.load_private_key(path, "root-steward")
    assert refused.value.code == "key-file-form"
    assert seed("x").hex() not in str(refused.value)


def test_a_public_key_is_no_private_key(tmp_path: Path) -> None:
    """Said before the mode is looked at: a public key is readable for all, and `chmod` would mend nothing."""
    path = tmp_path / "steward.pub.pem"
    keyfiles.create_public_key(path, STEWARD.public_key)
    with pytest.raises(BadInput, match="is a public key; sealing takes the private one"):
        keyfiles.load_private_key(path, "root-steward")


def test_a_private_key_is_no_public_key(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    keyfiles.create_private_key(path, "root-steward", seed("x"))
    with pytest.raises(BadInput) as refused:
        keyfiles.load_public_key(path)
    assert "keep this file to yourself" in str(refused.value)


@pytest.mark.parametrize("point", SMALL_ORDER_POINTS)
def test_a_weak_key_in_a_good_file_is_refused(point: bytes) -> None:
    pem = Ed25519PublicKey.from_public_bytes(point).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with pytest.raises(BadInput) as refused:
        keyfiles.parse_public_pem(pem, "roster.pem")
    assert refused.value.code == "unacceptable-key"


def test_cose_key_round_trip() -> None:
    exported = keyfiles.cose_key(STEWARD.public_key, "root-steward")
    assert keyfiles.parse_cose_key(exported, "key") == STEWARD.public_key
    for broken in (b"", b"\x00", exported[:-1], exported.replace(b"\x20\x06", b"\x20\x07"), b"\xa1\x01\x01"):
        with pytest.raises(BadInput) as refused:
            keyfiles.parse_cose_key(broken, "key")
        assert refused.value.code == "key-file-form"


def test_pycose_never_pulls_in_oscrypto() -> None:
    """`pycose.extensions.x509` needs oscrypto, which fails on current OpenSSL."""
    script = (
        "import sys\n"
        "from fleetctl.ledger import keyfiles, crosscheck, audit\n"
        "from tests.support.ledgers import *\n"
        "keyfiles.parse_cose_key(keyfiles.cose_key(STEWARD.public_key, 'root-steward'), 'key')\n"
        "data = join(seal_all(history(1)))\n"
        "assert crosscheck.disagreements(data, ledger=ENTITLEMENTS, key=STEWARD.public_key) == []\n"
        "assert 'pycose' in sys.modules\n"
        "assert not {'pycose.extensions.x509', 'oscrypto'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[3])
