"""Who asks, as the API server says in front of us; nobody else is believed.

The API server shows a certificate of the authority that `extension-apiserver-authentication` in `kube-system` names, and writes
the person it has authenticated into headers (Kubernetes' authenticating proxy).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from controllers.kube import Client, KubeError
from controllers.kube.kinds import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from multidict import CIMultiDictProxy


SETTINGS = "extension-apiserver-authentication"
SETTINGS_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True)
class Requester:
    """A person or program, as authorizers ask about it."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """By what the API server is known, and in which headers it says who asks; without `names` any of the authority's certificates counts."""

    authorities: bytes
    names: frozenset[str]
    user_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]
    uid_headers: tuple[str, ...] = ()

    def requester(
        self, certificate: Mapping[str, Any] | None, headers: CIMultiDictProxy[str]
    ) -> Requester | None:
        """Return who asks; None where TLS has checked no certificate, it is not the API server's, or nobody is named."""
        if not certificate or (self.names and _common_name(certificate) not in self.names):
            return None
        user = _first(headers, self.user_headers)
        if not user:
            return None
        groups = [one for name in self.group_headers for one in headers.getall(name, [])]
        return Requester(
            user, tuple(groups), _first(headers, self.uid_headers), self._extra(headers)
        )

    def _extra(self, headers: CIMultiDictProxy[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found: dict[str, list[str]] = {}
        for name, value in headers.items():
            for prefix in self.extra_prefixes:
                if name.lower().startswith(prefix.lower()):
                    key = unquote(name[len(prefix) :].lower())
                    found.setdefault(key, []).append(value)
        return tuple((key, tuple(values)) for key, values in sorted(found.items()))


def _common_name(certificate: Mapping[str, Any]) -> str:
    pairs = (pair for part in certificate.get("subject", ()) for pair in part)
    return next((value for key, value in pairs if key == "commonName"), "")


def _first(headers: CIMultiDictProxy[str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


async def front_proxy(client: Client) -> FrontProxy:
    """Return by what the API server is known; raises KubeError where it does not say, because then nobody can be believed."""
    found = await client.get(CONFIG_MAPS, SETTINGS, SETTINGS_NAMESPACE)
    data = found.get("data") or {}
    authorities = str(data.get("requestheader-client-ca-file") or "")
    if not authorities:
        raise KubeError(
            f"the ConfigMap `{SETTINGS}` names no authority of the API server's client certificate",
            help="start the API server with --requestheader-client-ca-file and --proxy-client-cert-file",
        )
    return FrontProxy(
        authorities.encode(),
        frozenset(_listed(data, "requestheader-allowed-names")),
        _listed(data, "requestheader-username-headers"),
        _listed(data, "requestheader-group-headers"),
        _listed(data, "requestheader-extra-headers-prefix"),
        _listed(data, "requestheader-uid-headers"),
    )


def _listed(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a list that the ConfigMap holds as JSON; raises KubeError for one that is none."""
    try:
        found = json.loads(data.get(key) or "[]")
    except ValueError as error:
        raise KubeError(f"`{key}` of the ConfigMap `{SETTINGS}` is not a list") from error
    return tuple(str(one) for one in found)
