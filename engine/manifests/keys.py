"""Public keys and certificates from PEM, and plain signatures checked with them.

The narrow place where the cryptography library's key types are known; imported by everything that verifies, loaded only
when the first signature is checked.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

PublicKey = Any
"""A public key of the cryptography library: ECDSA, RSA or Ed25519."""

HASHES = ("sha256", "sha224", "sha384", "sha512")

_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_MAX_PEM = 256 * 1024
_MAX_RSA_BITS = 8192
_MAX_CERTIFICATES = 10


def pem_blocks(text: str) -> list[tuple[str, str]]:
    """Return label and text of every PEM block."""
    if len(text) > _MAX_PEM:
        raise EvaluationError("a PEM text of more than 256 KiB")
    return [(found[1], found[0]) for found in _PEM_BLOCK.finditer(text)]


@lru_cache(maxsize=256)
def load_public_key(pem: str) -> PublicKey:
    """Return the key of one PEM block; raise EvaluationError that says what is wrong with it."""
    labels = [label for label, _ in pem_blocks(pem)]
    if labels and labels[0].startswith("PGP"):
        raise EvaluationError("PGP keys are not supported")
    if "CERTIFICATE" in labels:
        raise EvaluationError(
            "a certificate stands where a public key is expected; use `certificates`"
        )
    if labels not in (["PUBLIC KEY"], ["RSA PUBLIC KEY"]):
        raise EvaluationError("failed to load public key: no PEM block of a public key found")
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem.encode())
    except Exception as error:  # the library raises many kinds for foreign bytes
        raise EvaluationError("failed to load public key: not a readable key") from error
    _check_kind(key)
    return key


def der_of_key(key: PublicKey) -> bytes:
    """Return the DER form (SubjectPublicKeyInfo) that key ids are computed from."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    found: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found


@lru_cache(maxsize=64)
def load_der_key(der: bytes) -> PublicKey:
    """Return the key of a DER SubjectPublicKeyInfo; raise EvaluationError when unreadable."""
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(der)
    except Exception as error:  # see load_public_key
        raise EvaluationError("a log key is not readable") from error
    _check_kind(key)
    return key


def certificates_from_pem(text: str) -> list[bytes]:
    """Return DER of every certificate in a PEM text, at most ten; raise EvaluationError for unreadable ones."""
    blocks = [block for label, block in pem_blocks(text) if label == "CERTIFICATE"]
    if len(blocks) > _MAX_CERTIFICATES:
        raise EvaluationError(f"more than {_MAX_CERTIFICATES} certificates in one chain")
    return [_der_of_certificate(block) for block in blocks]


@lru_cache(maxsize=256)
def load_certificate(der: bytes) -> Certificate:
    """Return the certificate of its DER form; raise EvaluationError when unreadable or of an unknown key type."""
    from cryptography.x509 import load_der_x509_certificate

    try:
        found = load_der_x509_certificate(der)
        _check_kind(found.public_key())
    except EvaluationError:
        raise
    except Exception as error:  # see load_public_key
        raise EvaluationError("a certificate is not readable") from error
    return found


def is_signed_by(
    key: PublicKey, signature: bytes, payload: bytes, algorithm: str = "sha256"
) -> bool:
    """Tell whether `signature` over `payload` is the key's: ECDSA, RSA PKCS#1 v1.5, or Ed25519."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        _verify(key, signature, payload, algorithm)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


def _verify(key: PublicKey, signature: bytes, payload: bytes, algorithm: str) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

    if isinstance(key, ed25519.Ed25519PublicKey):
        key.verify(signature, payload)
        return
    digest = getattr(hashes, algorithm.upper())()
    if isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, payload, ec.ECDSA(digest))
    else:
        key.verify(signature, payload, padding.PKCS1v15(), digest)


def _check_kind(key: PublicKey) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size > _MAX_RSA_BITS:
            raise EvaluationError(f"RSA keys of more than {_MAX_RSA_BITS} bits are not supported")
        return
    if not isinstance(key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        raise EvaluationError("this type of public key is not supported; use ECDSA, RSA or Ed25519")


@lru_cache(maxsize=256)
def _der_of_certificate(block: str) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificate

    try:
        found: bytes = load_pem_x509_certificate(block.encode()).public_bytes(Encoding.DER)
    except Exception as error:  # see load_public_key
        raise EvaluationError("a certificate is not readable") from error
    return found
