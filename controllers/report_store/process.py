"""One store put together: database, feed, rights, certificate and socket, started in order and ended in order."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, Clock, KubeError, connect, load_access
from controllers.kube.clock import ServerClock
from controllers.webhook.tls import ServerTls, authorities_in
from engine.errors import EngineError

from .api import Api
from .feed import Feed
from .front import Front
from .identity import announce, kept_certificates, names_for, trusted_bundle
from .requester import FrontProxy, Requester, front_proxy
from .rights import Rights
from .storage import Storage

if TYPE_CHECKING:
    from aiohttp import web

    from controllers.webhook.certificates import Certificates

    from .settings import Settings

UPKEEP_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


class AuthoritiesChanged(EngineError):  # noqa: N818 - says what happened; whoever runs the store starts it anew
    """The API server is known by other authorities than at the start, and the old ones must not count any more."""


class Store:
    """A store; `run` it until `stop` is set. `ready` is set when requests are answered, `port` is then known."""

    def __init__(self, settings: Settings, client: Client, clock: Clock) -> None:
        self._settings, self._client, self._clock = settings, client, clock
        self._storage = Storage(settings.database, clock)
        self._tls: ServerTls | None = None
        self.ready = asyncio.Event()
        self.port = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Serve; raises EngineError when it cannot start, or has to start anew."""
        settings = self._settings
        proxy = await front_proxy(self._client)
        async with AsyncExitStack() as stack:
            await self._storage.start()
            stack.push_async_callback(self._storage.close)
            certificates = await self._certificates()
            self._tls = ServerTls(certificates.leaf, authorities_in(proxy.authorities))
            feed = Feed(self._storage, self._clock)
            rights = Rights(self._client, self._clock, settings.namespace, settings.writers)
            api = Api(self._storage, feed, rights, self._clock)
            front = Front(
                api,
                partial(_who, proxy),
                host=settings.host,
                port=settings.port,
                tls=self._tls.context,
            )
            await front.start()
            stack.push_async_callback(front.stop)
            stack.callback(feed.end_all)
            self.port = front.port
            tasks = [asyncio.create_task(work) for work in (feed.run(), self._upkeep(proxy))]
            stack.push_async_callback(_ended, tasks)
            _log.info("reports are served on port %d", self.port)
            self.ready.set()
            await _first([asyncio.create_task(stop.wait()), *tasks])

    async def _certificates(self) -> Certificates:
        """Return the certificates to show, and tell the API server to trust them as far as it can be told now."""
        trusted = b""
        with suppress(KubeError):
            trusted = await trusted_bundle(self._client)
        names, now = names_for(self._settings.namespace), self._clock.now()
        found = await self._storage.within(
            lambda session: kept_certificates(session, names, now, trusted)
        )
        try:
            await announce(self._client, found.bundle)
        except KubeError as error:
            _log.warning("the APIServices cannot be told whom to trust: %s", error.message)
        return found

    async def _upkeep(self, proxy: FrontProxy) -> None:
        """Keep database, certificate and trust in order until cancelled; raises AuthoritiesChanged."""
        assert self._tls is not None
        while True:
            await self._clock.sleep(UPKEEP_SECONDS)
            try:
                await self._storage.forget()
                self._tls.load((await self._certificates()).leaf)
                is_changed = await front_proxy(self._client) != proxy
            except KubeError as error:
                _log.warning("upkeep is put off: %s", error.message)
                continue
            if is_changed:
                raise AuthoritiesChanged(
                    "the API server is known by another authority now",
                    help="start the store again, as a Deployment does by itself",
                )


def _who(proxy: FrontProxy, certificate: Any, request: web.BaseRequest) -> Requester | None:
    return proxy.requester(certificate, request.headers)


async def _first(tasks: list[asyncio.Task[Any]]) -> None:
    """Wait for the first task that ends; raises what it raises."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    tasks[0].cancel()
    for task in done:
        task.result()


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Run a store until `stop`; raises EngineError when it cannot start."""
    clock = ServerClock()
    client = connect(load_access(settings.kubeconfig, settings.context or None), clock=clock)
    try:
        await Store(settings, client, clock).run(stop)
    finally:
        with suppress(KubeError):
            await client.close()
