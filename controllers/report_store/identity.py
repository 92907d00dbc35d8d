"""The certificate that the store shows to the API server, and the APIServices that tell the API server to trust it.

Authority and leaf are kept in the database, so that all replicas show the same; the account of the store needs no right to any Secret.
"""

from __future__ import annotations

import base64
import logging
from dataclasses import astuple
from typing import TYPE_CHECKING, Final

import orjson

from controllers.kube import Client, Kind
from controllers.manifests.deploy.report_store import NAME, api_service_names
from controllers.webhook import certificates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from .database import Session

API_SERVICES: Final = Kind("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
_READ: Final = "SELECT value FROM identity WHERE name = 'certificates'"
_log = logging.getLogger(__name__)


def names_for(namespace: str) -> Sequence[str]:
    """Return the host names by which the API server may call the store."""
    return [f"{NAME}.{namespace}.svc", NAME, f"{NAME}.{namespace}"]


def kept_certificates(
    session: Session, names: Sequence[str], now: datetime, trusted: bytes
) -> certificates.Certificates:
    """Return the certificates in the database, made or renewed where that is due; within a transaction that writes.

    `trusted` is the authority that every APIService names by now.
    """
    found = session.rows(_READ)
    current = _unpacked(bytes(found[0][0])) if found else None
    if current is None or not certificates.is_usable(current, now):
        made = certificates.first_certificates(names, now)
    else:
        made = certificates.renewed(current, names, now, trusted=trusted)
    if made != current:
        session.run_many("DELETE FROM identity WHERE name = ?", [("certificates",)])
        session.run_many("INSERT INTO identity VALUES (?, ?)", [("certificates", _packed(made))])
    return made


async def trusted_bundle(client: Client) -> bytes:
    """Return the authority that all APIServices of ours name, empty where they differ; raises KubeError."""
    found = set()
    for name in api_service_names():
        spec = (await client.get(API_SERVICES, name)).get("spec") or {}
        found.add(base64.b64decode(spec.get("caBundle") or ""))
    return found.pop() if len(found) == 1 else b""


async def announce(client: Client, bundle: bytes) -> None:
    """Have the API server trust an authority; raises KubeError."""
    if await trusted_bundle(client) == bundle:
        return
    change = {"spec": {"caBundle": base64.b64encode(bundle).decode()}}
    for name in api_service_names():
        await client.patch(API_SERVICES, name, "", change)
    _log.info("the API server was told whom to trust")


def _packed(shown: certificates.Certificates) -> bytes:
    pairs = [[part.decode() for part in astuple(pair)] for pair in (shown.authority, shown.leaf)]
    return orjson.dumps(pairs)


def _unpacked(value: bytes) -> certificates.Certificates:
    pairs: list[list[str]] = orjson.loads(value)
    authority, leaf = (certificates.Pair(*(part.encode() for part in pair)) for pair in pairs)
    return certificates.Certificates(authority, leaf)
