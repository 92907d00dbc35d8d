"""The native policies that reports speak of: those that stand for ours, and those of people with upstream's label (rows NG-13, NG-14)."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from controllers.kube.store import wait_synced
from controllers.kube.workqueue import WorkQueue
from controllers.loops.following import Following, logged
from engine.errors import EngineError
from engine.evaluate.cel.policies import compile_cel_policy
from engine.model.resources import resource_of
from engine.native import NATIVE_KINDS
from engine.native.objects import LABELS
from engine.parse.celpolicies import parse_binding, parse_cel_policy
from engine.reach import ADMISSION_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from controllers.kube import Kind
    from controllers.kube.store import Store
    from controllers.loops.context import LoopContext
    from engine.evaluate import CompiledPolicy
    from engine.model import Object

_ENABLED: Final = "reports.kyverno.io/enabled"
_PATIENCE: Final = 30.0
"""Seconds that native policies are waited for; an account that may not list them still reports about the others."""
_log = logging.getLogger(__name__)


class ReportedNatives:
    """Native policies compiled with their bindings. `run` it as a task on the leader, with `context` of the reports account.

    `compiled` are by identity, the same value for as long as nothing about a policy changes; `on_change` are called after each
    change and must not wait.
    """

    def __init__(self, context: LoopContext, kinds: Collection[str]) -> None:
        self._context = context
        self._wanted = kinds
        self._stores: dict[Kind, Store] = {}
        self._sources: dict[str, tuple[Object, ...]] = {}
        self._known = asyncio.Event()
        if not kinds:
            self._known.set()
        self.compiled: Mapping[str, CompiledPolicy] = {}
        self.on_change: list[Callable[[], None]] = []
        self.queue: WorkQueue[str] = WorkQueue(clock=context.clock, least=0.2, most=60.0)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Following(self._context.informers) as following:
            for kind in self._kinds():
                self._stores[kind] = following.kind(kind, lambda _: self.queue.add(""))
            self.queue.add("")
            # INVARIANT: a policy whose binding was not listed yet is not taken for one that binds nothing.
            with suppress(TimeoutError):
                await asyncio.wait_for(wait_synced(*self._stores.values()), _PATIENCE)
            failed = logged(_log, lambda _: "native policies could not be read")
            await self.queue.run(self._look, on_error=failed)

    async def wait_known(self) -> None:
        """Return when all native policies are compiled that are there; sooner where they cannot be listed."""
        await self._known.wait()

    def source_of(self, identity: str) -> list[object]:
        """Return what decides what a native policy means, its bindings included; nothing of what is none."""
        return [list(_meaning(one)) for one in self._sources.get(identity, ())]

    def _kinds(self) -> Iterator[Kind]:
        for one in sorted(self._wanted):
            for name in (one, f"{one}Binding"):
                plural = resource_of(name)
                found = self._context.cache.discovery.of_resource(ADMISSION_GROUP, plural)
                if found is not None:
                    yield found

    async def _look(self, _: str) -> None:
        """Compile what changed."""
        bindings = [one for kind in self._stores if kind.kind.endswith("Binding") for one in self._typed(kind)]  # fmt: skip
        made: dict[str, CompiledPolicy] = {}
        sources: dict[str, tuple[Object, ...]] = {}
        for kind in self._stores:
            for obj in self._typed(kind) if kind.kind in self._wanted else ():
                if not _is_reported(obj):
                    continue
                own = [one for one in bindings if _binds(one, obj)]
                source = (obj, *own)
                found = self._made(source)
                if found is not None:
                    made[found.policy.identity], sources[found.policy.identity] = found, source
        if made != self.compiled:
            self.compiled, self._sources = made, sources
            for listener in self.on_change:
                listener()
        self._known.set()

    def _typed(self, kind: Kind) -> Iterator[Object]:
        for obj in self._stores[kind]:
            yield kind.typed(obj)

    def _made(self, source: tuple[Object, ...]) -> CompiledPolicy | None:
        """Return a policy with its bindings compiled, as before where nothing changed; None where it cannot be."""
        try:
            policy = parse_cel_policy(source[0], strict=False)
            before = self._sources.get(policy.identity)
            if before is not None and tuple(map(_meaning, before)) == tuple(map(_meaning, source)):
                return self.compiled[policy.identity]
            bindings = [parse_binding(one, strict=False) for one in source[1:]]
            return compile_cel_policy(policy, (), bindings)
        except EngineError as error:
            name = source[0]["metadata"]["name"]
            _log.warning("%s `%s` is not reported about: %s", source[0]["kind"], name, error)
            return None


def _is_reported(obj: Object) -> bool:
    """Tell whether a native policy is reported about: its owner says so, or it stands for a policy of ours."""
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    if labels.get(_ENABLED) == "true":
        return True
    owners = metadata.get("ownerReferences") or ()
    return labels.items() >= LABELS.items() and any(one.get("kind") in NATIVE_KINDS for one in owners)  # fmt: skip


def _binds(binding: Object, policy: Object) -> bool:
    kind: str = binding["kind"]
    named = (kind.removesuffix("Binding"), (binding.get("spec") or {}).get("policyName"))
    return named == (policy["kind"], policy["metadata"]["name"])


def _meaning(obj: Object) -> tuple[object, ...]:
    metadata = obj["metadata"]
    return metadata["uid"], obj.get("spec"), metadata.get("labels"), metadata.get("annotations")
