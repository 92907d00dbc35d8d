"""Brings each grant into the state that the engine's table gives for now, and its exception with it.

INVARIANT: the trail is written before the status and the status before the exception, so that no exception ever exists whose
end is not settled, and nothing happens that the trail does not know. After a crash anywhere the next look goes on.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

from controllers.kube import AlreadyExists, Conflict, find, kinds
from controllers.kube.reflector import Selection
from controllers.kube.store import key_of, wait_synced
from controllers.kube.workqueue import WorkQueue
from controllers.loops.announcing import delete
from controllers.loops.codes.confirming import remembered
from controllers.loops.following import LONGEST_SLEEP, Following, counted, logged
from controllers.loops.notices import Notices
from engine import grants, vocabulary
from engine.errors import EngineError
from engine.grants.cause import exception_name, group_of
from engine.grants.circumstances import circumstances_of, state_of
from engine.grants.lifecycle import OPEN, exhaustion_of, idle_at, status_of, warnings_of
from engine.lang import rfc3339

from .records import Uses, records_of, tell_expiring, tell_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from controllers.kube.store import Change, Store
    from controllers.loops.context import LoopContext
    from controllers.runtime.cluster_cache import Change as WorldChange
    from controllers.store.audit import AuditTrail
    from engine.model import Object

_Place = tuple[str, str]
_log = logging.getLogger(__name__)


class GrantReconciler:
    """Keeps all grants. `run` it as a task on the leader."""

    def __init__(
        self, context: LoopContext, trail: AuditTrail, notices: Notices | None = None
    ) -> None:
        self._context, self._trail = context, trail
        self._notices = notices or Notices(context)
        self._grants: Store | None = None
        self._policies: Store | None = None
        self._uses = Uses()
        self.queue: WorkQueue[_Place] = WorkQueue(clock=context.clock, least=0.2, most=60.0)

    def states(self) -> Iterator[tuple[tuple[str], float]]:
        """Yield how many grants are in each state that is not over, for the gauge."""
        counted = Counter(map(state_of, self._all_grants()))
        yield from (((state,), float(counted[state])) for state in ("draft", *sorted(OPEN)))

    def ends(self) -> Iterator[tuple[tuple[str], float]]:
        """Yield when each active grant ends, for the gauge."""
        for obj in self._all_grants():
            at = rfc3339.read(str((obj.get("status") or {}).get("expiresAt") or ""))
            if state_of(obj) == "active" and at is not None:
                metadata = obj["metadata"]
                yield (f"{metadata.get('namespace')}/{metadata['name']}",), at.timestamp()

    async def run(self) -> None:
        """Work until cancelled."""
        selection = Selection(namespace=self._context.namespace)
        work = counted(self._context.metrics, "grants", self.queue, self._look)
        async with Following(self._context.informers) as following:
            uses = following.kind(kinds.CODE_USES, self._used, selection, reduce=remembered)
            self._grants = following.kind(kinds.GRANTS, self._changed)
            self._policies = following.kind(kinds.GRANT_POLICIES, lambda _: self._open_ones())
            following.listen(self._context.cache.on_change, self._excepted)
            # Those of grants that went while nobody led.
            for granted in self._context.snapshot.granted.values():
                namespace, _, name = granted.grant.rpartition("/")
                self.queue.add((namespace, name))
            # INVARIANT: what was not listed yet is not taken for gone, nor a request for one that nobody may approve.
            await wait_synced(self._grants, self._policies, uses)
            await self.queue.run(work, on_error=_failed)

    def _changed(self, change: Change) -> None:
        if change.new is not None:
            self.queue.add(change.key)
        elif change.old is not None:
            self._uses.forget(str(change.old["metadata"].get("uid") or ""))
            self.queue.add(change.key)

    def _excepted(self, change: WorldChange) -> None:
        """Look at the grant of an exception that came or changed: GitOps tools bring back what is over."""
        if change.type == "PUT" and change.kind.plural == kinds.POLICY_EXCEPTIONS.plural:
            annotations = change.object["metadata"].get("annotations") or {}
            namespace, _, name = str(annotations.get(vocabulary.GRANT) or "").rpartition("/")
            if name:
                self.queue.add((namespace, name))

    def _used(self, change: Change) -> None:
        if place := self._uses.note(change):
            self.queue.add(place)

    def _open_ones(self) -> None:
        """Look at grants again whose policy may have come, gone or changed."""
        for obj in self._all_grants():
            if state_of(obj) not in grants.FINAL:
                self.queue.add(key_of(obj))

    def _all_grants(self) -> Iterator[Object]:
        yield from self._grants or ()

    async def _look(self, place: _Place) -> None:
        """Bring one grant up to now; raises KubeError, then it is tried again."""
        namespace, name = place
        obj = self._grants.get(name, namespace) if self._grants is not None else None
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            # Somebody has decided that it is over, although a finalizer may hold it.
            await self._remove_orphan(namespace, name)
            return
        grant = grants.parse_grant(obj)
        before, now = status_of(grant), self._context.clock.now()
        policy, refusals = self._policy_of(grant, now)
        uses, used_at = self._uses.of(grant)
        facts = grants.Facts(now, uses, used_at, refusals)
        status = grants.next_status(grant, policy, facts)
        if status != before:
            for entry in records_of(grant, status, now):
                await self._trail.record(entry)
            await self._write(obj, status, policy)
        if status.state != before.state:
            tell_state(self._notices, grant, status)
        await self._warn(grant, status, now)
        await self._write_uses(grant, facts)
        await self._match_exception(grant, status)
        self._come_again(place, grant, status, facts)

    def _policy_of(
        self, grant: grants.Grant, now: datetime
    ) -> tuple[grants.GrantPolicy | None, tuple[grants.Refusal, ...]]:
        """Return the grant policy that a request falls under: chosen once, then kept."""
        readable = [found for obj in self._policies or () if (found := _readable(obj))]
        chosen = str(grant.status.get("grantPolicy") or "")
        if chosen:
            return next((one for one in readable if one.name == chosen), None), ()
        return grants.chosen_policy(
            grant, readable, circumstances_of(grant, self._all_grants(), now)
        )

    async def _write(
        self, obj: Object, status: grants.GrantStatus, policy: grants.GrantPolicy | None
    ) -> None:
        """Write a status over the one that it follows from; raises Conflict where there is a later one.

        Another replica may lead meanwhile, and what we have seen may be older: a grant that is over would run again.
        """
        fields: dict[str, Any] = status.fields()
        if policy is not None and status.state != "denied":
            fields["grantPolicy"] = policy.name
        name, namespace, seen = (
            obj["metadata"][key] for key in ("name", "namespace", "resourceVersion")
        )
        await self._context.write_status(
            kinds.GRANTS, name, namespace, fields, resourceVersion=seen
        )

    async def _warn(self, grant: grants.Grant, status: grants.GrantStatus, now: datetime) -> None:
        """Tell that a grant ends soon, once for each instant that this is to be told at."""
        told = rfc3339.read(str(grant.status.get("warnedAt") or ""))
        due = [at for at in warnings_of(status) if at <= now and (told is None or told < at)]
        if status.state != "active" or not due:
            return
        tell_expiring(self._notices, grant, status, now)
        warned = {"warnedAt": _text(due[-1])}
        await self._context.write_status(kinds.GRANTS, grant.name, grant.namespace, warned)

    async def _write_uses(self, grant: grants.Grant, facts: grants.Facts) -> None:
        """Write the uses of a limited grant, which their records tell; those of others are counted by who answers requests."""
        if not grant.uses or facts.uses == grant.status.get("uses", 0):
            return
        told = {"uses": facts.uses, "lastUsedAt": _text(facts.last_used_at)}
        await self._context.write_status(kinds.GRANTS, grant.name, grant.namespace, told)

    async def _match_exception(self, grant: grants.Grant, status: grants.GrantStatus) -> None:
        """Let the exception be there exactly while the grant is active."""
        if status.state == "active" and status.expires_at is not None:
            try:
                kind = kinds.EXCEPTIONS[group_of(grant)]
                await self._context.client.create(
                    kind, grants.exception_of(grant, status.expires_at)
                )
            except AlreadyExists:
                return
        elif status.is_final:
            await self._remove_exception(grant)

    async def _remove_orphan(self, namespace: str, name: str) -> None:
        """Remove the exception of a grant that is gone; on most clusters the garbage collector is quicker."""
        for kind in kinds.EXCEPTIONS.values():
            found = await find(self._context.client, kind, exception_name(name), namespace)
            if found is not None and _names_grant(found, f"{namespace}/{name}"):
                about = kinds.object_reference(kind.typed(found))
                await delete(self._context, kind, found, about)

    async def _remove_exception(self, grant: grants.Grant) -> None:
        kind, name = kinds.EXCEPTIONS[group_of(grant)], exception_name(grant.name)
        found = await find(self._context.client, kind, name, grant.namespace)
        if found is not None and _is_of(found, grant):
            about = {"kind": "Grant", "namespace": grant.namespace, "name": grant.name, "uid": grant.uid}  # fmt: skip
            await delete(
                self._context, kind, found, {"apiVersion": kinds.GRANTS.api_version, **about}
            )

    def _come_again(
        self, place: _Place, grant: grants.Grant, status: grants.GrantStatus, facts: grants.Facts
    ) -> None:
        now = facts.now
        instants = [status.approval_ends_at, status.starts_at, status.expires_at]
        if status.state == "active":
            instants += [idle_at(grant, facts, status), exhaustion_of(grant, facts)]
            instants += warnings_of(status)
        waits = [(at - now).total_seconds() for at in instants if at is not None and at > now]
        if waits and not status.is_final:
            self.queue.add_after(place, min(*waits, LONGEST_SLEEP))


def _is_of(exception: Object, grant: grants.Grant) -> bool:
    """Tell whether an exception is a grant's: by its owner, or by name where nobody owns it any more."""
    owners = exception["metadata"].get("ownerReferences") or ()
    if owners:
        return any(one.get("uid") == grant.uid for one in owners)
    return _names_grant(exception, f"{grant.namespace}/{grant.name}")


def _names_grant(exception: Object, grant: str) -> bool:
    annotations = exception["metadata"].get("annotations") or {}
    return bool(annotations.get(vocabulary.GRANT) == grant)


def _readable(obj: Object) -> grants.GrantPolicy | None:
    try:
        return grants.parse_grant_policy(obj)
    except EngineError as error:
        _log.warning("%s", error.message)
        return None


def _text(at: datetime | None) -> str:
    return rfc3339.write(at) if at is not None else ""


def _failed(place: _Place, error: Exception) -> None:
    if isinstance(error, Conflict):
        # it changed meanwhile, and is looked at again as it is now
        _log.debug("grant %s: %s", "/".join(place), error.message)
    else:
        logged(_log, lambda _: f"grant {'/'.join(place)}")(place, error)
