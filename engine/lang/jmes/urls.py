"""`is_external_url`: whether a URL leads outside (row F-08). Addresses are judged here, names by the caller's look-up."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.lang.goquote import quote

from .signature import Table

if TYPE_CHECKING:
    from .env import Env

table = Table()

_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_NOT_IN_HOSTS: Final = re.compile(r"[\x00-\x20\"<>\\^`{|}%#/?]")
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
    host = _host(url)
    if not host:
        raise EvaluationError("lookup : no such host")
    address = _address(host)
    if address is None:
        return env.is_external_host(host)
    private = any(address.version == network.version and address in network for network in _PRIVATE)
    return not (address.is_loopback or private)


def _host(url: str) -> str:
    """Return the host of a URL without its port; empty where the URL has none."""
    if len(url) > _LONGEST:
        raise EvaluationError("the url is too long")
    rest = url.partition("#")[0]
    if _CONTROL.search(rest):
        raise _refused(url, "net/url: invalid control character in URL")
    if rest.startswith(":"):
        raise _refused(url, "missing protocol scheme")
    scheme = _SCHEME.match(rest)
    rest = (rest[scheme.end() :] if scheme else rest).partition("?")[0]
    if not rest.startswith("//"):
        if not scheme and ":" in rest.partition("/")[0]:
            raise _refused(url, "first path segment in URL cannot contain colon")
        return ""
    authority, _, path = rest[2:].partition("/")
    host = _checked(url, authority.rpartition("@")[2])
    _check_escapes(url, path)
    return host


def _checked(url: str, host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _refused(url, "missing ']' in host")
        port, name = host[end + 1 :], host[1:end].partition("%25")[0]
    else:
        colon = host.rfind(":")
        port, name = (host[colon:], host[:colon]) if colon >= 0 else ("", host)
    if not _PORT.fullmatch(port):
        raise _refused(url, f"invalid port {quote(port)} after host")
    _check_escapes(url, name)
    wrong = _NOT_IN_HOSTS.search(name)
    if wrong:
        raise _refused(url, f"invalid character {quote(wrong.group())} in host name")
    return name


def _check_escapes(url: str, text: str) -> None:
    wrong = _ESCAPE.search(text)
    if wrong:
        raise _refused(url, f"invalid URL escape {quote(text[wrong.start() : wrong.start() + 3])}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _refused(url: str, reason: str) -> EvaluationError:
    return EvaluationError(f"parse {quote(url)}: {reason}")
