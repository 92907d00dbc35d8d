"""Notes what people do to exceptions, grant policies, records, clean-ups and used codes, for the audit trail; it never refuses anything.

Apart from the desks that judge the same objects, so that it can be passed over when it cannot be asked: a deletion must be
possible while we are down. What is then not seen is told of by the leader without a name.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from controllers.kube import AlreadyExists, Client, Clock, Discovery, NotFound
from controllers.kube.kinds import AUDIT_NOTES, CODE_USES
from controllers.store.audit_notes import (
    REUSE,
    AuditedAction,
    Shown,
    content_of,
    note_key,
    note_of,
    to_tell_next,
)
from controllers.store.uses import SAME_ATTEMPT
from engine.errors import EngineError
from engine.lang import rfc3339

from . import envelope
from .audit_events import audited_action
from .caller import is_proven
from .code_bindings import user_of
from .live import Live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from controllers.kube.accounts import Job
    from engine.model import Object

NOT_NOTED = "this could not be written down for the audit trail"
_log = logging.getLogger(__name__)


class AuditRecorder:
    """Writes notes; `review` answers the path. `jobs_of` tells for which of our jobs a user's requests are."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        namespace: str,
        key: bytes,
        jobs_of: Callable[[str], frozenset[Job]],
        discovery: Discovery | None = None,
    ) -> None:
        self._live = Live(client, discovery or Discovery(client))
        self._client, self._clock, self._namespace = client, clock, namespace
        self._key, self._jobs_of = note_key(key), jobs_of

    def __repr__(self) -> str:
        return f"<AuditRecorder in {self._namespace}>"

    async def review(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Let a request through, once it is written down where it has to be."""
        request = envelope.read_request(body)
        uid = str(request["uid"])
        if request.get("dryRun") is True:
            return envelope.allowed(uid)
        try:
            async with asyncio.timeout(budget):
                await self._note(request)
        except (TimeoutError, EngineError) as error:
            _log.warning("%s: %s", NOT_NOTED, type(error).__name__)
            return envelope.allowed(uid, [NOT_NOTED])
        except Exception:
            _log.exception(NOT_NOTED)
            return envelope.allowed(uid, [NOT_NOTED])
        return envelope.allowed(uid)

    async def _seen(self, request: Mapping[str, Any]) -> tuple[Shown, Mapping[str, Any]] | None:
        """Return what is to be looked for after a request that nobody proved, and the request by what the cluster shows.

        None for a request that says of the cluster what it does not show. Raises KubeError where it cannot be asked.
        """
        operation, new = request.get("operation"), request.get("object")
        live = await self._live.of(request)
        if operation == "DELETE":
            return None if live is None else (Shown("gone"), {**request, "oldObject": live})
        if not isinstance(new, dict):
            return None
        after = content_of(new)
        if operation == "CREATE":
            return None if live is not None else (Shown("made", after), request)
        if live is None or content_of(live) != content_of(request.get("oldObject") or {}):
            return None
        return (Shown("changed", after), {**request, "oldObject": live}) if content_of(live) != after else None  # fmt: skip

    async def _note(self, request: Mapping[str, Any]) -> None:
        user, now = user_of(request), self._clock.now()
        action = audited_action(request, now, jobs=self._jobs_of(user))
        if action is None:
            return
        if not is_proven():
            seen = await self._seen(request)
            if seen is None:
                return
            shown, request = seen
            action = audited_action(request, now, jobs=self._jobs_of(user))
            if action is None:
                return
            action = replace(action, shown=shown)
        groups = tuple(map(str, (request.get("userInfo") or {}).get("groups") or ()))
        note = note_of(
            action, user, now, namespace=self._namespace, key=self._key, groups=groups[:16]
        )
        try:
            await self._client.create(AUDIT_NOTES, note)
        except AlreadyExists:
            # Another replica, or the same request run again, has told of it.
            return


class ReuseRecorder:
    """Notes who brings a code again that was used already; each person once for a code, and not more than a few for it."""

    def __init__(self, client: Client, clock: Clock, namespace: str, key: bytes) -> None:
        self._client, self._clock, self._namespace = client, clock, namespace
        self._key = note_key(key)

    def __repr__(self) -> str:
        return f"<ReuseRecorder in {self._namespace}>"

    async def note(self, user: str, target: Object, uses: Iterable[str]) -> None:
        """Note that somebody brought codes for an object, by the names of their uses if there were any; raises KubeError."""
        now = self._clock.now()
        for name in uses:
            try:
                use = await self._client.get(CODE_USES, name, self._namespace)
            except NotFound:
                continue
            if _is_own(use, user, target, now) or to_tell_next(use, user) is None:
                continue
            note = note_of(_reuse_of(use, target), user, now, namespace=self._namespace, key=self._key)  # fmt: skip
            try:
                await self._client.create(AUDIT_NOTES, note)
            except AlreadyExists:
                # The leader has not come to what was told of this person before.
                continue


def _is_own(use: Object, user: str, target: Object, now: datetime) -> bool:
    """Tell whether a code was used by this very request, which several webhooks are asked about and which may be run again."""
    spec = use["spec"]
    at = rfc3339.read(str(spec.get("usedAt") or ""))
    is_same = spec.get("user") == user and (spec.get("object") or {}).get("uid") == target.get("uid")  # fmt: skip
    return is_same and at is not None and now - at <= SAME_ATTEMPT


def _reuse_of(use: Object, target: Object) -> AuditedAction:
    metadata, spec = use["metadata"], use["spec"]
    binding = spec.get("binding") or {}
    about = {"apiVersion": CODE_USES.api_version, "kind": CODE_USES.kind, **{key: metadata.get(key, "") for key in ("namespace", "name", "uid")}}  # fmt: skip
    used = f"already used by {spec.get('user')} at {spec.get('usedAt')}"
    policy = f"{binding.get('policy', '')}/{','.join(binding.get('rules') or ())}"
    return AuditedAction(REUSE, about, f"{used}; brought again for {_named(target)}", policy)


def _named(target: Mapping[str, Any]) -> str:
    return "/".join(str(target[key]) for key in ("kind", "namespace", "name") if target.get(key))
