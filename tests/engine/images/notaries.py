"""Notary signatures of our own: chains of X.509 certificates and envelopes in both forms, for tests without a network."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from engine.images.notation import COSE, JWS, PAYLOAD, NotarySignature
from tests.engine.manifests.private_sigstore import SIGNED_AT


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool, issues: bool) -> x509.KeyUsage:
    return x509.KeyUsage(signs, False, False, False, False, issues, issues, False, False)


@dataclass
class Notary:
    """A root, and a certificate for signing code that it issued; `self_signed` makes one that is both."""

    self_signed: bool = False
    is_rsa: bool = False
    start: datetime = SIGNED_AT
    days: int = 365
    purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING
    leaf_is_authority: bool = False
    root_is_authority: bool = True
    key: Any = field(init=False)
    chain: list[x509.Certificate] = field(init=False)

    def __post_init__(self) -> None:
        root_key = ec.generate_private_key(ec.SECP384R1())
        self.key = (
            rsa.generate_private_key(65537, 2048)
            if self.is_rsa
            else ec.generate_private_key(ec.SECP256R1())
        )
        if self.self_signed:
            self.chain = [self._leaf("acme notary", self.key)]
            return
        root = (
            self._builder("acme root", "acme root", root_key)
            .add_extension(x509.BasicConstraints(self.root_is_authority, None), critical=True)
            .add_extension(_usage(signs=False, issues=True), critical=True)
            .sign(root_key, hashes.SHA384())
        )
        self.chain = [self._leaf("acme root", root_key), root]

    def _builder(self, subject: str, issuer: str, key: Any) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.start)
            .not_valid_after(self.start + timedelta(days=self.days))
        )

    def _leaf(self, issuer: str, issuer_key: Any) -> x509.Certificate:
        return (
            self._builder("acme notary", issuer, self.key)
            .add_extension(x509.BasicConstraints(self.leaf_is_authority, None), critical=True)
            .add_extension(_usage(signs=True, issues=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([self.purpose]), critical=False)
            .sign(issuer_key, hashes.SHA256())
        )

    @property
    def root_pem(self) -> str:
        return self.chain[-1].public_bytes(Encoding.PEM).decode()

    def sign(
        self, digest: str, *, form: str = JWS, changes: dict[Any, Any] | None = None
    ) -> NotarySignature:
        """Return a signature over `digest`; `changes` go into the protected header (None leaves a field out)."""
        target = {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest,
            "size": 1,
        }
        payload = json.dumps({"targetArtifact": target}).encode()
        write = self._jws if form == JWS else self._cose
        made = write(payload, changes or {})
        return NotarySignature(form, made)

    def _raw(self, data: bytes) -> bytes:
        if self.is_rsa:
            salt = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
            made: bytes = self.key.sign(data, salt, hashes.SHA256())
            return made
        pair = utils.decode_dss_signature(self.key.sign(data, ec.ECDSA(hashes.SHA256())))
        return b"".join(number.to_bytes(32, "big") for number in pair)

    def _jws(self, payload: bytes, changes: dict[str, Any]) -> bytes:
        header = {
            "alg": "PS256" if self.is_rsa else "ES256",
            "cty": PAYLOAD,
            "crit": ["io.cncf.notary.signingScheme"],
            "io.cncf.notary.signingScheme": "notary.x509",
            "io.cncf.notary.signingTime": "2026-03-01T12:00:00Z",
            **changes,
        }
        kept = {key: value for key, value in header.items() if value is not None}
        protected, body = url64(json.dumps(kept).encode()), url64(payload)
        signature = url64(self._raw(f"{protected}.{body}".encode()))
        chain = [base64.b64encode(one.public_bytes(Encoding.DER)).decode() for one in self.chain]
        parts = {"payload": body, "protected": protected, "signature": signature}
        return json.dumps({**parts, "header": {"x5c": chain}}).encode()

    def _cose(self, payload: bytes, changes: dict[str, Any]) -> bytes:
        header = {
            1: -37 if self.is_rsa else -7,
            2: ["io.cncf.notary.signingScheme"],
            3: PAYLOAD,
            "io.cncf.notary.signingScheme": "notary.x509",
            "io.cncf.notary.signingTime": Tag(1, 1772366400),
            **changes,
        }
        protected = cbor(header)
        signature = self._raw(cbor(["Signature1", protected, b"", payload]))
        chain = [one.public_bytes(Encoding.DER) for one in self.chain]
        return cbor(Tag(18, [protected, {33: chain}, payload, signature]))


@dataclass(frozen=True)
class Tag:
    number: int
    value: Any


def url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def cbor(value: Any) -> bytes:
    """Write CBOR, as an encoder that is none of the reader's."""
    if isinstance(value, Tag):
        return _head(6, value.number) + cbor(value.value)
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, str):
        return _head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(map(cbor, value))
    pairs = b"".join(cbor(key) + cbor(item) for key, item in value.items())
    return _head(5, len(value)) + pairs


def _head(major: int, number: int) -> bytes:
    for low, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 24:
            return bytes((major << 5 | number,))
        if number < 1 << 8 * width:
            return bytes((major << 5 | low,)) + number.to_bytes(width, "big")
    raise ValueError


FORMS = (JWS, COSE)
