"""Codes sealed to somebody's public key: what is printed or kept is of use only to whoever holds the private key.

RSA keys by OAEP; keys on the curves P-256, P-384 and X25519 by a key agreed on for this one seal. The private key is asked for
its password where it has one, and never leaves the machine.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from engine import vocabulary
from engine.errors import DocumentError, EngineError, Location, reason_of
from engine.lang.yaml import load_all

if TYPE_CHECKING:
    from engine.model import Object

KIND: Final = "SealedCode"
RSA, AGREED = "RSA-OAEP-SHA256", "ECDH-HKDF-SHA256-AES256GCM"
_INFO: Final = b"kpolicy sealed code"
_LEAST_RSA: Final = 2048
_NONCE: Final = 12


def read_recipient(name: str) -> Any:
    """Return the public key in a file, PEM or OpenSSH; raises EngineError for one that nothing can be sealed to."""
    data = _read(name)
    try:
        if data.startswith((b"ssh-", b"ecdsa-")):
            key: Any = serialization.load_ssh_public_key(data)
        else:
            key = serialization.load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise EngineError(f"`{name}` is no public key", help="PEM, or a line of OpenSSH") from error
    _check(key, name)
    return key


def _check(key: Any, name: str) -> None:
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _LEAST_RSA:
        return
    if isinstance(key, ec.EllipticCurvePublicKey | x25519.X25519PublicKey):
        return
    raise EngineError(f"nothing can be sealed to `{name}`", help=f"RSA of at least {_LEAST_RSA} bits, a curve of NIST, or X25519")  # fmt: skip


def seal(code: str, name: str, key: Any) -> Object:
    """Return a code sealed to a public key; `name` is the code's object."""
    if isinstance(key, rsa.RSAPublicKey):
        spec = {"algorithm": RSA, "sealed": _text(key.encrypt(code.encode(), _oaep()))}
    else:
        spec = _agreed(code, name, key)
    return {"apiVersion": vocabulary.KPOLICY, "kind": KIND, "metadata": {"name": name}, "spec": {"recipient": fingerprint(key), **spec}}  # fmt: skip


def sealed_about(code: str, obj: Object, key: Any) -> Object:
    """Return a code sealed, with what its object says in the open: for whom, for what, until when."""
    spec = obj.get("spec") or {}
    made = seal(code, str(obj["metadata"]["name"]), key)
    open_words = {"user": spec.get("user"), "binding": spec.get("binding"), "expiresAt": spec.get("expiresAt")}  # fmt: skip
    return {**made, "spec": {**made["spec"], **{name: value for name, value in open_words.items() if value}}}  # fmt: skip


def fingerprint(key: Any) -> str:
    """Return what tells a public key from others."""
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"SHA256:{_text(hashlib.sha256(der).digest())}"


def _agreed(code: str, name: str, key: Any) -> dict[str, str]:
    if isinstance(key, x25519.X25519PublicKey):
        own: Any = x25519.X25519PrivateKey.generate()
        secret = own.exchange(key)
    else:
        own = ec.generate_private_key(key.curve)
        secret = own.exchange(ec.ECDH(), key)
    shown = own.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    nonce = os.urandom(_NONCE)
    sealed = AESGCM(_derived(secret, shown)).encrypt(nonce, code.encode(), name.encode())
    return {"algorithm": AGREED, "ephemeral": _text(shown), "nonce": _text(nonce), "sealed": _text(sealed)}  # fmt: skip


def _derived(secret: bytes, shown: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt=shown, info=_INFO).derive(secret)


def _oaep() -> Any:
    return padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


def sealed_in(name: str) -> list[Object]:
    """Return the sealed codes of a file; raises EngineError."""
    found: list[Object] = []
    for document in load_all(_read(name), file=name):
        value = document.value if isinstance(document.value, dict) else {}
        found += value.get("items") or [value]
    if not found or any(not isinstance(one, dict) or one.get("kind") != KIND for one in found):
        raise DocumentError("this holds no sealed codes", at=Location(name), help="make them with `kubectl kpolicy otp issue --seal-to KEY`")  # fmt: skip
    return found


def read_private(name: str) -> Any:
    """Return the private key in a file, asking for its password on a terminal; raises EngineError."""
    data = _read(name)
    try:
        return _loaded(data, None)
    except TypeError:
        return _loaded_with_password(data, name)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise EngineError(f"`{name}` is no private key", help="PEM, or as OpenSSH keeps it") from error  # fmt: skip


def _loaded_with_password(data: bytes, name: str) -> Any:
    if not sys.stdin.isatty():
        raise EngineError(f"`{name}` has a password, and nobody can be asked for it")
    from getpass import getpass

    try:
        return _loaded(data, getpass(f"password of {name}: ").encode())
    except ValueError as error:
        raise EngineError(f"that is not the password of `{name}`") from error


def _loaded(data: bytes, password: bytes | None) -> Any:
    load = serialization.load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else serialization.load_pem_private_key  # fmt: skip
    return load(data, password)


def opened(sealed: Object, key: Any) -> str:
    """Return the code under a seal; raises EngineError where the key is not the one it was sealed to, or it was changed."""
    spec, name = sealed.get("spec") or {}, str((sealed.get("metadata") or {}).get("name") or "")
    if spec.get("recipient") != fingerprint(key.public_key()):
        raise EngineError(f"`{name}` is sealed to another key", help=f"it is {spec.get('recipient')}")  # fmt: skip
    try:
        if spec.get("algorithm") == RSA:
            return str(key.decrypt(_bytes(spec["sealed"]), _oaep()).decode())
        return _opened_agreed(spec, name, key)
    except (InvalidTag, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EngineError(f"the seal of `{name}` is broken") from error


def _opened_agreed(spec: dict[str, Any], name: str, key: Any) -> str:
    shown = _bytes(spec["ephemeral"])
    other: Any = load_der_public_key(shown)
    if isinstance(key, x25519.X25519PrivateKey):
        secret = key.exchange(other)
    else:
        secret = key.exchange(ec.ECDH(), other)
    return AESGCM(_derived(secret, shown)).decrypt(_bytes(spec["nonce"]), _bytes(spec["sealed"]), name.encode()).decode()  # fmt: skip


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise EngineError(f"cannot read `{name}`: {reason_of(error)}") from error


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: object) -> bytes:
    return base64.b64decode(str(text), validate=True)
