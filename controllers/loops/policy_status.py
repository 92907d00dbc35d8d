"""Writes the status of policies: Ready, the rules that autogen adds, how many rules of each kind (rows A-04, W-04).

A policy is Ready once the webhook configurations ask for it as it stands, not when it was merely read. Nothing but the status
is ever written, so that what people applied stays what they applied.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, Kind, NotFound
from controllers.kube.client import JSON_PATCH, MERGE
from controllers.kube.kinds import CEL_EXCEPTIONS, CEL_POLICIES, CLUSTER_POLICIES, POLICIES
from controllers.kube.store import key_of
from controllers.kube.workqueue import WorkQueue
from controllers.store import policies
from controllers.store.cel_policies import cel_status, is_scanning
from engine.errors import EngineError
from engine.lang import rfc3339
from engine.model import Object, Policy
from engine.model.kinds import named

from .following import Following, counted, logged, queued
from .generate.memory import Failures
from .native.making import NativeStates
from .own_rights import REMEMBERED, OwnRights, Right

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controllers.kube import Client
    from controllers.kube.store import Store
    from controllers.runtime.cluster_cache import Change as WorldChange
    from controllers.runtime.policy_cache import BrokenException
    from controllers.runtime.process import Configured

    from .context import LoopContext

NOT_READY = "Not Ready"
_CEL_PLURALS = frozenset(kind.plural for kind in CEL_POLICIES)
_Place = tuple["Kind", str, str]
_log = logging.getLogger(__name__)


class PolicyStatus:
    """Keeps the status of all policies. `run` it as a task on the leader.

    `configured` tells what the webhook configurations ask for; None where nobody keeps them, then a policy is Ready when it
    is in force. `reporting` speaks as the account that writes reports, our own client where one account does everything.
    `failures` are of generating policies, `natives` tell of native policies that stand for ours.
    """

    def __init__(
        self,
        context: LoopContext,
        configured: Configured | None = None,
        reporting: Client | None = None,
        failures: Failures | None = None,
        natives: NativeStates | None = None,
    ) -> None:
        self._context = context
        self._rights = OwnRights(reporting or context.client, context.clock)
        self._configured = configured
        self._failures = failures or Failures()
        self._natives = natives or NativeStates()
        self._stores: dict[Kind, Store] = {}
        self._broken: tuple[BrokenException, ...] = ()
        self._following = Following(context.informers)
        self.queue: WorkQueue[_Place] = WorkQueue(clock=context.clock, least=0.2, most=60.0)

    async def run(self) -> None:
        """Work until cancelled."""
        context = self._context
        work = counted(context.metrics, "policy-status", self.queue, self._look)
        async with self._following as following:
            cel = [kind for kind in context.cache.watched if kind.plural in _CEL_PLURALS]
            for kind in (CLUSTER_POLICIES, POLICIES, *cel):
                self._follow(kind)
            following.listen(context.cache.on_change, self._world_changed)
            following.listen(self._failures.on_change, self._all)
            following.listen(self._natives.on_change, self._native_changed)
            if self._configured is not None:
                following.listen(self._configured.on_change, self._all)
            failed = logged(_log, lambda place: f"status of {place[0]} {'/'.join(place[1:])}")
            await self.queue.run(work, on_error=failed)

    def _follow(self, kind: Kind) -> None:
        self._stores[kind] = self._following.kind(kind, queued(self.queue, kind))

    def _world_changed(self, change: WorldChange) -> None:
        if change.kind == CEL_EXCEPTIONS:
            broken = self._context.snapshot.broken
            if broken != self._broken:
                self._broken = broken
                self._all()
        if policies.is_policy(change.object):
            if change.kind not in self._stores:
                self._follow(change.kind)
            self.queue.add((change.kind, *key_of(change.object)))

    def _native_changed(self, key: str) -> None:
        kind, name = named(key)
        for one in self._stores:
            if (one.group, one.plural) == (kind.group, kind.plural):
                self.queue.add((one, "", name))

    def _all(self) -> None:
        for kind, store in self._stores.items():
            for namespace, name in store.keys():  # noqa: SIM118 - a Store, not a dict
                self.queue.add((kind, namespace, name))

    async def _look(self, place: _Place) -> None:
        """Write a status that is not what it should be; raises KubeError, then it is tried again."""
        kind, namespace, name = place
        obj = self._stores[kind].get(name, namespace)
        if obj is None:
            return
        obj = kind.typed(obj)
        old = obj.get("status") or {}
        if policies.is_cel(obj):
            status = await self._cel_status(place, obj)
            shown, before = status["conditionStatus"], old.get("conditionStatus") or {}
            shown["conditions"] = policies.lasting(shown["conditions"], before.get("conditions"))
            # the status as a whole, because a merge would leave what autogen does not make any more
            patch: Any = [{"op": "add", "path": "/status", "value": status}]
            await self._write(place, patch, JSON_PATCH, same=status == old)
            return
        status = self._status(obj)
        status["conditions"] = policies.lasting(status["conditions"], old.get("conditions"))
        same = policies.same_status(status, old)
        if not status["autogen"]:
            status["autogen"] = {"rules": None}
        await self._write(place, {"status": status}, MERGE, same=same)

    async def _write(self, place: _Place, patch: Any, content_type: str, *, same: bool) -> None:
        if same:
            return
        kind, namespace, name = place
        with suppress(NotFound):
            await self._context.client.patch(
                kind, name, namespace, patch, content_type=content_type, subresource="status"
            )

    def _status(self, obj: Object) -> dict[str, Any]:
        now = rfc3339.write(self._context.clock.now())
        key = policies.policy_key(obj)
        try:
            policy = policies.read_policy(obj)
        except EngineError as error:
            metadata = obj["metadata"]
            nothing = Policy(str(obj["kind"]), str(metadata["name"]))
            return policies.status_of(nothing, error.message, now)
        return policies.status_of(
            policy, self._why_not_ready(key, obj), now, self._native(key, obj)
        )

    def _native(self, key: str, obj: Object) -> policies.NativeState:
        """Return what there is to say of a native policy; until somebody has looked, what the status says."""
        known = self._natives.get(key)
        return policies.native_state(obj) if known is None else known

    async def _cel_status(self, place: _Place, obj: Object) -> dict[str, Any]:
        now = rfc3339.write(self._context.clock.now())
        try:
            policy = policies.read_policy(obj)
        except EngineError as error:
            return cel_status(None, error.message, now)
        why = self._why_not_ready(policies.policy_key(obj), obj)
        missing = await _missing(self._rights, policy)
        if missing:
            # Rights are given by objects that nobody watches for this.
            self.queue.add_after(place, REMEMBERED)
        is_asked_for = why != NOT_READY
        return cel_status(
            policy,
            why if is_asked_for else "",
            now,
            missing,
            is_asked_for=is_asked_for,
            failing=self._failures.message(policy),
            broken=[
                f"exception {one.key} covers nothing: {one.error.message}"
                for one in self._context.snapshot.broken
                if (policy.name, policy.kind) in one.references
            ],
            native=self._native(policies.policy_key(obj), obj),
        )

    def _why_not_ready(self, key: str, obj: Object) -> str:
        """Return why a policy is not enforced as it stands, empty when it is."""
        snapshot = self._context.snapshot
        problem = snapshot.problems.get(key)
        if problem is not None:
            return problem.message
        compiled = snapshot.compiled.get(key)
        if compiled is None:
            return NOT_READY
        if self._configured is None or not snapshot.judged[key].rules:
            return ""
        is_asked = self._configured.policies.get(key) == policies.content_hash(obj)
        return "" if is_asked else NOT_READY


# Whether the reports account may read what a policy written in CEL concerns, as the policy's status tells it.
#
# Asked of the API server through the reports account itself, and remembered for a while, because many policies concern the same
# kinds.


_VERBS: Final = ("get", "list", "watch")


async def _missing(known: OwnRights, policy: Policy) -> list[str]:
    """Return the rights that are missing, as the status words them; raises KubeError when nobody says."""
    rights = list(_rights_of(policy)) if is_scanning(policy) else []
    answers = await asyncio.gather(*map(known.refusal, rights))
    return [
        f"{verb} {group}/{version}, Resource={resource}: {refusal}"
        for (verb, group, version, resource), refusal in zip(rights, answers, strict=True)
        if refusal is not None
    ]


def _rights_of(policy: Policy) -> Iterator[Right]:
    """Yield verb, group, version and resource of what the policy itself names, in its order."""
    constraints = policy.raw["spec"].get("matchConstraints") or {}
    seen = set()
    for rule in constraints.get("resourceRules") or ():
        places = product(_words(rule, "apiGroups"), _words(rule, "apiVersions"), _words(rule, "resources"))  # fmt: skip
        for (group, version, resource), verb in product(places, _VERBS):
            right = (verb, group, version, resource)
            if right not in seen:
                seen.add(right)
                yield right


def _words(rule: dict[str, Sequence[str]], name: str) -> list[str]:
    return [str(word) for word in rule.get(name) or ()]
