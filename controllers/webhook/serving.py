"""The webhook server of one process, put together: paths, health, certificates that follow the cluster.

Paths are upstream's (row W-08). Ready means that everything a decision needs is known; until then health says so, and
requests that come all the same are answered by the failure policy of their path.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from controllers.kube.accounts import Job
from controllers.manifests.deploy import SERVICE
from controllers.runtime.running import ended
from controllers.runtime.webhook_routes import stage_at
from engine.model.kinds import CEL_KINDS, PolicyKind

from .audit_events import AuditRecorder
from .caller import Callers
from .clone_marks import CloneMarks
from .existing import ExistingViolations
from .grant_usage import GrantUsage
from .grants import GrantValidator
from .one_time_codes import OneTimeCodes
from .policy_validation import PolicyValidator
from .reviewing import Limits, Reviewer
from .server import Routes, WebhookServer
from .tls import ServerTls

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from controllers.runtime.process import Runtime
    from controllers.runtime.sink import Sink

    from .certificates import Pair
    from .secret_path import Shared

    Judge = Callable[[str, bytes, float], Awaitable[bytes]]
    """What is behind a route: the rest of the path, a body and the seconds that there are, to an answer."""

_log = logging.getLogger(__name__)
_OK = (200, b"ok")
_LIMITS = Limits()


class Serving:
    """A webhook server on a runtime. `start` it, give it certificates as they change, `stop` it."""

    def __init__(
        self,
        runtime: Runtime,
        pair: Pair,
        *,
        sink: Sink | None,
        port: int | None = None,
        shared_port: bool = False,
        limits: Limits = _LIMITS,
        on_outage: Callable[[], None] = lambda: None,
    ) -> None:
        self._runtime = runtime
        self._is_leaving = False
        self._tls, self._on_outage = ServerTls(pair), on_outage
        options = runtime.options
        self._callers = Callers(
            frozenset(options.client_names), now=runtime.clock.now, trusts_path=options.trusts_path
        )
        self._existing = ExistingViolations(runtime.client, runtime.clock)
        self._grant_usage = GrantUsage(
            runtime.cache,
            runtime.client,
            runtime.resolver,
            runtime.clock,
            runtime.namespace,
            runtime.key,
            counting=runtime.connection(Job.GRANTS).client,
            existing=self._existing,
        )
        self._beside: list[asyncio.Task[None]] = []
        self._server = WebhookServer(
            self._routes(sink, limits),
            host=options.host,
            port=options.port if port is None else port,
            tls=self._tls.context,
            shared_port=shared_port,
            callers=self._callers,
            on_outage=on_outage,
            tracer=runtime.tracer,
        )

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._server.port

    @property
    def is_ready(self) -> bool:
        """Whether requests should come here."""
        return self._runtime.cache.is_ready and not self._is_leaving

    async def start(self) -> None:
        """Begin to listen; raises OSError when the port cannot be had."""
        await self._server.start()
        self._beside = [asyncio.create_task(self._grant_usage.run())]
        if self._runtime.tracer is not None:
            self._beside.append(asyncio.create_task(self._runtime.tracer.run()))
        _log.info("webhooks are answered on port %d", self.port)

    def load(self, pair: Pair) -> None:
        """Show another certificate from the next handshake on; one that cannot be used leaves the present one."""
        try:
            if self._tls.load(pair):
                _log.info("a new certificate is in use")
        except (OSError, ValueError):
            _log.exception("the new certificate cannot be used; the present one stays")

    def take(self, shared: Shared) -> None:
        """Go by other paths and another authority of callers from now on."""
        try:
            if shared.authority:
                self._tls.trust(shared.authority)
        except (ssl.SSLError, ValueError):
            _log.exception("the authority of callers cannot be used; nobody is answered")
        self._callers.take(shared)

    def drain(self) -> None:
        """Say that we are leaving: not ready any more, and each connection closed with its next answer."""
        self._is_leaving = True
        self._server.drain()

    async def stop(self) -> None:
        """Finish what is being answered, and close."""
        self.drain()
        await self._server.stop()
        if self._beside:
            await ended(self._beside)
            self._beside = []
            await self._grant_usage.flush()
            if self._runtime.tracer is not None:
                await self._runtime.tracer.flush()

    def _reviewer(self, sink: Sink | None, limits: Limits) -> Reviewer:
        runtime = self._runtime
        return Reviewer(
            runtime.cache,
            runtime.client,
            runtime.resolver,
            runtime.clock,
            runtime.metrics,
            runtime.background_queue,
            key=runtime.key,
            sink=sink,
            limits=limits,
            trust=runtime.trust,
            background_users=runtime.background_users,
            grant_usage=self._grant_usage,
            existing=self._existing,
            on_outage=self._on_outage,
            codes=OneTimeCodes(
                runtime.cache,
                runtime.client,
                runtime.clock,
                runtime.namespace,
                runtime.key,
                runtime.informers,
            ),
        )

    def _routes(self, sink: Sink | None, limits: Limits) -> Routes:
        reviewer = self._reviewer(sink, limits)

        def validate(rest: str, body: bytes, budget: float) -> Awaitable[bytes]:
            return reviewer.review("validate", rest or "all", body, budget)

        def mutate(rest: str, body: bytes, budget: float) -> Awaitable[bytes]:
            return reviewer.review("mutate", rest or "all", body, budget)

        def asked_of(kind: PolicyKind) -> Judge:
            def review(rest: str, body: bytes, budget: float) -> Awaitable[bytes]:
                stage, names = stage_at(kind, rest)
                return reviewer.review(stage, f"{kind.route}/{names}", body, budget)

            return review

        return Routes(
            reviews={
                "validate": validate,
                "mutate": mutate,
                **{kind.route: asked_of(kind) for kind in CEL_KINDS if kind.route},
                **self._validators(),
            },
            pages={"/health/liveness": lambda: _OK, "/health/readiness": self._readiness},
        )

    def _validators(self) -> dict[str, Judge]:
        """Return by route what judges the objects that policies and grants are written as, ours and their labels."""
        runtime = self._runtime
        grants = GrantValidator(runtime.client, runtime.clock, runtime.key, runtime.cache.discovery)
        audit_recorder = AuditRecorder(
            runtime.client, runtime.clock, runtime.namespace, runtime.key, runtime.jobs_of, runtime.cache.discovery
        )  # fmt: skip
        validator = PolicyValidator(
            runtime.cache,
            runtime.client,
            background=runtime.connection(Job.BACKGROUND).client,
            cleanup=runtime.connection(Job.CLEANUP).client,
            user=runtime.user_of(Job.BACKGROUND),
            clock=runtime.clock,
            jobs_of=runtime.jobs_of,
        )
        return {
            "policyvalidate": validator.policy,
            "policymutate": CloneMarks(runtime.cache, validator.authors, runtime.jobs_of).review,
            "exceptionvalidate": validator.exception,
            "celexception": validator.exception,
            "cleanupvalidate": validator.cleanup,
            "grantvalidate": grants.review,
            "auditnote": audit_recorder.review,
            "globalcontextvalidate": validator.entry,
            "verifymutate": validator.nothing,
            "verifyttl": validator.label,
        }

    def _readiness(self) -> tuple[int, bytes]:
        if self._is_leaving:
            return 503, b"leaving"
        missing = self._runtime.cache.missing
        return (
            (503, f"not listed or not followed: {', '.join(missing)}".encode()) if missing else _OK
        )


def names_for(namespace: str, url: str = "") -> Sequence[str]:
    """Return the host names that the API server may call us by."""
    names = [f"{SERVICE}.{namespace}.svc", SERVICE, f"{SERVICE}.{namespace}"]
    host = urlsplit(url).hostname if url else None
    return [*names, host] if host else names
