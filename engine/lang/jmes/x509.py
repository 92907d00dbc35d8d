"""Certificates and requests as the fields of Go's x509 structures. Loaded at the first `x509_decode`."""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from warnings import catch_warnings, simplefilter

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.utils import CryptographyDeprecationWarning

from engine.errors import EvaluationError

from .values import number
from .x509fields import alternative_names, extension_fields

if TYPE_CHECKING:
    from datetime import datetime

_SIGNATURES: Final = {
    "1.2.840.113549.1.1.2": 1,
    "1.2.840.113549.1.1.4": 2,
    "1.2.840.113549.1.1.5": 3,
    "1.2.840.113549.1.1.11": 4,
    "1.2.840.113549.1.1.12": 5,
    "1.2.840.113549.1.1.13": 6,
    "1.2.840.10040.4.3": 7,
    "2.16.840.1.101.3.4.3.2": 8,
    "1.2.840.10045.4.1": 9,
    "1.2.840.10045.4.3.2": 10,
    "1.2.840.10045.4.3.3": 11,
    "1.2.840.10045.4.3.4": 12,
    "1.3.101.112": 16,
}
_EXTENSION_REQUEST: Final = [1, 2, 840, 113549, 1, 9, 14]
_PSS: Final = "1.2.840.113549.1.1.10"
_PSS_CODES: Final = {"sha256": 13, "sha384": 14, "sha512": 15}
_RSA: Final = 1
_NAME_FIELDS: Final = {
    "2.5.4.6": "Country",
    "2.5.4.10": "Organization",
    "2.5.4.11": "OrganizationalUnit",
    "2.5.4.7": "Locality",
    "2.5.4.8": "Province",
    "2.5.4.9": "StreetAddress",
    "2.5.4.17": "PostalCode",
}
_SINGLE_FIELDS: Final = {"2.5.4.3": "CommonName", "2.5.4.5": "SerialNumber"}


def decode_certificate(pem: str) -> dict[str, Any]:
    """Return the fields of Go's Certificate. Raises EvaluationError."""
    try:
        with catch_warnings():
            # certificates with the serial number zero occur, and Go reads them without a word
            simplefilter("ignore", CryptographyDeprecationWarning)
            load = partial(x509.load_pem_x509_certificate, pem.encode())
            return _certificate(_read(load, "certificate"))
    except (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension) as error:
        raise EvaluationError("failed to parse certificate") from error


def decode_request(pem: str) -> dict[str, Any]:
    """Return the fields of Go's CertificateRequest. Raises EvaluationError."""
    request = _read(lambda: x509.load_pem_x509_csr(pem.encode()), "certificate request")
    try:
        return _request(request)
    except (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension) as error:
        raise EvaluationError("failed to parse certificate request") from error


def _certificate(certificate: x509.Certificate) -> dict[str, Any]:
    fields = {
        "Raw": _base64(certificate.public_bytes(Encoding.DER)),
        "RawTBSCertificate": _base64(certificate.tbs_certificate_bytes),
        "RawSubjectPublicKeyInfo": _base64(_key_info(certificate)),
        "RawSubject": _base64(certificate.subject.public_bytes()),
        "RawIssuer": _base64(certificate.issuer.public_bytes()),
        "Signature": _base64(certificate.signature),
        "SignatureAlgorithm": _signature(certificate),
        "PublicKeyAlgorithm": _RSA,
        "PublicKey": _key(certificate),
        "Version": certificate.version.value + 1,
        "SerialNumber": number(float(certificate.serial_number)),
        "Issuer": _name(certificate.issuer),
        "Subject": _name(certificate.subject),
        "NotBefore": _time(certificate.not_valid_before_utc),
        "NotAfter": _time(certificate.not_valid_after_utc),
        "ExtraExtensions": None,
    }
    return {**fields, **extension_fields(certificate.extensions)}


def _request(request: x509.CertificateSigningRequest) -> dict[str, Any]:
    extensions = extension_fields(request.extensions)["Extensions"]
    return {
        "Raw": _base64(request.public_bytes(Encoding.DER)),
        "RawTBSCertificateRequest": _base64(request.tbs_certrequest_bytes),
        "RawSubjectPublicKeyInfo": _base64(_key_info(request)),
        "RawSubject": _base64(request.subject.public_bytes()),
        "Version": 0,
        "Signature": _base64(request.signature),
        "SignatureAlgorithm": _signature(request),
        "PublicKeyAlgorithm": _RSA,
        "PublicKey": _key(request),
        "Subject": _name(request.subject),
        "Attributes": _attributes(extensions),
        "Extensions": extensions,
        "ExtraExtensions": None,
        **alternative_names(request.extensions),
    }


def _attributes(extensions: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """Return the one attribute that Go reads, which asks for extensions; of a critical one it reads the mark as value."""
    if not extensions:
        return None
    asked = [{"Type": one["Id"], "Value": one["Critical"] or one["Value"]} for one in extensions]
    return [{"Type": _EXTENSION_REQUEST, "Value": [asked]}]


def _read(load: Any, what: str) -> Any:
    try:
        loaded = load()
        key = loaded.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise EvaluationError(f"failed to parse {what}") from error
    if not isinstance(key, RSAPublicKey):
        raise EvaluationError("certificate should use rsa algorithm")
    return loaded


def _key(holder: x509.Certificate | x509.CertificateSigningRequest) -> dict[str, Any]:
    key = holder.public_key()
    assert isinstance(key, RSAPublicKey)
    numbers = key.public_numbers()
    return {"N": str(numbers.n), "E": numbers.e}


def _key_info(holder: x509.Certificate | x509.CertificateSigningRequest) -> bytes:
    return holder.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _signature(holder: x509.Certificate | x509.CertificateSigningRequest) -> int:
    oid = holder.signature_algorithm_oid.dotted_string
    if oid == _PSS:
        hashed = holder.signature_hash_algorithm
        return _PSS_CODES.get(hashed.name, 0) if hashed else 0
    return _SIGNATURES.get(oid, 0)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _name(name: x509.Name) -> dict[str, Any]:
    """Return Go's pkix.Name."""
    fields: dict[str, Any] = dict.fromkeys((*_NAME_FIELDS.values(), "ExtraNames"))
    fields.update(dict.fromkeys(_SINGLE_FIELDS.values(), ""))
    names = []
    for attribute in name:
        oid = attribute.oid.dotted_string
        value = attribute.value
        shown = value if isinstance(value, str) else _base64(value)
        names.append({"Type": [int(part) for part in oid.split(".")], "Value": shown})
        if oid in _NAME_FIELDS:
            listed = fields[_NAME_FIELDS[oid]] or []
            fields[_NAME_FIELDS[oid]] = [*listed, shown]
        elif oid in _SINGLE_FIELDS:
            fields[_SINGLE_FIELDS[oid]] = shown
    return {**fields, "Names": names or None}


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
