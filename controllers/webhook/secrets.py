"""Our certificates as they are kept in the cluster: two Secrets under upstream's names, the same for all replicas (row W-30)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from typing import TYPE_CHECKING

from controllers.kube import AlreadyExists, Client, Conflict, KubeError, NotFound, find
from controllers.kube.kinds import SECRETS
from controllers.kube.reflector import Selection
from controllers.manifests.written import CERTIFICATES, secret_name
from engine import vocabulary

from .certificates import Certificates, Pair, first_certificates, is_usable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from controllers.kube.reflector import Informers
    from controllers.kube.store import Change
    from engine.model import Object

_CERTIFICATE, _KEY = "tls.crt", "tls.key"
_TRIES = 5
_log = logging.getLogger(__name__)


async def ensure_certificates(
    client: Client, namespace: str, names: Sequence[str], now: datetime
) -> Certificates:
    """Return the certificates in the cluster, made by whoever comes first; raises KubeError."""
    for _ in range(_TRIES):
        kept = await stored_certificates(client, namespace)
        if kept is not None and is_usable(kept, now):
            return kept
        if kept is not None:
            _log.warning(
                "the certificates in the cluster have ended or do not belong together; new ones are made"
            )
        made = first_certificates(names, now)
        if await write_certificates(client, namespace, made):
            return made
    raise KubeError("the certificates in the cluster keep changing while they are read")


async def stored_certificates(client: Client, namespace: str) -> Certificates | None:
    """Return the certificates in the cluster, None when a part is missing or cannot be read."""
    names = (secret_name(part, namespace) for part in CERTIFICATES)
    try:
        found = await asyncio.gather(*(client.get(SECRETS, name, namespace) for name in names))
    except NotFound:
        return None
    authority, leaf = map(pair_in, found)
    return Certificates(authority, leaf) if authority and leaf else None


async def write_certificates(client: Client, namespace: str, made: Certificates) -> bool:
    """Write both parts, the authority first; return False when somebody else was quicker."""
    try:
        for part, pair in zip(CERTIFICATES, (made.authority, made.leaf), strict=True):
            await _write(client, _document(part, namespace, pair))
    except (AlreadyExists, Conflict):
        return False
    return True


async def _write(client: Client, document: Object) -> None:
    metadata = document["metadata"]
    old = await find(client, SECRETS, metadata["name"], metadata["namespace"])
    if old is None:
        await client.create(SECRETS, document)
    elif old.get("data") != document["data"]:
        version = (old.get("metadata") or {}).get("resourceVersion")
        await client.update(
            SECRETS, {**document, "metadata": {**metadata, "resourceVersion": version}}
        )


def pair_in(secret: Object) -> Pair | None:
    """Return what a Secret holds, None when it is no certificate with a key."""
    data = secret.get("data") or {}
    try:
        certificate, key = (
            base64.b64decode(data.get(name) or "", validate=True) for name in (_CERTIFICATE, _KEY)
        )
    except (binascii.Error, TypeError, ValueError):
        _log.warning("the Secret `%s` is not encoded soundly", secret["metadata"].get("name"))
        return None
    return Pair(certificate, key) if certificate and key else None


def watch_certificates(informers: Informers, namespace: str, load: Callable[[Pair], None]) -> None:
    """Have `load` called with what the server is to show, now and whenever the Secret changes."""
    name = secret_name("tls-pair", namespace)
    selection = Selection(namespace=namespace, fields=f"metadata.name={name}")

    def changed(change: Change) -> None:
        pair = pair_in(change.new) if change.new is not None else None
        if pair is not None:
            load(pair)

    informers.acquire(SECRETS, selection).on_change(changed)


def _document(part: str, namespace: str, pair: Pair) -> Object:
    shown = {_CERTIFICATE: pair.certificate, _KEY: pair.key}
    return SECRETS.document(
        secret_name(part, namespace),
        namespace,
        labels={"cert.kyverno.io/managed-by": "kyverno"},
        annotations={vocabulary.OWNER: "kpolicy"},
        type="kubernetes.io/tls",
        data={name: base64.b64encode(pem).decode() for name, pem in shown.items()},
    )
