"""A signing certificate's chain at one instant, and the certificate log's receipt inside it.

For keyless and certificate attestors. Certificates for signing live minutes and are always
expired today; what counts is the instant at which the log saw the signature.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError
from engine.lang.work import uncut

from .keys import der_of_key, is_signed_by, load_certificate, load_der_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.x509 import Certificate

    from .trust import Authority, LogKey

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def verify_chain(
    leaf: Certificate,
    extra: Sequence[bytes],
    authorities: Sequence[Authority],
    instant: datetime,
    *,
    is_public: bool = True,
) -> Certificate:
    """Return the issuer of `leaf` after its chain to one of the authorities held at `instant`.

    `extra` are further intermediates (DER). `is_public` False accepts leaves of company authorities without subject
    alternative names. Raise EvaluationError when no authority vouches for the leaf.
    """
    valid = [one for one in authorities if one.is_valid_at(instant)]
    if not valid:
        raise EvaluationError("no certificate authority is trusted for the time of the signature")
    for authority in valid:
        issuer = _issuer(leaf, extra, authority, instant, is_public)
        if issuer is not None:
            _check_purpose(leaf)
            return issuer
    raise EvaluationError(
        "the certificate does not chain to a trusted authority, or was not valid when it signed"
    )


def verify_receipt(leaf: Certificate, issuer: Certificate, logs: Sequence[LogKey]) -> None:
    """Accept a leaf whose embedded timestamp (SCT) of a trusted certificate log verifies; else raise EvaluationError."""
    from cryptography import x509

    try:
        receipts = leaf.extensions.get_extension_for_class(
            x509.PrecertificateSignedCertificateTimestamps
        ).value
        claims = [(receipt, _receipt_text(receipt, leaf, issuer)) for receipt in receipts]
    except x509.ExtensionNotFound as error:
        raise EvaluationError("the certificate carries no signed certificate timestamp") from error
    except Exception as error:  # foreign bytes make the library raise many kinds
        raise EvaluationError("the signed certificate timestamp is not readable") from error
    if not any(_is_receipt_of(receipt, text, logs) for receipt, text in claims):
        raise EvaluationError("no signed certificate timestamp is of a trusted certificate log")


def _issuer(
    leaf: Certificate,
    extra: Sequence[bytes],
    authority: Authority,
    instant: datetime,
    is_public: bool,
) -> Certificate | None:
    from cryptography.x509.verification import PolicyBuilder, Store

    anchors = [load_certificate(one) for one in authority.anchors]
    between = [load_certificate(one) for one in (*authority.intermediates, *extra)]
    try:
        verifier = (
            PolicyBuilder()
            .store(Store(anchors))
            .time(instant)
            .extension_policies(**_extension_policies(is_public))
            .build_client_verifier()
        )
        chain = _verified(verifier, leaf, between)
    except Exception:  # refusal and unreadable extensions arrive as many kinds
        return None
    # INVARIANT: an anchor itself is no signer's certificate, so there is an issuer.
    return chain[1] if len(chain) > 1 else None


@uncut
def _verified(
    verifier: Any, leaf: Certificate, between: Sequence[Certificate]
) -> list[Certificate]:
    chain: list[Certificate] = verifier.verify(leaf, between).chain
    return chain


def _extension_policies(is_public: bool) -> dict[str, Any]:
    from cryptography import x509
    from cryptography.x509.verification import Criticality, ExtensionPolicy

    usage = (x509.ExtendedKeyUsage, Criticality.AGNOSTIC, None)
    authority = ExtensionPolicy.webpki_defaults_ca().may_be_present(*usage)
    if not is_public:
        return {"ca_policy": authority, "ee_policy": ExtensionPolicy.permit_all()}
    leaf = ExtensionPolicy.webpki_defaults_ee().may_be_present(*usage)
    return {"ca_policy": authority, "ee_policy": leaf}


def _check_purpose(leaf: Certificate) -> None:
    """Accept only certificates for signing code: the chain check leaves these extensions to us."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
    except Exception as error:  # missing or unreadable
        raise EvaluationError("the certificate does not say what it may be used for") from error
    if ExtendedKeyUsageOID.CODE_SIGNING not in purposes:
        raise EvaluationError("the certificate is not for signing code")
    if not usage.digital_signature:
        raise EvaluationError("the certificate's key is not for signatures")
    if _is_authority(leaf):
        raise EvaluationError("the certificate is an authority's, not a signer's")


def _is_authority(leaf: Certificate) -> bool:
    from cryptography import x509

    try:
        return leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _receipt_text(receipt: Any, leaf: Certificate, issuer: Certificate) -> bytes:
    """Return the bytes that the certificate log signed (RFC 6962, section 3.2)."""
    issuer_hash = hashlib.sha256(der_of_key(issuer.public_key())).digest()
    body = leaf.tbs_precertificate_bytes
    extensions: bytes = receipt.extension_bytes
    return b"".join(
        (
            b"\x00\x00",
            _milliseconds(receipt.timestamp).to_bytes(8, "big"),
            b"\x00\x01",
            issuer_hash,
            len(body).to_bytes(3, "big"),
            body,
            len(extensions).to_bytes(2, "big"),
            extensions,
        )
    )


def _milliseconds(timestamp: datetime) -> int:
    return (timestamp.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def _is_receipt_of(receipt: Any, text: bytes, logs: Sequence[LogKey]) -> bool:
    seen_at = receipt.timestamp.replace(tzinfo=UTC)
    return any(
        log.log_id == receipt.log_id
        and log.is_valid_at(seen_at)
        and is_signed_by(load_der_key(log.der), receipt.signature, text)
        for log in logs
    )
