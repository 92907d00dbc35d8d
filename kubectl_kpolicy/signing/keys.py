"""Private keys from files: PKCS#8 and SEC1 PEM, plain or encrypted, and cosign's own encrypted form.

For `kubectl kpolicy sign -k`. Cosign's form needs PyNaCl, an optional extra, because its cipher is in no other library
that is needed anyway. Passwords come from COSIGN_PASSWORD or a prompt and are never printed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import sys
from typing import TYPE_CHECKING, Any

import orjson

from engine.manifests.keys import pem_blocks

from .errors import SigningError, UsageError
from .files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

PASSWORD_VARIABLE = "COSIGN_PASSWORD"  # noqa: S105 - the variable's name

_COSIGN = ("ENCRYPTED COSIGN PRIVATE KEY", "ENCRYPTED SIGSTORE PRIVATE KEY")
_MAX_COST = 1 << 20
_MEMORY = 256 * 1024 * 1024


class SigningKey:
    """A private key that signs with SHA-256 in the form that verifiers of manifests expect."""

    def __init__(self, key: Any) -> None:
        self._key = key

    def sign(self, payload: bytes) -> bytes:
        """Return the signature over `payload`: ECDSA, RSA PKCS#1 v1.5, or Ed25519."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

        signature: bytes
        if isinstance(self._key, ed25519.Ed25519PrivateKey):
            return self._key.sign(payload)
        if isinstance(self._key, ec.EllipticCurvePrivateKey):
            signature = self._key.sign(payload, ec.ECDSA(hashes.SHA256()))
        else:
            signature = self._key.sign(payload, padding.PKCS1v15(), hashes.SHA256())
        return signature

    @property
    def public_pem(self) -> str:
        """The public key, as policies state it."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = self._key.public_key()
        pem: bytes = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return pem.decode()


def load_signing_key(path: str, ask: Callable[[], bytes] | None = None) -> SigningKey:
    """Return the key of a PEM file; raise UsageError when it is none, or not for signing.

    `ask` gives the password of an encrypted file (default: environment, then prompt).
    """
    text = read_bytes(path).decode("utf-8", "replace")
    labels = {label for label, _ in pem_blocks(text)}
    ask = ask or ask_password
    if labels & set(_COSIGN):
        return _checked(_from_der(_open_cosign(text, ask()), path), path)
    if not any(label.endswith("PRIVATE KEY") for label in labels):
        raise UsageError(f"`{path}` holds no private key in PEM form")
    return _checked(_from_pem(text.encode(), path, ask), path)


def ask_password() -> bytes:
    """Return the password from COSIGN_PASSWORD or, at a terminal, from the user."""
    stated = os.environ.get(PASSWORD_VARIABLE)
    if stated is not None:
        return stated.encode()
    if not sys.stdin.isatty():
        raise UsageError(
            "the key file is encrypted and no password is given",
            help=f"set {PASSWORD_VARIABLE}, or run the command at a terminal",
        )
    from getpass import getpass

    return getpass("password of the private key: ").encode()


def _from_pem(pem: bytes, path: str, ask: Callable[[], bytes]) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem, None)
    except TypeError:
        password = ask()
    except Exception as error:  # the library raises many kinds for foreign bytes
        raise UsageError(f"`{path}` is not a readable private key") from error
    try:
        return load_pem_private_key(pem, password)
    except Exception as error:  # wrong passwords look like damaged files
        raise UsageError(f"`{path}` cannot be opened: wrong password or damaged file") from error


def _from_der(der: bytes, path: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        return load_der_private_key(der, None)
    except Exception as error:  # see _from_pem
        raise UsageError(f"`{path}` is not a readable private key") from error


def _open_cosign(text: str, password: bytes) -> bytes:
    try:
        from nacl.exceptions import CryptoError
        from nacl.secret import SecretBox
    except ImportError as error:
        raise SigningError(
            "cosign's own key files need the package PyNaCl",
            help="install `kubectl-kpolicy[cosign-keys]`, or convert the key to PKCS#8 PEM",
        ) from error
    box, nonce, sealed = _cosign_parts(text, password)
    try:
        return bytes(SecretBox(box).decrypt(sealed, nonce))
    except (CryptoError, ValueError) as error:
        raise UsageError("the key file cannot be opened: wrong password or damaged file") from error


def _cosign_parts(text: str, password: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the derived key, the nonce and the sealed bytes of a cosign key file."""
    body = "".join(line for line in text.splitlines() if line and not line.startswith("-----"))
    try:
        file = orjson.loads(base64.b64decode(body, validate=True))
        kdf, cipher = file["kdf"], file["cipher"]
        cost = kdf["params"]
        if kdf["name"] != "scrypt" or cipher["name"] != "nacl/secretbox":
            raise ValueError("another cipher")
        if not 1 < cost["N"] <= _MAX_COST:
            raise ValueError("costs beyond any real key file")
        key = hashlib.scrypt(
            password,
            salt=base64.b64decode(kdf["salt"], validate=True),
            n=cost["N"],
            r=cost["r"],
            p=cost["p"],
            maxmem=_MEMORY,
            dklen=32,
        )
        nonce = base64.b64decode(cipher["nonce"], validate=True)
        return key, nonce, base64.b64decode(file["ciphertext"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise UsageError("the key file is not a readable cosign key") from error


def _checked(key: Any, path: str) -> SigningKey:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    kinds = (ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey, rsa.RSAPrivateKey)
    if not isinstance(key, kinds):
        raise UsageError(f"`{path}` is not an ECDSA, RSA or Ed25519 key")
    return SigningKey(key)
