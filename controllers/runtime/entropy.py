"""Chance for reviews: a key from a Secret, and seeds that follow from it and the request.

Every replica must come to the same text for the same request, and nobody outside may foresee it; so the seed of a review
is an HMAC of its UID under a key that all replicas share.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from controllers.kube import AlreadyExists, Client, KubeError, find
from controllers.kube.kinds import SECRETS
from controllers.manifests.written import REVIEW_KEY
from engine import vocabulary

if TYPE_CHECKING:
    from engine.model import Object

_FIELD = "key"
_LENGTH = 32


def seed_of(key: bytes, uid: str) -> bytes:
    """Return the seed of the review with this UID."""
    return hmac.digest(key, uid.encode(), "sha256")


def fixed_key(text: str) -> bytes:
    """Return the key that a `--seed` stands for; tests and demonstrations only."""
    return hashlib.sha256(text.encode()).digest()


async def shared_key(client: Client, namespace: str) -> bytes:
    """Return the key in the Secret `kpolicy-review-key`, which whoever comes first creates; raises KubeError."""
    found = await find(client, SECRETS, REVIEW_KEY, namespace)
    return _key_in(found or await _create(client, namespace))


async def _create(client: Client, namespace: str) -> Object:
    fresh = base64.b64encode(secrets.token_bytes(_LENGTH)).decode()
    labels, data = vocabulary.BY_KPOLICY, {_FIELD: fresh}
    obj = SECRETS.document(REVIEW_KEY, namespace, labels=labels, type="Opaque", data=data)
    try:
        return await client.create(SECRETS, obj)
    except AlreadyExists:
        return await client.get(SECRETS, REVIEW_KEY, namespace)


def _key_in(secret: Object) -> bytes:
    try:
        key = base64.b64decode((secret.get("data") or {}).get(_FIELD, ""), validate=True)
    except (binascii.Error, TypeError, ValueError):
        key = b""
    if len(key) < _LENGTH:
        raise KubeError(
            f"the Secret `{REVIEW_KEY}` does not hold a key of {_LENGTH} bytes in `{_FIELD}`",
            help="delete the Secret; a new one is made at the next start",
        )
    return key
