"""Our own certificate authority and the leaf that the webhook shows, and when each is made anew (row W-30).

Everything is ECDSA P-256, because a live TLS context keeps serving an old certificate of another key type. Pure: keys and
instants in, PEM out; Secrets and TLS contexts are elsewhere. The rule of renewal: first the API server learns the new
authority beside the old one, and only when it has is a leaf made by the new one, so that no handshake ever fails.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_LIFE = timedelta(days=365)
LEAF_LIFE = timedelta(days=150)
RENEW_BEFORE = timedelta(days=15)
SKEW = timedelta(hours=1)
"""How far in the past certificates begin to count, for hosts whose clocks are behind."""

_END = b"-----END CERTIFICATE-----\n"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate (or several, the current one first) and the key of the first, PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Certificates:
    """The authority, whose certificate may be followed by its predecessor's, and the leaf."""

    authority: Pair
    leaf: Pair

    @property
    def bundle(self) -> bytes:
        """What the API server is to trust."""
        return self.authority.certificate


def first_certificates(names: Sequence[str], now: datetime) -> Certificates:
    """Make an authority and a leaf for host names and addresses."""
    authority = new_authority(now)
    return Certificates(authority, new_leaf(authority, names, now))


def renewed(
    current: Certificates, names: Sequence[str], now: datetime, *, trusted: bytes
) -> Certificates:
    """Return what is to be in force at `now`: `current` itself where nothing is due.

    `trusted` is the bundle that every webhook configuration carries by now.
    """
    made = current
    if now >= expiry(current.authority.certificate) - RENEW_BEFORE:
        made = replace(made, authority=_overlapping(current.authority, now))
    else:
        made = replace(made, authority=_without_expired(made.authority, now))
    if _leaf_is_due(made, names, now) and _newest(made.bundle) in trusted:
        made = replace(made, leaf=new_leaf(made.authority, names, now))
    return current if made == current else made


def new_authority(now: datetime) -> Pair:
    """Make a certificate authority."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = _new_key()
    builder = _builder("*.kyverno.svc", key, now, now + AUTHORITY_LIFE)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    own_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        builder.issuer_name(_name("*.kyverno.svc"))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(own_id, critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(_pem(certificate), _key_pem(key))


def new_leaf(authority: Pair, names: Sequence[str], now: datetime) -> Pair:
    """Make a server certificate for host names and addresses; it ends before its authority does."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer, issuer_key = _first(authority.certificate), _load_key(authority.key)
    key = _new_key()
    end = min(now + LEAF_LIFE, expiry(authority.certificate))
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    certificate = (
        _builder(names[0], key, now, end)
        .issuer_name(issuer.subject)
        .add_extension(x509.SubjectAlternativeName(_alternatives(names)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_id, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return Pair(_pem(certificate), _key_pem(key))


def expiry(pem: bytes) -> datetime:
    """Return when the first certificate of a PEM text ends; raises EngineError when there is none."""
    return _first(pem).not_valid_after_utc


def names_of(pem: bytes) -> frozenset[str]:
    """Return the host names and addresses that the first certificate of a PEM text is for."""
    from cryptography import x509

    found = _first(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return frozenset(str(name.value) for name in found)


def trusts(bundle: bytes, leaf: bytes) -> bool:
    """Tell whether whoever trusts the authorities of a bundle accepts a leaf."""
    certificate = _first(leaf)
    return any(_verifies(certificate, _first(one)) for one in _split(bundle))


def is_usable(certificates: Certificates, now: datetime) -> bool:
    """Tell whether keys and certificates can be read, belong together and have not ended."""
    try:
        keys_fit = all(
            _first(pair.certificate).public_key() == _load_key(pair.key).public_key()
            for pair in (certificates.authority, certificates.leaf)
        )
        return (
            keys_fit
            and trusts(certificates.bundle, certificates.leaf.certificate)
            and now < expiry(certificates.leaf.certificate)
            and now < expiry(certificates.authority.certificate)
        )
    except (EngineError, ValueError, TypeError):
        return False


def _leaf_is_due(current: Certificates, names: Sequence[str], now: datetime) -> bool:
    leaf = current.leaf.certificate
    return (
        now >= expiry(leaf) - RENEW_BEFORE
        or not frozenset(names) <= names_of(leaf)
        or not _verifies(_first(leaf), _first(current.bundle))
    )


def _verifies(leaf: x509.Certificate, issuer: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _overlapping(authority: Pair, now: datetime) -> Pair:
    fresh = new_authority(now)
    return Pair(fresh.certificate + _newest(authority.certificate), fresh.key)


def _without_expired(authority: Pair, now: datetime) -> Pair:
    kept = [one for one in _split(authority.certificate) if expiry(one) > now]
    return replace(authority, certificate=b"".join(kept)) if kept else authority


def _newest(bundle: bytes) -> bytes:
    return _split(bundle)[0]


def _split(bundle: bytes) -> list[bytes]:
    parts = bundle.replace(b"\r\n", b"\n").split(_END)
    return [part.lstrip() + _END for part in parts if part.strip()]


def _first(pem: bytes) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise EngineError("there is no certificate that can be read") from error


def _load_key(pem: bytes) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem, None)
    if not isinstance(key, EllipticCurvePrivateKey):
        raise EngineError("the key is not one of an elliptic curve")
    return key


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _name(common: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _builder(
    common: str, key: EllipticCurvePrivateKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(_name(common))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(end)
    )


def _alternatives(names: Iterable[str]) -> list[x509.GeneralName]:
    from cryptography import x509

    made: list[x509.GeneralName] = []
    for name in names:
        try:
            made.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            made.append(x509.DNSName(name))
    return made
