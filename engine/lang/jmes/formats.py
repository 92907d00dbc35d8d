"""Functions on texts with a grammar of their own: image references, versions, URLs, certificates (row F-08)."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError
from engine.lang import gourl, imagetext, semver

from .encoding import BASE64
from .signature import Table, fail
from .values import Env, spend

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Json


table = Table()


@table.function(
    "image_normalize(string) string", "the image with registry, and with a tag or digest"
)
def image_normalize(env: Env, image: str) -> str:
    """Return the image reference in full. Raises EvaluationError with upstream's text."""
    try:
        host, path, tag, digest = imagetext.parse(image, env.registry)
    except EvaluationError as error:
        raise fail("image_normalize", error.message) from error
    name = f"{host}/{path}" if host else path
    return f"{name}@{digest}" if digest else f"{name}:{tag}"


# `semver_compare`: a version against a range (row F-08).


@table.function("semver_compare(string, string) boolean", "whether the version is in the range")
def semver_compare(_env: Env, version: str, wanted: str) -> bool:
    """Test a version; one that cannot be read counts as 0.0.0, a range that cannot is an error."""
    try:
        given = semver.parse(version)
    except EvaluationError:
        given = semver.Version()
    return semver.parse_range(wanted)(given)


# `is_external_url`: whether a URL leads outside (row F-08). Addresses are judged here, names by the caller's look-up.

_PRIVATE: Final = tuple(
    ipaddress.ip_network(block)
    for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
_LONGEST: Final = 8_192


@table.function(
    "is_external_url(string) boolean", "whether the URL's host is neither loopback nor private"
)
def is_external_url(env: Env, url: str) -> bool:
    """Judge the host of a URL. Raises EvaluationError for what is no URL or cannot be looked up."""
    if len(url) > _LONGEST:
        raise EvaluationError("the url is too long")
    host = gourl.parse(url).hostname
    if not host:
        raise EvaluationError("lookup : no such host")
    return env.is_external_host(host) if _address(host) is None else is_external((host,))


def is_external(addresses: Iterable[str]) -> bool:
    """Tell whether a host with these addresses lies outside; one on this machine or in a private network keeps it inside."""
    found = [_address(text.partition("%")[0]) for text in addresses]
    return bool(found) and all(
        one is not None and not one.is_loopback and not any(one in network for network in _PRIVATE)
        for one in found
    )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# `x509_decode`: certificates and requests as Go's structures, RSA keys only (row F-08).
#
# What upstream returns is Go's `x509.Certificate` written as JSON, so the names and number codes are Go's. The library that
# reads certificates is loaded at the first call.

_BLOCK: Final = re.compile(
    r"(?:\A|(?<=\n))-----BEGIN (?P<type>[^\n]*?)-----[ \t\r]*\n(?P<body>[A-Za-z0-9+/=\s]*?)"
    r"(?<=\n)-----END (?P=type)-----"
)
_LONGEST_CERTIFICATE: Final = 1 << 18


@table.function(
    "x509_decode(string) object", "the fields of the certificate or certificate request in PEM form"
)
def x509_decode(env: Env, pem: str) -> Json:
    """Decode the first PEM block. Raises EvaluationError."""
    spend(env, len(pem) >> 2)
    if len(pem) > _LONGEST_CERTIFICATE:
        raise EvaluationError("the certificate is too long")
    for block in _BLOCK.finditer(pem):
        if BASE64.fullmatch("".join(block["body"].split())):
            return _decoded(block["type"], block.group())
    raise EvaluationError("failed to decode PEM block")


def _decoded(kind: str, text: str) -> dict[str, Any]:
    from .x509 import decode_certificate, decode_request

    if kind == "CERTIFICATE":
        return decode_certificate(text)
    if kind == "CERTIFICATE REQUEST":
        return decode_request(text)
    raise EvaluationError("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST")
