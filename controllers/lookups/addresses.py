"""Which addresses and names a policy must never make us call: our own machine, the machine below it, the cloud's secrets.

For the egress gate. Pure: addresses in, reasons out. Private IPv4 networks
are not refused, because that is where the services of a cluster are.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(text), reason)
    for text, reason in (
        ("0.0.0.0/8", "this machine"),
        ("127.0.0.0/8", "this machine"),
        ("169.254.0.0/16", "link-local"),
        ("100.100.100.200/32", "a metadata service"),
        ("168.63.129.16/32", "a metadata service"),
        ("192.0.0.0/24", "reserved"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "this machine"),
        ("::1/128", "this machine"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
        ("100::/64", "reserved"),
    )
)
_CARRIERS = (ip_network("::/96"), ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
"""IPv6 networks whose last four bytes are an IPv4 address that is reached through them."""

_METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.azure.internal",
        "instance-data",
        "instance-data.ec2.internal",
    }
)


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read networks or single addresses; raises ValueError for what is neither."""
    return tuple(ip_network(text) for text in texts)


def address_refusal(address: Address, allowed: Iterable[Network] = ()) -> str:
    """Return why an address is not called, empty when it may be; `allowed` networks win over the list.

    IPv4 addresses that hide in IPv6 ones (mapped, translated, 6to4, Teredo) are judged as what they are.
    """
    if any(address in network for network in allowed):
        return ""
    for hidden in _hidden_in(address):
        if reason := address_refusal(hidden, allowed):
            return reason
    return next((reason for network, reason in _REFUSED if address in network), "")


def _hidden_in(address: Address) -> list[Address]:
    if isinstance(address, IPv4Address):
        return []
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    found += address.teredo or ()
    is_carried = any(address in network for network in _CARRIERS) and int(address) > 1
    if is_carried:
        found.append(IPv4Address(address.packed[-4:]))
    return [one for one in found if one is not None]


def name_refusal(host: str) -> str:
    """Return why a host name is not even looked up, empty when it may be."""
    return "a metadata service" if host.rstrip(".").lower() in _METADATA_NAMES else ""


def literal(host: str) -> Address | None:
    """Return the address that a host is written as, None for names; scopes (`fe80::1%eth0`) are left out."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def is_numeric(host: str) -> bool:
    """Tell whether a host would be taken for an IPv4 address by those who read loosely: `2130706433`, `0x7f.1`, `0177.0.0.1`."""
    last = host.rstrip(".").rpartition(".")[2].lower()
    return last.isdigit() or last.startswith("0x")
