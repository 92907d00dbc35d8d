"""A certificate authority, a certificate log and a transparency log of our own, for tests without a network.

Section 8 of the format: certificates with embedded timestamps, canonical log entries with signed promises, and the
trusted-root document that names them. Every date is passed in, so expired and early cases need no waiting.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import rfc8785
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

SIGNED_AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = SIGNED_AT + timedelta(days=20)
SUBJECT = "https://github.com/myorg/myrepo/.github/workflows/sign.yaml@main"
ISSUER = "https://token.actions.githubusercontent.com"
DOMAIN = "cosign.sigstore.dev"

Key = ec.EllipticCurvePrivateKey


def new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def pem_of(key: Key) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def private_pem(key: Key) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def der_of(key: Key) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def sign(key: Key, payload: bytes) -> bytes:
    return key.sign(payload, ec.ECDSA(hashes.SHA256()))


def certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def packed(data: bytes) -> str:
    return b64(gzip.compress(data, mtime=0))


def _utf8_string(text: str) -> bytes:
    data = text.encode()
    assert len(data) < 128
    return bytes((0x0C, len(data))) + data


@dataclass
class LeafWish:
    """What the next leaf certificate shall look like; the defaults are what a real one has."""

    subject: str = SUBJECT
    issuer: str = ISSUER
    from_time: datetime = SIGNED_AT - timedelta(minutes=2)
    minutes: int = 10
    purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING
    is_authority: bool = False
    has_receipt: bool = True
    digital_signature: bool = True
    extra: dict[str, str] = field(default_factory=dict)


class PrivateSigstore:
    """Fulcio, CT log and Rekor in one object; `trusted_root` names the keys of all three."""

    def __init__(self) -> None:
        self.root_key = ec.generate_private_key(ec.SECP384R1())
        self.middle_key = ec.generate_private_key(ec.SECP384R1())
        self.ct_key = new_key()
        self.log_key = new_key()
        self.start = SIGNED_AT - timedelta(days=100)
        self.root = self._authority("root", self.root_key, None)
        self.middle = self._authority("intermediate", self.middle_key, self.root)
        self.next_index = 7

    def _authority(
        self, name: str, key: ec.EllipticCurvePrivateKey, parent: x509.Certificate | None
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"private {name}")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(parent.subject if parent else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.start)
            .not_valid_after(self.start + timedelta(days=3650))
            .add_extension(x509.BasicConstraints(True, 0 if parent else 1), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.root_key.public_key()),
                False,
            )
        )
        if parent is not None:
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING])
            builder = builder.add_extension(usage, False)
        return builder.sign(self.root_key, hashes.SHA384())

    def issue(self, public_key: Any, wish: LeafWish | None = None) -> x509.Certificate:
        """Issue a leaf as wished, with the certificate log's receipt inside."""
        wish = wish or LeafWish()
        builder = self._leaf(public_key, wish)
        bare = builder.sign(self.middle_key, hashes.SHA384())
        if not wish.has_receipt:
            return bare
        receipt = self._receipt(bare, wish.from_time)
        oid = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
        return builder.add_extension(x509.UnrecognizedExtension(oid, receipt), False).sign(
            self.middle_key, hashes.SHA384()
        )

    def _leaf(self, public_key: Any, wish: LeafWish) -> x509.CertificateBuilder:
        is_mail = "@" in wish.subject and "//" not in wish.subject
        name = (x509.RFC822Name if is_mail else x509.UniformResourceIdentifier)(wish.subject)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.middle.subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(wish.from_time)
            .not_valid_after(wish.from_time + timedelta(minutes=wish.minutes))
            .add_extension(_key_usage(wish.digital_signature), critical=True)
            .add_extension(x509.ExtendedKeyUsage([wish.purpose]), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.middle_key.public_key()),
                False,
            )
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
        )
        if wish.is_authority:
            builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
        extensions = dict(wish.extra)
        if wish.issuer:
            builder = _add_raw(builder, "1", wish.issuer.encode())
            builder = _add_raw(builder, "8", _utf8_string(wish.issuer))
        for number, text in extensions.items():
            raw = text.encode() if int(number) < 7 else _utf8_string(text)
            builder = _add_raw(builder, number, raw)
        return builder

    def _receipt(self, bare: x509.Certificate, at: datetime) -> bytes:
        body = bare.tbs_certificate_bytes
        issuer = self.middle_key.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        stamp = int(at.timestamp() * 1000).to_bytes(8, "big")
        text = b"".join(
            (
                b"\0\0",
                stamp,
                b"\0\1",
                hashlib.sha256(issuer).digest(),
                len(body).to_bytes(3, "big"),
                body,
                b"\0\0",
            )
        )
        signature = sign(self.ct_key, text)
        log_id = hashlib.sha256(der_of(self.ct_key)).digest()
        one = b"\0" + log_id + stamp + b"\0\0" + b"\4\3" + len(signature).to_bytes(2, "big")
        one += signature
        listed = len(one).to_bytes(2, "big") + one
        tls = len(listed).to_bytes(2, "big") + listed
        assert len(tls) < 256
        return b"\x04" + (bytes((len(tls),)) if len(tls) < 128 else bytes((0x81, len(tls)))) + tls

    def log_body(self, payload: bytes, signature: bytes, signer_pem: str) -> bytes:
        entry = {
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {
                    "hash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()}
                },
                "signature": {
                    "content": b64(signature),
                    "publicKey": {"content": b64(signer_pem.encode())},
                },
            },
        }
        return rfc8785.dumps(entry)

    def record(self, body: bytes, at: datetime) -> dict[str, Any]:
        """Log a body; return the bundle with the log's promise."""
        self.next_index += 1
        payload: dict[str, Any] = {
            "body": b64(body),
            "integratedTime": int(at.timestamp()),
            "logIndex": self.next_index,
            "logID": hashlib.sha256(der_of(self.log_key)).hexdigest(),
        }
        promise = sign(self.log_key, rfc8785.dumps(payload))
        return {"SignedEntryTimestamp": b64(promise), "Payload": payload}

    def keyless(
        self, message: bytes, wish: LeafWish | None = None, at: datetime = SIGNED_AT
    ) -> dict[str, str]:
        """Sign keyless; return the annotations of the signature."""
        key = new_key()
        leaf = certificate_pem(self.issue(key.public_key(), wish))
        signature = sign(key, message)
        bundle = self.record(self.log_body(message, signature, leaf), at)
        return annotations(message, signature, leaf, bundle)

    @property
    def trusted_root(self) -> dict[str, Any]:
        """Return the trusted-root document."""
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [self._log("rekor", self.log_key)],
            "certificateAuthorities": [
                {
                    "subject": {"organization": "test", "commonName": "test"},
                    "uri": "http://127.0.0.1",
                    "certChain": {
                        "certificates": [
                            {"rawBytes": b64(one.public_bytes(Encoding.DER))}
                            for one in (self.middle, self.root)
                        ]
                    },
                    "validFor": {"start": self.start.isoformat().replace("+00:00", "Z")},
                }
            ],
            "ctlogs": [self._log("ct", self.ct_key)],
            "timestampAuthorities": [],
        }

    def _log(self, name: str, key: Key) -> dict[str, Any]:
        return {
            "baseUrl": f"http://127.0.0.1/{name}",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": b64(der_of(key)),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": {"start": self.start.isoformat().replace("+00:00", "Z")},
            },
            "logId": {"keyId": b64(hashlib.sha256(der_of(key)).digest())},
        }


def _add_raw(
    builder: x509.CertificateBuilder, number: str, value: bytes
) -> x509.CertificateBuilder:
    oid = x509.ObjectIdentifier(f"1.3.6.1.4.1.57264.1.{number}")
    return builder.add_extension(x509.UnrecognizedExtension(oid, value), False)


def _key_usage(digital_signature: bool = False, *, authority: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=not digital_signature and not authority,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def annotations(
    message: bytes, signature: bytes, leaf: str = "", bundle: dict[str, Any] | None = None
) -> dict[str, str]:
    """Return the annotations of one signature."""
    found = {f"{DOMAIN}/message": packed(message), f"{DOMAIN}/signature": b64(signature)}
    if leaf:
        found[f"{DOMAIN}/certificate"] = packed(leaf.encode())
    if bundle is not None:
        found[f"{DOMAIN}/bundle"] = packed(json.dumps(bundle).encode())
    return found


def annotated(obj: dict[str, Any], added: dict[str, str]) -> dict[str, Any]:
    """Return a copy of `obj` with `added` among its annotations."""
    metadata = obj["metadata"]
    merged = {**metadata.get("annotations", {}), **added}
    return {**obj, "metadata": {**metadata, "annotations": merged}}


def key_signed(obj: dict[str, Any], key: Key) -> dict[str, Any]:
    """Return `obj` signed with a key, its message written as JSON (which is YAML)."""
    message = json.dumps(obj, sort_keys=True).encode()
    return annotated(obj, annotations(message, sign(key, message)))
