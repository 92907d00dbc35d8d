"""The loops of one process put together: what every process runs, and what only the leader does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from controllers.kube import kinds
from controllers.kube.accounts import Job
from controllers.kube.events import Recorder
from controllers.runtime.options import STORE
from controllers.store.audit import AuditTrail, seal_key

from .announcing import awaited_in
from .auditing import NoteLoop
from .cleanup.exceptions import ExceptionSweep
from .cleanup.policies import CleanupLoop
from .cleanup.ttl import TtlLoop
from .codes import CodeLoop, PruneLoop, RotationLoop
from .context import LoopContext, Options
from .generate.watching import PolicyWatch, SyncWatch
from .grants import GrantReconciler
from .native import NativePolicies, NativeStates, ReportedNatives
from .notices import Notices
from .policy_status import PolicyStatus
from .reports.pending import PendingReports
from .reports.scan import BackgroundScan
from .reports.sweeping import ReportSweep
from .requests.consumer import Consumer
from .requests.work import Worker
from .sink import LoopSink

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from controllers.runtime.metrics import Labels
    from controllers.runtime.process import Configured, Runtime


def context_of(runtime: Runtime) -> LoopContext:
    """Return the context of loops, from the runtime of the process; Events are written as admission."""
    given, metrics = runtime.options, runtime.metrics
    recorder = Recorder(
        runtime.client,
        runtime.identity,
        clock=runtime.clock,
        must_keep=awaited_in(runtime.cache),
        counts_equal=False,
        on_drop=lambda reason: metrics.count("kyverno_events_dropped", (reason,)),
    )
    return LoopContext(
        cache=runtime.cache,
        client=runtime.client,
        clock=runtime.clock,
        resolver=runtime.resolver,
        metrics=metrics,
        informers=runtime.informers,
        recorder=recorder,
        key=runtime.key,
        namespace=runtime.namespace,
        trust=runtime.trust,
        post=runtime.post,
        options=Options(
            background_scan=given.background_scan,
            scan_interval=given.scan_interval,
            scan_workers=given.scan_workers,
            report_kinds=kinds.OPENREPORTS if given.open_reports else kinds.CLASSIC_REPORTS,
            chooses_reports=given.reports == STORE,
            ttl_interval=given.ttl_interval,
            omitted_events=given.omitted_events,
        ),
    )


class ProcessLoops:
    """See `controllers.runtime.process.Loops`. Each loop speaks as the account of its job, and as no other."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._context = context_of(runtime)
        is_kept = runtime.options.serves and not runtime.options.observe_only
        self._configured: Configured | None = runtime.configured if is_kept else None
        self.sink = LoopSink(self._context, PendingReports(self._of(Job.REPORTS)))

    def _of(self, job: Job) -> LoopContext:
        """Return the context of the loops of a job."""
        found = self._runtime.connection(job)
        return replace(
            self._context, client=found.client, informers=found.informers, resolver=found.resolver
        )

    async def run(self) -> None:
        """Write what the webhook hands over, until cancelled."""
        await self.sink.run()

    async def lead(self) -> None:
        """Act on the cluster until cancelled.

        Made anew each time, because while somebody else led nothing that was remembered stayed true.
        """
        async with asyncio.TaskGroup() as group:
            for run in self._loops():
                group.create_task(run())

    def _loops(self) -> list[Callable[[], Coroutine[None, None, None]]]:
        background, cleanup = self._of(Job.BACKGROUND), self._of(Job.CLEANUP)
        reports = self._of(Job.REPORTS)
        grants = self._of(Job.GRANTS)
        worker = Worker(background, self.sink.pending, counting=grants.client)
        sync = SyncWatch(background, worker.generator)
        natives = NativeStates()
        natives_reported = ReportedNatives(reports, self._runtime.options.reported_natives)
        ttl = TtlLoop(cleanup)
        _show_ttl(cleanup, ttl)
        loops = [
            Consumer(background, worker).run,
            sync.run,
            PolicyWatch(background, worker.generator, sync).run,
            CleanupLoop(cleanup).run,
            once_served(
                cleanup, kinds.DELETING_POLICIES, CleanupLoop(cleanup, kinds.DELETING_POLICIES).run
            ),
            ttl.run,
            ExceptionSweep(cleanup).run,
            natives_reported.run,
            ReportSweep(reports, natives_reported).run,
            PolicyStatus(
                self._context, self._configured, reports.client, worker.generator.failures, natives
            ).run,
            *_own_kinds(grants),
        ]
        if self._configured is not None:
            switches = self._runtime.options.generated_natives
            loops.append(NativePolicies(self._context, natives, self._configured, switches).run)
        if reports.options.background_scan:
            loops.append(BackgroundScan(reports, natives_reported).run)
        return list(loops)


def _own_kinds(context: LoopContext) -> Iterator[Callable[[], Coroutine[None, None, None]]]:
    """Yield the loops of our own kinds, which share one audit trail."""
    trail = AuditTrail(context.client, context.namespace, seal_key(context.key))
    notices = Notices(context)
    yield notices.run
    needed = (kinds.GRANT_POLICIES, kinds.GRANTS, kinds.AUDIT_SEGMENTS)
    grants = GrantReconciler(context, trail, notices)
    context.metrics.gauge("kpolicy_grants", grants.states)
    context.metrics.gauge("kpolicy_grant_expiry_timestamp_seconds", grants.ends)
    # a witness outside the cluster of how far the trail goes, for whoever scrapes it
    context.metrics.gauge(
        "kpolicy_audit_head", lambda: [((), float(one.seq))] if (one := trail.head) else []
    )
    yield once_served(context, needed, grants.run)
    needed = (kinds.AUDIT_NOTES, kinds.GRANTS, kinds.AUDIT_SEGMENTS)
    yield once_served(context, needed, NoteLoop(context, trail).run)
    needed = (kinds.CODE_USES, kinds.ONE_TIME_CODES, kinds.AUDIT_SEGMENTS)
    yield once_served(context, needed, CodeLoop(context, trail, notices).run)
    for loop in (RotationLoop, PruneLoop):
        yield once_served(context, needed, loop(context, trail).run)


def _show_ttl(context: LoopContext, ttl: TtlLoop) -> None:
    """Let the gauges of the TTL loop be read from it."""

    def watched() -> Iterator[tuple[Labels, float]]:
        for kind, count in ttl.watched():
            yield (kind.group, kind.version, kind.plural), float(count)

    def missing() -> Iterator[tuple[Labels, float]]:
        for verb, *place in ttl.rights.refused():
            yield (*place, verb), 1.0

    context.metrics.gauge("kyverno_ttl_controller_info", watched)
    context.metrics.gauge("kpolicy_ttl_rights_missing", missing)


# Starting a loop when the server has the kinds that it works on: people may install ours later, or never.

PAUSE: Final = 5.0
"""Seconds between two looks at what the server has, which is known without asking it."""


def once_served(
    context: LoopContext,
    needed: tuple[kinds.Kind, ...],
    run: Callable[[], Coroutine[None, None, None]],
) -> Callable[[], Coroutine[None, None, None]]:
    """Return `run`, put off until the server has all of `needed`."""

    async def later() -> None:
        discovery = context.cache.discovery
        while not all(discovery.find(kind.api_version, kind.kind) for kind in needed):
            await context.clock.sleep(PAUSE)
        await run()

    return later
