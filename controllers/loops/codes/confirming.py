"""Looks what became of each use of a code: until its object is seen, or the API server cannot be busy with the request any more.

A use is written before its object is, and another webhook or a quota may still have refused the object. The use stays either
way; its state says whether the object was stored, and where it was not the next denial offers another code. So an object that was
seen once counts as stored, whatever its owner does with it afterwards: deleting it at once must not give him another code. One that
was changed since the request found it, whoever did that, may have been what the request made of it, and gives no other code either.
Where an approval would give another code for an object that is not there, the API server's history is asked whether it ever was.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Forbidden, NotFound, find
from controllers.kube.kinds import CODE_USES, ONE_TIME_CODES
from controllers.kube.reflector import Selection
from controllers.kube.store import trimmed
from controllers.kube.workqueue import WorkQueue
from controllers.loops.following import Following, counted, logged
from controllers.loops.notices import Notices
from controllers.store.audit import CONTROLLER, audit_entry
from controllers.store.grants import GRANT_UID
from controllers.store.uses import UNPROVEN, state_of
from engine.codes import body_digest
from engine.codes.requests import APPROVAL, APPROVED
from engine.lang import rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.kube.store import Change, Store
    from controllers.loops.context import LoopContext
    from controllers.store.audit import AuditTrail
    from engine.model import Object

CONFIRM_AFTER: Final = timedelta(seconds=90)
"""When a request is over for sure: the API server gives up after 34 s, and objects may still come late (A9)."""
CONFIRMED, NOT_PERSISTED, UNREADABLE = "Confirmed", "NotPersisted", "Unreadable"
SUPERSEDED: Final = "Superseded"
"""The object was changed since the request found it, so that nobody knows whether the request was stored before that."""
_LOOK_AGAIN: Final = 1.0
"""About how many seconds lie between two looks for an object: one that is gone before it was seen counts as never stored."""
_BUSY: Final = timedelta(seconds=40)
"""How long after a use its object is looked for that often: beyond the API server's own ceiling of 34 s."""
_SOON: Final = timedelta(seconds=3)
_ORDER: Final = {"": 0, "issued": 1, "used": 2, "void": 3}
"""States of a code; it only ever goes on."""
FINAL: Final = frozenset({CONFIRMED, NOT_PERSISTED, UNREADABLE, SUPERSEDED})
_TOLD: Final[dict[str, Object]] = {state: {"status": {"state": state}} for state in FINAL}
_DEEDS: Final = {
    "CodeIssued": "gave out a one-time code for",
    "CodeUsed": "used a one-time code for",
    "GrantUsed": "used a grant for",
}
_log = logging.getLogger(__name__)


def remembered(use: Object) -> Object:
    """Return what loops keep of a use: of one whose outcome is written, that it is, and of a grant's what it counts for.

    Uses stay in the cluster for weeks, so that most of them are of this kind.
    """
    state = _state(use)
    if state not in FINAL:
        return trimmed(use)
    metadata, spec = use["metadata"], use.get("spec") or {}
    counted_for = (metadata.get("labels") or {}).get(GRANT_UID)
    if not counted_for:
        return _TOLD[state]
    return {
        "metadata": {"name": metadata["name"], "labels": {GRANT_UID: counted_for}},
        "spec": {key: spec[key] for key in ("grant", "usedAt", UNPROVEN) if key in spec},
        **_TOLD[state],
    }


class CodeLoop:
    """Confirms uses and tells of codes. `run` it as a task on the leader."""

    def __init__(
        self, context: LoopContext, trail: AuditTrail, notices: Notices | None = None
    ) -> None:
        self._context, self._trail = context, trail
        self._notices = notices or Notices(context)
        self._selection = Selection(namespace=context.namespace)
        self._stores: dict[str, Store] = {}
        self._sightings: dict[str, asyncio.Task[bool]] = {}
        self.queue: WorkQueue[tuple[str, str]] = WorkQueue(clock=context.clock, least=0.2, most=30.0)  # fmt: skip

    async def run(self) -> None:
        """Work until cancelled."""
        work = counted(self._context.metrics, "codes", self.queue, self._look)
        async with Following(self._context.informers) as following:
            for kind in (CODE_USES, ONE_TIME_CODES):
                kept = remembered if kind is CODE_USES else None
                noted = partial(self._noted, kind.plural)
                store = following.kind(kind, noted, self._selection, reduce=kept)
                self._stores[kind.plural] = store
            try:
                await self.queue.run(work, on_error=logged(_log, "/".join))
            finally:
                for name in [*self._sightings]:
                    self._look_no_more(name)

    def _noted(self, plural: str, change: Change) -> None:
        if change.new is not None:
            self.queue.add((plural, change.key[1]))

    async def _look(self, place: tuple[str, str]) -> None:
        """Bring one object up to now; raises KubeError, then it is tried again."""
        plural, name = place
        obj = self._stores[plural].get(name, self._context.namespace)
        if obj is None:
            return
        if plural == CODE_USES.plural:
            await self._look_at_use(place, obj)
        else:
            await self._look_at_code(obj)

    async def _look_at_code(self, code: Object) -> None:
        """Tell of a code that is new or was made void; the state says that it was told."""
        state = _state(code)
        if not state:
            entry = issue_record(code)
            await self._trail.record(entry)
            self._tell("CodeIssued", entry)
            await self._write_code(code["metadata"]["name"], {"state": "issued"})
        elif state == "void":
            await self._trail.record(void_record(code, self._context.clock.now()))

    async def _look_at_use(self, place: tuple[str, str], use: Object) -> None:
        if _state(use) in FINAL:
            return
        spec, now = use["spec"], self._context.clock.now()
        if spec.get(UNPROVEN) and not await self._is_seen(place, use, now):
            return
        entry = use_record(use)
        if await self._trail.record(entry):
            self._tell("GrantUsed" if spec.get("grant") else "CodeUsed", entry)
        source = str(spec.get("code") or "")
        if source.startswith(("code-", APPROVAL)):
            told = {"state": "used", "uses": 1, "usedBy": spec.get("user"), "usedAt": spec.get("usedAt")}  # fmt: skip
            await self._write_code(source, told)
        state, message = await self._outcome(spec)
        used = rfc3339.read(str(spec.get("usedAt") or "")) or now
        if state == NOT_PERSISTED and _gives_another(spec):
            if place[1] not in self._sightings:
                self._look_back(place, use)
                self.queue.add_after(place, _LOOK_AGAIN)
                return
            state, message = self._seen_since(place[1]) or (state, message)
        if state != CONFIRMED and now < used + CONFIRM_AFTER:
            self.queue.add_after(place, _seconds_to_next_look(state, used, now))
            return
        self._look_no_more(place[1])
        await self._trail.record(outcome_record(use, state, now))
        await self._write_use(place[1], state, message, now)

    def _look_back(self, place: tuple[str, str], use: Object) -> None:
        """Have the API server tell of every state of the object since its code was used; the first one ends the waiting."""
        made = self._sightings[place[1]] = asyncio.create_task(self._is_sighted(use))
        made.add_done_callback(lambda task: None if task.cancelled() else self.queue.add(place))

    async def _is_sighted(self, use: Object) -> bool:
        """Return once the object of a use is seen; raises KubeError where the history does not reach back so far."""
        target = use["spec"]["object"]
        kind = await self._context.kind_of_object(target)
        version = str(use["metadata"].get("resourceVersion") or "")
        while True:
            events = self._context.client.watch(
                kind, version, namespace=str(target.get("namespace") or ""), field_selector=f"metadata.name={target.get('name')}"
            )  # fmt: skip
            async for event in events:
                metadata = event.object.get("metadata") or {}
                if metadata.get("uid") == target.get("uid"):
                    return True
                version = str(metadata.get("resourceVersion") or version)

    def _seen_since(self, name: str) -> tuple[str, str] | None:
        """Return what the history says of an object that is not there, None where it was not seen so far."""
        task = self._sightings[name]
        if not task.done():
            return None
        if task.cancelled() or task.exception() is not None:
            return SUPERSEDED, "nobody knows whether the object was there"
        return CONFIRMED, "it was stored, and is gone since"

    def _look_no_more(self, name: str) -> None:
        if task := self._sightings.pop(name, None):
            task.cancel()

    async def _is_seen(self, place: tuple[str, str], use: Object, now: datetime) -> bool:
        """Tell whether the cluster shows the request of a use that nobody proved; raises KubeError.

        What is not seen in time is told to nobody. A code stays used, because its owner claimed it; a use of a grant is free again.
        """
        spec = use["spec"]
        if state_of(await self._context.live(spec.get("object") or {})) != spec[UNPROVEN]:
            return True
        due = (rfc3339.read(str(spec.get("usedAt") or "")) or now) + CONFIRM_AFTER
        if now < due:
            self.queue.add_after(place, _LOOK_AGAIN)
        elif spec.get("grant"):
            await self._context.drop(CODE_USES, use)
        else:
            await self._write_use(place[1], NOT_PERSISTED, "its request was never seen", now)
        return False

    def _tell(self, reason: str, entry: Mapping[str, Any]) -> None:
        """Tell people of what was issued or used, on the object that it is about; never a code."""
        what = _DEEDS[reason]
        why = f" ({entry['reason']})" if entry["reason"] else ""
        about = {key: value for key, value in entry["object"].items() if value}
        if about.get("name") and about.get("kind"):
            message = f"{entry['actor']} {what} {entry['policy']}{why}"
            self._notices.tell(reason, about, message, actor=entry["actor"], policy=entry["policy"])

    async def _outcome(self, spec: Object) -> tuple[str, str]:
        """Return whether the object of a use was stored, and why not; raises KubeError when that is not known."""
        target = spec.get("object") or {}
        try:
            kind = await self._context.kind_of(str(target.get("apiVersion")), str(target.get("kind")))  # fmt: skip
            live = await self._context.client.get(kind, str(target.get("name")), str(target.get("namespace") or ""))  # fmt: skip
        except NotFound:
            return NOT_PERSISTED, "there is no such object"
        except Forbidden as error:
            return UNREADABLE, error.message
        metadata = live.get("metadata") or {}
        if metadata.get("uid") != target.get("uid"):
            return NOT_PERSISTED, "the object of this name is another one"
        if spec.get("operation") != "UPDATE" or body_digest(live) == spec.get("fingerprint"):
            return CONFIRMED, ""
        if metadata.get("resourceVersion") != target.get("resourceVersion"):
            return SUPERSEDED, "the object was changed since, and may have had the content before"
        return NOT_PERSISTED, "the object does not have the content that the code was used for"

    async def _write_use(self, name: str, state: str, message: str, now: datetime) -> None:
        status = {"state": state, "confirmedAt": rfc3339.write(now), "message": message}
        said = {key: value for key, value in status.items() if value}
        await self._context.write_status(CODE_USES, name, self._context.namespace, said)

    async def _write_code(self, name: str, status: Object) -> None:
        """Write a state of a code unless it is further; by what the server has, because what we have seen may be older."""
        context, place = self._context, (ONE_TIME_CODES, name, self._context.namespace)
        code = await find(context.client, *place)
        if code is not None and _ORDER.get(_state(code), 3) < _ORDER[str(status["state"])]:
            version = code["metadata"]["resourceVersion"]
            await context.write_status(*place, status, resourceVersion=version)


def _gives_another(spec: Object) -> bool:
    """Tell whether an object that was never stored would give its maker another code: what was approved is not lost then."""
    target = spec.get("object") or {}
    return (
        spec.get("operation") == "CREATE"
        and str(spec.get("code") or "").startswith(APPROVAL)
        and bool(target.get("name"))
    )


def _seconds_to_next_look(state: str, used: datetime, now: datetime) -> float:
    """Return when to look again for the object of a use: soon while its request may still be under way, then at the end."""
    if state in (NOT_PERSISTED, SUPERSEDED) and now < used + _BUSY:
        return _LOOK_AGAIN / 2 if now < used + _SOON else 2 * _LOOK_AGAIN
    return (used + CONFIRM_AFTER - now).total_seconds()


def _state(obj: Object) -> str:
    return str((obj.get("status") or {}).get("state") or "")


# What the audit trail says about codes: who issued one to whom for what, who used it, what came of that. Never a code.


def issue_record(code: Object) -> dict[str, Any]:
    """Return the record of a code that somebody issued, or agreed to."""
    spec, at = code["spec"], str(code["metadata"].get("creationTimestamp") or "")
    verb = "approve-code" if spec.get("verifier") == APPROVED else "issue"
    return _record(code, verb, str(spec.get("issuedBy") or ""), at, "ok", _for(spec))


def void_record(code: Object, now: datetime) -> dict[str, Any]:
    """Return the record of a code that somebody made void."""
    status = code.get("status") or {}
    return _record(
        code, "void", str(status.get("voidedBy") or CONTROLLER), rfc3339.write(now), "ok", ""
    )


def use_record(use: Object) -> dict[str, Any]:
    """Return the record of a use."""
    spec = use["spec"]
    why = f"grant {spec['grant']}" if spec.get("grant") else ""
    made = _record(
        use, "use", str(spec.get("user") or ""), str(spec.get("usedAt") or ""), "ok", why
    )
    marks = {"unproven": True} if spec.get("unproven") else {}
    return {**made, "code": use["metadata"]["name"], **marks}


def outcome_record(use: Object, state: str, now: datetime) -> dict[str, Any]:
    """Return the record of what became of a use."""
    result = "ok" if state == "Confirmed" else "failed"
    return _record(use, "confirm", CONTROLLER, rfc3339.write(now), result, state)


def _record(obj: Object, verb: str, actor: str, at: str, result: str, reason: str) -> dict[str, Any]:  # fmt: skip
    binding = obj["spec"].get("binding") or {}
    target = obj["spec"].get("object") or binding.get("object") or {}
    key = f"{obj['metadata'].get('uid')}/{verb}"
    policy = f"{binding.get('policy', '')}/{','.join(binding.get('rules') or ())}"
    return audit_entry(key, at, actor, verb, target, policy=policy, result=result, reason=reason)


def _for(spec: Object) -> str:
    reason = str(spec.get("reason") or "")
    return f"for {spec.get('user')}" + (f": {reason}" if reason else "")
