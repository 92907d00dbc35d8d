"""The fields of Go's Certificate that come from extensions, with Go's number codes."""

from __future__ import annotations

import re
from base64 import b64encode
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Final

from cryptography import x509

_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_EXTENDED: Final = {
    "2.5.29.37.0": 0,
    "1.3.6.1.5.5.7.3.1": 1,
    "1.3.6.1.5.5.7.3.2": 2,
    "1.3.6.1.5.5.7.3.3": 3,
    "1.3.6.1.5.5.7.3.4": 4,
    "1.3.6.1.5.5.7.3.5": 5,
    "1.3.6.1.5.5.7.3.6": 6,
    "1.3.6.1.5.5.7.3.7": 7,
    "1.3.6.1.5.5.7.3.8": 8,
    "1.3.6.1.5.5.7.3.9": 9,
    "1.3.6.1.4.1.311.10.3.3": 10,
    "2.16.840.1.113730.4.1": 11,
    "1.3.6.1.4.1.311.2.1.22": 12,
    "1.3.6.1.4.1.311.61.1.1": 13,
}
_HANDLED: Final = frozenset(
    ("2.5.29.14", "2.5.29.15", "2.5.29.17", "2.5.29.19", "2.5.29.30", "2.5.29.31", "2.5.29.32",
     "2.5.29.35", "2.5.29.36", "2.5.29.37", "2.5.29.54", "1.3.6.1.5.5.7.1.1")
)  # fmt: skip
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_NOT_IN_PATHS: Final = re.compile(rb"[^A-Za-z0-9._~$&+,/:;=@-]")
_OCSP: Final = "1.3.6.1.5.5.7.48.1"
_ISSUERS: Final = "1.3.6.1.5.5.7.48.2"
_NULLS: Final = (
    "CRLDistributionPoints", "DNSNames", "EmailAddresses", "ExcludedDNSDomains",
    "ExcludedEmailAddresses", "ExcludedIPRanges", "ExcludedURIDomains", "ExtKeyUsage", "IPAddresses",
    "IssuingCertificateURL", "OCSPServer", "PermittedDNSDomains", "PermittedEmailAddresses",
    "PermittedIPRanges", "PermittedURIDomains", "Policies", "PolicyIdentifiers", "PolicyMappings",
    "SubjectKeyId", "AuthorityKeyId", "URIs", "UnhandledCriticalExtensions", "UnknownExtKeyUsage",
)  # fmt: skip


def extension_fields(extensions: x509.Extensions) -> dict[str, Any]:
    """Return all fields that extensions set, absent ones with Go's zero values."""
    fields: dict[str, Any] = {
        **dict.fromkeys(_NULLS),
        "Extensions": [_raw(extension) for extension in extensions] or None,
        "BasicConstraintsValid": False,
        "IsCA": False,
        "KeyUsage": 0,
        "MaxPathLen": 0,
        "MaxPathLenZero": False,
        "InhibitAnyPolicy": 0,
        "InhibitAnyPolicyZero": False,
        "InhibitPolicyMapping": 0,
        "InhibitPolicyMappingZero": False,
        "PermittedDNSDomainsCritical": False,
        "RequireExplicitPolicy": 0,
        "RequireExplicitPolicyZero": False,
    }
    unhandled = [
        _oid(extension.oid)
        for extension in extensions
        if extension.critical and extension.oid.dotted_string not in _HANDLED
    ]
    fields["UnhandledCriticalExtensions"] = unhandled or None
    for extension in extensions:
        fields.update(_fields_of(extension))
    return fields


def alternative_names(extensions: x509.Extensions) -> dict[str, Any]:
    """Return the four lists of subject alternative names, null where there are none."""
    lists: dict[str, Any] = dict.fromkeys(("DNSNames", "EmailAddresses", "IPAddresses", "URIs"))
    for extension in extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            lists.update(_names(extension.value))
    return lists


def _fields_of(extension: x509.Extension[Any]) -> dict[str, Any]:
    value = extension.value
    if isinstance(value, x509.SubjectAlternativeName):
        return _names(value)
    if isinstance(value, x509.BasicConstraints):
        length = -1 if value.path_length is None else value.path_length
        return {
            "BasicConstraintsValid": True,
            "IsCA": value.ca,
            "MaxPathLen": length,
            "MaxPathLenZero": length == 0,
        }
    if isinstance(value, x509.KeyUsage):
        return {"KeyUsage": _usage(value)}
    if isinstance(value, x509.ExtendedKeyUsage):
        return _extended(value)
    if isinstance(value, x509.NameConstraints):
        return _constraints(value, critical=extension.critical)
    return _identifiers_of(value)


def _identifiers_of(value: Any) -> dict[str, Any]:
    if isinstance(value, x509.SubjectKeyIdentifier):
        return {"SubjectKeyId": b64encode(value.digest).decode()}
    if isinstance(value, x509.AuthorityKeyIdentifier):
        key = value.key_identifier
        return {"AuthorityKeyId": b64encode(key).decode() if key else None}
    if isinstance(value, x509.AuthorityInformationAccess):
        return {
            "OCSPServer": _access(value, _OCSP),
            "IssuingCertificateURL": _access(value, _ISSUERS),
        }
    if isinstance(value, x509.CRLDistributionPoints):
        points = [
            name.value
            for point in value
            for name in point.full_name or ()
            if isinstance(name, x509.UniformResourceIdentifier)
        ]
        return {"CRLDistributionPoints": points or None}
    if isinstance(value, x509.CertificatePolicies):
        policies = [policy.policy_identifier for policy in value]
        texts = [policy.dotted_string for policy in policies]
        return {"PolicyIdentifiers": [_oid(policy) for policy in policies], "Policies": texts}
    if isinstance(value, x509.PolicyConstraints):
        explicit = _limit("RequireExplicitPolicy", value.require_explicit_policy)
        return {**explicit, **_limit("InhibitPolicyMapping", value.inhibit_policy_mapping)}
    if isinstance(value, x509.InhibitAnyPolicy):
        return _limit("InhibitAnyPolicy", value.skip_certs)
    return {}


def _limit(name: str, certificates: int | None) -> dict[str, Any]:
    if certificates is None:
        return {}
    return {name: certificates, f"{name}Zero": certificates == 0}


def _names(value: x509.SubjectAlternativeName) -> dict[str, Any]:
    return {
        "DNSNames": value.get_values_for_type(x509.DNSName) or None,
        "EmailAddresses": value.get_values_for_type(x509.RFC822Name) or None,
        "IPAddresses": [str(ip) for ip in value.get_values_for_type(x509.IPAddress)] or None,
        "URIs": [_url(uri) for uri in value.get_values_for_type(x509.UniformResourceIdentifier)]
        or None,
    }


def _usage(value: x509.KeyUsage) -> int:
    bits = 0
    for place, name in enumerate(_USAGES):
        if name in ("encipher_only", "decipher_only") and not value.key_agreement:
            continue
        bits |= bool(getattr(value, name)) << place
    return bits


def _extended(value: x509.ExtendedKeyUsage) -> dict[str, Any]:
    known = [_EXTENDED[oid.dotted_string] for oid in value if oid.dotted_string in _EXTENDED]
    unknown = [_oid(oid) for oid in value if oid.dotted_string not in _EXTENDED]
    return {"ExtKeyUsage": known or None, "UnknownExtKeyUsage": unknown or None}


def _constraints(value: x509.NameConstraints, *, critical: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"PermittedDNSDomainsCritical": critical}
    for prefix, subtrees in (
        ("Permitted", value.permitted_subtrees),
        ("Excluded", value.excluded_subtrees),
    ):
        names = subtrees or []
        fields[f"{prefix}DNSDomains"] = _of(names, x509.DNSName)
        fields[f"{prefix}IPRanges"] = [
            {
                "IP": str(name.value.network_address),
                "Mask": b64encode(name.value.netmask.packed).decode(),
            }
            for name in names
            if isinstance(name, x509.IPAddress)
            and isinstance(name.value, IPv4Network | IPv6Network)
        ] or None
        fields[f"{prefix}EmailAddresses"] = _of(names, x509.RFC822Name)
        fields[f"{prefix}URIDomains"] = _of(names, x509.UniformResourceIdentifier)
    return fields


def _of(names: list[x509.GeneralName], kind: type[Any]) -> list[str] | None:
    return [str(name.value) for name in names if isinstance(name, kind)] or None


def _access(value: x509.AuthorityInformationAccess, method: str) -> list[str] | None:
    return [
        description.access_location.value
        for description in value
        if description.access_method.dotted_string == method
        and isinstance(description.access_location, x509.UniformResourceIdentifier)
    ] or None


def _url(uri: str) -> dict[str, Any]:
    """Return Go's url.URL of an absolute URI."""
    rest, _, fragment = uri.partition("#")
    scheme, _, rest = rest.partition(":")
    rest, mark, query = rest.partition("?")
    opaque = "" if rest.startswith("/") else rest
    authority, slash, path = ("", "", rest)
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
    _, at, host = authority.rpartition("@")
    path = "" if opaque else slash + path
    return {
        "Scheme": scheme.lower(),
        "Opaque": opaque,
        "User": {} if at else None,
        "Host": host,
        "Path": _unescaped(path),
        "RawPath": "" if _escaped(_unescaped(path)) == path else path,
        "OmitHost": path.startswith("/") and not rest.startswith("//"),
        "ForceQuery": bool(mark) and not query,
        "RawQuery": query,
        "Fragment": _unescaped(fragment),
        "RawFragment": "",
    }


def _unescaped(text: str) -> str:
    found = _ESCAPE.sub(lambda part: bytes.fromhex(part[1].decode()), text.encode())
    return found.decode("utf-8", "replace")


def _escaped(path: str) -> str:
    return _NOT_IN_PATHS.sub(lambda part: b"%%%02X" % part[0][0], path.encode()).decode()


def _oid(oid: x509.ObjectIdentifier) -> list[int]:
    return [int(part) for part in oid.dotted_string.split(".")]


def _raw(extension: x509.Extension[Any]) -> dict[str, Any]:
    return {
        "Id": _oid(extension.oid),
        "Critical": extension.critical,
        "Value": b64encode(extension.value.public_bytes()).decode(),
    }
