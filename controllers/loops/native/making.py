"""Makes native admission policies for policies that ask for them, keeps them as they are to be, and takes them away (rows NG-02 to NG-05).

There is no moment in which nobody judges: a policy leaves our webhooks only when the API server has had time to take up the
native one, and a native one is deleted only when our webhooks ask for the policy again.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from controllers.kube import AlreadyExists, Invalid, Kind, find
from controllers.kube.discovery import resources_of
from controllers.kube.kinds import CONFIG_MAPS
from controllers.kube.reflector import Selection
from controllers.kube.workqueue import WorkQueue
from controllers.loops.announcing import announce
from controllers.loops.following import Following, counted, logged
from controllers.loops.own_rights import REMEMBERED, OwnRights
from controllers.store.events import APPLIED, GENERATE, GENERATED, Note, about_policy
from controllers.store.policies import NativeState, is_policy, policy_key
from engine import native
from engine.match import parse_kind
from engine.model.resources import resource_of
from engine.native.objects import LABELS, skipped
from engine.reach import ADMISSION_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from controllers.kube.store import Change, Store
    from controllers.loops.context import LoopContext
    from controllers.runtime.cluster_cache import Change as WorldChange
    from controllers.runtime.process import Configured
    from engine.model import Json, Object, Policy


class NativeStates:
    """By the key of a policy, whether there is a native one, and why not; `on_change` are told the key and must not wait.

    Nothing is known of a policy until the loop has looked at it: what its status says until then stays.
    """

    def __init__(self) -> None:
        self._known: dict[str, NativeState] = {}
        self.on_change: list[Callable[[str], None]] = []

    def get(self, key: str) -> NativeState | None:
        """Return what is known of a policy, None where nobody has looked yet."""
        return self._known.get(key)

    def put(self, key: str, state: NativeState) -> None:
        """Take over what was found out."""
        if self._known.get(key) != state:
            self._known[key] = state
            for listener in self.on_change:
                listener(key)

    def forget(self, key: str) -> None:
        """Forget a policy that is gone."""
        self._known.pop(key, None)


TAKEN_UP: Final = 2.0
"""Seconds in which an API server takes up a native policy that is new to it."""
RETRY: Final = 1.0
_MADE: Final = Selection(labels=",".join(f"{key}={value}" for key, value in LABELS.items()))
_KINDS: Final = tuple(
    kind for one in dict.fromkeys(native.NATIVE_KINDS.values()) for kind in (one, f"{one}Binding")
)
_WORDS: Final = {
    native.VALIDATING: "validating admission policy",
    native.MUTATING: "mutating admission policy",
}
_VERBS: Final = ("create", "update", "list", "delete")
_log = logging.getLogger(__name__)


class NativePolicies:
    """Keeps native policies in step with ours. `run` it as a task on the leader.

    `switches` are the kinds of native policies that are made at all. `configured` tells what our webhooks ask for, None where
    nobody keeps them.
    """

    def __init__(
        self,
        context: LoopContext,
        states: NativeStates,
        configured: Configured | None,
        switches: Iterable[str],
    ) -> None:
        self._context = context
        self._states = states
        self._configured = configured
        self._switches = frozenset(switches)
        self._rights = OwnRights(context.client, context.clock)
        self._stores: dict[Kind, Store] = {}
        self._known: dict[str, Policy] = {}
        self._since: dict[str, float] = {}
        self.queue: WorkQueue[str] = WorkQueue(clock=context.clock, least=0.5, most=60.0)

    async def run(self) -> None:
        """Work until cancelled."""
        context = self._context
        work = counted(context.metrics, "native-policies", self.queue, self._look)
        async with Following(context.informers) as following:
            for kind in self._kinds():
                self._stores[kind] = following.kind(kind, self._made_changed, _MADE, replay=False)
            following.listen(context.cache.on_change, self._world_changed)
            if self._configured is not None:
                following.listen(self._configured.on_change, self._all)
            self._all()
            failed = logged(_log, lambda key: f"the native policy for `{key}`")
            await self.queue.run(work, on_error=failed)

    def _kinds(self) -> Iterator[Kind]:
        """Yield the kinds of native policies and bindings that the server has, in the version it prefers."""
        for name in _KINDS:
            found = self._context.cache.discovery.of_resource(ADMISSION_GROUP, resource_of(name))
            if found is not None:
                yield found

    def _kind(self, name: str) -> Kind | None:
        return next((kind for kind in self._stores if kind.kind == name), None)

    def _world_changed(self, change: WorldChange) -> None:
        if is_policy(change.object):
            if change.object.get("kind") in native.NATIVE_KINDS:
                self.queue.add(policy_key(change.object))
        elif change.kind.plural == "policyexceptions" or change.kind == CONFIG_MAPS:
            self._all()

    def _made_changed(self, change: Change) -> None:
        obj = change.new or change.old or {}
        for owner in obj["metadata"].get("ownerReferences") or ():
            if owner.get("kind") in native.NATIVE_KINDS:
                made = {"kind": owner["kind"], "apiVersion": owner["apiVersion"]}
                self.queue.add(policy_key({**made, "metadata": {"name": owner["name"]}}))

    def _all(self) -> None:
        for key, compiled in self._context.snapshot.compiled.items():
            if compiled.policy.kind in native.NATIVE_KINDS:
                self.queue.add(key)

    async def _look(self, key: str) -> None:
        """Bring what stands for one policy in step with it; raises KubeError, then it is tried again."""
        compiled = self._context.snapshot.compiled.get(key)
        if compiled is None:
            if (gone := self._known.pop(key, None)) is not None:
                await self._remove(gone)
            self._states.forget(key)
            self._since.pop(key, None)
            return
        policy = self._known[key] = compiled.policy
        try:
            self._is_to_be_made(policy)
            wanted = self._wanted(policy)
            await self._check_rights(policy)
            await self._make(key, policy, wanted)
        except native.NotNative as reason:
            await self._go_without(key, policy, reason)

    def _is_to_be_made(self, policy: Policy) -> None:
        """Refuse what is switched off or what the server cannot have; raises NotNative."""
        kind, asks = native.kind_for(policy), native.asks_for_native(policy)
        # for mutating ones a policy's own switch is enough, as upstream has it (row NG-02)
        if kind not in self._switches and not (asks and kind == native.MUTATING):
            raise native.NotNative("")
        if asks and any(one is None for one in self._needed(policy)):
            raise skipped(kind, f": requested but no {kind} API/informers are available.")

    async def _check_rights(self, policy: Policy) -> None:
        """Refuse what our account may not keep; raises NotNative, and KubeError when nobody says."""
        for kind in filter(None, self._needed(policy)):
            rights = [(verb, kind.group, kind.version, kind.plural) for verb in _VERBS]
            refused = await asyncio.gather(*map(self._rights.refusal, rights))
            if any(one is not None for one in refused):
                plural = f"{kind.kind[:-1]}ies" if kind.kind.endswith("y") else f"{kind.kind}s"
                reason = native.NotNative(f"insufficient permissions to generate {plural}")
                reason.until = self._context.clock.now() + timedelta(seconds=REMEMBERED)
                raise reason

    def _needed(self, policy: Policy) -> list[Kind | None]:
        return [self._kind(kind) for kind, _ in native.names_of(policy)]

    def _wanted(self, policy: Policy) -> native.Documents:
        """Return what is to stand for a policy; raises NotNative."""
        snapshot, discovery = self._context.snapshot, self._context.cache.discovery

        def resolve(text: str) -> Iterator[tuple[str, str, str]]:
            for place, resource in resources_of(parse_kind(text), discovery, preferred=True):
                yield place.group, place.version, resource

        now: datetime = self._context.clock.now()
        return native.translated(policy, snapshot.exceptions, snapshot.cel_exceptions, now, resolve)

    async def _make(self, key: str, policy: Policy, wanted: native.Documents) -> None:
        """Write the native policy and its binding; they count from when the API server has had time to take them up."""
        is_new = False
        for document in (wanted.policy, wanted.binding):
            is_new |= await self._write(policy, document)
        now = self._context.clock.monotonic()
        if is_new:
            self._since[key] = now
            announce(self._context, _notes(policy))
        left = self._since.setdefault(key, now) + TAKEN_UP - now
        before = self._states.get(key)
        if left <= 0 or (before is not None and before.generated):
            self._states.put(key, NativeState(generated=True))
        else:
            self.queue.add_after(key, left)

    async def _write(self, policy: Policy, document: Object) -> bool:
        """Write one document where it differs; return whether it was not there. Raises NotNative where it cannot be."""
        kind, name = self._kind(document["kind"]), document["metadata"]["name"]
        assert kind is not None
        made = {"apiVersion": kind.api_version, **document}
        client = self._context.client
        before = self._stores[kind].get(name) or await find(client, kind, name)
        try:
            if before is None:
                await client.create(kind, made)
                return True
            self._check_ours(before, policy)
            if not _says(before, made):
                current = await client.get(kind, name)
                self._check_ours(current, policy)
                await client.update(kind, _merged(current, made))
        except (Invalid, AlreadyExists) as error:
            text = f": the API server does not take it: {error.message}"
            raise skipped(native.kind_for(policy), text) from error
        return False

    def _check_ours(self, obj: Object, policy: Policy) -> None:
        """Refuse to touch what somebody else made under the name; raises NotNative."""
        if not native.is_made_from(obj, policy):
            name = obj["metadata"]["name"]
            raise skipped(
                native.kind_for(policy), f": `{name}` exists and was not made from the policy."
            )

    async def _go_without(self, key: str, policy: Policy, reason: native.NotNative) -> None:
        """Take away what stands for a policy, once we judge by the policy ourselves."""
        self._since.pop(key, None)
        self._states.put(key, NativeState(message=reason.message))
        if reason.until is not None:
            wait = (reason.until - self._context.clock.now()).total_seconds()
            self.queue.add_after(key, max(wait, RETRY))
        if not any(True for _ in self._made_for(policy)):
            return
        if self._is_judged_by_us(key):
            await self._remove(policy)
        else:
            self.queue.add_after(key, RETRY)

    def _is_judged_by_us(self, key: str) -> bool:
        """Tell whether our webhooks ask for all of a policy."""
        if self._context.snapshot.is_native(key):
            return False
        return self._configured is None or key in self._configured.policies

    def _made_for(self, policy: Policy) -> Iterator[tuple[Kind, Object]]:
        """Yield what is there that was made for a policy."""
        for (_, name), kind in zip(native.names_of(policy), self._needed(policy), strict=True):
            obj = self._stores[kind].get(name) if kind is not None else None
            if kind is not None and obj is not None and native.is_made_from(obj, policy):
                yield kind, obj

    async def _remove(self, policy: Policy) -> None:
        """Delete what was made for a policy, bindings first."""
        for kind, obj in reversed(list(self._made_for(policy))):
            await self._context.drop(kind, obj)


def _says(obj: Object, wanted: Object) -> bool:
    """Tell whether an object says what is wanted of it."""
    metadata, made = obj["metadata"], wanted["metadata"]
    labels: dict[str, Json] = metadata.get("labels") or {}
    is_labelled = labels.items() >= made["labels"].items()
    is_owned: bool = metadata.get("ownerReferences") == made["ownerReferences"]
    return is_labelled and is_owned and bool(obj.get("spec") == wanted["spec"])


def _merged(obj: Object, wanted: Object) -> Object:
    """Return an object as it is to be, with what others added to its metadata."""
    metadata, made = obj["metadata"], wanted["metadata"]
    labels = {**(metadata.get("labels") or {}), **made["labels"]}
    owners = made["ownerReferences"]
    return {**wanted, "metadata": {**metadata, "labels": labels, "ownerReferences": owners}}


def _notes(policy: Policy) -> Iterator[Note]:
    """Yield the Events about a native policy that is new (row NG-05)."""
    words = _WORDS[native.kind_for(policy)]
    for what, name in ((words, native.name_for(policy)), (f"{words} binding", f"{native.name_for(policy)}-binding")):  # fmt: skip
        text = f"successfully generated {what} {name} from policy {policy.name}"
        yield Note(about_policy(policy), APPLIED, GENERATED, text, GENERATE)
