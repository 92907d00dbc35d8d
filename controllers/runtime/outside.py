"""What operators allow beyond the API server: networks, hosts and registries that policies may have us call.

A part of the options, as texts, so that it can be handed to worker processes; `controllers.lookups.egress` makes rules of it.
Nothing given is the closed state: no address of this machine, of the link or of a metadata service, no registry without TLS,
no services for policies of namespaces.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_NETWORK = "a network such as 10.0.0.0/8 or a single address"


@dataclass(frozen=True, slots=True)
class Outside:
    """Texts as given: see `EgressRules` for what they mean. `pull_secrets` are used for every image."""

    networks: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    plain_registries: tuple[str, ...] = ()
    namespaced_services: bool = False
    pull_secrets: tuple[str, ...] = ()


def add_outside_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags; all of them may be given more than once, and hold several texts with commas between them."""
    group = parser.add_argument_group("calls that policies cause outside of the API server (closed by default)")  # fmt: skip
    listed: dict[str, Any] = {"action": "extend", "type": _texts, "default": []}
    add = group.add_argument
    add("--egress-network", dest="egress_networks", **{**listed, "type": _networks}, metavar="CIDR", help="may be called though it lies on this machine, the link or another place that is refused by default")  # fmt: skip
    add("--egress-host", dest="egress_hosts", **listed, metavar="PATTERN", help="only hosts that fit one of these may be called (`*.example.org`)")  # fmt: skip
    add("--plain-registry", dest="plain_registries", **listed, metavar="HOST[:PORT]", help="a registry that is asked without TLS")  # fmt: skip
    add("--namespaced-services", action="store_true", help="let Policies of namespaces call services, too, and not only ClusterPolicies")  # fmt: skip
    add("--imagePullSecrets", dest="pull_secrets", **listed, metavar="NAME", help="Secrets of our namespace, or NAMESPACE/NAME, that are used for every image")  # fmt: skip


def outside_of(given: argparse.Namespace) -> Outside:
    """Return what the flags say."""
    return Outside(
        networks=tuple(given.egress_networks),
        hosts=tuple(given.egress_hosts),
        plain_registries=tuple(given.plain_registries),
        namespaced_services=given.namespaced_services,
        pull_secrets=tuple(given.pull_secrets),
    )


def outside_in(block: Mapping[str, Any]) -> Outside:
    """Return what a message of our own holds."""
    given: dict[str, Any] = dict(block)
    for name in ("networks", "hosts", "plain_registries", "pull_secrets"):
        given[name] = tuple(given[name])
    return Outside(**given)


def _texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _networks(text: str) -> list[str]:
    for part in _texts(text):
        try:
            ip_network(part)
        except ValueError:
            raise argparse.ArgumentTypeError(f"`{part}` is not {_NETWORK}") from None
    return _texts(text)
