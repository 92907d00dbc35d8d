"""What a parent and its workers start alike: accounts and runtime, from options and a client, and the loops on them."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from controllers.kube import Client, Clock, Discovery, Kind, KubeError, connect, load_access
from controllers.kube.accounts import Accounts, Job
from controllers.kube.clock import ServerClock
from controllers.kube.reflector import Informers
from controllers.lookups.assembling import for_cluster
from controllers.lookups.egress import EgressRules, read_rules
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.entropy import fixed_key, shared_key
from controllers.runtime.figures import count_problems, count_queries
from controllers.runtime.memory import trim
from controllers.runtime.metrics import Metrics
from controllers.runtime.options import EACH, Options
from controllers.runtime.process import Connection, Loops, Runtime
from engine.collector import settle
from engine.model.kinds import KINDS, loaded
from engine.vocabulary import RIGHTS_FOR

from .lookups.services import Poster
from .runtime.queues import BackgroundQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.lookups.answering import Lookups
    from controllers.runtime.tracing import Tracer
    from engine.manifests import Trust

SELF = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)


_FOLLOWS: Final = {
    Job.BACKGROUND: "so generated ones are not kept in step",
    Job.REPORTS: "so objects of this kind are not scanned",
}
RETURNED_EVERY: Final = 60.0
"""Seconds between two returns of freed memory, of which one takes half a millisecond."""
LONGEST_COLLECTION: Final = 0.05
"""Seconds that looking for garbage among all objects may take, while requests wait; where it takes longer, Python says when."""
_THRESHOLDS: Final = (10_000, 5, 4)
"""When garbage is collected in a rush: what is in cycles leaves after 200,000 objects more at the latest, a few MiB."""
_log = logging.getLogger(__name__)


def clock_of(options: Options) -> ServerClock:
    """Return the clock of a process: the machine's, or the API server's where that is later."""
    return ServerClock(options.clock_ahead or 0.0)


@dataclass(slots=True)
class _Jobs:
    """What the loops of each job ask and watch with: its own account's rights, and the process's pull secrets."""

    options: Options
    client: Client
    clock: Clock
    discovery: Discovery
    accounts: Accounts
    metrics: Metrics
    _opened: list[Lookups] = field(default_factory=list)

    def connected(self, job: Job) -> Connection:
        """Return what a job asks with, until `close`."""
        own = self.accounts.of(job)
        count_queries(self.metrics, own)
        tell = count_problems(self.metrics, warner(job))
        watching = Informers(own, clock=self.clock, on_problem=tell)
        answers = _lookups(
            self.options, own, self.discovery, watching, self.clock, secrets=self.client
        )
        self._opened.append(answers)
        return Connection(own, watching, answers)

    async def close(self) -> None:
        """Stop what jobs look up."""
        for one in self._opened:
            await one.close()


async def make_runtime(
    options: Options,
    client: Client,
    clock: Clock,
    informers: Informers,
    *,
    key: bytes = b"",
    user: str = "",
    accounts: Accounts | None = None,
    metrics: Metrics | None = None,
) -> Runtime:
    """Return the runtime of a process; raises KubeError when the API server cannot be asked.

    `client` and `informers` are those of admission; without `accounts` they stand for all jobs. `key` and `user` are given
    where a parent knows them already.
    """
    accounts = accounts or Accounts.one(client, options.namespace)
    discovery = Discovery(client)
    await discovery.refresh()
    metrics = metrics or Metrics()
    count_queries(metrics, client)
    cache = ClusterCache(
        discovery,
        metrics,
        exceptions=options.exceptions,
        force_ignore=options.force_ignore,
        resolve_values=options.resolve_values,
    )
    lookups = _lookups(options, client, discovery, informers, clock)
    jobs = _Jobs(options, client, clock, discovery, accounts, metrics)
    returning = asyncio.create_task(return_freed())

    async def close() -> None:
        returning.cancel()
        await lookups.close()
        await jobs.close()

    _load_evaluators()
    poster = Poster(_rules(options))
    return Runtime(
        client=client,
        clock=clock,
        cache=cache,
        metrics=metrics,
        resolver=lookups,
        informers=informers,
        background_queue=BackgroundQueue(metrics),
        key=key or await _key(options, client),
        namespace=options.namespace,
        identity=options.identity or "kpolicy",
        user=user or await _user(client),
        trust=_trust(options),
        options=options,
        post=poster.post,
        also_close=(close, poster.close),
        accounts=accounts,
        connect=jobs.connected,
        tracer=_tracer(options, poster, clock, metrics),
    )


def _tracer(options: Options, poster: Poster, clock: Clock, metrics: Metrics) -> Tracer | None:
    """Return what traces reviews, None where nobody asked for it."""
    if not options.tracing_address:
        return None
    from controllers.runtime.tracing import Tracer

    identity = options.identity or "kpolicy"
    return Tracer(options.tracing_address, poster.post, clock, metrics, identity)


def _lookups(
    options: Options,
    client: Client,
    discovery: Discovery,
    informers: Informers,
    clock: Clock,
    *,
    secrets: Client | None = None,
) -> Lookups:
    """Return the answers to what rules look up, as whoever `client` is; `secrets` reads pull secrets."""
    return for_cluster(
        client,
        discovery,
        namespace=options.namespace,
        informers=informers,
        rules=_rules(options),
        pull_secrets=options.outside.pull_secrets,
        clock=clock,
        secrets=secrets,
    )


def warner(job: Job = Job.ADMISSION) -> Callable[[Kind, str], None]:
    """Return what tells once of each kind that it cannot be watched for a job, what follows from that, and what helps."""
    told: set[tuple[Kind, str]] = set()

    def warn(kind: Kind, problem: str) -> None:
        if not problem or (kind, problem) in told:
            return
        told.add((kind, problem))
        text = "%s cannot be watched for %s, %s: %s"
        values = [kind, job.value, _FOLLOWS.get(job, "so nothing is done about them"), problem]
        if "forbidden" in problem:
            text += "; a ClusterRole with list and watch and the label %s gives the right"
            values.append(f"{RIGHTS_FOR}{job.controller}: true")
        _log.warning(text, *values)

    return warn


async def connected(options: Options, clock: Clock) -> tuple[Client, Accounts]:
    """Return the client of the process, which tells `clock` the server's time, and those of all jobs; raises EngineError."""
    access = load_access(options.kubeconfig, options.context or None)
    client = connect(access, clock=clock)
    if options.accounts == EACH:
        return client, Accounts.each(client, access, options.namespace, clock)
    return client, Accounts.one(client, options.namespace)


def loops_of(runtime: Runtime) -> Loops:
    """Return the loops of a process."""
    from controllers.loops import start

    return start(runtime)


def _load_evaluators() -> None:
    """Load the code of all kinds of policies, about 2 MiB, so that the first one of a kind counts as soon as the others."""
    from engine.lang import cel

    loaded("engine.evaluate.cel.policies:compile_cel_policy")
    for row in KINDS:
        if row.is_evaluated:
            loaded(row.family.parser)
            loaded(row.family.evaluator)
    cel.compile("true")


def settle_memory() -> None:
    """Take everything that is loaded by now out of garbage collection, and let it run rarely.

    What a request makes is freed when it ends, by counting references; only cycles wait for a collection (`return_freed`). A whole
    one is left out by Python as long as less than a quarter of what is alive is new, so that many cached objects cost no time.
    """
    gc.collect()
    settle(*_THRESHOLDS)


async def return_freed() -> None:
    """Each minute, collect garbage and have the C library give back what was freed between what is in use, until cancelled.

    Every connection that ends leaves a cycle, and Python counts objects before it looks for some: at rest that takes an hour,
    and what lies about meanwhile keeps its neighbours' memory. What a rush took stays with the process otherwise, and every
    rush leaves other gaps; only glibc keeps it, and can be told.
    """
    generation = 2
    while True:
        await asyncio.sleep(RETURNED_EVERY)
        began = time.thread_time()
        gc.collect(generation)
        if time.thread_time() - began > LONGEST_COLLECTION:
            generation = 1
        trim()


async def _key(options: Options, client: Client) -> bytes:
    if options.seed:
        return fixed_key(options.seed)
    return await shared_key(client, options.namespace)


async def _user(client: Client) -> str:
    with suppress(KubeError):
        status = await client.review(SELF, {})
        return str((status.get("userInfo") or {}).get("username") or "")
    return ""


def _rules(options: Options) -> EgressRules:
    """Return what may be called beyond the API server; raises EngineError for a network that is none."""
    given = options.outside
    return read_rules(
        networks=given.networks,
        hosts=given.hosts,
        plain_registries=given.plain_registries,
        namespaced_services=given.namespaced_services,
    )


def _trust(options: Options) -> Trust | None:
    """Return the trust in keyless signatures that was asked for; raises EngineError for a file that holds none."""
    if options.trusted_root is None:
        return None
    from engine.lang import json
    from engine.manifests import Trust

    return Trust.from_json(json.load(options.trusted_root.read_text()))
