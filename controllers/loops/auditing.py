"""Puts into the audit trail what webhooks noted, and what nobody could note: grants that are gone without a word.

A note says what was asked for; whether it took place is looked up first, for a deletion that another webhook refused is none.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import find
from controllers.kube.kinds import AUDIT_NOTES, CODE_USES, GRANTS
from controllers.kube.reflector import Selection
from controllers.kube.workqueue import WorkQueue
from controllers.loops.following import Following, counted, logged
from controllers.store import audit
from engine.lang import rfc3339

if TYPE_CHECKING:
    from controllers.kube.store import Change, Store
    from controllers.loops.context import LoopContext
    from controllers.store.audit import AuditTrail
    from engine.model import Object

SETTLED: Final = timedelta(seconds=40)
"""When a request that was noted is over: beyond the API server's own ceiling of 34 s."""
UNSEEN: Final = timedelta(seconds=10)
"""How long a note about a grant that is gone is waited for."""
NOBODY: Final = "unknown"
"""The actor where no webhook of ours was asked."""
_NOT_SEEN: Final = "not seen"
_TOLD: Final = "told"
_log = logging.getLogger(__name__)
_Place = tuple[str, str]
"""The name of a note, or the UID of a grant that is gone; the first part tells which."""


class NoteLoop:
    """Takes notes into the trail. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext, trail: AuditTrail) -> None:
        self._context, self._trail = context, trail
        self._key = audit.note_key(context.key)
        self._selection = Selection(namespace=context.namespace)
        self._notes: Store | None = None
        self._gone: dict[str, tuple[Object, datetime]] = {}
        self.queue: WorkQueue[_Place] = WorkQueue(clock=context.clock, least=0.2, most=30.0)

    async def run(self) -> None:
        """Work until cancelled."""
        work = counted(self._context.metrics, "audit", self.queue, self._look)
        async with Following(self._context.informers) as following:
            self._notes = following.kind(AUDIT_NOTES, self._noted, self._selection)
            following.kind(GRANTS, self._changed)
            await self.queue.run(work, on_error=logged(_log, "/".join))

    def _noted(self, change: Change) -> None:
        if change.new is not None:
            self.queue.add(("note", str(change.new["metadata"]["name"])))

    def _changed(self, change: Change) -> None:
        if change.new is None and change.old is not None:
            uid = str(change.old["metadata"].get("uid") or "")
            self._gone[uid] = (change.old, self._context.clock.now())
            self.queue.add_after(("gone", uid), UNSEEN.total_seconds())

    async def _look(self, place: _Place) -> None:
        """Tell of one note or one grant that is gone; raises KubeError, then it is tried again."""
        what, name = place
        if what == "gone":
            await self._look_at_gone(name)
            return
        note = self._notes.get(name, self._context.namespace) if self._notes else None
        if note is not None:
            await self._look_at_note(place, note)

    async def _look_at_gone(self, uid: str) -> None:
        known = self._gone.get(uid)
        if known is None:
            return
        grant, at = known
        await self._trail.record(_unseen(grant, at))
        self._gone.pop(uid, None)

    async def _look_at_note(self, place: _Place, note: Object) -> None:
        now = self._context.clock.now()
        if not audit.is_ours(note, self._key):
            _log.warning("auditnote/%s is not signed by us and was left out of the trail", place[1])
            await self._trail.record(_forged(note, now))
            await self._context.drop(AUDIT_NOTES, note)
            return
        if note["spec"].get("verb") == audit.REUSE:
            await self._look_at_reuse(note)
            return
        if audit.is_unproven(note):
            result = await self._shown(note, now)
        elif note["spec"].get("verb") in audit.DELETIONS:
            result = await self._settled(note, now)
        else:
            result = "ok"
        if not result:
            self.queue.add_after(place, 1.0)
            return
        if result == _TOLD:
            return
        if result == _NOT_SEEN:
            _log.warning(
                "auditnote/%s tells of something that was not seen and was left out of the trail",
                place[1],
            )
            await self._context.drop(AUDIT_NOTES, note)
            return
        await self._trail.record(audit.entry_of(note, result))
        self._gone.pop(str((note["spec"].get("object") or {}).get("uid") or ""), None)
        await self._context.drop(AUDIT_NOTES, note)

    async def _look_at_reuse(self, note: Object) -> None:
        """Tell of a used code that was brought again, unless enough is told of it; raises KubeError, Conflict among them.

        The use keeps of whom it was told, so that what the trail holds of one code ends, however often it is brought.
        """
        client, name = self._context.client, str((note["spec"].get("object") or {}).get("name"))
        use = await find(client, CODE_USES, name, self._context.namespace)
        actor = str(note["spec"].get("actor"))
        if use is not None and (told := audit.to_tell_next(use, actor)) is not None:
            await self._trail.record(audit.entry_of(note, "refused"))
            version = {"resourceVersion": use["metadata"].get("resourceVersion")}
            status = {"metadata": version, "status": {audit.BROUGHT_BY: told}}
            await client.patch(CODE_USES, name, self._context.namespace, status, subresource="status")  # fmt: skip
        await self._context.drop(AUDIT_NOTES, note)

    async def _settled(self, note: Object, now: datetime) -> str:
        """Return `failed` for a deletion that did not take place and nothing while that is open; raises KubeError.

        Where it did, whoever asked for it last did it, and all others were refused; all of them are told of here.
        """
        found = await self._context.live(note["spec"].get("object") or {})
        if found is None or (found.get("metadata") or {}).get("deletionTimestamp"):
            # INVARIANT: read after the object was seen to be gone, so that the note of who did it is among them.
            *refused, done = await self._attempts(note)
            await self._trail.record(audit.entry_of(done, "ok"))
            for one in refused:
                if not _is_same_attempt(one, done):
                    await self._trail.record(audit.entry_of(one, "failed"))
            self._gone.pop(_uid_in(note), None)
            for one in (*refused, done):
                await self._context.drop(AUDIT_NOTES, one)
            return _TOLD
        at = _instant_in(note)
        if at is not None and now < at + SETTLED:
            return ""
        later = [one for one in await self._attempts(note) if _order(one) > _order(note)]
        if any(_is_same_attempt(note, one) for one in later):
            await self._context.drop(AUDIT_NOTES, note)
            return _TOLD
        return "failed"

    async def _attempts(self, note: Object) -> list[Object]:
        """Return the notes about deletions of the same object, the last one last; raises KubeError."""
        page = await self._context.client.list_all(AUDIT_NOTES, self._context.namespace)
        found = {
            str(one["metadata"]["name"]): one for one in page.items if self._is_like(one, note)
        }
        return sorted({str(note["metadata"]["name"]): note, **found}.values(), key=_order)

    def _is_like(self, one: Object, note: Object) -> bool:
        return (
            audit.is_ours(one, self._key)
            and one["spec"].get("verb") in audit.DELETIONS
            and _uid_in(one) == _uid_in(note)
            and audit.is_unproven(one) is audit.is_unproven(note)
        )

    async def _shown(self, note: Object, now: datetime) -> str:
        """Return whether the cluster shows what a note tells that nobody proved, nothing while it still may; raises KubeError.

        INVARIANT: what was not seen to take place comes not into the trail, not as something that failed either.
        """
        target, wanted = note["spec"].get("object") or {}, audit.shown_by(note)
        live = await self._context.live(target)
        at = rfc3339.read(str(note["spec"].get("at") or ""))
        if wanted.how == "gone":
            is_seen = live is None or bool((live.get("metadata") or {}).get("deletionTimestamp"))
        else:
            is_seen = live is not None and audit.content_of(live) == wanted.content
        if is_seen and wanted.how == "made" and live is not None:
            made = rfc3339.read(str((live.get("metadata") or {}).get("creationTimestamp") or ""))
            is_seen = at is not None and made is not None and abs(made - at) <= SETTLED
        if is_seen and target.get("uid"):
            return "ok"
        return "" if at is not None and now < at + SETTLED else _NOT_SEEN


def _is_same_attempt(one: Object, later: Object) -> bool:
    """Tell whether somebody just tried again, or the API server ran their request again."""
    first, second = _instant_in(one), _instant_in(later)
    is_soon = first is not None and second is not None and second - first <= SETTLED
    return is_soon and one["spec"].get("actor") == later["spec"].get("actor")


def _order(note: Object) -> tuple[str, int]:
    return str(note["spec"].get("at") or ""), int(note["metadata"].get("resourceVersion") or 0)


def _instant_in(note: Object) -> datetime | None:
    return rfc3339.read(str(note["spec"].get("at") or ""))


def _uid_in(note: Object) -> str:
    return str((note["spec"].get("object") or {}).get("uid") or "")


def _unseen(grant: Object, at: datetime) -> dict[str, Any]:
    """Return the record of a grant whose deletion no webhook saw."""
    metadata, spec = grant["metadata"], grant.get("spec") or {}
    state = str((grant.get("status") or {}).get("state") or "draft")
    rules = ",".join(map(str, spec.get("rules") or ())) or "*"
    return audit.audit_entry(
        audit.entry_id("delete", str(metadata.get("uid") or "")),
        rfc3339.write(at),
        NOBODY,
        "delete",
        {"kind": GRANTS.kind, **metadata},
        policy=f"{spec.get('policy')}/{rules}",
        reason=f"it was {state}; no webhook of ours saw who did it",
    )


def _forged(note: Object, at: datetime) -> dict[str, Any]:
    """Return the record of a note that somebody made up; nothing that it says is repeated."""
    metadata = note["metadata"]
    return audit.audit_entry(
        f"{metadata.get('uid')}/forged",
        rfc3339.write(at),
        NOBODY,
        "forge",
        {"kind": AUDIT_NOTES.kind, **metadata},
        result="refused",
        reason="a note for the audit trail that is not signed by the engine",
    )
