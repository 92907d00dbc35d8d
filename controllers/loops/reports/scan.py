"""The background scan: every object that a policy concerns is judged when it, the policy or its namespace changes (row R-08).

An object remembers by which compiled policies it was judged, and in which state. So a changed policy is asked about the objects
of its kinds and no other policy is; an object whose status alone changed is not judged at all, nor is one that the last leader
judged. Everything is judged again when the interval has passed, because answers from outside may have changed.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from controllers.kube import KubeError
from controllers.kube.clock import chance as by_chance
from controllers.kube.kinds import NAMESPACES
from controllers.kube.reflector import Selection
from controllers.kube.workqueue import Gathering, WorkQueue
from controllers.loops.following import Following, counted, logged
from controllers.loops.native.reported import ReportedNatives
from controllers.loops.rules import concerned
from controllers.runtime.webhook_routes import is_trigger
from controllers.store.namespaces import labels_of
from controllers.store.reports import UNREPORTED_KINDS
from engine.evaluate import CompiledPolicy
from engine.reach import POLICY_GROUPS, REPORT_GROUPS

from .judging import Judges, changed_between, is_all_scanned, judge, tell
from .pace import Pace
from .resuming import MOST_LEFT, Judged, ScanMemory, digest_of, digest_of_object, version_of
from .resuming import NAME as MEMORY
from .sending import WORKERS, reports_of
from .writer import KnownPairs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from controllers.kube import Kind
    from controllers.kube.store import Change, Store
    from controllers.loops.context import LoopContext
    from controllers.runtime.cluster_cache import Change as WorldChange
    from engine.model import Object

    _Policies = Mapping[str, CompiledPolicy]

_PACKED: Final = Selection(packed=True)
_SHARES = 4
SOON: Final = 3.0
"""Seconds after the start after which it is written down what is judged."""
KEEP: Final = 60.0
"""Seconds after which it is written down again what is judged."""
_Place = tuple["Kind", str, str]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Seen:
    """How an object was when it was judged, by which policies, and when."""

    digest: bytes
    policies: Mapping[str, CompiledPolicy]
    at: float


@dataclass(frozen=True, slots=True)
class _Due:
    """An object that is to be judged, by which policies, and what is remembered of it then."""

    object: Object
    judges: Judges
    seen: _Seen


class BackgroundScan:
    """Judges what is there. `run` it as a task on the leader."""

    def __init__(
        self,
        context: LoopContext,
        natives: ReportedNatives | None = None,
        chance: Callable[[], float] = by_chance,
    ) -> None:
        self._context = context
        self._chance = chance
        self._memory = ScanMemory(context)
        self._digests: dict[Kind, tuple[_Policies, str]] = {}
        self._natives = natives or ReportedNatives(context, ())
        self.queue: WorkQueue[_Place] = WorkQueue(clock=context.clock, least=1.0, most=600.0)
        self._changes: WorkQueue[str] = WorkQueue(clock=context.clock, least=1.0, most=60.0)
        self._stores: dict[Kind, tuple[Store, Callable[[], None]]] = {}
        self._policies: dict[Kind, Mapping[str, CompiledPolicy]] = {}
        self._judges: dict[Kind, Judges] = {}
        self._changed: dict[tuple[int, int], tuple[_Policies, _Policies, Judges | None]] = {}
        self._known = KnownPairs()
        self._reports = reports_of(context)
        self._evaluating = asyncio.Semaphore(context.options.scan_workers)
        self._pace = Pace(context.clock)
        self._gathering: Gathering[_Place] = Gathering(
            context.clock, context.options.scan_delay, self.queue.add
        )
        self._new: set[str] = set()
        self._has_moved = True
        self._writes_alone = False
        self._narrowed: dict[str, tuple[CompiledPolicy, CompiledPolicy]] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._seen: dict[str, _Seen] = {}
        self.judged = 0

    async def run(self) -> None:
        """Work until cancelled."""
        await self._natives.wait_known()
        try:
            await self._memory.recall()
        except KubeError as error:
            _log.warning("everything is judged anew: %s", error.message)
        self._changes.add("")
        scan = counted(self._context.metrics, "background-scan", self.queue, self._scan)
        failed = logged(_log, lambda place: f"background scan of {place}")
        async with Following(self._context.informers) as following:
            following.push_async_callback(self._release_all)
            following.listen(self._context.cache.on_change, self._world_changed)
            following.listen(self._natives.on_change, lambda: self._changes.add(""))
            async with asyncio.TaskGroup() as group:
                group.create_task(self._changes.run(self._look, on_error=failed))
                group.create_task(self._gathering.run())
                options = self._context.options
                workers = WORKERS if options.chooses_reports else options.scan_workers
                group.create_task(self.queue.run(scan, workers=workers, on_error=failed))
                group.create_task(self._again())
                group.create_task(self._find_kinds())
                group.create_task(self._remember())

    # What there is to judge, and by what.

    def _world_changed(self, change: WorldChange) -> None:
        if change.kind.group in POLICY_GROUPS:
            self._changes.add("")
        elif change.kind == NAMESPACES:
            self._namespace_changed(change.object)

    def _namespace_changed(self, obj: Object) -> None:
        """Judge the objects of a namespace again when its labels are others than before."""
        name, labels = str(obj["metadata"]["name"]), labels_of(obj)
        before = self._labels.get(name)
        self._labels[name] = labels
        if before is None or before == labels:
            return
        self._memory.forget_namespace(name)
        self._has_moved = True
        for kind, (store, _) in self._stores.items():
            for key, uid in store.uids(name):
                self._seen.pop(uid, None)
                self.queue.add((kind, *key))

    async def _look(self, _: str) -> None:
        """Follow the policies in force: watch their kinds, and queue objects of kinds whose policies changed."""
        wanted = self._by_kind()
        self._writes_alone = is_all_scanned(self._context.snapshot)
        for kind in [one for one in self._stores if one not in wanted]:
            await self._release(kind)
        for kind, policies in wanted.items():
            before = self._policies.get(kind)
            if before is not None and _are_same(before, policies):
                continue
            self._policies[kind] = policies
            self._has_moved = True
            self._judges[kind] = Judges(policies.values())
            if before is not None:
                self._memory.forget(kind)
            self._changed.clear()
            if kind not in self._stores:
                self._acquire(kind)
                continue
            for namespace, name in self._stores[kind][0].keys():  # noqa: SIM118 - a Store, not a dict
                self.queue.add((kind, namespace, name))

    def _by_kind(self) -> dict[Kind, dict[str, CompiledPolicy]]:
        found: dict[Kind, dict[str, CompiledPolicy]] = {}
        discovery = self._context.cache.discovery
        for key, compiled in (
            *self._context.snapshot.judged.items(),
            *self._natives.compiled.items(),
        ):
            narrowed = self._scanned(key, compiled)
            for kind in concerned(discovery, narrowed, "list", "watch"):
                if kind.kind not in UNREPORTED_KINDS and kind.group not in REPORT_GROUPS:
                    found.setdefault(kind, {})[key] = narrowed
        return found

    def _scanned(self, key: str, compiled: CompiledPolicy) -> CompiledPolicy:
        """Return a policy with the rules that a scan asks; the same one as long as the policy is the same."""
        known = self._narrowed.get(key)
        if known is not None and known[0] is compiled:
            return known[1]
        rules = compiled.rules if compiled.policy.background else ()
        narrowed = CompiledPolicy(
            compiled.policy, tuple(rule for rule in rules if not is_trigger(rule))
        )
        self._narrowed[key] = (compiled, narrowed)
        return narrowed

    def _acquire(self, kind: Kind) -> None:
        store = self._context.informers.acquire(kind, _PACKED, rush=self._pace.rush)

        def changed(change: Change) -> None:
            self._object_changed(kind, store, change)

        self._stores[kind] = (store, store.on_change(changed))

    async def _release_all(self) -> None:
        for kind in list(self._stores):
            await self._release(kind)

    async def _release(self, kind: Kind) -> None:
        store, stop = self._stores.pop(kind)
        stop()
        self._policies.pop(kind, None)
        self._judges.pop(kind, None)
        self._memory.forget(kind)
        for _, uid in store.uids():
            self._forget(uid)
        await self._context.informers.release(kind, _PACKED)

    def _object_changed(self, kind: Kind, store: Store, change: Change) -> None:
        """Queue a changed object; one that is new since the start waits a little, as it is often changed at once."""
        if change.new is None:
            if change.old is not None:
                self._forget(_uid(change.old))
            return
        place = (kind, *change.key)
        self._has_moved |= change.key != (self._context.namespace, MEMORY)
        if not store.is_synced:
            self.queue.add(place)
            return
        if change.old is None:
            self._new.add(_uid(change.new))
        self._gathering.add(place)

    def _forget(self, uid: str) -> None:
        self._seen.pop(uid, None)
        self._new.discard(uid)

    # Judging.

    async def _scan(self, place: _Place) -> None:
        due = self._due(place)
        if due is None:
            return
        async with self._pace.turn():
            if not self._is_stored(place[0], due.object):
                # It changed or went while this waited for its turn.
                due = self._due(place)
            if due is not None:
                await self._judge(place[0], due)

    async def _judge(self, kind: Kind, due: _Due) -> None:
        uid = _uid(due.object)
        self._has_moved = True
        is_new = uid in self._new
        self._new.discard(uid)
        self.judged += 1
        shown = kind.typed(due.object)
        is_first = (is_new and self._writes_alone) or (
            self._memory.is_first and uid not in self._seen
        )
        known = self._known.of(self._context.snapshot, self._natives.compiled)
        async with self._evaluating:
            said = await judge(self._context, shown, due.judges)
        await tell(self._context, shown, said, known, self._reports, is_new=is_first)
        self._seen[uid] = due.seen

    def _is_stored(self, kind: Kind, obj: Object) -> bool:
        return kind in self._stores and self._stores[kind][0].is_as(obj)

    def _due(self, place: _Place) -> _Due | None:
        """Return what is to be judged: an object, and the policies by which it was not judged as it is."""
        kind, namespace, name = place
        obj = self._stores[kind][0].get(name, namespace) if kind in self._stores else None
        if obj is None or not _uid(obj):
            return None
        if self._context.cache.configuration.leaves_out(kind.typed(obj)):
            return None
        policies = self._policies[kind]
        now = _Seen(digest_of_object(obj), policies, self._context.clock.monotonic())
        before = self._seen.get(_uid(obj)) or self._known_before(kind, obj, now)
        if before is None or before.digest != now.digest or self._is_old(before):
            return _Due(obj, self._judges[kind], now)
        if before.policies is policies:
            self._seen[_uid(obj)] = before
            return None
        if (judges := self._judges_again(before.policies, policies)) is not None:
            return _Due(obj, judges, now)
        self._seen[_uid(obj)] = now
        return None

    def _judges_again(self, before: _Policies, now: _Policies) -> Judges | None:
        """Return the policies that objects have to be judged by again; the same ones for all that were judged by the same."""
        place = (id(before), id(now))
        if place not in self._changed:
            changed = changed_between(before, now)
            # both are held, so that no others can have their ids
            self._changed[place] = (before, now, Judges(changed) if changed else None)
        return self._changed[place][2]

    def _known_before(self, kind: Kind, obj: Object, now: _Seen) -> _Seen | None:
        """Return what the last leader saw, None where it did not judge an object as it is.

        It does not say when it judged, so that the interval is taken to end for one object after the other.
        """
        if not self._memory.knows(kind, obj, self._digest_of(kind)):
            return None
        interval = self._context.options.scan_interval
        return replace(now, at=now.at - self._chance() * interval)

    def _digest_of(self, kind: Kind) -> str:
        policies = self._policies[kind]
        known = self._digests.get(kind)
        if known is None or known[0] is not policies:
            others = [self._natives.source_of(key) for key in sorted(policies)]
            known = self._digests[kind] = policies, digest_of(self._context, policies, others)
        return known[1]

    async def _remember(self) -> None:
        """Tell the next leader, now and then, what is judged."""
        pause = SOON
        while True:
            await self._context.clock.sleep(pause)
            pause = KEEP
            if self._changes.keys or not self._has_moved:
                continue
            self._has_moved = False
            waiting = self.queue.keys | self._gathering.keys
            judged = dict(self._judged_but(waiting))
            places = {
                place
                for kind in judged
                for place, _ in self._stores[kind][0].keys()  # noqa: SIM118 - a Store, not a dict
                if place
            }
            try:
                await self._memory.keep(judged, places)
            except KubeError as error:
                self._has_moved = True
                _log.warning("what is judged cannot be remembered: %s", error.message)

    def _judged_but(self, waiting: Collection[_Place]) -> Iterator[tuple[Kind, Judged]]:
        """Yield what is judged of each kind while some objects wait."""
        for kind, (store, _) in self._stores.items():
            version = version_of(store.version)
            left = frozenset(place[1:] for place in waiting if place[0] == kind)
            if store.is_synced and version is not None and len(left) <= MOST_LEFT:
                yield kind, Judged(self._digest_of(kind), version, left)

    def _is_old(self, seen: _Seen) -> bool:
        passed = self._context.clock.monotonic() - seen.at
        return passed >= self._context.options.scan_interval

    async def _again(self) -> None:
        """Queue what was judged longer ago than the interval, in shares so that not everything comes at once."""
        interval = self._context.options.scan_interval
        while True:
            await self._context.clock.sleep(interval / _SHARES)
            for kind, (store, _) in self._stores.items():
                for key, uid in store.uids():
                    seen = self._seen.get(uid)
                    if seen is not None and self._is_old(seen):
                        self.queue.add((kind, *key))

    async def _find_kinds(self) -> None:
        """Look now and then whether the server has kinds by now that policies have named for long."""
        while True:
            await self._context.clock.sleep(self._context.options.kinds_interval)
            self._changes.add("")


def _are_same(one: Mapping[str, CompiledPolicy], other: Mapping[str, CompiledPolicy]) -> bool:
    return one.keys() == other.keys() and all(other[key] is value for key, value in one.items())


def _uid(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("uid") or "")
