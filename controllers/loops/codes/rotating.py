"""Gives codes another key: every thirty days, when an administrator asks, and when the cluster was put back to an older state.

Then it is done at once, because uses are forgotten and used codes would be good again.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.kinds import SECRETS
from controllers.store.code_keys import ROTATE, ROTATED_AT, SECRET_NAME, CodeKeys
from engine.errors import EngineError
from engine.lang import rfc3339

if TYPE_CHECKING:
    from controllers.loops.context import LoopContext
    from controllers.store.audit import AuditTrail, Regression
    from engine.model import Object

LOOK_EVERY: Final = 5.0
"""Seconds between two looks at what administrators ask for."""
TRAIL_EVERY: Final = 60.0
"""Seconds between two looks at the end of the trail."""
OLDEST: Final = timedelta(days=30)
_LONGEST: Final = 512
_log = logging.getLogger(__name__)


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
                await self._context.clock.sleep(LOOK_EVERY)
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
        await self._trail.record(_record(how, key.id, reason, now))


def _rotated_at(secret: Object, now: datetime) -> datetime:
    annotations = secret["metadata"].get("annotations") or {}
    created = str(secret["metadata"].get("creationTimestamp") or "")
    return rfc3339.read(str(annotations.get(ROTATED_AT) or "")) or rfc3339.read(created) or now


def _record(how: str, key: int, reason: str, now: datetime) -> dict[str, Any]:
    at = rfc3339.write(now)
    return {
        "id": f"rotate/{at}/{key}",
        "time": at,
        "actor": "kpolicy",
        "verb": "revoke-codes" if how in ("revoke", "regression") else "rotate",
        "object": {"kind": SECRETS.kind, "namespace": "", "name": SECRET_NAME},
        "policy": "",
        "result": "ok",
        "reason": reason[:_LONGEST],
    }
