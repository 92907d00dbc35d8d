"""What codes need beside their use: uses that nothing can depend on any more are forgotten, and keys are replaced.

Codes get another key every thirty days, when an administrator asks, and when the cluster was put back to an older state: then at
once, because uses are forgotten and used codes would be good again.

INVARIANT: a use is forgotten only after the trail has it and what became of it, and only when its code or grant cannot be used
any more: forgetting one earlier would let it be used again.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import kinds
from controllers.store.audit import CONTROLLER, audit_entry
from controllers.store.code_keys import ROTATE, ROTATED_AT, SECRET_NAME, CodeKeys
from controllers.store.grants import GRANT_UID
from engine.errors import EngineError
from engine.grants import FINAL as FINAL_STATES
from engine.grants.circumstances import readable_policies, state_of
from engine.lang import rfc3339

from .confirming import FINAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.kube import Kind
    from controllers.loops.context import LoopContext
    from controllers.store.audit import AuditTrail, Regression
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
            await self._context.drop(kinds.CODE_USES, one)
            self._context.metrics.count("kpolicy_code_uses_pruned")

    async def _forget_claims(self, now: datetime) -> None:
        """Forget claims that nobody looks at any more; raises KubeError."""
        for one in await self._all(kinds.CODE_CLAIMS, ""):
            created = rfc3339.read(str(one["metadata"].get("creationTimestamp") or ""))
            if created is not None and now - created > CLAIMED:
                await self._context.drop(kinds.CODE_CLAIMS, one)

    async def _over(self, uses: Sequence[Object], now: datetime) -> list[Object]:
        """Return the uses that nothing depends on any more, the oldest first."""
        policies, problems = readable_policies(await self._all(kinds.GRANT_POLICIES, ""))
        if problems:
            return []
        longest = max((one.code_for for one in policies), default=timedelta())
        codes = {str(one["metadata"]["name"]): one for one in await self._all(kinds.ONE_TIME_CODES, self._context.namespace)}  # fmt: skip
        grants = {str(one["metadata"].get("uid")) for one in await self._all(kinds.GRANTS, "") if state_of(one) not in FINAL_STATES}  # fmt: skip
        found = [
            use
            for use in uses
            if use["status"]["state"] in FINAL
            and not _is_of(use, grants)
            and _code_end(use, codes, longest, now) <= now - SAFE
        ]
        return sorted(found, key=lambda one: str(one["spec"].get("usedAt") or ""))

    async def _uses(self) -> list[Object]:
        """Return what tells of each use whether it may be forgotten; few are read at once, because there may be many."""
        found: list[Object] = []
        resume = ""
        while True:
            page = await self._context.client.list(kinds.CODE_USES, self._context.namespace, limit=_PAGE, resume=resume)  # fmt: skip
            found += map(_reduced, page.items)
            resume = page.resume
            if not resume:
                return found

    async def _all(self, kind: Kind, namespace: str) -> Sequence[Object]:
        return (await self._context.client.list_all(kind, namespace)).items


def _reduced(use: Object) -> Object:
    metadata, spec = use["metadata"], use["spec"]
    labels = {GRANT_UID: (metadata.get("labels") or {}).get(GRANT_UID)}
    place = {key: metadata.get(key) for key in ("name", "namespace", "uid")}
    return {
        "metadata": {**place, "labels": labels},
        "spec": {key: spec.get(key) for key in ("usedAt", "code", "grantUid")},
        "status": {"state": (use.get("status") or {}).get("state")},
    }


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
    at, about = rfc3339.write(now), {"kind": kinds.CODE_USES.kind}
    until = max(str(one["spec"].get("usedAt") or "") for one in due)
    reason = f"{len(due)} uses up to {until}, each of them told here before"
    return audit_entry(f"prune/{at}", at, CONTROLLER, "prune", about, reason=reason)


KEYS_EVERY: Final = 5.0
"""Seconds between two looks at what administrators ask for."""
TRAIL_EVERY: Final = 60.0
"""Seconds between two looks at the end of the trail."""
OLDEST: Final = timedelta(days=30)
_LONGEST: Final = 512


class RotationLoop:
    """Rotates the keys of codes. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext, trail: AuditTrail) -> None:
        self._context, self._trail = context, trail
        self._keys = CodeKeys(context.client, context.clock, context.namespace, context.key)
        self._regression: Regression | None = None
        self._looked_at: datetime | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        self._trail.on_regression.append(self._noted)
        try:
            while True:
                try:
                    await self._look()
                except EngineError as error:
                    _log.warning("the keys of codes cannot be looked after: %s", error.message)
                await self._context.clock.sleep(KEYS_EVERY)
        finally:
            self._trail.on_regression.remove(self._noted)

    def _noted(self, regression: Regression) -> None:
        self._regression = regression

    async def _look(self) -> None:
        """Rotate where there is a reason; raises KubeError, then it is tried again."""
        now = self._context.clock.now()
        if self._looked_at is None or (now - self._looked_at).total_seconds() >= TRAIL_EVERY:
            await self._trail.look()
            self._looked_at = now
        if self._regression is not None:
            await self._after_regression(self._regression, now)
            self._regression = None
            return
        stored = await self._keys.ensure()
        annotations = stored["metadata"].get("annotations") or {}
        if asked := str(annotations.get(ROTATE) or ""):
            await self._rotate("revoke" if asked.startswith("revoke") else "asked", asked, now)
        elif now - _rotated_at(stored, now) >= OLDEST:
            await self._rotate("age", "the key was thirty days old", now)

    async def _after_regression(self, found: Regression, now: datetime) -> None:
        _log.error(
            "the audit trail was put back: it ends at record %d, record %d was seen; all codes are revoked",
            found.ends, found.seen,
        )  # fmt: skip
        self._context.metrics.count("kpolicy_audit_regressions")
        why = f"the trail ended at record {found.ends}, record {found.seen} had been written: the cluster was put back to an older state"
        await self._rotate("regression", why, now)

    async def _rotate(self, how: str, reason: str, now: datetime) -> None:
        """Take another key; where codes have to be revoked, the one before is dead at once."""
        key = await self._keys.rotate(now, revoke=how in ("revoke", "regression"))
        self._context.metrics.count("kpolicy_code_keys_rotated", (how,))
        await self._trail.record(_rotation_record(how, key.id, reason, now))


def _rotated_at(secret: Object, now: datetime) -> datetime:
    annotations = secret["metadata"].get("annotations") or {}
    created = str(secret["metadata"].get("creationTimestamp") or "")
    return rfc3339.read(str(annotations.get(ROTATED_AT) or "")) or rfc3339.read(created) or now


def _rotation_record(how: str, key: int, reason: str, now: datetime) -> dict[str, Any]:
    at, about = rfc3339.write(now), {"kind": kinds.SECRETS.kind, "name": SECRET_NAME}
    verb = "revoke-codes" if how in ("revoke", "regression") else "rotate"
    return audit_entry(f"rotate/{at}/{key}", at, CONTROLLER, verb, about, reason=reason[:_LONGEST])
