"""One replica of the controllers: caches, webhook, election and loops, started in order and ended in order.

The parent of everything in `controllers`: the only module that knows both webhook and loops. Started by `__main__`; tests start
it with a client of their own.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from controllers.kube import Client, Clock, KubeError
from controllers.kube.lease import Election, LeadershipLost
from controllers.kube.reflector import Informers
from controllers.manifests.written import LEASE
from controllers.runtime.feed import options_message, packed
from controllers.runtime.metrics import Labels, Metrics
from controllers.runtime.running import ended
from controllers.runtime.watching import DiscoveryRefresh, Watches
from controllers.runtime.workers import Workers, reserved_port
from controllers.starting import clock_of, connected, loops_of, make_runtime, settle_memory, warner
from controllers.webhook.certificates import Pair, expiry
from controllers.webhook.path_controller import PathController
from controllers.webhook.secrets import ensure_certificates, watch_certificates
from controllers.webhook.server import LONGEST_TIMEOUT, Routes, WebhookServer
from controllers.webhook.serving import Serving, names_for
from controllers.webhook.webhook_controller import WebhookController, foreign_webhooks
from engine.errors import EngineError

from .runtime.figures import count_problems, show_process, show_world

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from controllers.kube.accounts import Accounts
    from controllers.runtime.options import Options
    from controllers.runtime.process import Loops, Runtime
    from controllers.webhook.secret_path import Shared

RETRY = 2.0
AFTERWORK = 5.0
"""Seconds that what comes after the last answers may take."""

_log = logging.getLogger(__name__)


class Replica:
    """A replica; `run` it until `stop` is set. `ready` is set when requests are answered, `port` is then known.

    Without `accounts`, `client` stands for all jobs.
    """

    def __init__(
        self,
        options: Options,
        client: Client,
        *,
        clock: Clock | None = None,
        accounts: Accounts | None = None,
    ) -> None:
        self._options = options
        self._client = client
        self._accounts = accounts
        self._clock: Clock = clock or clock_of(options)
        self._pair: Pair | None = None
        self._serving: Serving | None = None
        self._workers: Workers | None = None
        self._webhook_controller: WebhookController | None = None
        self._paths: PathController | None = None
        self._held: socket.socket | None = None
        self._election: asyncio.Task[None] | None = None
        self.runtime: Runtime | None = None
        self.ready = asyncio.Event()
        self.stop = asyncio.Event()
        self.is_leading = False
        self.port = 0
        self.metrics_port = 0

    async def run(self) -> None:
        """Start everything, wait for `stop`, end everything; raises EngineError when it cannot start."""
        async with AsyncExitStack() as stack:
            metrics = Metrics()
            tell = count_problems(metrics, warner())
            informers = Informers(self._client, clock=self._clock, on_problem=tell)
            stack.push_async_callback(informers.close)
            await self._refuse_beside_kyverno()
            runtime = await make_runtime(
                self._options,
                self._client,
                self._clock,
                informers,
                accounts=self._accounts,
                metrics=metrics,
            )
            self.runtime = runtime
            stack.push_async_callback(runtime.close)
            runtime.background_queue.start()
            stack.push_async_callback(runtime.background_queue.stop)
            self._show_figures(runtime)
            watches = Watches(informers, runtime.cache, runtime.namespace)
            stack.callback(watches.stop)
            kinds = DiscoveryRefresh(runtime.cache.discovery, self._clock)
            kinds.follow(informers)
            kinds.on_change.append(watches.follow_served)
            loops = loops_of(runtime)
            await self._serve_metrics(stack, runtime)
            tasks = await self._tasks(stack, runtime, watches, kinds, loops)
            await self._until_stopped(tasks)
            await self._drain(runtime)

    def _show_figures(self, runtime: Runtime) -> None:
        """Let the gauges of the cluster, of this process and of what it shows be read."""
        metrics = runtime.metrics
        show_world(metrics, runtime.cache, runtime.clock)
        show_process(metrics, "parent")
        metrics.gauge("kpolicy_leading", lambda: [((), float(self.is_leading))])
        metrics.gauge("kpolicy_certificate_expiry_timestamp_seconds", self._ends_of_certificates)

    def _ends_of_certificates(self) -> Iterator[tuple[Labels, float]]:
        if self._pair is not None:
            yield ("webhook",), expiry(self._pair.certificate).timestamp()

    async def _refuse_beside_kyverno(self) -> None:
        """Refuse to act on policies that Kyverno acts on."""
        if self._options.observe_only or not self._options.serves:
            return
        if found := await foreign_webhooks(self._client):
            raise EngineError(
                f"Kyverno's webhooks are in this cluster: {', '.join(found)}",
                help="two engines must not act on the same policies; remove Kyverno, or start with `--observe-only`",
            )

    async def _tasks(
        self,
        stack: AsyncExitStack,
        runtime: Runtime,
        watches: Watches,
        kinds: DiscoveryRefresh,
        loops: Loops,
    ) -> list[asyncio.Task[None]]:
        leads = []
        works = [kinds.run(), loops.run(), self._note_ready(runtime)]
        if self._options.serves:
            works += await self._serve(stack, runtime, watches, kinds, loops)
            if not self._options.observe_only:
                webhook_controller = WebhookController(
                    runtime,
                    self._names(),
                    self._url(),
                    lambda made: self._load(made.leaf),
                    self._paths,
                )
                kinds.on_change.append(webhook_controller.mark)
                leads.append(webhook_controller.lead)
                self._webhook_controller = webhook_controller
        if self._options.loops:
            leads.append(loops.lead)
        tasks = [asyncio.create_task(work) for work in works]
        if leads:
            self._election = asyncio.create_task(self._elect(runtime, leads))
            tasks.append(self._election)
        stack.push_async_callback(ended, tasks)
        return tasks

    async def _serve(
        self,
        stack: AsyncExitStack,
        runtime: Runtime,
        watches: Watches,
        kinds: DiscoveryRefresh,
        loops: Loops,
    ) -> list[Any]:
        """Begin to answer, here or in workers; return what is to run beside it."""
        self._hold_port(stack)
        certificates = await ensure_certificates(
            self._client, runtime.namespace, self._names(), self._clock.now()
        )
        self._pair = certificates.leaf
        watch_certificates(runtime.informers, runtime.namespace, self._load)
        paths = PathController(
            self._client, self._clock, runtime.informers, self._options, self._take_callers
        )
        await paths.start()
        self._paths = paths
        if not self._options.workers:
            self._serving = Serving(runtime, certificates.leaf, sink=loops.sink, port=self.port, shared_port=True, on_outage=paths.outage)  # fmt: skip
            self._serving.take(paths.shared)
            await self._serving.start()
            stack.push_async_callback(self._serving.stop)
            return [paths.run()]
        workers = Workers(
            self._options.workers,
            runtime.cache,
            watches.stores,
            runtime.metrics,
            self._clock,
            lambda: self._setup(runtime),
            on_outage=paths.outage,
        )
        kinds.on_change.append(lambda: workers.tell({"t": "KINDS"}))
        self._workers = workers
        return [workers.run(), paths.run()]

    def _hold_port(self, stack: AsyncExitStack) -> None:
        self._held = reserved_port(self._options.host, self._options.port)
        stack.callback(self._held.close)
        self.port = int(self._held.getsockname()[1])

    def _setup(self, runtime: Runtime) -> dict[str, Any]:
        assert self._pair is not None
        assert self._paths is not None
        return {
            "options": options_message(self._options),
            "port": self.port,
            "key": packed(runtime.key),
            "user": runtime.user,
            "certificate": packed(self._pair.certificate),
            "private": packed(self._pair.key),
            "callers": self._paths.shared.packed(),
        }

    def _url(self) -> str:
        if self._options.server_url == "auto":
            return f"https://127.0.0.1:{self.port}"
        return self._options.server_url

    def _names(self) -> list[str]:
        return list(names_for(self._options.namespace, self._url()))

    def _load(self, pair: Pair) -> None:
        """Have new handshakes answered with a certificate."""
        if pair == self._pair:
            return
        self._pair = pair
        if self._serving is not None:
            self._serving.load(pair)
        if self._workers is not None:
            shown = {"certificate": packed(pair.certificate), "private": packed(pair.key)}
            self._workers.tell({"t": "CERTIFICATE", **shown})

    def _take_callers(self, shared: Shared) -> None:
        """Have requests answered at other paths, and the API server told of them."""
        if self._serving is not None:
            self._serving.take(shared)
        if self._workers is not None:
            self._workers.tell({"t": "CALLERS", "callers": shared.packed()})
        if self._webhook_controller is not None:
            self._webhook_controller.mark()

    async def _note_ready(self, runtime: Runtime) -> None:
        """Set `ready` once everything is known and answered."""
        listed = asyncio.Event()
        runtime.cache.on_listed.append(lambda _: listed.set())
        while not runtime.cache.is_ready:
            await listed.wait()
            listed.clear()
        if self._workers is not None:
            await self._workers.wait_ready()
        settle_memory()
        _log.info("ready")
        self.ready.set()

    async def _elect(self, runtime: Runtime, leads: list[Any]) -> None:
        """Stand for election for as long as we run; whoever leads does all of `leads`."""
        await self.ready.wait()

        async def lead() -> None:
            _log.info("this replica leads")
            self.is_leading = True
            try:
                async with asyncio.TaskGroup() as group:
                    for one in leads:
                        group.create_task(one())
                    group.create_task(asyncio.Event().wait())
            finally:
                self.is_leading = False

        while True:
            election = Election(
                self._client, runtime.namespace, LEASE, runtime.identity, clock=self._clock
            )
            try:
                await election.run(lead)
            except LeadershipLost as error:
                _log.warning("this replica does not lead any more: %s", error.message)
            except Exception:
                # What a loop raises must not end the webhook beside it.
                _log.exception("the loops broke and are started again")
            await self._clock.sleep(RETRY)

    async def _serve_metrics(self, stack: AsyncExitStack, runtime: Runtime) -> None:
        if self._options.metrics_port < 0:
            return
        pages = {"/metrics": lambda: (200, runtime.metrics.exposition())}
        server = WebhookServer(
            Routes(pages=pages), host=self._options.host, port=self._options.metrics_port
        )
        await server.start()
        self.metrics_port = server.port
        stack.push_async_callback(server.stop)

    async def _until_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait until we are to stop; raises what a task raises that should not have ended."""
        stopped = asyncio.create_task(self.stop.wait())
        try:
            waiting: set[asyncio.Task[Any]] = {stopped, *tasks}
            while not stopped.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done - {stopped}:
                    task.result()
        finally:
            stopped.cancel()

    async def _drain(self, runtime: Runtime) -> None:
        """Let another replica lead, and answer for a while yet, so that callers find another one first."""
        _log.info("stopping")
        if self._election is not None:
            await ended([self._election])
        if self._serving is not None:
            self._serving.drain()
            await self._clock.sleep(self._options.drain_seconds)
            await self._serving.stop()
        if self._workers is not None:
            await self._workers.stop(self._options.drain_seconds + LONGEST_TIMEOUT)
        if self._paths is not None:
            await self._paths.leave()
        with suppress(TimeoutError):
            async with asyncio.timeout(AFTERWORK):
                await runtime.background_queue.finish()


async def serve(options: Options, *, stop: asyncio.Event | None = None) -> None:
    """Run a replica until `stop`; raises EngineError when it cannot start."""
    clock = clock_of(options)
    client, accounts = await connected(options, clock)
    try:
        await accounts.prove(clock)
        replica = Replica(options, client, clock=clock, accounts=accounts)
        if stop is not None:
            replica.stop = stop
        await replica.run()
    finally:
        with suppress(KubeError):
            await accounts.close()
            await client.close()
