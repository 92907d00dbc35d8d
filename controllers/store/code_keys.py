"""The keys that one-time codes are made with: the newest makes, the one before is still accepted, others are dead.

Before the first rotation the key follows from the one that all replicas share and nothing is stored. Rotated keys are drawn by
chance and kept in a Secret, so that a cluster that was put back to an older state can be given a key that never was in use.
"""

from __future__ import annotations

import base64
import hmac
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import AlreadyExists, Client, Clock, find
from controllers.kube.kinds import SECRETS
from engine import vocabulary
from engine.codes import Key
from engine.codes.spelling import ALPHABET
from engine.lang import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

SECRET_NAME: Final = "kpolicy-code-keys"  # noqa: S105 - the name of an object, not a secret
ROTATE: Final = "kpolicy.io/rotate"
"""Annotation by which an administrator asks for another key: `rotate` or `revoke`, then who says so and why."""
ROTATED_AT: Final = "kpolicy.io/rotated-at"
REMEMBERED: Final = 5.0
"""Seconds after which the Secret is read again: how late a revocation of all codes may come."""
_FIELD: Final = "keys"
_LENGTH: Final = 32
_LIVE: Final = 2
_log = logging.getLogger(__name__)


def first_key(shared: bytes) -> Key:
    """Return the key before any rotation, from the one that all replicas share."""
    return Key(1, hmac.digest(shared, b"kpolicy code", "sha256"))


class CodeKeys:
    """The keys that are alive, newest first, at most some seconds old."""

    def __init__(self, client: Client, clock: Clock, namespace: str, shared: bytes) -> None:
        self._client, self._clock, self._namespace = client, clock, namespace
        self._first = first_key(shared)
        self._keys: tuple[Key, ...] = ()
        self._read_at: datetime | None = None

    def __repr__(self) -> str:
        return f"<CodeKeys {[one.id for one in self._keys]}>"

    async def current(self) -> tuple[Key, ...]:
        """Return the keys that codes are accepted with; the first makes new ones. Raises KubeError."""
        now = self._clock.now()
        if self._read_at is None or not 0 <= (now - self._read_at).total_seconds() < REMEMBERED:
            self._keys = _keys_in(await self._stored(), self._first)
            self._read_at = now
        return self._keys

    async def ensure(self) -> Object:
        """Return the Secret of the keys, made with the first key where there is none; raises KubeError."""
        obj = await self._stored()
        if obj is not None:
            return obj
        try:
            made = _document(self._namespace, (self._first,), self._clock.now())
            return await self._client.create(SECRETS, made)
        except AlreadyExists:
            return await self._client.get(SECRETS, SECRET_NAME, self._namespace)

    async def rotate(self, now: datetime, *, revoke: bool) -> Key:
        """Draw another key and write it down; with `revoke` it is the only one from then on. Raises KubeError."""
        obj = await self._stored()
        keys = _keys_in(obj, self._first)
        # a number that no live key has; it is a hint in codes and not secret
        number = ((keys[0].id if keys else 1) + 1) % len(ALPHABET)
        fresh = Key(number, secrets.token_bytes(_LENGTH))
        kept = (fresh,) if revoke else (fresh, *keys)[:_LIVE]
        await self._write(obj, kept, now)
        self._read_at = None
        return fresh

    async def _stored(self) -> Object | None:
        return await find(self._client, SECRETS, SECRET_NAME, self._namespace)

    async def _write(self, obj: Object | None, keys: tuple[Key, ...], now: datetime) -> None:
        made = _document(self._namespace, keys, now)
        if obj is None:
            try:
                await self._client.create(SECRETS, made)
            except AlreadyExists as error:
                raise error.reworded("the keys of codes are rotated by somebody else") from error
            return
        version = obj["metadata"].get("resourceVersion")
        metadata = {**made["metadata"], "resourceVersion": version}
        await self._client.update(SECRETS, {**made, "metadata": metadata})


def _keys_in(obj: Object | None, first: Key) -> tuple[Key, ...]:
    """Return the keys in the Secret; none where it cannot be read, for then nobody knows which are revoked."""
    if obj is None:
        return (first,)
    try:
        stored = orjson.loads(base64.b64decode((obj.get("data") or {})[_FIELD], validate=True))
        return tuple(_key(one) for one in stored)
    except (KeyError, TypeError, ValueError):
        _log.error("the Secret `%s` cannot be read; no codes are made or accepted", SECRET_NAME)
        return ()


def _key(stored: Any) -> Key:
    secret = bytes.fromhex(stored["secret"])
    if len(secret) < _LENGTH:
        raise ValueError("the key is too short")
    return Key(int(stored["id"]) % len(ALPHABET), secret)


def _document(namespace: str, keys: tuple[Key, ...], now: datetime) -> Object:
    listed = [{"id": one.id, "secret": one.secret.hex()} for one in keys]
    return SECRETS.document(
        SECRET_NAME,
        namespace,
        labels=vocabulary.BY_KPOLICY,
        annotations={ROTATED_AT: rfc3339.write(now)},
        type="Opaque",
        data={_FIELD: base64.b64encode(orjson.dumps(listed)).decode()},
    )
