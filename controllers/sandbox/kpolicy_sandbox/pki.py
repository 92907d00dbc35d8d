"""The sandbox's certificates: an authority of its own, the server's certificate, and one that the server shows to webhooks.

Written once into the sandbox's folder (keys readable by their owner only) and used until the folder is reset. Anybody may have a
client certificate signed: the common name is the user, the organisations are the groups, as in a real cluster.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .cluster import write_private

if TYPE_CHECKING:
    from pathlib import Path


_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LIFE = timedelta(days=3650)
CALLER = "kube-apiserver-webhook-client"


@dataclass(frozen=True, slots=True)
class Files:
    """Where certificates and keys lie."""

    folder: Path

    @property
    def authority(self) -> Path:
        """Return the file of the authority's certificate."""
        return self.folder / "ca.crt"

    def pair(self, name: str) -> tuple[Path, Path]:
        """Return the files of a certificate and its key."""
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"


def ensure(folder: Path) -> Files:
    """Return the files of a folder, made where they are missing."""
    files = Files(folder)
    if not files.authority.exists():
        key, certificate = _authority()
        _write(*files.pair("ca"), key, certificate)
    for name, common in (("server", "kube-apiserver"), ("webhook-client", CALLER)):
        if not files.pair(name)[0].exists():
            _write(*files.pair(name), *_leaf(files, common, (), server=name == "server"))
    return files


def client_certificate(files: Files, user: str, groups: tuple[str, ...]) -> tuple[bytes, bytes]:
    """Return certificate and key (PEM) that make their holder a user with groups."""
    key, certificate = _leaf(files, user, groups, server=False)
    return _pem(certificate), _key_pem(key)


def _authority() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = _new_key()
    name = _name("kpolicy-sandbox-ca", ())
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
    made = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return key, made.sign(key, hashes.SHA256())


def _leaf(
    files: Files, common: str, groups: tuple[str, ...], *, server: bool
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    issuer = x509.load_pem_x509_certificate(files.authority.read_bytes())
    issuer_key = serialization.load_pem_private_key(files.pair("ca")[1].read_bytes(), None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey), "the authority's key is ours"
    key = _new_key()
    usage = x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH]
    )
    made = (
        _builder(_name(common, groups), issuer.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if server:
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return key, made.sign(issuer_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
    )


def _name(common: str, groups: tuple[str, ...]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(
    place: Path, key_place: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    write_private(key_place, _key_pem(key))
    place.write_bytes(_pem(certificate))
