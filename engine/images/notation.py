"""Notary signatures: whether a JWS or COSE envelope was signed, by whom a policy trusts, over one image.

Rules: the Notary Project's specification of signatures and of trust stores, at its level `strict`, with two differences:
revocation is not asked about, since nothing is fetched here, and countersigned timestamps do not extend the life of a
certificate: it has to be valid when it is verified.
"""

from __future__ import annotations

import binascii
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import engine.manifests.keys as known
from engine.errors import EvaluationError
from engine.lang import rfc3339
from engine.record import record

from .cbor import Tagged, encode_bytes, read_cbor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cryptography.x509 import Certificate

JWS: Final = "application/jose+json"
COSE: Final = "application/cose"
PAYLOAD: Final = "application/vnd.cncf.notary.payload.v1+json"
MOST_ENVELOPE: Final = 4 * 1024 * 1024
_PREFIX: Final = "io.cncf.notary."
_SCHEME: Final = f"{_PREFIX}signingScheme"
_EXPIRY: Final = f"{_PREFIX}expiry"
_UNDERSTOOD: Final = frozenset({_SCHEME, _EXPIRY, f"{_PREFIX}authenticSigningTime", 3, "cty"})
_LONGEST_CHAIN: Final = 10
_COSE_SIGN1: Final = 18
_COSE_ALGORITHMS: Final = {
    -37: "PS256", -38: "PS384", -39: "PS512", -7: "ES256", -35: "ES384", -36: "ES512",
}  # fmt: skip
_OF_KEYS: Final = {
    ("RSA", 2048): "PS256", ("RSA", 3072): "PS384", ("RSA", 4096): "PS512",
    ("EC", 256): "ES256", ("EC", 384): "ES384", ("EC", 521): "ES512",
}  # fmt: skip
"""The one algorithm of each kind and size of key; other keys are not for Notary signatures."""


@record
class NotarySignature:
    """One signature as a registry holds it: the media type of its envelope and the envelope."""

    media_type: str
    envelope: bytes


@record
class TrustStore:
    """The certificates (DER) that a policy trusts to sign, themselves or through those they issue."""

    certificates: tuple[bytes, ...]

    @staticmethod
    def from_pem(text: str) -> TrustStore:
        """Return the store of a PEM text; raise EvaluationError where there is nobody to trust."""
        found = known.certificates_from_pem(text)
        if not found:
            raise EvaluationError(
                "no certificate found where those that a notary trusts are expected"
            )
        return TrustStore(tuple(found))

    def verify(self, signature: NotarySignature, digest: str, now: datetime) -> None:
        """Accept a signature about the image of `digest`; raise EvaluationError that says what is wrong with it."""
        found = _opened(signature)
        _check_attributes(found, now)
        chain = _chain(found.chain)
        leaf = chain[0]
        if not _is_signed(leaf, found):
            raise EvaluationError("the notary signature does not verify")
        if not any(one in self.certificates for one in found.chain):
            raise EvaluationError("the notary signature is of nobody whom the policy trusts")
        _check_leaf(leaf)
        if not all(one.not_valid_before_utc <= now <= one.not_valid_after_utc for one in chain):
            raise EvaluationError("a certificate of the notary signature is not valid now")
        if _target(found.payload) != digest or not digest:
            raise EvaluationError("the notary signature is about another artifact")


@record
class _Envelope:
    """What both kinds of envelopes hold, taken apart but not believed."""

    algorithm: str
    attributes: Mapping[Any, Any]
    critical: tuple[Any, ...]
    content_type: str
    signed: bytes
    payload: bytes
    signature: bytes
    chain: tuple[bytes, ...]


def _opened(signature: NotarySignature) -> _Envelope:
    if len(signature.envelope) > MOST_ENVELOPE:
        raise EvaluationError("a notary signature of more than 4 MiB")
    read = {JWS: _read_jws, COSE: _read_cose}.get(signature.media_type)
    if read is None:
        raise EvaluationError(f"notary envelopes of type {signature.media_type} are not known")
    try:
        return read(signature.envelope)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise EvaluationError("the notary signature is not a readable envelope") from error


def _read_jws(data: bytes) -> _Envelope:
    import orjson

    document = orjson.loads(data)
    protected = orjson.loads(_url64(document["protected"]))
    header = document["header"]
    return _Envelope(
        algorithm=str(protected["alg"]),
        attributes=protected,
        critical=tuple(protected.get("crit") or ()),
        content_type=str(protected.get("cty")),
        signed=f"{document['protected']}.{document['payload']}".encode("ascii"),
        payload=_url64(document["payload"]),
        signature=_url64(document["signature"]),
        chain=tuple(
            binascii.a2b_base64(one, strict_mode=True) for one in header["x5c"][:_LONGEST_CHAIN]
        ),
    )


def _read_cose(data: bytes) -> _Envelope:
    document = read_cbor(data)
    if not isinstance(document, Tagged) or document.tag != _COSE_SIGN1:
        raise EvaluationError("the notary signature is not a COSE envelope of one signer")
    packed, header, payload, signature = document.value
    protected = read_cbor(packed)
    chain = header[33]
    listed = chain if isinstance(chain, list) else [chain]
    if not all(isinstance(one, bytes) for one in (packed, payload, signature, *listed)):
        raise EvaluationError("the notary signature is not a readable envelope")
    parts = ((3, b"Signature1"), (2, packed), (2, b""), (2, payload))
    return _Envelope(
        algorithm=_COSE_ALGORITHMS.get(protected[1], ""),
        attributes={
            key: value.value if isinstance(value, Tagged) else value
            for key, value in protected.items()
        },
        critical=tuple(protected.get(2) or ()),
        content_type=str(protected.get(3)),
        signed=b"\x84" + b"".join(encode_bytes(major, part) for major, part in parts),
        payload=payload,
        signature=signature,
        chain=tuple(listed[:_LONGEST_CHAIN]),
    )


def _check_attributes(found: _Envelope, now: datetime) -> None:
    """Accept attributes that are all understood, of the scheme with certificates, and not past their end."""
    if found.content_type != PAYLOAD:
        raise EvaluationError("the notary signature is over a payload of another type")
    if _SCHEME not in found.critical or any(
        not isinstance(one, str | int) or one not in _UNDERSTOOD for one in found.critical
    ):
        raise EvaluationError("the notary signature has critical attributes that are not known")
    if found.attributes.get(_SCHEME) != "notary.x509":
        raise EvaluationError("the notary signature is of another signing scheme")
    ends = found.attributes.get(_EXPIRY)
    if ends is not None and _instant(ends) < now:
        raise EvaluationError("the notary signature has expired")


def _instant(value: Any) -> datetime:
    try:
        if isinstance(value, int):
            return datetime.fromtimestamp(value, UTC)
        found = rfc3339.read(value)
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None:
        raise EvaluationError("the notary signature has no readable expiry")
    return found


def _chain(ders: Sequence[bytes]) -> list[Certificate]:
    """Return the certificates from the signer's to a root, each issued by the next, the root by itself."""
    if not ders:
        raise EvaluationError("the notary signature came without certificates")
    chain = [known.load_certificate(one) for one in ders]
    issuers = [*chain[1:], chain[-1]]
    for one, issuer in zip(chain, issuers, strict=True):
        try:
            one.verify_directly_issued_by(issuer)
        except Exception as error:  # wrong names, signatures and keys arrive as many kinds
            raise EvaluationError(
                "the certificates of the notary signature are no chain"
            ) from error
    for length, issuer in enumerate(chain[1:]):
        _check_authority(issuer, length)
    return chain


def _check_authority(certificate: Certificate, below: int) -> None:
    """Accept an authority that may have `below` further authorities beneath it."""
    from cryptography import x509

    try:
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except Exception as error:  # missing or unreadable
        raise EvaluationError("a certificate of the notary signature is no authority's") from error
    if not basic.ca or not usage.key_cert_sign:
        raise EvaluationError("a certificate of the notary signature is no authority's")
    if basic.path_length is not None and basic.path_length < below:
        raise EvaluationError(
            "the certificates of the notary signature are too many for their root"
        )


def _check_leaf(leaf: Certificate) -> None:
    """Accept a certificate for signing code: its key for signatures, no authority, no other purpose."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    held = {one.oid: one.value for one in _extensions(leaf)}
    usage: Any = held.get(x509.KeyUsage.oid)
    purposes: Any = held.get(x509.ExtendedKeyUsage.oid)
    basic: Any = held.get(x509.BasicConstraints.oid)
    if usage is None or not usage.digital_signature or usage.key_cert_sign:
        raise EvaluationError("the certificate's key is not for signatures")
    if purposes is not None and ExtendedKeyUsageOID.CODE_SIGNING not in purposes:
        raise EvaluationError("the certificate is not for signing code")
    if basic is not None and basic.ca:
        raise EvaluationError("the certificate is an authority's, not a signer's")


def _extensions(certificate: Certificate) -> Any:
    try:
        return certificate.extensions
    except Exception as error:  # unreadable ones arrive as many kinds
        raise EvaluationError("a certificate is not readable") from error


def _is_signed(leaf: Certificate, found: _Envelope) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

    key = leaf.public_key()
    kind = "RSA" if isinstance(key, rsa.RSAPublicKey) else "EC"
    if _OF_KEYS.get((kind, getattr(key, "key_size", 0))) != found.algorithm:
        raise EvaluationError("the notary signature uses an algorithm that its key is not for")
    digest = getattr(hashes, f"SHA{found.algorithm[2:]}")()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            salt = padding.PSS(padding.MGF1(digest), digest.digest_size)
            key.verify(found.signature, found.signed, salt, digest)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            half = (key.key_size + 7) // 8
            if len(found.signature) != 2 * half:
                return False
            numbers = (found.signature[:half], found.signature[half:])
            pair = utils.encode_dss_signature(*(int.from_bytes(one, "big") for one in numbers))
            key.verify(pair, found.signed, ec.ECDSA(digest))
        else:
            return False
    except (InvalidSignature, ValueError):
        return False
    return True


def _target(payload: bytes) -> str:
    """Return the digest that the payload is about."""
    import orjson

    try:
        return str(orjson.loads(payload)["targetArtifact"]["digest"])
    except (LookupError, TypeError, ValueError) as error:
        raise EvaluationError("the notary signature's payload names no artifact") from error


def _url64(text: str) -> bytes:
    """Decode base64url without padding, strictly."""
    plain = text.replace("-", "+").replace("_", "/")
    if "+" in text or "/" in text or "=" in text:
        raise ValueError("not base64url")
    return binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
