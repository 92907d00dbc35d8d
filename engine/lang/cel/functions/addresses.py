"""IP addresses and networks (`ip`, `cidr`) as Kubernetes reads them: no zones, no IPv4 inside IPv6, no leading zeros."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from engine.lang.cel.errors import CelError, no_overload
from engine.lang.cel.values import Message
from engine.lang.goquote import quote

from .registry import KINDS, Library

LIBRARY: Final = Library(cost=40)
_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
_LONGEST: Final = 64
_DIGITS: Final = frozenset("0123456789")
_LARGEST_FIELD: Final = 255
_DOTS: Final = 3
_BITS: Final = re.compile("0|[1-9][0-9]*")
_NO_NETWORK: Final = "network address parse error during conversion from string"


@dataclass(frozen=True, slots=True)
class Address(Message):
    """An IP address."""

    value: _Ip
    TYPE = "net.IP"


@dataclass(frozen=True, slots=True)
class Network(Message):
    """An address with a prefix length; bits after the prefix are kept, and count for equality."""

    address: _Ip
    length: int
    TYPE = "net.CIDR"

    def masked(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """Return the network without the bits after its prefix."""
        return ipaddress.ip_network((self.address, self.length), strict=False)


KINDS["IP"] = (Address,)
KINDS["CIDR"] = (Network,)


def _parsed(text: str) -> _Ip | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_mapped(value: _Ip | None) -> bool:
    return isinstance(value, ipaddress.IPv6Address) and value.ipv4_mapped is not None


def _read(text: str) -> _Ip | None:
    if len(text) > _LONGEST or "%" in text or not text.isascii():
        return None
    value = _parsed(text)
    return None if _is_mapped(value) else value


@LIBRARY.add("ip(string) -> IP")
def _ip(text: str) -> Address:
    value = _read(text)
    if value is None:
        raise CelError(_fault(text))
    return Address(value)


# What Kubernetes says of a text that is no address or no network, in the words of Go's `netip`.


def _fault(text: str) -> str:
    """Return why a text is no address that may be used: none at all, one with a zone, or IPv4 inside IPv6."""
    shown = quote(text[:_LONGEST])
    plain, zone, _ = text.partition("%")
    if isinstance(_parsed(plain), ipaddress.IPv6Address):
        if zone:
            return f"IP address {shown} with zone value is not allowed"
        return f"IPv4-mapped IPv6 address {shown} is not allowed"
    return f"IP Address {shown} parse error during conversion from string: {_unparsed(text)}"


def _unparsed(text: str) -> str:
    lead = f"ParseAddr({quote(text[:_LONGEST])}): "
    first = next((char for char in text if char in ".:%"), "")
    if first == ".":
        return lead + _not_ipv4(text[:_LONGEST])
    return lead + ("missing IPv6 address" if first == "%" else "unable to parse IP")


def _not_ipv4(text: str) -> str:
    value, digits, dots = 0, 0, 0
    for at, char in enumerate(text):
        if char in _DIGITS:
            if digits == 1 and not value:
                return "IPv4 field has octet with leading zero"
            value, digits = value * 10 + int(char), digits + 1
            if value > _LARGEST_FIELD:
                return "IPv4 field has value >255"
        elif char != ".":
            return f"unexpected character (at {quote(text[at:])})"
        elif not digits or at == len(text) - 1:
            return f"IPv4 field must have at least one digit (at {quote(text[at:])})"
        elif dots == _DOTS:
            return "IPv4 address too long"
        else:
            value, digits, dots = 0, 0, dots + 1
    return "IPv4 address too short"


def _not_network(text: str) -> str:
    shown = quote(text[:_LONGEST])
    address, slash, length = text.rpartition("/")
    lead = f"{_NO_NETWORK}: netip.ParsePrefix({shown}): "
    if not slash:
        return f"{lead}no '/'"
    value = _read(address)
    if value is None and "%" not in address and _is_mapped(_parsed(address)):
        return f"IPv4-mapped IPv6 address {shown} is not allowed"
    if value is None:
        has_zone = "%" in address and _read(address.partition("%")[0]) is not None
        return lead + (
            "IPv6 zones cannot be present in a prefix" if has_zone else _unparsed(address)
        )
    if not _BITS.fullmatch(length):
        return f"{lead}bad bits after slash: {quote(length)}"
    return f"{lead}prefix length out of range"


def _is_link_local_multicast(value: _Ip) -> bool:
    if isinstance(value, ipaddress.IPv4Address):
        return value.packed[:3] == b"\xe0\x00\x00"
    return value.packed[0] == 0xFF and value.packed[1] & 0x0F == 2


def _is_global_unicast(value: _Ip) -> bool:
    is_broadcast = value == ipaddress.IPv4Address(0xFFFFFFFF)
    is_special = value.is_unspecified or value.is_loopback or value.is_multicast
    return not (is_special or value.is_link_local or is_broadcast)


def _read_network(text: str) -> Network | None:
    address, slash, length = text.partition("/")
    value = _read(address)
    if value is None or not slash or not (length.isascii() and length.isdigit()):
        return None
    is_plain = len(length) <= 3 and (length[0] != "0" or length == "0")
    return Network(value, int(length)) if is_plain and int(length) <= value.max_prefixlen else None


@LIBRARY.add("cidr(string) -> CIDR")
def _cidr(text: str) -> Network:
    value = _read_network(text)
    if value is None:
        raise CelError(f"{_NO_NETWORK}: {_not_network(text)}")
    return value


@LIBRARY.add("CIDR.containsIP(string) -> bool")
def _contains_ip_text(network: Network, text: str) -> bool:
    try:
        return _ip(text).value in network.masked()
    except CelError:
        # the API server's library loses the reason here, and only here
        raise no_overload("") from None


@LIBRARY.add("CIDR.containsCIDR(CIDR) -> bool")
def _contains_cidr(network: Network, other: Network) -> bool:
    return network.length <= other.length and other.address in network.masked()


LIBRARY.declare(
    {
        "isIP(string) -> bool": lambda text: _read(text) is not None,
        "ip.isCanonical(string) -> bool": lambda text: str(_ip(text).value) == text,
        "string(IP) -> string": lambda address: str(address.value),
        "IP.family() -> int": lambda address: address.value.version,
        "IP.isUnspecified() -> bool": lambda address: address.value.is_unspecified,
        "IP.isLoopback() -> bool": lambda address: address.value.is_loopback,
        "IP.isLinkLocalMulticast() -> bool": (
            lambda address: _is_link_local_multicast(address.value)
        ),
        "IP.isLinkLocalUnicast() -> bool": lambda address: address.value.is_link_local,
        "IP.isGlobalUnicast() -> bool": lambda address: _is_global_unicast(address.value),
        "isCIDR(string) -> bool": lambda text: _read_network(text) is not None,
        "CIDR.containsIP(IP) -> bool": lambda network, address: address.value in network.masked(),
        "CIDR.containsCIDR(string) -> bool": (
            lambda network, text: _contains_cidr(network, _cidr(text))
        ),
        "CIDR.ip() -> IP": lambda network: Address(network.address),
        "CIDR.masked() -> CIDR": (
            lambda network: Network(network.masked().network_address, network.length)
        ),
        "CIDR.prefixLength() -> int": lambda network: network.length,
        "string(CIDR) -> string": lambda network: f"{network.address}/{network.length}",
    }
)
