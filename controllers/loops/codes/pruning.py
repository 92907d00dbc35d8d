"""Forgets uses of codes and grants that nothing can depend on any more, so that there are never too many objects.

INVARIANT: a use is forgotten only after the trail has it and what became of it, and only when its code or grant cannot be used
any more: forgetting one earlier would let it be used again.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Kind, NotFound
from controllers.kube.kinds import CODE_CLAIMS, CODE_USES, GRANT_POLICIES, GRANTS, ONE_TIME_CODES
from controllers.store.grants import GRANT_UID
from engine.errors import EngineError
from engine.grants import FINAL as FINAL_STATES
from engine.grants.circumstances import readable_policies, state_of
from engine.lang import rfc3339

from .confirming import FINAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.loops.context import LoopContext
    from controllers.store.audit import AuditTrail
    from engine.model import Object

LOOK_EVERY: Final = 600.0
RETENTION: Final = timedelta(days=30)
"""How long a use is kept for people to look at."""
MOST: Final = 10_000
"""Uses that are kept at most, as far as they may be forgotten at all."""
CLAIMED: Final = timedelta(hours=2)
"""How long a claim is kept: it is looked at for one."""
_PAGE: Final = 50
SAFE: Final = timedelta(hours=1)
"""Beyond the end of everything that a use could stand for: clocks, late requests."""
_log = logging.getLogger(__name__)


class PruneLoop:
    """Forgets uses. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext, trail: AuditTrail) -> None:
        self._context, self._trail = context, trail

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            try:
                await self.look()
            except EngineError as error:
                _log.warning("old uses cannot be forgotten: %s", error.message)
            await self._context.clock.sleep(LOOK_EVERY)

    async def look(self) -> None:
        """Forget what is old, and the oldest of what is too much; raises KubeError."""
        now = self._context.clock.now()
        await self._forget_claims(now)
        uses = await self._uses()
        if not uses:
            return
        over = await self._over(uses, now)
        due = [one for one in over if (at := _used_at(one)) is None or at <= now - RETENTION]
        if len(uses) - len(due) > MOST:
            due = over[: max(len(uses) - MOST, len(due))]
        if due:
            await self._trail.record(_record(due, now))
        for one in due:
            await self._drop(CODE_USES, one)
            self._context.metrics.count("kpolicy_code_uses_pruned")

    async def _forget_claims(self, now: datetime) -> None:
        """Forget claims that nobody looks at any more; raises KubeError."""
        for one in await self._all(CODE_CLAIMS, ""):
            created = rfc3339.read(str(one["metadata"].get("creationTimestamp") or ""))
            if created is not None and now - created > CLAIMED:
                await self._drop(CODE_CLAIMS, one)

    async def _over(self, uses: Sequence[Object], now: datetime) -> list[Object]:
        """Return the uses that nothing depends on any more, the oldest first."""
        policies, problems = readable_policies(await self._all(GRANT_POLICIES, ""))
        if problems:
            return []
        longest = max((one.code_for for one in policies), default=timedelta())
        codes = {str(one["metadata"]["name"]): one for one in await self._all(ONE_TIME_CODES, self._context.namespace)}  # fmt: skip
        grants = {str(one["metadata"].get("uid")) for one in await self._all(GRANTS, "") if state_of(one) not in FINAL_STATES}  # fmt: skip
        found = [
            use
            for use in uses
            if _is_told(use)
            and not _is_of(use, grants)
            and _code_end(use, codes, longest, now) <= now - SAFE
        ]
        return sorted(found, key=lambda one: str(one["spec"].get("usedAt") or ""))

    async def _uses(self) -> list[Object]:
        """Return what tells of each use whether it may be forgotten; few are read at once, because there may be many."""
        found: list[Object] = []
        resume = ""
        while True:
            page = await self._context.client.list(CODE_USES, self._context.namespace, limit=_PAGE, resume=resume)  # fmt: skip
            found += map(_reduced, page.items)
            resume = page.resume
            if not resume:
                return found

    async def _all(self, kind: Kind, namespace: str) -> Sequence[Object]:
        return (await self._context.client.list_all(kind, namespace)).items

    async def _drop(self, kind: Kind, obj: Object) -> None:
        metadata = obj["metadata"]
        with suppress(NotFound):
            await self._context.client.delete(
                kind,
                str(metadata["name"]),
                str(metadata.get("namespace") or ""),
                uid=str(metadata.get("uid") or ""),
            )


def _reduced(use: Object) -> Object:
    metadata, spec = use["metadata"], use["spec"]
    labels = {GRANT_UID: (metadata.get("labels") or {}).get(GRANT_UID)}
    place = {key: metadata.get(key) for key in ("name", "namespace", "uid")}
    return {
        "metadata": {**place, "labels": labels},
        "spec": {key: spec.get(key) for key in ("usedAt", "code", "grantUid")},
        "status": {"state": (use.get("status") or {}).get("state")},
    }


def _is_told(use: Object) -> bool:
    return str((use.get("status") or {}).get("state") or "") in FINAL


def _is_of(use: Object, grants: set[str]) -> bool:
    """Tell whether a use is one of a grant that may still be used."""
    labels = use["metadata"].get("labels") or {}
    uid = str(labels.get(GRANT_UID) or use["spec"].get("grantUid") or "")
    return uid in grants


def _code_end(use: Object, codes: dict[str, Object], longest: timedelta, now: datetime) -> datetime:
    """Return when the code of a use cannot be accepted any more, whether used or not."""
    at = _used_at(use) or now
    code = codes.get(str(use["spec"].get("code") or ""))
    ends = rfc3339.read(str(code["spec"].get("expiresAt") or "")) if code is not None else None
    return max(at + 2 * longest, ends or at)


def _used_at(use: Object) -> datetime | None:
    return rfc3339.read(str(use["spec"].get("usedAt") or ""))


def _record(due: Sequence[Object], now: datetime) -> dict[str, Any]:
    at = rfc3339.write(now)
    until = max(str(one["spec"].get("usedAt") or "") for one in due)
    return {
        "id": f"prune/{at}",
        "time": at,
        "actor": "kpolicy",
        "verb": "prune",
        "object": {"kind": CODE_USES.kind, "namespace": "", "name": ""},
        "policy": "",
        "result": "ok",
        "reason": f"{len(due)} uses up to {until}, each of them told here before",
    }
