"""`x509_decode`: what extensions become, on a certificate made for the test."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.engine.jmes.evaluating import error, value

NAME = x509.Name(
    [
        x509.NameAttribute(NameOID.COMMON_NAME, "leaf"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "one"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "two"),
        x509.NameAttribute(NameOID.SERIAL_NUMBER, "7"),
    ]
)
EXTENSIONS: list[tuple[x509.ExtensionType, bool]] = [
    (x509.BasicConstraints(ca=True, path_length=0), True),
    (x509.KeyUsage(True, False, True, False, False, True, False, False, False), True),
    (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, x509.ObjectIdentifier("1.2.3.4")]), False),
    (
        x509.SubjectAlternativeName(
            [
                x509.DNSName("a.example"),
                x509.IPAddress(ipaddress.ip_address("10.1.2.3")),
                x509.RFC822Name("me@example.org"),
                x509.UniformResourceIdentifier("spiffe://td/ns/%78?y=1#z"),
            ]
        ),
        False,
    ),
    (x509.PolicyConstraints(0, None), True),
    (x509.InhibitAnyPolicy(2), True),
    (x509.NameConstraints([x509.DNSName("ok.example"), x509.IPAddress(ipaddress.ip_network("10.0.0.0/8"))], [x509.DNSName("no.example")]), True),
    (x509.CertificatePolicies([x509.PolicyInformation(x509.ObjectIdentifier("1.2.3"), None)]), False),
    (
        x509.CRLDistributionPoints(
            [x509.DistributionPoint([x509.UniformResourceIdentifier("http://crl/")], None, None, None)]
        ),
        False,
    ),
    (x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.5"), b"\x05\x00"), True),
]  # fmt: skip


def built(key: Any) -> str:
    builder = (
        x509.CertificateBuilder()
        .subject_name(NAME)
        .issuer_name(NAME)
        .public_key(key.public_key())
        .serial_number(1 << 100)
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2027, 1, 1, tzinfo=UTC))
    )
    for extension, critical in EXTENSIONS:
        builder = builder.add_extension(extension, critical)
    return builder.sign(key, SHA384()).public_bytes(Encoding.PEM).decode()


@pytest.fixture(scope="module")
def fields() -> dict[str, Any]:
    decoded = value("x509_decode(@)", built(rsa.generate_private_key(65_537, 2_048)))
    assert isinstance(decoded, dict)
    return decoded


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("KeyUsage", 1 | 4 | 32),
        ("ExtKeyUsage", [1]),
        ("UnknownExtKeyUsage", [[1, 2, 3, 4]]),
        ("IsCA", True),
        ("MaxPathLen", 0),
        ("MaxPathLenZero", True),
        ("DNSNames", ["a.example"]),
        ("IPAddresses", ["10.1.2.3"]),
        ("EmailAddresses", ["me@example.org"]),
        ("PermittedDNSDomains", ["ok.example"]),
        ("PermittedDNSDomainsCritical", True),
        ("ExcludedDNSDomains", ["no.example"]),
        ("PolicyIdentifiers", [[1, 2, 3]]),
        ("Policies", ["1.2.3"]),
        ("RequireExplicitPolicy", 0),
        ("RequireExplicitPolicyZero", True),
        ("InhibitPolicyMappingZero", False),
        ("InhibitAnyPolicy", 2),
        ("PermittedIPRanges", [{"IP": "10.0.0.0", "Mask": "/wAAAA=="}]),
        ("CRLDistributionPoints", ["http://crl/"]),
        ("UnhandledCriticalExtensions", [[1, 2, 3, 5]]),
        ("SignatureAlgorithm", 5),
        ("SerialNumber", float(1 << 100)),
        ("NotBefore", "2026-01-01T00:00:00Z"),
        ("Version", 3),
    ],
)
def test_extensions_become_gos_fields(fields: dict[str, Any], name: str, expected: object) -> None:
    assert fields[name] == expected


def test_names_become_gos_fields(fields: dict[str, Any]) -> None:
    subject = fields["Subject"]

    assert subject["CommonName"] == "leaf"
    assert subject["Organization"] == ["one", "two"]
    assert subject["SerialNumber"] == "7"
    assert subject["Names"][0] == {"Type": [2, 5, 4, 3], "Value": "leaf"}


def test_addresses_become_gos_parts(fields: dict[str, Any]) -> None:
    [address] = fields["URIs"]

    parts = ("Host", "Path", "RawPath", "RawQuery", "Fragment")
    assert [address[part] for part in parts] == ["td", "/ns/x", "/ns/%78", "y=1", "z"]


def test_the_extensions_that_a_request_asks_for_are_its_attribute() -> None:
    key = rsa.generate_private_key(65_537, 2_048)
    names = x509.SubjectAlternativeName([x509.DNSName("a.example")])
    request = x509.CertificateSigningRequestBuilder().subject_name(NAME)
    pem = (
        request.add_extension(names, critical=False).sign(key, SHA384()).public_bytes(Encoding.PEM)
    )

    [attribute] = value("x509_decode(@)", pem.decode())["Attributes"]
    [[asked]] = attribute["Value"]
    assert attribute["Type"] == [1, 2, 840, 113549, 1, 9, 14]
    assert asked == {"Type": [2, 5, 29, 17], "Value": "MAuCCWEuZXhhbXBsZQ=="}


def test_other_keys_than_rsa_are_refused() -> None:
    pem = built(ec.generate_private_key(ec.SECP256R1()))

    assert error("x509_decode(@)", pem) == "certificate should use rsa algorithm"
